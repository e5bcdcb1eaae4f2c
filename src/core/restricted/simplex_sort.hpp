// Simplex projection by sorting (Blondel 2014, algorithm 2; Shalev-Shwartz and Singer 2006).
//
// With mu the entries from the largest down and pi(m) = (mu_1 + ... + mu_m - z) / m, the threshold
// is pi(rho), rho the last m with mu_m > pi(m). O(n log n).
//
// What cannot be positive need not be sorted: the threshold is at least max(v) - z, and as phi has
// all its terms counted where they lower it, at least pi(n). Two passes over v, without branches.
#pragma once

#include <functional>

#include "restricted/simplex.hpp"

namespace pm {

struct SimplexSort {
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        T* mu = work.room(work.listed, n);
        const double top = double(largest(v, n));
        const double floor = std::max(top - z, (sum_of(v, n) - z) / double(n));
        std::int64_t count = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            mu[count] = v[j];
            count += double(v[j]) > floor;
        }
        std::sort(mu, mu + count, std::greater<>());
        double sum = 0, tau = top - z;
        for (std::int64_t m = 0; m < count; ++m) {
            sum += double(mu[m]);
            const double pi = (sum - z) / double(m + 1);
            if (m > 0 && !(double(mu[m]) > pi)) break;
            tau = pi;
        }
        return tau;
    }

  private:
    template <class T>
    static double sum_of(const T* v, std::int64_t n) {
        using V = Vec<double>;
        constexpr int lanes = kLanes<double>;
        V sums = V::set1(0.0);
        std::int64_t j = 0;
        for (; j + lanes <= n; j += lanes) sums = sums + load_doubles(v + j);
        double sum = sums.sum();
        for (; j < n; ++j) sum += double(v[j]);
        return sum;
    }
};

}  // namespace pm
