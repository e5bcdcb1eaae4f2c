// Simplex projection by bisection (Blondel 2014, algorithm 3), in the bracket of simplex.hpp.
//
// Stops when |phi(tau)| <= tol * z, or when the bracket is one rounding wide: O(n log(1/tol)).
#pragma once

#include "restricted/simplex.hpp"

namespace pm {

struct SimplexBisection {
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        const double top = double(largest(v, n));
        double low = top - z, high = top - z / double(n);
        double tau = low;
        // each round halves the bracket, which starts with at most n roundings of z per rounding
        for (int round = 0; round < 128; ++round) {
            tau = low + (high - low) / 2;
            if (!(tau > low && tau < high)) return low;
            const double phi = excess_above(v, n, 0.0, tau).sum - z;
            if (std::abs(phi) <= work.tol * z) break;
            (phi > 0 ? low : high) = tau;
        }
        return tau;
    }
};

}  // namespace pm
