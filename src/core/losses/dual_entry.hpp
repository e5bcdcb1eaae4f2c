// An entry of an example's dual block: p >= 0 of one class.
#pragma once

#include <cstdint>

namespace pm {

template <class T>
struct DualEntry {
    std::int32_t cls;
    T p;
};

}  // namespace pm
