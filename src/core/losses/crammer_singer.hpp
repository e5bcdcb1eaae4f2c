// Crammer-Singer: max(0, max_j h_j), block set sum p <= c.
#pragma once

#include "losses/loss.hpp"

namespace pm {

struct CrammerSinger : HingeLoss<ClassMargins> {
    static constexpr const char* name = "crammer_singer";
    static constexpr bool coupled = true;
    static constexpr bool has_violation = true;

    static CrammerSinger make(const LossParameters& p) {
        CrammerSinger made;
        made.table = p.margins;
        return made;
    }
    double at_zero(int) const { return 1; }
    double cap(double) const { return kInfinity<double>; }

    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        return estimate(h, padded, 0, block);
    }
    template <class T>
    double value_at_multiple(const T* h, int padded, double factor) const {
        return std::max(0.0, 1 + factor * (double(vector_max(h, padded)) - 1));
    }
    template <class T>
    PM_INLINE double estimate(const T* h, int padded, double, Block<T>&) const {
        return std::max(0.0, double(vector_max(h, padded)));
    }
    template <class T>
    PM_INLINE T solve(const T* b, int padded, double c, double, T guess, Block<T>& block,
                      double w = 1) const {
        return solve_by_threshold<false>(b, padded, kInfinity<double>, c, guess, block, w);
    }
    template <class T>
    double smooth_value(const T* h, int padded, double gamma, double hint, Block<T>&) const {
        return value_by_threshold<false>(h, padded, kInfinity<double>, gamma, hint);
    }
    template <class T>
    PM_INLINE double smooth_bound(const T* h, int padded, double gamma, double hint,
                                  Block<T>&) const {
        return value_bound<false>(h, padded, kInfinity<double>, gamma, hint);
    }
    template <class T, class At>
    double violation(T* h, int padded, double c, const DualEntry<T>* old, int count, At at) const {
        return simplex_violation(h, padded, c, old, count, at);
    }
};

}  // namespace pm
