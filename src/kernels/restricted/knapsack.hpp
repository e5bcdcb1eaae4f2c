// Projection onto the capped simplex, the continuous quadratic knapsack problem:
//     min 1/2 ||p - v||^2   over   0 <= p_j <= u_j,  sum p = z   (or sum p <= z).
//
// p = clip(v - t, 0, u). Variable fixing (Kiwiel 2008, algorithm 3.1): solve without the bounds,
// t = (sum_I v - z) / |I|, over the entries I still open. Clipping then adds `low` (the sum of
// what is below 0) and removes `high` (what is above u). If high > low, t must fall and the
// entries at or above u stay at u; else it must rise and those at or below 0 stay at 0. Each round
// fixes one entry at least.
//
// Where v is large beside z, v - t loses the digits of z. Hence a second solution, of v - t with
// the t of the first: the differences are exact where they matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "../simd.hpp"

namespace pm {

// Entries and bounds of one row, and those still open; one per thread.
struct KnapsackWork {
    std::vector<double> v, u;
    std::vector<double> open_v, open_u;

    void resize(std::int64_t n) {
        const auto size = static_cast<std::size_t>(n);
        if (v.size() >= size) return;
        v.resize(size);
        u.resize(size);
        open_v.resize(size);
        open_u.resize(size);
    }
};

// t with sum_j clip(v_j - shift - t, 0, u_j) = z, for 0 < z < sum u.
inline double knapsack_threshold(const double* v, const double* u, std::int64_t n, double shift,
                                 double z, KnapsackWork& work) {
    double* open_v = work.open_v.data();
    double* open_u = work.open_u.data();
    double sum = 0, rest = z;  // z less what is fixed at its bound
    for (std::int64_t j = 0; j < n; ++j) sum += open_v[j] = v[j] - shift;
    std::copy_n(u, n, open_u);
    double t = 0;
    while (n > 0) {
        t = (sum - rest) / double(n);
        double low = 0, high = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            const double x = open_v[j] - t;
            low += std::max(-x, 0.0);
            high += std::max(x - open_u[j], 0.0);
        }
        if (low == high) break;
        const bool fix_high = high > low;
        std::int64_t kept = 0;
        sum = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            const double x = open_v[j], bound = open_u[j];
            const bool fixed = fix_high ? x - t >= bound : x - t <= 0;
            if (fixed && fix_high) rest -= bound;
            sum += fixed ? 0.0 : x;
            open_v[kept] = x;
            open_u[kept] = bound;
            kept += !fixed;
        }
        if (kept == n) break;
        n = kept;
    }
    return t;
}

// p = clip(v - shift - t, 0, u), with the entries strictly inside scaled so that the sum is z.
template <class T>
void write_clipped(const double* v, const double* u, std::int64_t n, double shift, double t,
                   double z, T* p) {
    double inside = 0, full = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        const double x = std::max(v[j] - shift - t, 0.0);
        p[j] = T(std::min(x, u[j]));
        (x < u[j] ? inside : full) += double(p[j]);
    }
    constexpr double rounding = 4.0 * std::numeric_limits<T>::epsilon();
    if (std::abs(inside + full - z) <= rounding * z) return;
    const double left = z - full;
    if (inside > 0 && left > 0) {
        for (std::int64_t j = 0; j < n; ++j)
            if (v[j] - shift - t < u[j]) p[j] = T(std::min(double(p[j]) * (left / inside), u[j]));
    } else if (inside + full > z) {
        for (std::int64_t j = 0; j < n; ++j) p[j] = T(double(p[j]) * (z / (inside + full)));
    }
}

// One row, whose entries and bounds are in work.v and work.u; u_sum = sum u >= z up to rounding.
template <class T>
void project_capped_simplex(std::int64_t n, double z, double u_sum, bool equality, T* p,
                            KnapsackWork& work) {
    const double* v = work.v.data();
    const double* u = work.u.data();
    if (!equality) {
        double total = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            const double x = std::min(std::max(v[j], 0.0), u[j]);
            p[j] = T(x);
            total += x;
        }
        if (total <= z) return;
    } else if (!(z < u_sum)) {
        for (std::int64_t j = 0; j < n; ++j) p[j] = T(u[j]);
        return;
    }
    const double shift = knapsack_threshold(v, u, n, 0.0, z, work);
    write_clipped(v, u, n, shift, knapsack_threshold(v, u, n, shift, z, work), z, p);
}

}  // namespace pm
