// A loss as Python holds it.
#pragma once

#include <memory>
#include <string>

#include "bindings/common.hpp"
#include "losses/table.hpp"
#include "restricted/choice.hpp"

namespace pm_bind {

struct Loss {
    // Margins between classes: a matrix without rows stands for none, which are all 1.
    Loss(const std::string& name, int top_k, double smoothing, Matrix2<const double> margins)
        : any(pm::make_loss(name, {top_k, smoothing, table_of(margins)})) {}
    pm::AnyLoss any;

    void require_margins_for(int n_classes) const {
        require(std::visit([&](const auto& l) { return pm::has_margins_for(l, n_classes); }, any),
                "there are more classes than margins");
    }

  private:
    static std::shared_ptr<const pm::MarginTable> table_of(Matrix2<const double> margins) {
        const auto n = margins.shape(0);
        if (n == 0) return nullptr;
        require(margins.shape(1) == n, "margins must be a square matrix");
        return std::make_shared<const pm::MarginTable>(margins.data(), static_cast<int>(n));
    }
};

template <class T>
pm::Method<T> named_method(const pm::AnyLoss& loss, const std::string& name) {
    pm::Method<T> method = nullptr;
    require(pm::find_method(loss, name, method), "no such method for this loss");
    return method;
}

}  // namespace pm_bind
