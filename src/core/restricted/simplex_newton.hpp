// Simplex projection by Newton's method on phi (Michelot 1986; Cominetti, Mascarenhas and Silva
// 2014), with an optional warm start.
//
// phi is convex and decreasing, so the step t + phi(t) / |{v > t}| never passes the root from
// below, and comes out below it from above: after the first step, t grows and the set {v > t}
// shrinks until it stays the same. Each round is one vector pass over the entries that are left.
// Convexity also gives phi_next / phi + count_next / count <= 1, so that phi * count falls by a
// factor of four at least: from n^2 z to the rounding of z in about 30 + log2(n) rounds, whatever v
// is.
#pragma once

#include "restricted/simplex.hpp"

namespace pm {

struct SimplexNewton {
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        const double top = double(largest(v, n));
        return top + shifted_threshold(v, n, top, z, work);
    }

    // The threshold of v - shift, shift the largest entry: it lies in [-z, -z / n].
    template <class T>
    static double shifted_threshold(const T* v, std::int64_t n, double shift, double z,
                                    SimplexWork<T>& work) {
        const double guess = work.guess - shift;
        const bool warm = guess > -z && guess < 0;
        double t = warm ? guess : -z;
        std::int64_t last = -1;
        for (int round = 0; round < 128; ++round) {
            const Excess excess = excess_above(v, n, shift, t);
            const double next = t + (excess.sum - z) / double(excess.count);
            if (excess.count == last) return next;  // t was the root of this very set
            const bool rises = next > t;
            if (!rises && !(warm && round == 0)) return t;
            t = next > -z ? next : -z;  // now below the root, whatever the guess was
            last = excess.count;
            if (rises && excess.count < n / 4) {
                n = keep_above(v, n, shift, t, excess.count, work);
                v = work.listed.data();
                shift = 0;
            }
        }
        return t;
    }

  private:
    // Lists v - shift where it exceeds t, at most `most` entries; v may be the list itself.
    template <class T>
    static std::int64_t keep_above(const T* v, std::int64_t n, double shift, double t,
                                   std::int64_t most, SimplexWork<T>& work) {
        T* listed = work.room(work.listed, most + 1);  // one to write what is not kept
        std::int64_t count = 0, j = 0;
        const auto visit = [&](T x) {
            const double y = double(x) - shift;
            listed[count] = T(y);
            count += y > t;
        };
        // rounding must not drop an entry: compare with a floor that is surely below
        constexpr double slack = 4.0 * std::numeric_limits<T>::epsilon();
        const double edge = shift + t;
        const T floor = T(edge - slack * std::abs(edge));
        for (; j + kLanes<T> <= n; j += kLanes<T>)
            for (unsigned mask = greater_mask(v + j, floor); mask != 0; mask &= mask - 1)
                visit(v[j + std::countr_zero(mask)]);
        for (; j < n; ++j) visit(v[j]);
        return count;
    }
};

}  // namespace pm
