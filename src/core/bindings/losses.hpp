// A loss as Python holds it.
#pragma once

#include <string>

#include "bindings/common.hpp"
#include "losses/table.hpp"
#include "restricted/methods.hpp"

namespace pm_bind {

struct Loss {
    Loss(const std::string& name, int top_k, double smoothing)
        : any(pm::make_loss(name, {top_k, smoothing})) {}
    pm::AnyLoss any;
};

template <class T>
pm::Method<T> named_method(const pm::AnyLoss& loss, const std::string& name) {
    pm::Method<T> method = nullptr;
    require(pm::find_method(loss, name, method), "no such method for this loss");
    return method;
}

}  // namespace pm_bind
