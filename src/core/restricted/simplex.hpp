// Projection onto the simplex {p >= 0, sum p = z}: what its five methods share.
//
//     p = max(v - tau, 0)   with   phi(tau) = sum_j max(v_j - tau, 0) - z = 0
// (Blondel 2014, lemma 2). phi is convex and decreasing, and as the largest entry alone contributes
// at most z, max(v) - z <= tau <= max(v) - z / n. A method is a struct with
//     template <class T> static double threshold(const T* v, std::int64_t n, double z,
//                                                SimplexWork<T>& work);
// which returns tau. All sums are in double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/simd.hpp"

namespace pm {

// Scratch and settings of a simplex projection; one per thread.
template <class T>
struct SimplexWork {
    std::vector<T> shifted;                        // v - max(v)
    std::vector<T> listed, waiting;                // what a method keeps of v
    double guess = -kInfinity<double>;             // newton: a threshold that may be close
    double tol = 0;                                // bisection: |phi| <= tol * z
    std::uint64_t random = 0x9e3779b97f4a7c15ULL;  // pivot: the state of its generator, not zero

    // A buffer with room for n entries; methods take what they need, as large ones cost more to
    // allocate than to fill.
    static T* room(std::vector<T>& buffer, std::int64_t n) {
        if (std::int64_t(buffer.size()) < n) buffer.resize(static_cast<std::size_t>(n));
        return buffer.data();
    }
};

template <class T>
inline constexpr bool kIsDouble = sizeof(T) == sizeof(double);

// kLanes<double> entries as doubles.
template <class T>
PM_INLINE Vec<double> load_doubles(const T* p) {
    if constexpr (kIsDouble<T>) {
        return Vec<double>::load(p);
    } else {
        Vec<double> wide;
#if defined(__GNUC__) || defined(__clang__)
        typedef float half __attribute__((vector_size(kVectorBytes / 2)));
        half narrow;
        std::memcpy(&narrow, p, sizeof(half));
        wide.v = __builtin_convertvector(narrow, Vec<double>::native);
#else
        for (int l = 0; l < kLanes<double>; ++l) wide.v[l] = double(p[l]);
#endif
        return wide;
    }
}

template <class T>
PM_INLINE void store_doubles(Vec<double> wide, T* p) {
    if constexpr (kIsDouble<T>) {
        wide.store(p);
    } else {
#if defined(__GNUC__) || defined(__clang__)
        typedef float half __attribute__((vector_size(kVectorBytes / 2)));
        const half narrow = __builtin_convertvector(wide.v, half);
        std::memcpy(p, &narrow, sizeof(half));
#else
        for (int l = 0; l < kLanes<double>; ++l) p[l] = T(wide.v[l]);
#endif
    }
}

// The largest T that is <= x.
template <class T>
PM_INLINE T round_down(double x) {
    const T y = T(x);
    return double(y) <= x ? y : std::nextafter(y, -kInfinity<T>);
}

template <class T>
struct RowScan {
    T max;
    bool finite;  // and small enough that sums of entries do not overflow
};

template <class T>
RowScan<T> scan_row(const T* v, std::int64_t n) {
    using V = Vec<T>;
    const T scale = kIsDouble<T> ? T(1e8) : T(1);  // double: refuses what exceeds about 1e300
    T best = v[0], nothing = T(0);                 // NaN and infinity times zero are NaN
    std::int64_t j = 0;
    if (n >= kLanes<T>) {
        V top = V::load(v), zeros = V::set1(T(0));
        const V factor = V::set1(scale), zero = V::set1(T(0));
        for (; j + kLanes<T> <= n; j += kLanes<T>) {
            const V x = V::load(v + j);
            top = V::max(top, x);
            zeros = zeros + x * factor * zero;
        }
        best = top.maximum();
        nothing = zeros.sum();
    }
    for (; j < n; ++j) {
        best = v[j] > best ? v[j] : best;
        nothing += v[j] * scale * T(0);
    }
    return {best, nothing == T(0)};
}

template <class T>
T largest(const T* v, std::int64_t n) {
    return scan_row(v, n).max;
}

// Sum and number of the entries of v - shift - t that are positive.
struct Excess {
    double sum;
    std::int64_t count;
};

template <class T>
PM_INLINE Excess excess_above(const T* v, std::int64_t n, double shift, double t) {
    using V = Vec<double>;
    constexpr int lanes = kLanes<double>;
    const V by = V::set1(shift), low = V::set1(t), zero = V::set1(0.0), one = V::set1(1.0);
    V sum_a = zero, sum_b = zero, count_a = zero, count_b = zero;
    std::int64_t j = 0;
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
        const V a = load_doubles(v + j) - by, b = load_doubles(v + j + lanes) - by;
        sum_a = sum_a + V::max(a - low, zero);
        sum_b = sum_b + V::max(b - low, zero);
        count_a = count_a + V::where_greater(a, low, one);
        count_b = count_b + V::where_greater(b, low, one);
    }
    double sum = (sum_a + sum_b).sum(), count = (count_a + count_b).sum();
    for (; j < n; ++j) {
        const double x = double(v[j]) - shift;
        sum += x > t ? x - t : 0.0;
        count += x > t ? 1.0 : 0.0;
    }
    return {sum, static_cast<std::int64_t>(count)};
}

// out = max(v - shift - t, 0); returns its sum.
template <class T>
double write_excess(const T* v, std::int64_t n, double shift, double t, T* out) {
    using V = Vec<double>;
    constexpr int lanes = kLanes<double>;
    const V by = V::set1(shift), low = V::set1(t), zero = V::set1(0.0);
    V sum = zero;
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
        const V p = V::max(load_doubles(v + j) - by - low, zero);
        store_doubles(p, out + j);
        sum = sum + p;
    }
    double total = sum.sum();
    for (; j < n; ++j) {
        const double x = double(v[j]) - shift - t;
        out[j] = T(x > 0 ? x : 0.0);
        total += x > 0 ? x : 0.0;
    }
    return total;
}

// p = max(v - shift - t, 0) with the sum z to rounding; returns t. What rounding left over is a
// Newton step in t away; what a loose tolerance left over is removed by scaling.
template <class T>
double write_projection(const T* v, std::int64_t n, double shift, double t, double z, T* p) {
    constexpr double rounding = 8.0 * std::numeric_limits<T>::epsilon();
    constexpr double loose = 1e-7;
    double total = write_excess(v, n, shift, t, p);
    if (std::abs(total - z) <= rounding * z) return t;
    if (std::abs(total - z) <= loose * z) {
        const Excess excess = excess_above(v, n, shift, t);
        t += (excess.sum - z) / double(excess.count);
        total = write_excess(v, n, shift, t, p);
    }
    const double factor = z / total;
    for (std::int64_t j = 0; j < n; ++j) p[j] = T(double(p[j]) * factor);
    return t;
}

// p of one row; returns tau. Only entries within z of the largest can be positive, and v - max(v)
// is exact to the rounding of z for those: so the answer is as accurate for huge v as for small.
template <class Method, class T>
double project_simplex(const T* v, std::int64_t n, double z, T max, T* p, SimplexWork<T>& work) {
    double t;
    if constexpr (requires { Method::template shifted_threshold<T>; }) {
        t = Method::template shifted_threshold<T>(v, n, double(max), z, work);
    } else {
        T* shifted = work.room(work.shifted, n);
        for (std::int64_t j = 0; j < n; ++j) shifted[j] = v[j] - max;
        t = Method::threshold(shifted, n, z, work);
    }
    return double(max) + write_projection(v, n, double(max), t, z, p);
}

}  // namespace pm
