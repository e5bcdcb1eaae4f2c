// Kernel values from inner products, in one pass over memory.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/simd.hpp"

namespace pm {

// exp(x) for x <= 0, to a few roundings; what underflows becomes tiny instead of zero. Without
// branches or calls, so that compilers turn loops over it into vector code: x = n log 2 + r with
// |r| <= log(2) / 2, a Taylor series in r, and n added to the exponent's bits.
template <class T>
PM_INLINE T exp_of_negative(T x) {
    constexpr bool wide = sizeof(T) == 8;
    using Bits = std::conditional_t<wide, std::int64_t, std::int32_t>;
    constexpr T magic = wide ? T(6755399441055744.0) : T(12582912.0);  // 1.5 * 2^(digits - 1)
    constexpr int digits = wide ? 52 : 23;
    constexpr Bits bias = wide ? 1023 : 127;
    constexpr int degree = wide ? 13 : 7;
    // log 2 in two parts, the first with zeros at its end: n times it is exact
    constexpr T high = wide ? T(0x1.62e42fee00000p-1) : T(0x1.62e000p-1);
    constexpr T low = wide ? T(0x1.a39ef35793c76p-33) : T(0x1.0bfbe8p-15);
    constexpr T lowest = wide ? T(-708.0) : T(-87.0);
    x = x > lowest ? x : lowest;
    const T shifted = x * T(1.4426950408889634) + magic;
    const T n = shifted - magic;
    const T r = (x - n * high) - n * low;
    T sum = T(1);
    PM_UNROLL for (int k = degree; k >= 1; --k) sum = T(1) + sum * r * (T(1) / T(k));
    const Bits exponent = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(magic);
    return sum * std::bit_cast<T>((exponent + bias) << digits);
}

// K_ij <- exp(-gamma max(a_i + b_j - 2 K_ij, 0)), where K holds inner products and a, b squared
// norms.
template <class T>
void rbf_from_products(T* K, std::int64_t rows, std::int64_t columns, const T* a, const T* b,
                       T gamma) {
    for (std::int64_t i = 0; i < rows; ++i) {
        T* row = K + i * columns;
        const T norm = a[i];
        for (std::int64_t j = 0; j < columns; ++j) {
            const T distance = (norm + b[j]) - T(2) * row[j];
            row[j] = exp_of_negative(-gamma * (distance > T(0) ? distance : T(0)));
        }
    }
}

}  // namespace pm
