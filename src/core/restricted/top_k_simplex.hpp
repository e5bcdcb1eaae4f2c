// The biased projection onto the top-k simplex; with rho = 1 the restricted problem of top-k alpha.
//
//     min 1/2 (||p||^2 + rho (sum p)^2) - b.p   over   0 <= p_j <= sum(p) / k,  sum p <= c
//
// Lapin (2015), lemmas 3 to 5: p = clip(b - t, 0, u). Write z = t + u and
// phi(x) = k x + sum_j max(b_j - x, 0), which is convex with its minimum, the sum L0 of the k
// largest b, between b_[k+1] and b_[k]. "The bounds are sum(p) / k" says phi(t) = phi(z) = L, and
// optimality without the bound c says L = k (1 + rho k) (z - t). z - t is concave in L, so
// L - k (1 + rho k) (z - t) falls through zero once: walk the breakpoints upwards from L0 until it
// does (or until k u = c), then solve the linear system of that piece. c may be infinite: the
// top-k cone.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "base/simd.hpp"

namespace pm {

struct TopKThresholds {
    double t;  // p = clip(b - t, 0, u),
    double u;
    bool full = false;  // or, exactly, p = u everywhere
};

// b: values in decreasing order; `count` of them given, `total` classes in all (those not given are
// below the last one; the answer holds if they are below its t too). Sets `complete` to false when
// too few are given to start.
inline TopKThresholds walk_top_k_pieces(const double* b, int count, int total, int k, double c,
                                        bool& complete, double rho = 1.0) {
    complete = true;
    const double slope = double(k) * (1.0 + rho * k);  // of L in u, without the bound c
    const double bound = c / k;
    double upper_sum = 0;  // over U
    for (int j = 0; j < k; ++j) upper_sum += b[j];
    if (upper_sum <= 0) return {b[k - 1], 0.0};  // lemma 4
    const double constant = std::min(upper_sum / slope, bound);
    if (k == total) return {b[k - 1] - constant, constant, true};
    if (count == k) {
        complete = false;
        return {b[k - 1], 0.0};
    }
    if (constant <= b[k - 1] - b[k]) return {b[k], constant};  // lemma 3, case 2

    int i = k - 1, r = k + 1;  // U = b[0..i), M = b[i..r)
    upper_sum -= b[k - 1];
    double free_sum = b[k - 1] + b[k];
    while (true) {
        const double level_z =
            i > 0 ? upper_sum - b[i - 1] + (k - i + 1) * b[i - 1] : kInfinity<double>;
        const double level_t =
            r < count ? upper_sum + free_sum - (r - k) * b[r] : kInfinity<double>;
        const double level = std::min(level_z, level_t);
        if (level == kInfinity<double>) break;
        const double z = level_z <= level_t ? b[i - 1] : (level - upper_sum) / (k - i);
        const double t = level_t <= level_z ? b[r] : (upper_sum + free_sum - level) / (r - k);
        if (level <= slope * (z - t) || z - t >= bound) break;
        if (level_z <= level_t) {
            --i;
            upper_sum -= b[i];
            free_sum += b[i];
        } else {
            free_sum += b[r];
            ++r;
        }
    }
    const double m = r - i, rest = k - i;
    const double det = rest * rest + (i + rho * k * k) * m;
    double u = (m * upper_sum + rest * free_sum) / det;
    double t;
    if (u > bound) {
        u = bound;  // the knapsack problem of section 4.1
        t = (free_sum - rest * u) / m;
    } else {
        t = (i * (1.0 + rho * k) * free_sum - (rest + rho * k * m) * upper_sum) / det + rho * k * u;
    }
    return {t, u};
}

// The classes of `chosen` (all that exceed the guess, which held at the last visit) are enough when
// the answer's t lies above the guess too. With weights w of ||p||^2 and rho of (sum p)^2, t is
// returned in the units of b: p = clip((b - t) / w, 0, u).
template <class T>
bool try_top_k_simplex(const T* chosen, int count, int total, int k, double c, double guess,
                       std::vector<double>& work, TopKThresholds& found, double w = 1,
                       double rho = 1) {
    if (count < k) return false;
    work.assign(chosen, chosen + count);
    std::sort(work.begin(), work.end(), std::greater<>());
    if (w != 1)
        for (double& value : work) value /= w;
    bool complete = false;
    found = walk_top_k_pieces(work.data(), count, total, k, c, complete, rho / w);
    found.t *= w;
    return complete && (count == total || found.u == 0 || found.t >= guess);
}

}  // namespace pm
