// The Weston-Watkins subproblem by greedy coordinate steps, as Shark does it (Igel et al. 2008;
// described in Wang and Scott 2021, section 5).
//
//     min 1/2 p'(I + 11')p - v'p   over   0 <= p <= C
// The gradient is p_j + s - v_j with s = sum p, the curvature of each coordinate 2. Each step moves
// the coordinate that violates its optimality condition most to its minimum; O(n) a step. If
// no condition is violated by more than eps, p is the exact answer for a v that differs by at most
// eps, and so within 2 eps of the answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pm {

// Improves p (0 <= p <= C) in place until no violation exceeds `tolerance` or after `max_steps`;
// returns the largest violation that is left.
template <class T>
double greedy_solve(const T* v, std::int64_t n, double C, T* p, double tolerance,
                    std::int64_t max_steps) {
    for (std::int64_t step = 0;; ++step) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += double(p[j]);
        double worst = 0, best_move = 0;
        std::int64_t best = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            const double descent = double(v[j]) - double(p[j]) - sum;
            const double move = descent > 0 ? std::min(descent / 2, C - double(p[j]))
                                            : std::max(descent / 2, -double(p[j]));
            if (move != 0 && std::abs(descent) > worst) {
                worst = std::abs(descent);
                best_move = move;
                best = j;
            }
        }
        if (worst <= tolerance || step == max_steps) return worst;
        const T moved = T(std::clamp(double(p[best]) + best_move, 0.0, C));
        if (moved == p[best]) return worst;  // below the rounding of p
        p[best] = moved;
    }
}

}  // namespace pm
