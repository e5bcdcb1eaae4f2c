// The start of a dense dual: p_ij = a c_i for all wrong classes, whose V costs a look at the data.
//
// At W = 0 all classes are equally likely, and the best block is p_ij = c_i / K. A part of the way
// there, V = a sum_i c_i x_i (K e_{y_i} - 1)^T: sums of the rows by class.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rows/rows.hpp"
#include "sweeps/class_ranges.hpp"

namespace pm {

// Whether an example has a dual variable at all.
template <class T>
PM_INLINE bool takes_part(const Examples<T>& ex, std::int64_t i) {
    return ex.c[i] > 0 && ex.squared_norm[i] > 0;
}

// V, which is zero, becomes sum_i c_i x_i (K e_y - 1)^T.
template <class Matrix, class T>
void spread_weights(const Matrix& X, const Examples<T>& ex, T* V, std::int64_t ld) {
    const std::int64_t d = X.d + (X.bias != T(0) ? 1 : 0);
    const T K = T(ex.n_classes);
    for (std::int64_t r = 0; r < X.n; ++r) {
        const std::int64_t i = X.held.example_at(r);
        if (!takes_part(ex, i)) continue;
        const auto x = X.row(i);
        T* own = V + ex.y[i];
        const T c = T(ex.c[i]);
        for (std::int64_t e = 0; e < x.count; ++e) own[x.feature(e) * ld] += c * x.value(e);
        if (X.bias != T(0)) own[X.d * ld] += c * X.bias;
    }
    for (std::int64_t f = 0; f < d; ++f) {
        T *v = V + f * ld, total = T(0);
        for (int j = 0; j < ex.n_classes; ++j) total += v[j];
        for (int j = 0; j < ex.n_classes; ++j) v[j] = K * v[j] - total;
    }
}

// p_ij = a c_i for all wrong classes of all examples.
template <class T>
void spread_dual(const Examples<T>& ex, DualRows<T>& dual, double a) {
    for (std::int64_t i = 0; i < dual.size(); ++i) {
        if (!takes_part(ex, i)) continue;
        T* p = dual.fill(i);
        std::fill_n(p, ex.n_classes, T(a * ex.c[i]));
        std::fill(p + ex.n_classes, p + dual.stride(), T(0));
        p[ex.y[i]] = T(0);
    }
}

}  // namespace pm
