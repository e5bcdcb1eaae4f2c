// The Weston-Watkins subproblem by sorting, O(n log n): Wang and Scott 2021, algorithm 2.
//
//     min 1/2 b'(I + 11')b - v'b   over   0 <= b <= C     (their problem 4)
// has b = clip(v - t, 0, C) with t = sum b. Sweep t from the largest v down to 0 past the
// breakpoints v_j (entry j leaves 0: "dn") and v_j - C (entry j reaches C: "up"); with n_u entries
// at C and n_m between, summing to S, their equation (7) gives the candidate
//     t^ = (C n_u + S) / (n_m + 1),
// which is the answer once it lies between the next breakpoint and the last.
//
// Subroutine 5 tests both sides. Its lines 3 and 7 (t^ is not above the last breakpoint) hold
// whenever the step before did not end the sweep, since then the breakpoint was above that
// step's candidate, and passing it moves the candidate to no more than the breakpoint. Only
// rounding can make them fail, and then the sweep would miss its end; so we test lines 6 and 10
// alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace pm {

// t with sum_j clip(v_j - t, 0, C) = t, or 0 when no v is positive. work: scratch.
template <class T>
double walrus_threshold(const T* v, std::int64_t n, double C, std::vector<double>& work) {
    work.clear();
    for (std::int64_t j = 0; j < n; ++j)
        if (v[j] > T(0)) work.push_back(double(v[j]));
    if (work.empty()) return 0;
    std::sort(work.begin(), work.end(), std::greater<>());
    const std::size_t positive = work.size();
    // the two lists of breakpoints are sorted alike: subroutine 3 is a merge, done on the way
    std::size_t full = 0, entered = 0;  // n_u and n_u + n_m
    double sum = 0;
    while (true) {
        const double next_up = full < entered ? work[full] - C : 0.0;
        const double next_dn = entered < positive ? work[entered] : 0.0;
        const double t = (C * double(full) + sum) / double(entered - full + 1);
        const double next = std::max({next_up, next_dn, 0.0});
        if (next == 0 || (entered > 0 && t >= next)) break;
        if (next_up >= next_dn)  // ties: up first, as in subroutine 3
            sum -= work[full++];
        else
            sum += work[entered++];
    }
    sum = 0;  // anew, since the running sum has gathered rounding
    for (std::size_t j = full; j < entered; ++j) sum += work[j];
    return (C * double(full) + sum) / double(entered - full + 1);
}

}  // namespace pm
