// Frank-Wolfe steps on the simplex (Blondel 2014, supplement B; Lacoste-Julien et al. 2013).
//
// The linear approximation is smallest at the vertex z e_j, j = argmax d; the step towards it is
//     gamma = clip(d.(z e_j - q) / ||z e_j - q||^2, 0, 1)       (equation 8).
// Without a tolerance a visit makes one step; with one, steps until d.(z e_j - q), which bounds
// what is left to gain, is at most tol * z^2.
#pragma once

#include "restricted/on_simplex.hpp"

namespace pm {

struct FrankWolfe {
    static constexpr int max_steps = 10000;
    template <class T>
    static void improve(const T* v, T* q, int n, double z, double tol) {
        for (int step = 0; step < (tol < 0 ? 1 : max_steps); ++step) {
            const int j = Violators<T>(v, q, n).to;
            double slope = 0, length = 0;
            for (int e = 0; e < n; ++e) {
                const double direction = (e == j ? z : 0.0) - double(q[e]);
                slope += direction * (double(v[e]) - double(q[e]));
                length += direction * direction;
            }
            if (!(slope > std::max(tol, 0.0) * z * z) || length == 0) return;
            const double gamma = std::min(slope / length, 1.0);
            for (int e = 0; e < n; ++e)
                q[e] = T((1 - gamma) * double(q[e]) + (e == j ? gamma * z : 0.0));
        }
    }
};

}  // namespace pm
