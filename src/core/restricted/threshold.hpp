// The threshold equation (docs/mathematics.md), solved by a safeguarded Newton iteration.
//
// The restricted problem  min 1/2 (||p||^2 + (sum p)^2) - b.p  over  0 <= p_j <= u, sum p <= s
// has the answer p = clip(b - t, 0, u) for any root t of
//     f(t) = sum_j clip(b_j - t, 0, u) - min(t, s) = 0 .
// f is piecewise linear and decreasing; on the piece that holds t, with M the free classes
// (0 < b - t < u) and U those at their bound, the root is
//     t = (sum_M b + |U| u) / (1 + |M|)        where t < s,
//     t = (sum_M b + |U| u - s) / |M|          where t >= s.
// Newton jumps from piece to piece; a bracket catches the cycles an unguarded one runs into.
//
// Smoothed losses have w ||p||^2 + rho (sum p)^2 instead: with p = clip((b - t) / w, 0, u) the sum
// becomes min(t / rho, s), so that sum_j clip(b_j - t, 0, w u) = min(w / rho t, w s). The functions
// here take w u for u, w s for s, and the `rise` w / rho of the right side: 1 where w = rho = 1.
#pragma once

#include <limits>

#include "base/simd.hpp"

namespace pm {

template <class T>
struct ThresholdPiece {
    T free_sum;    // sum of b over M
    T free_count;  // |M|
    T full_count;  // |U|
};

template <bool Capped, class T>
PM_INLINE ThresholdPiece<T> threshold_piece(const T* b, int padded, T t, T u) {
    using V = Vec<T>;
    constexpr int chains = 2;  // of sums: they hide the latency
    const V low = V::set1(t), high = V::set1(t + u), one = V::set1(T(1)), zero = V::set1(T(0));
    V sum[chains] = {zero, zero}, count[chains] = {zero, zero}, full[chains] = {zero, zero};
    const auto add = [&](int r, const V x) {
        const V above = V::where_greater(x, low, one);  // not at zero
        if constexpr (Capped) {
            const V free = above * V::where_greater(high, x, one);  // nor at the bound
            sum[r] = sum[r] + V::where_greater(free, zero, x);
            count[r] = count[r] + free;
            full[r] = full[r] + above;
        } else {
            sum[r] = sum[r] + V::where_greater(x, low, x);
            count[r] = count[r] + above;
        }
    };
    int j = 0;
    for (; j + chains * kLanes<T> <= padded; j += chains * kLanes<T>)
        PM_UNROLL for (int r = 0; r < chains; ++r) add(r, V::load(b + j + r * kLanes<T>));
    if (j < padded) add(0, V::load(b + j));
    const T free_count = (count[0] + count[1]).sum();
    return {(sum[0] + sum[1]).sum(), free_count,
            Capped ? (full[0] + full[1]).sum() - free_count : T(0)};
}

template <class T>
PM_INLINE T vector_max(const T* b, int padded) {
    using V = Vec<T>;
    V best[4];  // four chains hide the latency
    PM_UNROLL for (int r = 0; r < 4; ++r) best[r] = V::load(b);
    int j = 0;
    for (; j + 4 * kLanes<T> <= padded; j += 4 * kLanes<T>)
        PM_UNROLL for (int r = 0; r < 4; ++r) best[r] =
            V::max(best[r], V::load(b + j + r * kLanes<T>));
    for (; j < padded; j += kLanes<T>) best[0] = V::max(best[0], V::load(b + j));
    return V::max(V::max(best[0], best[1]), V::max(best[2], best[3])).maximum();
}

// A lower bound of the root, where b_max > 0: the largest p alone, min(u, b_max - t), is at most
// min(rise t, s). It often is the root itself (one class with p > 0), so that a few roundings are
// taken off: the root must lie inside the bracket that begins here.
template <class T>
PM_INLINE T threshold_floor(T b_max, T u, T s, T rise) {
    constexpr T less = T(4) * std::numeric_limits<T>::epsilon();
    const T half = b_max / (T(1) + rise), cap = u / rise;
    const T floor = (half < cap ? half : cap) * (T(1) - less);
    const T tight = b_max - s - less * b_max;
    return s < u && tight > floor ? tight : floor;
}

// The root t, lo < t < hi. b has `padded` entries, a multiple of the vector width, filled up with
// -infinity; t0 is a guess (the root at the example's last visit). At most O(log) bisections are
// added to the finitely many Newton steps.
template <bool Capped, class T>
T solve_threshold(const T* b, int padded, T u, T s, T t0, T lo, T hi, T rise = T(1)) {
    T t = (t0 > lo && t0 < hi) ? t0 : lo;
    T last_free = T(-1), last_full = T(-1);
    bool last_tight = false;
    for (int iteration = 0; iteration < 256; ++iteration) {
        const auto piece = threshold_piece<Capped>(b, padded, t, u);
        const bool tight = rise * t >= s;
        if (piece.free_count == last_free && piece.full_count == last_full && tight == last_tight)
            break;  // t is the root of the piece it lies in
        last_free = piece.free_count;
        last_full = piece.full_count;
        last_tight = tight;
        // u may be infinite when nothing is at its bound
        const T mass = piece.free_sum + (piece.full_count > T(0) ? piece.full_count * u : T(0));
        const T f = mass - piece.free_count * t - (tight ? s : rise * t);
        if (f == T(0)) break;
        (f > T(0) ? lo : hi) = t;
        const T slope = piece.free_count + (tight ? T(0) : rise);
        T next = slope > T(0) ? (mass - (tight ? s : T(0))) / slope : kInfinity<T>;
        if (next == t) break;
        if (!(next > lo && next < hi)) {
            next = lo + (hi - lo) / T(2);
            if (!(next > lo && next < hi)) break;  // the bracket is one rounding wide
            last_free = T(-1);                     // not the root of any piece yet
        }
        t = next;
    }
    return t;
}

// The root in double: sums of many float32 entries have lost digits that p = b - t needs.
template <class T>
PM_INLINE double refined_threshold(const T* b, int count, T t, double u, double s,
                                   double rise = 1) {
    constexpr int many = 256;
    if (sizeof(T) == sizeof(double) || count < many) return double(t);
    double mass = 0, free = 0;
    for (int e = 0; e < count; ++e) {
        const double x = double(b[e]) - double(t);
        const bool is_free = x > 0 && x < u;
        mass += is_free ? double(b[e]) : x > 0 ? u : 0.0;
        free += is_free;
    }
    const bool tight = rise * double(t) >= s;
    const double slope = free + (tight ? 0.0 : rise);
    return slope > 0 ? (mass - (tight ? s : 0.0)) / slope : double(t);
}

}  // namespace pm
