// What the bindings share: array types and checks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <stdexcept>

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

}  // namespace pm_bind
