// The five losses: what each one asks of an example's block (DESIGN section 1).
//
// A loss knows, for the margins h_j = 1 + s_j - s_y of the wrong classes (the true class and the
// padding hold -infinity):
//   value     the primal loss, exactly;
//   estimate  the primal loss or an upper bound of it that is exact at the optimum, in one vector
//             pass (`hint` is the example's threshold in units of h);
//   solve     the exact restricted problem: reads b, lists the classes with p > 0 in `block`, and
//             returns the threshold.
// One-vs-rest has no coupling between classes: there h_m = 1 - y_m s_m over all classes.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "base/simd.hpp"
#include "restricted/block.hpp"
#include "restricted/threshold.hpp"
#include "restricted/top_k_simplex.hpp"

namespace pm {

enum class LossKind { crammer_singer, weston_watkins, top_k_alpha, top_k_beta, one_vs_rest };

// sum_j max(h_j - t, 0)
template <class T>
PM_INLINE double excess_sum(const T* h, int padded, T t) {
    using V = Vec<T>;
    const V low = V::set1(t), zero = V::set1(T(0));
    V total = zero;
    for (int j = 0; j < padded; j += kLanes<T>) total = total + V::max(V::load(h + j) - low, zero);
    return double(total.sum());
}

inline double top_k_sum(std::vector<double>& values, int k) {
    std::nth_element(values.begin(), values.begin() + (k - 1), values.end(), std::greater<>());
    double total = 0;
    for (int j = 0; j < k; ++j) total += values[j];
    return total;
}

// Crammer-Singer, Weston-Watkins and top-k beta: only classes above a lower bound of the root can
// have p > 0, so the Newton iteration runs on those few.
template <bool Capped, class T>
PM_INLINE T solve_by_threshold(const T* b, int padded, double u, double s, T guess,
                               Block<T>& block) {
    block.count = 0;
    const T b_max = vector_max(b, padded);
    if (!(b_max > T(0))) return T(0);
    block.gather(b, padded, threshold_floor(b_max, T(u), T(s)));
    const int listed = round_up_lanes<T>(block.count);
    for (int e = block.count; e < listed; ++e) block.b[e] = -kInfinity<T>;
    const T t = solve_threshold<Capped>(block.b.data(), listed, T(u), T(s), guess);
    block.clip(double(t), u);
    block.scale_to(s);
    return t;
}

struct CrammerSinger {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int, Block<T>&) {
        return std::max(0.0, double(vector_max(h, padded)));
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int, double) {
        return std::max(0.0, double(vector_max(h, padded)));
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int, T guess, Block<T>& block) {
        return solve_by_threshold<false>(b, padded, kInfinity<double>, c, guess, block);
    }
};

struct WestonWatkins {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int, Block<T>&) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int, double) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int, T guess, Block<T>& block) {
        return solve_by_threshold<true>(b, padded, c, kInfinity<double>, guess, block);
    }
};

// (1/k) sum of the k largest max(0, h). Upper bound: t + (1/k) sum max(h - t, 0) for any t >= 0
// (Lapin, lemma 1).
struct TopKBeta {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int k, Block<T>& block) {
        block.values.assign(h, h + padded);
        for (double& x : block.values) x = std::max(x, 0.0);
        return top_k_sum(block.values, k) / k;
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int k, double hint) {
        const double t = std::max(0.0, hint);
        return t + excess_sum(h, padded, T(t)) / k;
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int k, T guess, Block<T>& block) {
        return solve_by_threshold<true>(b, padded, c / k, c, guess, block);
    }
};

// max(0, (1/k) sum of the k largest h), over the wrong classes only.
struct TopKAlpha {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int k, Block<T>& block) {
        block.values.assign(h, h + padded);
        return std::max(0.0, top_k_sum(block.values, k) / k);
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int k, double hint) {
        return std::max(0.0, hint + excess_sum(h, padded, T(hint)) / k);
    }
    template <class T>
    static T solve(const T* b, int padded, double c, int k, T guess, Block<T>& block) {
        constexpr T lowest = std::numeric_limits<T>::lowest();
        int total = 0;
        for (int j = 0; j < padded; j += kLanes<T>)
            total += std::popcount(greater_mask(b + j, -kInfinity<T>));
        TopKThresholds found{0, 0};
        block.gather(b, padded, guess);
        if (!try_top_k_simplex(block.b.data(), block.count, total, k, c, double(guess),
                               block.values, found)) {
            block.gather(b, padded, lowest);
            try_top_k_simplex(block.b.data(), block.count, total, k, c, -kInfinity<double>,
                              block.values, found);
        }
        if (found.full)
            std::fill(block.p.begin(), block.p.begin() + block.count, T(found.u));
        else {
            block.clip(found.t, found.u);
            block.lower_cap(found.u, k);
            block.scale_to(c);
        }
        if (found.u == 0) block.count = 0;
        return T(found.t);
    }
};

struct OneVsRest {
    static constexpr bool coupled = false;
    template <class T>
    static double value(const T* h, int padded, int, Block<T>&) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int, double) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int, T, Block<T>& block) {
        block.gather(b, padded, T(0));
        block.clip(0.0, c);
        return T(0);
    }
};

// Calls f with the loss's type: the one place that maps a loss to its code.
template <class F>
decltype(auto) with_loss(LossKind kind, F&& f) {
    switch (kind) {
        case LossKind::crammer_singer:
            return f(CrammerSinger{});
        case LossKind::weston_watkins:
            return f(WestonWatkins{});
        case LossKind::top_k_alpha:
            return f(TopKAlpha{});
        case LossKind::top_k_beta:
            return f(TopKBeta{});
        default:
            return f(OneVsRest{});
    }
}

}  // namespace pm
