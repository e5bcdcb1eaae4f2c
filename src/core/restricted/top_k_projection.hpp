// The (biased) projection of a whole vector onto the top-k cone or simplex; see top_k_simplex.hpp.
//
// Where the bound on the sum is active, u = c / k is known and the projection is a knapsack problem
// (Lapin 2015, section 4.1), whose solver keeps the digits of c where v is large.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "restricted/block.hpp"
#include "restricted/knapsack.hpp"
#include "restricted/top_k_simplex.hpp"

namespace pm {

struct TopKWork {
    explicit TopKWork(int n) : sorted(n), block(round_up_lanes<double>(n)) { knapsack.resize(n); }

    std::vector<double> sorted;
    Block<double> block;
    KnapsackWork knapsack;
};

// The thresholds of v, from its largest entries alone where these determine them: as many are
// sorted as turn out to be needed.
template <class T>
TopKThresholds top_k_thresholds(const T* v, int n, int k, double c, double rho, TopKWork& work) {
    work.sorted.assign(v, v + n);
    const auto begin = work.sorted.begin();
    for (std::int64_t wanted = 2 * std::int64_t(k) + 64;; wanted *= 4) {
        const int count = static_cast<int>(std::min<std::int64_t>(wanted, n));
        if (count < n) std::nth_element(begin, begin + count, work.sorted.end(), std::greater<>());
        std::sort(begin, begin + count, std::greater<>());
        bool complete = false;
        const auto found = walk_top_k_pieces(work.sorted.data(), count, n, k, c, complete, rho);
        if (count == n || (complete && (found.u == 0 || found.t >= work.sorted[count - 1])))
            return found;
    }
}

// c: the bound on the sum, infinity for the cone.
template <class T>
void project_top_k(const T* v, int n, int k, double c, double rho, T* p, TopKWork& work) {
    const auto found = top_k_thresholds(v, n, k, c, rho, work);
    if (found.u == 0 || found.full) {
        std::fill_n(p, n, T(found.u));
        return;
    }
    if (found.u >= c / k) {
        std::copy_n(v, n, work.knapsack.v.data());
        std::fill_n(work.knapsack.u.data(), n, c / k);
        project_capped_simplex(n, c, n * (c / k), true, p, work.knapsack);
        return;
    }
    Block<double>& block = work.block;
    block.count = n;
    for (int j = 0; j < n; ++j) {
        block.classes[j] = j;
        block.b[j] = double(v[j]);
    }
    block.clip(found.t, found.u);
    block.lower_cap(found.u, k);
    block.scale_to(c);
    std::fill_n(p, n, T(0));
    for (int e = 0; e < block.count; ++e) p[block.classes[e]] = T(block.p[e]);
}

}  // namespace pm
