// What a visit of an example reads and leaves, whatever the loss.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "restricted/method.hpp"

namespace pm {

template <class T>
struct VisitScratch {
    explicit VisitScratch(int ld)
        : s(ld + kLanes<T>),
          b(ld + kLanes<T>),
          start(ld + kLanes<T>, T(0)),
          delta(ld, T(0)),
          change(2 * ld + 1),
          classes(2 * ld + 1),
          block(ld + kLanes<T>) {
        std::iota(classes.begin(), classes.end(), 0);  // so they stay where all classes move
    }
    std::vector<T> s, b;
    std::vector<T> start, delta;        // zero between visits
    std::vector<T> change;              // change of the row a_i, touched classes only, scaled
    std::vector<std::int32_t> classes;  // the touched classes
    Block<T> block;                     // the new p
    MethodWork<T> method;
    int touched = 0;
    bool in_place = false;  // whether the classes are all, in their order, with zeros behind them
};

// What a sweep knows of the examples. Arrays of length n.
template <class T>
struct Examples {
    const std::int32_t* y;  // negative: a class that is not among these
    const double* c;
    const double* squared_norm;  // A, with the constant feature
    T* threshold;                // root of the restricted problem at the last visit
    double* gap;                 // share of the duality gap at the last visit
    int n_classes;
    Method<T> method = nullptr;   // nullptr: the loss's own
    double method_tol = -1;       // negative: the method's own
    double* violation = nullptr;  // of the optimality conditions at the last visit, if wanted
    double held_back = 0;         // of A: what the constant feature moves less

    PM_INLINE double curvature(std::int64_t i) const { return squared_norm[i] - held_back; }

    PM_INLINE void prefetch(std::int64_t i) const {
        PM_PREFETCH(y + i);
        PM_PREFETCH(c + i);
        PM_PREFETCH(squared_norm + i);
        PM_PREFETCH(threshold + i);
        PM_PREFETCH(gap + i);
    }
};

struct VisitTotals {
    double gap = 0;   // sum of gap_i
    double loss = 0;  // sum of c_i loss_i (an upper bound for top-k)
    double dual = 0;  // change of the blocks' part of the dual
    std::int64_t moved = 0;
    std::int64_t entries = 0;  // length of the dual rows visited

    VisitTotals& operator+=(const VisitTotals& other) {
        gap += other.gap;
        loss += other.loss;
        dual += other.dual;
        moved += other.moved;
        entries += other.entries;
        return *this;
    }
};

}  // namespace pm
