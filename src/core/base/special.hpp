// Exponential, logarithm and Wright's omega function, on vectors, to a few units in the last place.
//
// Omega is the x > 0 with x + log x = z: about e^z where z is small, z - log z where it is large.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/simd.hpp"

namespace pm {

template <class T>
struct FloatFormat;
template <>
struct FloatFormat<double> {
    using Bits = std::uint64_t;
    static constexpr int mantissa = 52, most_exponent = 1024;
    static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: x + magic is x, rounded
    static constexpr double ln2_high = 6.93147180369123816490e-01;
    static constexpr double ln2_low = 1.90821492927058770002e-10;
    static constexpr double range = 700;  // of arguments of exp
    static constexpr int exp_terms = 13, log_terms = 11, omega_steps = 2;
};
template <>
struct FloatFormat<float> {
    using Bits = std::uint32_t;
    static constexpr int mantissa = 23, most_exponent = 128;
    static constexpr float magic = 12582912.0f;  // 1.5 * 2^23
    static constexpr float ln2_high = 0.693359375f;
    static constexpr float ln2_low = -2.12194440e-4f;
    static constexpr float range = 80;
    static constexpr int exp_terms = 7, log_terms = 5, omega_steps = 1;
};

#if defined(__GNUC__) || defined(__clang__)

// a > b ? c : d, lane by lane
template <class T>
PM_INLINE Vec<T> select_greater(Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d) {
    return {a.v > b.v ? c.v : d.v};
}

template <class T>
struct VectorBits {
    using F = FloatFormat<T>;
    typedef typename F::Bits native __attribute__((vector_size(kVectorBytes)));

    static PM_INLINE native of(Vec<T> x) { return std::bit_cast<native>(x.v); }
    static PM_INLINE Vec<T> value(native bits) {
        return {std::bit_cast<typename Vec<T>::native>(bits)};
    }
};

// 0 below -range, e^range above range.
template <class T>
PM_INLINE Vec<T> exp(Vec<T> x) {
    using V = Vec<T>;
    using F = FloatFormat<T>;
    using B = VectorBits<T>;
    const V low = V::set1(-F::range), magic = V::set1(F::magic);
    const V z = V::max(V::min(x, V::set1(F::range)), low);
    const V shifted = V::fma(z, V::set1(T(1.4426950408889634)), magic);
    const V n = shifted - magic;
    const V r = V::fma(n, V::set1(-F::ln2_low), V::fma(n, V::set1(-F::ln2_high), z));
    double inverse[F::exp_terms + 1] = {1};  // of the factorials
    for (int k = 1; k <= F::exp_terms; ++k) inverse[k] = inverse[k - 1] / k;
    V sum = V::set1(T(inverse[F::exp_terms]));
    PM_UNROLL for (int k = F::exp_terms - 1; k >= 0; --k) sum =
        V::fma(sum, r, V::set1(T(inverse[k])));
    return V::where_greater(x, low, B::value(B::of(sum) + (B::of(shifted) << F::mantissa)));
}

// Of positive numbers that are not subnormal.
template <class T>
PM_INLINE Vec<T> log(Vec<T> x) {
    using V = Vec<T>;
    using F = FloatFormat<T>;
    using B = VectorBits<T>;
    constexpr typename F::Bits offset = F::most_exponent;  // keeps exponents positive
    const auto bits = B::of(x);
    const auto root = B::of(V::set1(T(0.70710678118654752)));
    const auto exponent = (bits - root + (offset << F::mantissa)) >> F::mantissa;
    const V n = B::value(exponent + B::of(V::set1(F::magic))) - V::set1(F::magic + T(offset));
    const V f = B::value(bits - ((exponent - offset) << F::mantissa)) - V::set1(T(1));
    const V s = f / (f + V::set1(T(2))), square = s * s;  // log(1 + f) = 2 artanh(s)
    V sum = V::set1(T(2.0 / (2 * F::log_terms - 1)));
    PM_UNROLL for (int k = F::log_terms - 1; k > 0; --k) sum =
        V::fma(sum, square, V::set1(T(2.0 / (2 * k - 1))));
    return V::fma(n, V::set1(F::ln2_high), V::fma(n, V::set1(F::ln2_low), sum * s));
}

#else

template <class T>
PM_INLINE Vec<T> select_greater(Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d) {
    Vec<T> r;
    for (int i = 0; i < kLanes<T>; ++i)
        r.v.lane[i] = a.v.lane[i] > b.v.lane[i] ? c.v.lane[i] : d.v.lane[i];
    return r;
}
template <class T>
PM_INLINE Vec<T> exp(Vec<T> x) {
    constexpr T range = FloatFormat<T>::range;
    return Vec<T>::map(x, x,
                       [](T z, T) { return z > -range ? std::exp(z < range ? z : range) : T(0); });
}
template <class T>
PM_INLINE Vec<T> log(Vec<T> x) {
    return Vec<T>::map(x, x, [](T z, T) { return std::log(z); });
}

#endif

// One step towards omega(z) from an x nearby; the error falls to about its fourth power (Fritsch,
// Shafer and Crowley 1973).
template <class T>
PM_INLINE Vec<T> improved_omega(Vec<T> x, Vec<T> z) {
    using V = Vec<T>;
    const V two = V::set1(T(2)), r = z - x - log(x), t = x + V::set1(T(1));
    const V e = two * t * V::fma(r, V::set1(T(2.0 / 3)), t);
    return V::fma(x, r * (e - r) / (t * (e - two * r)), x);
}

// For z > -range; below, as if it were -range.
template <class T>
PM_INLINE Vec<T> omega(Vec<T> given) {
    using V = Vec<T>;
    using F = FloatFormat<T>;
    const auto number = [](double x) { return V::set1(T(x)); };
    const V one = number(1), z = V::max(given, number(-F::range + 1));
    const V u = exp(V::min(z, one));
    const V small = u * V::fma(u, number(4.0 / 3), one) /
                    V::fma(u, V::fma(u, number(5.0 / 6), number(7.0 / 3)), one);
    const V d = z - one;
    const V middle =
        V::fma(d, V::fma(d, V::fma(d, number(-1.0 / 192), number(1.0 / 16)), number(0.5)), one);
    const V logarithm = log(V::max(z, one));
    const V large = z - logarithm + logarithm / V::max(z, one);
    V x = select_greater(z, number(5), large, select_greater(z, number(-1), middle, small));
    PM_UNROLL for (int step = 0; step < F::omega_steps; ++step) x = improved_omega(x, z);
    return x;
}

}  // namespace pm
