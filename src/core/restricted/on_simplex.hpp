// Crammer-Singer's restricted problem as a projection onto the simplex (Blondel 2014, lemma 1).
//
// With q = (p, c - sum p), the last entry belonging to the true class, and v = (b, c),
//     1/2 (||p||^2 + (sum p)^2) - b.p = 1/2 ||q - v||^2 + constant,   q >= 0,  sum q = c .
// A method either finds the threshold of v (simplex_*.hpp, fixed_point.hpp) or improves a q that is
// given, the one of the last visit (smo.hpp, frank_wolfe.hpp, active_set.hpp):
//     template <class T> static void improve(const T* v, T* q, int n, double z, double tol);
#pragma once

#include <algorithm>

#include "restricted/method.hpp"

namespace pm {

template <class Projection, class T>
T solve_on_simplex(const Restricted<T>& r, Block<T>& block, MethodWork<T>& work) {
    list_all(r, block, work);
    const int n = block.count + 1;
    T *v = work.v.data(), *q = work.q.data();
    double sigma = 0;
    for (int e = 0; e < block.count; ++e) sigma += double(q[e]);
    v[n - 1] = T(r.c);
    q[n - 1] = T(std::max(0.0, r.c - sigma));
    T found = r.guess;
    if constexpr (requires { Projection::own_tolerance; }) {
        work.simplex.tol = r.tolerance(Projection::own_tolerance);
        T* shifted = work.simplex.room(work.simplex.shifted, n);  // huge v lose no digits of c
        const T top = *std::max_element(v, v + n);
        for (int e = 0; e < n; ++e) shifted[e] = v[e] - top;
        const double tau = Projection::threshold(shifted, n, r.c, work.simplex);
        for (int e = 0; e < n; ++e) q[e] = T(std::max(double(shifted[e]) - tau, 0.0));
        found = T(double(top) + tau);
    } else {
        Projection::improve(v, q, n, r.c, r.tol);
    }
    keep_positive(block, work);
    block.scale_to(r.c);  // a loose tolerance may exceed c, a feasible dual may not
    return found;
}

// Where the objective falls fastest, and from where mass is taken best, with d = v - q the
// direction of descent: argmax d, and argmin d over q > 0. Their difference is the violation v_i of
// Keerthi 2008, equation 6, divided by ||x_i||^2.
template <class T>
struct Violators {
    int to = 0, from = 0;
    double violation = 0;

    Violators(const T* v, const T* q, int n) {
        double most = -kInfinity<double>, least = kInfinity<double>;
        for (int e = 0; e < n; ++e) {
            const double d = double(v[e]) - double(q[e]);
            if (d > most) {
                most = d;
                to = e;
            }
            if (q[e] > T(0) && d < least) {
                least = d;
                from = e;
            }
        }
        violation = std::max(0.0, most - least);
    }
};

// The best transfer of mass from one entry to another: d_to - d_from falls by twice what moves.
template <class T>
void transfer(const T* v, T* q, int from, int to) {
    const double difference = (double(v[to]) - double(q[to])) - (double(v[from]) - double(q[from]));
    const double room = double(q[from]);
    if (from == to || !(difference > 0)) return;
    const bool all = difference / 2 >= room;
    q[to] = T(double(q[to]) + (all ? room : difference / 2));
    q[from] = all ? T(0) : T(room - difference / 2);
}

}  // namespace pm
