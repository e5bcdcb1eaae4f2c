// Crammer-Singer's restricted problem as a projection onto the simplex (Blondel 2014, lemma 1).
//
// With q = (p, c - sum p), the last entry belonging to the true class, and v = (b, c),
//     1/2 (||p||^2 + (sum p)^2) - b.p = 1/2 ||q - v||^2 + constant,   q >= 0,  sum q = c .
// A method either finds the threshold of v (simplex_*.hpp, fixed_point.hpp) or improves a q that is
// given, the one of the last visit (smo.hpp, frank_wolfe.hpp, active_set.hpp):
//     template <class T> static void improve(const T* v, T* q, int n, double z, double tol);
#pragma once

#include <algorithm>
#include <limits>

#include "restricted/method.hpp"
#include "restricted/threshold.hpp"

namespace pm {

// v and q in the classes' own places, the true class's behind them; where there is no class, v is
// lower than any. Returns how many entries that makes.
template <class T>
int spread(const Restricted<T>& r, MethodWork<T>& work) {
    using V = Vec<T>;
    work.resize(r.padded + 1);
    T *v = work.v.data(), *q = work.q.data();
    const V lowest = V::set1(std::numeric_limits<T>::lowest() / 4);
    V sums = V::set1(T(0));
    for (int j = 0; j < r.padded; j += kLanes<T>) {
        const V p = V::load(r.p + j);
        V::max(V::load(r.b + j), lowest).store(v + j);
        p.store(q + j);
        sums = sums + p;
    }
    v[r.padded] = T(r.c);
    q[r.padded] = T(std::max(0.0, r.c - double(sums.sum())));
    return r.padded + 1;
}

// v - max(v), so that huge v lose no digits of z. What lies z below the largest has p = 0 and may
// be raised to that: then nothing is so low that sums of it overflow. Returns max(v).
template <class T>
T shift_to_zero(const T* v, int padded, double z, T* shifted) {
    using V = Vec<T>;
    const T best = vector_max(v, padded), top = best > v[padded] ? best : v[padded];
    const V by = V::set1(top), low = V::set1(T(-z));
    for (int j = 0; j < padded; j += kLanes<T>) V::max(V::load(v + j) - by, low).store(shifted + j);
    shifted[padded] = std::max(v[padded] - top, T(-z));
    return top;
}

template <class Projection, class T>
T solve_on_simplex(const Restricted<T>& r, Block<T>& block, MethodWork<T>& work) {
    const int n = spread(r, work);
    T *v = work.v.data(), *q = work.q.data();
    T found = r.guess;
    if constexpr (requires { Projection::own_tolerance; }) {
        work.simplex.tol = r.tolerance(Projection::own_tolerance);
        T* shifted = work.simplex.room(work.simplex.shifted, n);
        const T top = shift_to_zero(v, r.padded, r.c, shifted);
        const double tau = Projection::threshold(shifted, n, r.c, work.simplex);
        block.gather(shifted, r.padded, round_down<T>(tau));
        block.clip(tau, kInfinity<double>);
        found = T(double(top) + tau);
    } else {
        Projection::improve(v, q, n, r.c, r.tol);
        block.count = 0;
        for_each_greater(q, r.padded, T(0), r.padded, [&](int j) {
            block.classes[block.count] = j;
            block.p[block.count++] = q[j];
        });
    }
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
