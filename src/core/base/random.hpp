// Random numbers that are the same on every platform (splitmix64).
#pragma once

#include <cstdint>

namespace pm {

inline constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;

inline std::uint64_t mix_bits(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// The n-th number of a sequence, without those before it.
inline std::uint64_t random_at(std::uint64_t seed, std::uint64_t n) {
    return mix_bits(seed + (n + 1) * kGoldenRatio);
}

// One word of state.
class SmallRandom {
  public:
    explicit SmallRandom(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() { return mix_bits(state_ += kGoldenRatio); }
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

}  // namespace pm
