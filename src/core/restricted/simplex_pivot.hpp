// Simplex projection by random pivots, expected O(n) (Duchi et al. 2008, figure 2).
//
// S and s: number and sum of the entries known to be positive in p. A random entry x of those
// still open splits them; if all entries >= x can be positive together,
//     s + sum_{v >= x} v - (S + |{v >= x}|) x < z,
// they are, and only the smaller ones stay open; else x and its ties are not, and only the larger
// ones stay open.
#pragma once

#include <utility>

#include "restricted/simplex.hpp"

namespace pm {

struct SimplexPivot {
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        T* open = work.room(work.listed, n);
        std::copy_n(v, n, open);
        double sum = 0;
        std::int64_t count = 0;
        while (n > 0) {
            const T x = open[next_random(work.random) % std::uint64_t(n)];
            std::int64_t above = 0, smaller = n;  // [0, above) > x, [above, smaller) = x, rest < x
            double above_sum = 0;
            for (std::int64_t j = 0; j < smaller;) {
                const T y = open[j];
                if (y > x) {
                    above_sum += double(y);
                    std::swap(open[above++], open[j++]);
                } else if (y < x) {
                    std::swap(open[--smaller], open[j]);
                } else {
                    ++j;
                }
            }
            const double with_sum = sum + above_sum + double(smaller - above) * double(x);
            if (with_sum - double(count + smaller) * double(x) < z) {
                sum = with_sum;
                count += smaller;
                open += smaller;
                n -= smaller;
            } else {
                n = above;
            }
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
