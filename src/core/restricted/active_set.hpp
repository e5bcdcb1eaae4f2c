// Exact solutions on a few of the variables (Keerthi et al. 2008, sections 2 and 3).
//
// Crammer-Singer: the variables that are inactive (q > 0; alpha < C in the paper) and the one
// that violates most; or just the pair that violates most. Weston-Watkins: those that violate, with
// the others as they stand. The problem on the subset is solved exactly.
#pragma once

#include "restricted/on_simplex.hpp"
#include "restricted/walrus.hpp"

namespace pm {

struct ActiveSet {
    // All of the subset is free at first; each round solves without the bounds, which is one
    // division, and drops what fell below zero.
    template <class T>
    static void improve(const T* v, T* q, int n, double z, double) {
        const Violators<T> most(v, q, n);
        if (most.violation == 0) return;
        const double base = double(v[most.to]);  // huge v lose no digits of z
        const auto chosen = [&](int e) { return q[e] > T(0) || e == most.to; };
        double low = -kInfinity<double>;
        while (true) {
            double sum = -z;
            int free = 0;
            for (int e = 0; e < n; ++e) {
                const double x = double(v[e]) - base;
                if (!chosen(e) || x <= low) continue;
                sum += x;
                ++free;
            }
            const double t = sum / free;
            if (!(t > low)) break;
            low = t;
        }
        for (int e = 0; e < n; ++e)
            if (chosen(e)) q[e] = T(std::max(double(v[e]) - base - low, 0.0));
    }
};

struct TwoVariables {
    template <class T>
    static void improve(const T* v, T* q, int n, double, double) {
        const Violators<T> most(v, q, n);
        transfer(v, q, most.from, most.to);
    }
};

template <class T>
T solve_violating(const Restricted<T>& r, Block<T>& block, MethodWork<T>& work) {
    list_all(r, block, work);
    const int n = block.count;
    T *v = work.v.data(), *q = work.q.data();
    double sigma = 0, fixed = 0;
    for (int e = 0; e < n; ++e) sigma += double(q[e]);
    int chosen = 0;
    T* b = work.simplex.room(work.simplex.listed, n);
    const auto violates = [&](int e) {
        const double d = double(v[e]) - double(q[e]) - sigma;
        return (d > 0 && double(q[e]) < r.c) || (d < 0 && q[e] > T(0));
    };
    for (int e = 0; e < n; ++e) fixed += violates(e) ? 0.0 : double(q[e]);
    for (int e = 0; e < n; ++e)
        if (violates(e)) b[chosen++] = T(double(v[e]) - fixed);
    const double t = walrus_threshold(b, chosen, r.c, work.values);
    chosen = 0;
    for (int e = 0; e < n; ++e)
        if (violates(e)) q[e] = T(std::clamp(double(b[chosen++]) - t, 0.0, r.c));
    keep_positive(block, work);
    return r.guess;
}

}  // namespace pm
