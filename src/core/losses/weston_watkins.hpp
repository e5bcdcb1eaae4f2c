// Weston-Watkins: sum_j max(0, h_j), block set p_j <= c.
#pragma once

#include "losses/loss.hpp"

namespace pm {

struct WestonWatkins : SumOfHinges<ClassMargins> {
    static constexpr const char* name = "weston_watkins";
    static constexpr bool coupled = true;

    static WestonWatkins make(const LossParameters& p) {
        WestonWatkins made;
        made.table = p.margins;
        return made;
    }
    double at_zero(int n_classes) const { return n_classes - 1; }

    template <class T>
    PM_INLINE T solve(const T* b, int padded, double c, double, T guess, Block<T>& block,
                      double w = 1) const {
        return solve_by_threshold<true>(b, padded, c, kInfinity<double>, guess, block, w);
    }
};

}  // namespace pm
