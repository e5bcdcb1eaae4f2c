// How much a block violates its optimality conditions, in units of the margins h (Keerthi et al.
// 2008, equations 6 and 18; Blondel 2014, algorithm 1): what their solvers stop by.
#pragma once

#include <algorithm>
#include <limits>

#include "base/simd.hpp"
#include "losses/dual_entry.hpp"
#include "restricted/threshold.hpp"

namespace pm {

// Crammer-Singer: max g - min {g : alpha < C}. The true class has h = 0, and alpha < C while
// sum p < c; a wrong class has alpha < C where p > 0.
template <class T, class At>
PM_NOINLINE double simplex_violation(const T* h, int padded, double c, const DualEntry<T>* old,
                                     int count, At at) {
    const double most = std::max(0.0, double(vector_max(h, padded)));
    double sigma = 0;
    for (int e = 0; e < count; ++e) sigma += double(old[e].p);
    double least = at_bound<T>(sigma, c) ? kInfinity<double> : 0.0;
    for (int e = 0; e < count; ++e)
        if (old[e].p > T(0)) least = std::min(least, double(h[at(e)]));
    return least == kInfinity<double> ? 0.0 : most - least;
}

// Weston-Watkins and one-vs-rest: h may not be positive where p < c, nor negative where p > 0.
template <class T, class At>
PM_NOINLINE double box_violation(T* h, int padded, double c, const DualEntry<T>* old, int count,
                                 At at) {
    double most = 0;
    const auto turn_full = [&] {
        for (int e = 0; e < count; ++e)
            if (at_bound<T>(double(old[e].p), c)) h[at(e)] = -h[at(e)];
    };
    for (int e = 0; e < count; ++e)
        if (old[e].p > T(0)) most = std::max(most, -double(h[at(e)]));
    turn_full();
    most = std::max(most, double(vector_max(h, padded)));
    turn_full();
    return most;
}

}  // namespace pm
