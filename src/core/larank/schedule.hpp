// Which operation LaRank performs next (Bordes et al. 2007, section 3.3 and algorithm 5).
//
// Every operation has a running estimate of the dual increase per unit of cost; operations are
// drawn with odds proportional to these estimates, and none with a probability below eta.
#pragma once

#include <array>

#include "base/random.hpp"

namespace pm {

enum Operation { kProcessNew, kProcessOld, kOptimize, kOperations };

class Schedule {
  public:
    static constexpr double kMu = 0.05;

    std::array<double, kOperations> rate{1, 1, 1};
    std::array<bool, kOperations> enabled{true, true, true};
    double eta = 0.05;

    // Only ProcessNew is possible while there are no support patterns.
    Operation pick(SmallRandom& random, bool any_patterns) const {
        std::array<bool, kOperations> possible = enabled;
        if (!any_patterns) possible[kProcessOld] = possible[kOptimize] = false;
        double total = 0;
        int count = 0;
        for (int s = 0; s < kOperations; ++s)
            if (possible[s]) total += rate[s], ++count;
        double left = random.uniform();
        for (int s = kOperations - 1; s > 0; --s) {
            if (!possible[s]) continue;
            const double share = total > 0 ? rate[s] / total : 1.0 / count;
            left -= eta + (1 - count * eta) * share;
            if (left < 0) return Operation(s);
        }
        return kProcessNew;
    }

    // An operation that cost nothing (a ProcessNew of a support pattern) gained nothing either.
    void observe(Operation s, double increase, double cost) {
        rate[s] = (1 - kMu) * rate[s] + (cost > 0 ? kMu * (increase / cost) : 0.0);
    }
};

}  // namespace pm
