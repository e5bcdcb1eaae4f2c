// What LaRank's machine asks of those who keep its support patterns.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace pm {

using SlotList = std::vector<std::int32_t>;     // they number the support patterns
using ExampleList = std::vector<std::int64_t>;  // they go on from one batch to the next

template <class T>
struct PatternSource {
    virtual ~PatternSource() = default;
    // Kernel values with the patterns in these slots: of examples, row by row, or of a pattern.
    virtual void example_rows(const ExampleList& examples, const SlotList& slots, T* out) = 0;
    virtual void pattern_row(std::int32_t slot, const SlotList& slots, T* out) = 0;
    // The example becomes the pattern of the next slot; returns k(x, x), finite.
    virtual double append(std::int64_t example) = 0;
    // Only these slots remain, renumbered in this order.
    virtual void keep(const SlotList& slots) = 0;
};

[[noreturn]] inline void throw_not_finite() {
    throw std::domain_error(
        "The kernel has values that are NaN or infinite: scale the features, or use other kernel "
        "parameters.");
}

}  // namespace pm
