// Which operation LaRank performs next (Bordes et al. 2007, section 3.3 and algorithm 5).
//
// Every operation has a running estimate of the dual increase per unit of cost; operations are
// drawn with odds proportional to these estimates, and none with a probability below eta.
#pragma once

#include <array>
#include <cstdint>

namespace pm {

// splitmix64: one word of state, the same numbers on every platform.
class SmallRandom {
  public:
    explicit SmallRandom(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    double uniform() { return double(next() >> 11) * 0x1p-53; }
    // 0..n-1; the bias of the multiplication is below n / 2^32
    std::int64_t below(std::int64_t n) {
        return std::int64_t((next() >> 32) * std::uint64_t(n) >> 32);
    }
    std::uint64_t state() const { return state_; }
    void set_state(std::uint64_t state) { state_ = state; }

  private:
    std::uint64_t state_;
};

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
