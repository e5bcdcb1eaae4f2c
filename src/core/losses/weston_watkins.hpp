// Weston-Watkins: sum_j max(0, h_j), block set p_j <= c.
#pragma once

#include "losses/loss.hpp"

namespace pm {

struct WestonWatkins : HingeLoss {
    static constexpr const char* name = "weston_watkins";
    static constexpr bool coupled = true;
    static constexpr bool has_violation = true;

    static WestonWatkins make(const LossParameters&) { return {}; }
    double at_zero(int n_classes) const { return n_classes - 1; }
    double cap(double c) const { return c; }

    template <class T>
    double value(const T* h, int padded, Block<T>&) const {
        return estimate(h, padded, 0);
    }
    template <class T>
    PM_INLINE double estimate(const T* h, int padded, double) const {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    PM_INLINE T solve(const T* b, int padded, double c, double, T guess, Block<T>& block) const {
        return solve_by_threshold<true>(b, padded, c, kInfinity<double>, guess, block);
    }
    template <class T, class At>
    double violation(T* h, int padded, double c, const DualEntry<T>* old, int count, At at) const {
        return box_violation(h, padded, c, old, count, at);
    }
};

}  // namespace pm
