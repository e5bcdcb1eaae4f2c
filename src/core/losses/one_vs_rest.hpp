// One-vs-rest: sum_m max(0, 1 - y_m s_m) over all classes, block set p_m <= c; no coupling.
#pragma once

#include "losses/loss.hpp"

namespace pm {

struct OneVsRest : HingeLoss {
    static constexpr const char* name = "one_vs_rest";
    static constexpr bool coupled = false;
    static constexpr bool has_violation = true;

    static OneVsRest make(const LossParameters&) { return {}; }
    double at_zero(int n_classes) const { return n_classes; }
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
    PM_INLINE T solve(const T* b, int padded, double c, double, T, Block<T>& block) const {
        block.gather(b, padded, T(0));
        block.clip(0.0, c);
        return T(0);
    }
    template <class T, class At>
    double violation(T* h, int padded, double c, const DualEntry<T>* old, int count, At at) const {
        return box_violation(h, padded, c, old, count, at);
    }
};

}  // namespace pm
