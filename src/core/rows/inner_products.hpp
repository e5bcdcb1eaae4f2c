// Inner products of a dense row with several others.
#pragma once

#include <cstdint>

#include "base/simd.hpp"

namespace pm {

// x.z_r of N rows z_r: two chains of sums each, which hides the latency of an addition.
template <int N, class T>
PM_INLINE void inner_products(const T* x, const T* const* rows, std::int64_t d, T* out) {
    using V = Vec<T>;
    constexpr int lanes = kLanes<T>;
    V even[N], odd[N];
    PM_UNROLL for (int r = 0; r < N; ++r) even[r] = odd[r] = V::set1(T(0));
    std::int64_t k = 0;
    for (; k + 2 * lanes <= d; k += 2 * lanes) {
        const V x0 = V::load(x + k), x1 = V::load(x + k + lanes);
        PM_UNROLL for (int r = 0; r < N; ++r) {
            even[r] = V::fma(x0, V::load(rows[r] + k), even[r]);
            odd[r] = V::fma(x1, V::load(rows[r] + k + lanes), odd[r]);
        }
    }
    PM_UNROLL for (int r = 0; r < N; ++r) out[r] = (even[r] + odd[r]).sum();
    for (; k < d; ++k)
        for (int r = 0; r < N; ++r) out[r] += x[k] * rows[r][k];
}

// The same of any number of rows, row(0..count-1).
template <class T, class Rows>
PM_INLINE void inner_products_of(const T* x, Rows&& row, std::int64_t count, std::int64_t d,
                                 T* out) {
    constexpr int at_once = 4;
    const T* rows[at_once];
    std::int64_t j = 0;
    for (; j + at_once <= count; j += at_once) {
        for (int r = 0; r < at_once; ++r) rows[r] = row(j + r);
        inner_products<at_once>(x, rows, d, out + j);
    }
    for (; j < count; ++j) {
        rows[0] = row(j);
        inner_products<1>(x, rows, d, out + j);
    }
}

}  // namespace pm
