// What the bindings share: array types and checks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/turns.hpp"

namespace pm_bind {

namespace nb = nanobind;

template <class T, class... Shape>
using Array = nb::ndarray<T, nb::numpy, nb::c_contig, nb::device::cpu, Shape...>;
template <class T>
using Vector = Array<T, nb::ndim<1>>;
template <class T>
using Matrix2 = Array<T, nb::ndim<2>>;

inline void require(bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
}

// A NumPy array that owns the values.
template <class A, class T>
A array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
    auto* kept = new std::vector<T>(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return A(kept->data(), shape, owner);
}
template <class T>
Matrix2<T> matrix_of(std::vector<T> values, std::size_t rows, std::size_t columns) {
    return array_of<Matrix2<T>>(std::move(values), {rows, columns});
}
template <class T>
Vector<T> vector_of(std::vector<T> values) {
    const std::size_t size = values.size();
    return array_of<Vector<T>>(std::move(values), {size});
}

// The method of a pm::OneUser, for the only user.
template <class C, class R, class... A>
auto alone(R (C::*method)(A...)) {
    return [method](C& self, A... arguments) -> R {
        const pm::OneUser::Use use(self);
        return (self.*method)(std::forward<A>(arguments)...);
    };
}

}  // namespace pm_bind
