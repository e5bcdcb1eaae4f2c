// The answer of a restricted problem, and what keeps it feasible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/simd.hpp"

namespace pm {

// A class with a value of it.
template <class T>
struct Listed {
    std::int32_t cls;
    T value;
};

// The classes with p > 0, and scratch; one per thread.
template <class T>
struct Block {
    explicit Block(int padded) : classes(padded), b(padded + kLanes<T>), p(padded + kLanes<T>) {}

    // Lists the classes with b > floor.
    PM_INLINE void gather(const T* all, int padded, T floor) {
        gather_few(all, padded, floor, padded);
    }
    // The same; false, and not all of them, when there are more than `most`.
    PM_INLINE bool gather_few(const T* all, int padded, T floor, int most) {
        count = 0;
        return for_each_greater(all, padded, floor, most, [&](int j) {
            classes[count] = j;
            b[count++] = all[j];
        });
    }
    // Fills the list's b up to a whole number of vectors, and says to how many.
    PM_INLINE int pad() {
        const int padded = round_up_lanes<T>(count);
        for (int e = count; e < padded; ++e) b[e] = -kInfinity<T>;
        return padded;
    }
    // p = clip((b - t) / w, 0, u) of the listed classes; drops those with p = 0.
    PM_INLINE void clip(double t, double u, double w = 1) {
        int kept = 0;
        for (int e = 0; e < count; ++e) {
            const T value = T(std::min((double(b[e]) - t) / w, u));
            classes[kept] = classes[e];
            p[kept] = value;
            kept += value > T(0);
        }
        count = kept;
    }
    // Where b is large and the bound s on the sum small, rounding could exceed s.
    PM_INLINE void scale_to(double s) {
        double total = 0;
        for (int e = 0; e < count; ++e) total += double(p[e]);
        if (total > s)
            for (int e = 0; e < count; ++e) p[e] = T(double(p[e]) * (s / total));
    }
    // Makes p_j <= sum(p) / k hold to the last digit where rounding broke it: the n classes at the
    // bound u get the value v with k v = n v + the sum of the others.
    void lower_cap(double u, int k) {
        int full = 0;
        double others = 0;
        for (int e = 0; e < count; ++e) {
            full += p[e] >= T(u);
            others += p[e] >= T(u) ? 0.0 : double(p[e]);
        }
        if (full >= k) return;
        const T cap = T(others / (k - full));
        for (int e = 0; e < count; ++e) p[e] = std::min(p[e], cap);
    }

    // Lists the classes with p > 0 of p in their places.
    void list_positive(int padded) {
        count = 0;
        for (int j = 0; j < padded; ++j) {
            const T value = p[j];
            classes[count] = j;
            p[count] = value;  // never ahead of j
            count += value > T(0);
        }
    }
    T* work_of(int size) {
        if (int(work.size()) < size) work.resize(size);
        return work.data();
    }

    std::vector<std::int32_t> classes;
    std::vector<T> b, p;
    std::vector<double> values;
    std::vector<float> single;
    std::vector<T> work, above;
    std::vector<Listed<T>> sorted;  // some classes, the largest first
    int count = 0;
};

}  // namespace pm
