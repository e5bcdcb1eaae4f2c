// An entry of an example's dual block: p >= 0 of one class.
#pragma once

#include <cstdint>
#include <limits>

namespace pm {

template <class T>
struct DualEntry {
    std::int32_t cls;
    T p;
};

// Whether p is at its bound c, but for rounding.
template <class T>
inline bool at_bound(double p, double c) {
    return p >= c * (1 - 16 * double(std::numeric_limits<T>::epsilon()));
}

// ||p||^2 of a block
template <class T>
double squared_length(const DualEntry<T>* block, int count) {
    double total = 0;
    for (int e = 0; e < count; ++e) total += double(block[e].p) * double(block[e].p);
    return total;
}

}  // namespace pm
