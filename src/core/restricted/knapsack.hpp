// Projection onto the capped simplex, the continuous quadratic knapsack problem:
//     min 1/2 ||p - v||^2   over   0 <= p_j <= u_j,  sum p = z   (or sum p <= z).
//
// p = clip(v - t, 0, u). Variable fixing (Kiwiel 2008, algorithm 3.1): solve without the bounds,
// t = (sum_I v - z) / |I|, over the entries I still open. If the clipped entries add up to less
// than z, t must fall and the entries at or above u stay at u; if to more, it must rise and those
// at or below 0 stay at 0. (Kiwiel compares what clipping adds with what it removes; the clipped
// sum itself decides the same without cancellation.) Each round fixes one entry at least.
//
// Where v is large beside z, v - t loses the digits of z. Then follows a second solution, of v - t
// with the t of the first: the differences are exact where they matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "restricted/simplex.hpp"

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

// sum_j clip(v_j - t, 0, u_j)
inline double clipped_sum(const double* v, const double* u, std::int64_t n, double t) {
    using V = Vec<double>;
    const V by = V::set1(t), zero = V::set1(0.0);
    V sum = zero;
    std::int64_t j = 0;
    for (; j + kLanes<double> <= n; j += kLanes<double>)
        sum = sum + V::min(V::max(V::load(v + j) - by, zero), V::load(u + j));
    double total = sum.sum();
    for (; j < n; ++j) total += std::min(std::max(v[j] - t, 0.0), u[j]);
    return total;
}

// Drops the entries at or above their bound (High), whose bounds leave `rest`, or those at or below
// zero; returns how many stay open and their sum. Without branches: which entries go is random.
template <bool High>
std::int64_t keep_open(double* v, double* u, std::int64_t n, double t, double& sum, double& rest) {
    std::int64_t kept = 0;
    double stay = 0, fixed = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        const double x = v[j], bound = u[j];
        const bool open = High ? x - t < bound : x - t > 0;
        stay += double(open) * x;
        if constexpr (High) fixed += open ? 0.0 : bound;
        v[kept] = x;
        u[kept] = bound;
        kept += open;
    }
    sum = stay;
    rest -= fixed;
    return kept;
}

// t with sum_j clip(v_j - shift - t, 0, u_j) = z, for 0 < z < sum u.
inline double knapsack_threshold(const double* v, const double* u, std::int64_t n, double shift,
                                 double z, KnapsackWork& work) {
    double* open_v = work.open_v.data();
    double* open_u = work.open_u.data();
    double sum = 0, rest = z;  // rest: z less what is fixed at its bound
    for (std::int64_t j = 0; j < n; ++j) sum += open_v[j] = v[j] - shift;
    std::copy_n(u, n, open_u);
    double t = 0;
    while (n > 0) {
        t = (sum - rest) / double(n);
        const double total = clipped_sum(open_v, open_u, n, t);
        if (total == rest) break;
        const std::int64_t before = n;
        if (total < rest)
            n = keep_open<true>(open_v, open_u, n, t, sum, rest);
        else
            n = keep_open<false>(open_v, open_u, n, t, sum, rest);
        if (n == before) break;
    }
    return t;
}

// p = clip(v - shift - t, 0, u). With `repair`, the entries strictly inside are scaled so that the
// sum is z; returns whether it was (to rounding) before.
template <class T>
bool write_clipped(const double* v, const double* u, std::int64_t n, double shift, double t,
                   double z, bool repair, T* p) {
    using V = Vec<double>;
    const V by = V::set1(shift), low = V::set1(t), zero = V::set1(0.0);
    V insides = zero, totals = zero;
    std::int64_t j = 0;
    for (; j + kLanes<double> <= n; j += kLanes<double>) {
        const V x = V::max(V::load(v + j) - by - low, zero), bound = V::load(u + j);
        const V clipped = V::min(x, bound);
        store_doubles(clipped, p + j);
        insides = insides + V::where_greater(bound, x, x);
        totals = totals + clipped;
    }
    double inside = insides.sum(), total = totals.sum();
    for (; j < n; ++j) {
        const double x = std::max(v[j] - shift - t, 0.0);
        p[j] = T(std::min(x, u[j]));
        inside += x < u[j] ? x : 0.0;
        total += std::min(x, u[j]);
    }
    constexpr double rounding = 8.0 * std::numeric_limits<T>::epsilon();
    const bool exact = std::abs(total - z) <= rounding * z;
    if (exact || !repair) return exact;
    const double left = z - (total - inside);
    if (inside > 0 && left > 0) {
        for (j = 0; j < n; ++j)
            if (v[j] - shift - t < u[j]) p[j] = T(std::min(double(p[j]) * (left / inside), u[j]));
    } else if (total > z) {
        for (j = 0; j < n; ++j) p[j] = T(double(p[j]) * (z / total));
    }
    return exact;
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
    const double t = knapsack_threshold(v, u, n, 0.0, z, work);
    if (write_clipped(v, u, n, 0.0, t, z, false, p)) return;
    write_clipped(v, u, n, t, knapsack_threshold(v, u, n, t, z, work), z, true, p);
}

}  // namespace pm
