// Whom a pass visits, and in what order: the loops over examples behind solvers/shrinking.py, which
// says what they are for and has the numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.hpp"

namespace pm {

// Those of `among` for whom the visit is due, in their order; returns how many. `due` has room for
// all.
inline std::int64_t list_due(const std::int64_t* among, std::int64_t n, const std::int32_t* next,
                             std::int32_t now, std::int64_t* due) {
    std::int64_t count = 0;
    for (std::int64_t at = 0; at < n; ++at) {
        due[count] = among[at];
        count += next[among[at]] <= now;
    }
    return count;
}

// Those of `among` whose share of the gap is above the bound; returns how many.
inline std::int64_t list_above(const std::int64_t* among, std::int64_t n, const double* share,
                               double bound, std::int64_t* found) {
    std::int64_t count = 0;
    for (std::int64_t at = 0; at < n; ++at) {
        found[count] = among[at];
        count += share[among[at]] > bound;
    }
    return count;
}

inline double sum_of_shares(const std::int64_t* order, std::int64_t n, const double* share) {
    double total = 0;
    for (std::int64_t at = 0; at < n; ++at) total += share[order[at]];
    return total;
}

// Sets the next visit of those just visited: intervals times sqrt(target / share), within a factor
// of two either way and between one pass and `longest`; a random part of a pass is added, so that
// they do not wake in step.
inline void set_next_visits(const std::int64_t* order, std::int64_t n, const double* share,
                            double target, double longest, std::int32_t now, std::uint64_t seed,
                            float* interval, std::int32_t* next) {
    SmallRandom random(seed);
    for (std::int64_t at = 0; at < n; ++at) {
        const std::int64_t i = order[at];
        const double factor =
            target > 0 ? std::sqrt(target / std::clamp(share[i], target / 4, 4 * target)) : 2.0;
        const double wait = std::clamp(double(interval[i]) * factor, 1.0, longest);
        interval[i] = static_cast<float>(wait);
        next[i] = now + static_cast<std::int32_t>(wait + random.uniform());
    }
}

// A random order of the same examples (Fisher and Yates).
inline void shuffled(const std::int64_t* order, std::int64_t n, std::uint64_t seed,
                     std::int64_t* out) {
    SmallRandom random(seed);
    for (std::int64_t at = 0; at < n; ++at) {
        const std::int64_t other = random.below(at + 1);
        out[at] = out[other];
        out[other] = order[at];
    }
}

}  // namespace pm
