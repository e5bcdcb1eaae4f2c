// The fixed-point iteration of Crammer and Singer (2001), section 6.
//
//     theta <- (1/n) sum_j max(theta, v_j) - z/n  =  theta + phi(theta) / n
// rises to the root from below. Each step leaves 1 - m/n of the error, m the number of entries
// above theta: slow where few of many classes matter. Stops at |phi| <= tol * z.
#pragma once

#include "restricted/simplex.hpp"

namespace pm {

struct FixedPoint {
    static constexpr double own_tolerance = 1e-3;
    static constexpr int max_rounds = 100000;
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        double theta = double(largest(v, n)) - z;
        for (int round = 0; round < max_rounds; ++round) {
            const double phi = excess_above(v, n, 0.0, theta).sum - z;
            if (phi <= work.tol * z || theta + phi / double(n) <= theta) break;
            theta += phi / double(n);
        }
        return theta;
    }
};

}  // namespace pm
