// A loss as Python holds it.
#pragma once

#include <string>

#include "bindings/common.hpp"
#include "losses/any_loss.hpp"
#include "restricted/choice.hpp"

namespace pm_bind {

struct Loss {
    // Margins between classes: a matrix without rows stands for none, which are all 1.
    Loss(const std::string& name, int top_k, double smoothing, Matrix2<const double> margins);
    pm::LossPointer any;

    void require_margins_for(int n_classes) const {
        require(pm::has_margins_for(*any, n_classes), "there are more classes than margins");
    }
};

template <class T>
pm::Method<T> named_method(const pm::AnyLoss& loss, const std::string& name) {
    pm::Method<T> method = nullptr;
    require(pm::find_method(loss, name, method), "no such method for this loss");
    return method;
}

}  // namespace pm_bind
