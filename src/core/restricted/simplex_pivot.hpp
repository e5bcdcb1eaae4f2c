// Simplex projection by random pivots, expected O(n) (Duchi et al. 2008, figure 2).
//
// S and s: number and sum of the entries known to be positive in p. A random entry x of those
// still open splits them; if all entries >= x can be positive together,
//     s + sum_{v >= x} v - (S + |{v >= x}|) x = s - S x + sum_{v > x} (v - x) < z,
// they are, and only the smaller ones stay open; else x and its ties are not, and only the larger
// ones stay open. A round is a vector pass for the sum, and one without branches that keeps a side.
#pragma once

#include <utility>

#include "restricted/simplex.hpp"

namespace pm {

struct SimplexPivot {
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        T* open = work.room(work.listed, n);
        double sum = 0;
        std::int64_t count = 0;
        const T* from = v;
        while (n > 0) {
            const T x = from[next_random(work.random) % std::uint64_t(n)];
            const double pivot = double(x);
            const Excess above = excess_above(from, n, 0.0, pivot);
            std::int64_t kept = 0;
            if (sum - double(count) * pivot + above.sum < z) {
                for (std::int64_t j = 0; j < n; ++j) {
                    const T y = from[j];
                    open[kept] = y;
                    kept += y < x;
                }
                sum += above.sum + double(n - kept) * pivot;
                count += n - kept;
            } else {
                for (std::int64_t j = 0; j < n; ++j) {
                    const T y = from[j];
                    open[kept] = y;
                    kept += y > x;
                }
            }
            from = open;
            n = kept;
        }
        return (sum - z) / double(count);
    }

  private:
    static std::uint64_t next_random(std::uint64_t& state) {  // xorshift64 (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
};

}  // namespace pm
