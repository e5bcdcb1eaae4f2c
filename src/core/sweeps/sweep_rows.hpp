// A sweep, one example at a time: scores, visit, update of W.
#pragma once

#include <cstdint>

#include "rows/rows.hpp"
#include "sweeps/visitor.hpp"

namespace pm {

// Applies the change listed in w to W: class by class when few moved, else whole rows of `width`
// classes.
template <class Matrix, class T>
PM_INLINE void apply_change(const Matrix& X, std::int64_t i, VisitScratch<T>& w, T* W,
                            std::int64_t ld, std::int64_t width) {
    if (w.in_place) {
        row_add(X, i, w.change.data(), width, W, ld);
        return;
    }
    if (2 * w.touched * kLanes<T> <= 3 * width) {
        row_add_of(X, i, w.classes.data(), w.change.data(), w.touched, W, ld);
        return;
    }
    for (int e = 0; e < w.touched; ++e) w.delta[w.classes[e]] = w.change[e];
    row_add(X, i, w.delta.data(), width, W, ld);
    for (int e = 0; e < w.touched; ++e) w.delta[w.classes[e]] = T(0);
}

// Asks for what the visits after next will read: the order is random, so no hardware guesses it.
template <class Matrix, class T>
PM_INLINE void prefetch_visits(const Matrix& X, const Examples<T>& ex, const DualRows<T>& dual,
                               const std::int64_t* order, std::int64_t at, std::int64_t count) {
    if (at + 4 < count) {
        X.prefetch_bounds(order[at + 4]);
        dual.prefetch_bounds(order[at + 4]);
        ex.prefetch(order[at + 4]);
    }
    if (at + 2 < count) {
        X.prefetch_row(order[at + 2]);
        dual.prefetch_row(order[at + 2]);
    }
}

// Visits order[0..count) with all classes, `width` of them from the one W points at.
template <class Matrix, class T>
VisitTotals sweep_all_classes(const Visitor<T>& visitor, const Matrix& X, Examples<T> ex,
                              DualRows<T>& dual, T* W, std::int64_t ld, std::int64_t width,
                              const std::int64_t* order, std::int64_t count, double scale) {
    VisitScratch<T> w(static_cast<int>(width));
    VisitTotals totals;
    for (std::int64_t at = 0; at < count; ++at) {
        const std::int64_t i = order[at];
        prefetch_visits(X, ex, dual, order, at, count);
        row_scores(X, i, W, ld, width, w.s.data());
        if (at + 1 < count) prefetch_first_weights(X.row(order[at + 1]), W, ld, width);
        if (visitor.full(w, static_cast<int>(width), ex, dual, i, scale, totals))
            apply_change(X, i, w, W, ld, width);
    }
    return totals;
}

// The classes of an example's dual row, then the true one where it counts; none if none is listed.
template <class T>
PM_INLINE int list_classes(bool coupled, const Examples<T>& ex, const DualRows<T>& dual,
                           std::int64_t i, std::int32_t* classes) {
    const int listed = dual.count(i);
    if (listed == 0) return 0;
    const auto* row = dual.row(i);
    for (int e = 0; e < listed; ++e) classes[e] = row[e].cls;
    if (coupled) classes[listed] = ex.y[i];
    return listed + (coupled ? 1 : 0);
}

// Visits order[0..count), each with the classes of its dual row only. `weights` has the scores of
// listed classes, scores_of(i, classes, m, s), and takes in what a visit changed, add(i, visit).
template <class Matrix, class T, class Weights>
VisitTotals sweep_listed(const Visitor<T>& visitor, const Matrix& X, Examples<T> ex,
                         DualRows<T>& dual, Weights& weights, std::int64_t width,
                         const std::int64_t* order, std::int64_t count, double scale) {
    VisitScratch<T> w(static_cast<int>(width));
    std::vector<std::int32_t> classes(width + 1);
    VisitTotals totals;
    for (std::int64_t at = 0; at < count; ++at) {
        const std::int64_t i = order[at];
        prefetch_visits(X, ex, dual, order, at, count);
        const int m = list_classes(visitor.coupled, ex, dual, i, classes.data());
        if (m == 0) continue;
        weights.scores_of(i, classes.data(), m, w.s.data());
        if (visitor.listed(w, ex, dual, i, scale, totals)) weights.add(i, w);
    }
    return totals;
}

// W as it is, a row per feature.
template <class Matrix, class T>
struct ByFeature {
    const Matrix& X;
    T* W;
    std::int64_t ld;

    PM_INLINE void scores_of(std::int64_t i, const std::int32_t* classes, int m, T* s) const {
        row_scores_of(X, i, W, ld, classes, m, s);
    }
    PM_INLINE void add(std::int64_t i, const VisitScratch<T>& w) {
        row_add_of(X, i, w.classes.data(), w.change.data(), w.touched, W, ld);
    }
};

template <class Matrix, class T>
VisitTotals sweep_listed_classes(const Visitor<T>& visitor, const Matrix& X, const Examples<T>& ex,
                                 DualRows<T>& dual, T* W, std::int64_t ld, std::int64_t width,
                                 const std::int64_t* order, std::int64_t count, double scale) {
    ByFeature<Matrix, T> weights{X, W, ld};
    return sweep_listed(visitor, X, ex, dual, weights, width, order, count, scale);
}

}  // namespace pm
