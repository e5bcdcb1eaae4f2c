// One-vs-rest: sum_m max(0, 1 - y_m s_m) over all classes, block set p_m <= c; no coupling.
#pragma once

#include "losses/loss.hpp"

namespace pm {

struct OneVsRest : SumOfHinges<UnitMargins> {
    static constexpr const char* name = "one_vs_rest";
    static constexpr bool coupled = false;

    static OneVsRest make(const LossParameters&) { return {}; }
    double at_zero(int n_classes) const { return n_classes; }

    template <class T>
    PM_INLINE T solve(const T* b, int padded, double c, double, T, Block<T>& block,
                      double w = 1) const {
        block.gather(b, padded, T(0));
        block.clip(0.0, c, w);
        return T(0);
    }
};

}  // namespace pm
