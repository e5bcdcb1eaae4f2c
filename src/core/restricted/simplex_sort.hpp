// Simplex projection by sorting (Blondel 2014, algorithm 2; Shalev-Shwartz and Singer 2006).
//
// With mu the entries from the largest down and pi(m) = (mu_1 + ... + mu_m - z) / m, the threshold
// is pi(rho), rho the last m with mu_m > pi(m). O(n log n).
#pragma once

#include <functional>

#include "restricted/simplex.hpp"

namespace pm {

struct SimplexSort {
    template <class T>
    static double threshold(const T* v, std::int64_t n, double z, SimplexWork<T>& work) {
        T* mu = work.room(work.listed, n);
        std::copy_n(v, n, mu);
        std::sort(mu, mu + n, std::greater<>());
        double sum = 0, tau = 0;
        for (std::int64_t m = 0; m < n; ++m) {
            sum += double(mu[m]);
            const double pi = (sum - z) / double(m + 1);
            if (m > 0 && !(double(mu[m]) > pi)) break;
            tau = pi;
        }
        return tau;
    }
};

}  // namespace pm
