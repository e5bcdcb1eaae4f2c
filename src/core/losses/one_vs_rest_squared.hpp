// One-vs-rest with squared hinges: sum_m max(0, 1 - y_m s_m)^2 over all classes; no coupling and no
// bound on p.
//
// The conjugate of c max(0, h)^2 is p^2 / (4 c), for p >= 0. With it the restricted problem
//     min A/2 ||p||^2 - A b.p + ||p||^2 / (4 c)   over   p >= 0
// has the answer p = max(0, b) / w, w = 1 + 1 / (2 c A).
#pragma once

#include "losses/loss.hpp"

namespace pm {

struct OneVsRestSquared : UnitMargins {
    static constexpr const char* name = "one_vs_rest_squared";
    static constexpr bool coupled = false;
    static constexpr bool flat = false;
    static constexpr bool has_violation = false;

    static OneVsRestSquared make(const LossParameters&) { return {}; }
    double at_zero(int n_classes) const { return n_classes; }
    double cap(double) const { return kInfinity<double>; }

    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        return estimate(h, padded, 0, block);
    }
    template <class T>
    PM_INLINE double estimate(const T* h, int padded, double, Block<T>&) const {
        using V = Vec<T>;
        return sum_of(h, padded, [](V x) {
            const V excess = V::max(x, V::set1(T(0)));
            return excess * excess;
        });
    }
    template <class T>
    PM_INLINE double conjugate(const DualEntry<T>* p, int count, double c) const {
        return squared_length(p, count) / (4 * c);
    }
    template <class T>
    PM_INLINE T solve(const T* b, int padded, double c, double A, T, Block<T>& block) const {
        block.gather(b, padded, T(0));
        block.clip(0, kInfinity<double>, 1 + 1 / (2 * c * A));
        return T(0);
    }
};

}  // namespace pm
