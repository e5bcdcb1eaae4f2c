// Sequential minimal optimisation on the simplex (Blondel 2014, supplement A; after LaRank).
//
// Pairs: `to` is the entry that violates most, chosen anew for each pair; `from` runs through the
// entries with q > 0 (alpha < C in the paper) in a cycle. Without a tolerance a visit makes one
// cycle; with one, cycles until the violation is at most tol * z.
#pragma once

#include "restricted/on_simplex.hpp"

namespace pm {

struct Smo {
    static constexpr int max_cycles = 10000;
    template <class T>
    static void improve(const T* v, T* q, int n, double z, double tol) {
        for (int cycle = 0; cycle < (tol < 0 ? 1 : max_cycles); ++cycle) {
            if (Violators<T>(v, q, n).violation <= std::max(tol, 0.0) * z) return;
            for (int from = 0; from < n; ++from)
                if (q[from] > T(0)) transfer(v, q, from, Violators<T>(v, q, n).to);
        }
    }
};

}  // namespace pm
