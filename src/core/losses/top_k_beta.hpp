// Top-k beta: (1/k) sum of the k largest max(0, h_j), block set p_j <= c/k, sum p <= c.
//
// Upper bound: t + (1/k) sum max(h - t, 0) for any t >= 0 (Lapin 2015, lemma 1).
#pragma once

#include "losses/loss.hpp"

namespace pm {

struct TopKBeta : TopKLoss<TopKBeta> {
    static constexpr const char* name = "top_k_beta";
    using TopKLoss::TopKLoss;

    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        block.values.assign(h, h + padded);
        for (double& x : block.values) x = std::max(x, 0.0);
        return top_k_sum(block.values, k) / k;
    }
    template <class T>
    PM_INLINE double estimate(const T* h, int padded, double hint, Block<T>&) const {
        const double t = std::max(0.0, hint);
        return t + excess_sum(h, padded, T(t)) / k;
    }
    template <class T>
    PM_INLINE T solve(const T* b, int padded, double c, double, T guess, Block<T>& block,
                      double w = 1) const {
        return solve_by_threshold<true>(b, padded, cap(c), c, guess, block, w);
    }
    template <class T>
    double smooth_value(const T* h, int padded, double gamma, double hint, Block<T>&) const {
        return value_by_threshold<true>(h, padded, cap(1), gamma, hint);
    }
    template <class T>
    PM_INLINE double smooth_bound(const T* h, int padded, double gamma, double hint,
                                  Block<T>&) const {
        return value_bound<true>(h, padded, cap(1), gamma, hint);
    }
};

}  // namespace pm
