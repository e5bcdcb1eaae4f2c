// Kernel values from inner products, in one pass over memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/simd.hpp"

namespace pm {

// exp(x) = scale (1 + rest) for x <= 0, to a few roundings; what underflows becomes tiny instead of
// zero. Without branches or calls, so that compilers turn loops over it into vector code: x = n log
// 2 + r with |r| <= log(2) / 2, a Taylor series in r, and n added to the exponent's bits.
template <class T>
struct ExpOfNegative {
    T scale, rest;

    explicit PM_INLINE ExpOfNegative(T x) {
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
        x = x < lowest ? lowest : x;  // NaN stays
        const T shifted = x * T(1.4426950408889634) + magic;
        const T n = shifted - magic;
        const T r = (x - n * high) - n * low;
        T sum = T(1);
        PM_UNROLL for (int k = degree; k >= 2; --k) sum = T(1) + sum * r * (T(1) / T(k));
        rest = r * sum;
        const Bits exponent = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(magic);
        scale = std::bit_cast<T>((exponent + bias) << digits);
    }
    PM_INLINE T value() const { return (T(1) + rest) * scale; }
    PM_INLINE T minus_one() const { return (scale - T(1)) + scale * rest; }  // no digits are lost
};

// tanh(x) = -e / (2 + e), e = exp(-2 |x|) - 1.
template <class T>
PM_INLINE T tanh_of(T x) {
    const T e = ExpOfNegative<T>(T(-2) * std::abs(x)).minus_one();
    return std::copysign(-e / (T(2) + e), x);
}

// out_j <- x_j^n: loops that compilers turn into vector code, a few values at a time.
template <class T>
void integer_powers(const T* x, std::int64_t count, int n, T* out) {
    constexpr std::int64_t at_once = 256;
    T square[at_once], power[at_once];
    for (std::int64_t first = 0; first < count; first += at_once) {
        const std::int64_t m = std::min(at_once, count - first);
        std::copy_n(x + first, m, square);
        std::fill_n(power, m, T(1));
        for (int left = n; left > 0; left >>= 1) {
            if (left & 1)
                for (std::int64_t j = 0; j < m; ++j) power[j] *= square[j];
            for (std::int64_t j = 0; j < m; ++j) square[j] *= square[j];
        }
        std::copy_n(power, m, out + first);
    }
}

// scikit-learn's kernels: x.z, exp(-gamma ||x - z||^2), (gamma x.z + coef0)^degree and
// tanh(gamma x.z + coef0).
struct Kernel {
    enum Kind { linear, rbf, poly, sigmoid };

    Kind kind = linear;
    double gamma = 1, degree = 3, coef0 = 0;

    static Kind named(const std::string& name) {
        constexpr const char* names[] = {"linear", "rbf", "poly", "sigmoid"};
        for (int kind = linear; kind <= sigmoid; ++kind)
            if (name == names[kind]) return Kind(kind);
        throw std::invalid_argument("unknown kernel: " + name);
    }

    // k(x, x), from ||x||^2.
    double diagonal(double squared_norm) const {
        const double inner = gamma * squared_norm + coef0;
        switch (kind) {
            case rbf:
                return 1;
            case poly:
                return std::pow(inner, degree);
            case sigmoid:
                return std::tanh(inner);
            default:
                return squared_norm;
        }
    }

    // k(x, z_j) of one x, from inner products, which `out` may be, and squared norms.
    template <class T>
    void row(const T* products, std::int64_t count, T norm, const T* norms, T* out) const {
        switch (kind) {
            case rbf:
                return rbf_row(products, count, norm, norms, out);
            case poly:
                return poly_row(products, count, out);
            case sigmoid:
                for (std::int64_t j = 0; j < count; ++j)
                    out[j] = tanh_of(T(gamma) * products[j] + T(coef0));
                return;
            default:
                if (out != products) std::copy_n(products, count, out);
        }
    }

  private:
    template <class T>
    void rbf_row(const T* products, std::int64_t count, T norm, const T* norms, T* out) const {
        const T g = T(gamma);
        for (std::int64_t j = 0; j < count; ++j) {
            const T distance = (norm + norms[j]) - T(2) * products[j];
            out[j] = ExpOfNegative<T>(-g * (distance < T(0) ? T(0) : distance)).value();
        }
    }

    template <class T>
    void poly_row(const T* products, std::int64_t count, T* out) const {
        constexpr double largest = 32;  // more products would cost digits
        for (std::int64_t j = 0; j < count; ++j) out[j] = T(gamma) * products[j] + T(coef0);
        if (degree == std::floor(degree) && degree <= largest)
            return integer_powers(out, count, int(degree), out);
        for (std::int64_t j = 0; j < count; ++j) out[j] = std::pow(out[j], T(degree));
    }
};

// Kernel values from inner products K, in place, with the squared norms of both sides.
template <class T>
void values_from_products(const Kernel& kernel, T* K, std::int64_t rows, std::int64_t columns,
                          const T* a_norms, const T* b_norms) {
    for (std::int64_t i = 0; i < rows; ++i)
        kernel.row(K + i * columns, columns, a_norms[i], b_norms, K + i * columns);
}

}  // namespace pm
