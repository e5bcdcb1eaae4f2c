// One visit for losses whose dual is dense (softmax): every class moves, so all is done on vectors.
//
// The same as visit_all_classes, which would list all classes twice. Where the dual has lists
// nevertheless (streams, where classes come later), they are spread out. A loss has `dense_rows`,
//   solve_all              the restricted problem for A b, with p of all classes, in their places,
//                          in block.p
//   conjugate_of_all       its conjugate at such a p
//   conjugate_at_solution  the same where solve_all has just ended.
#pragma once

#include "sweeps/visit.hpp"

namespace pm {

// p of all classes of example i as it is stored; lists are spread out on `room`, which is zero.
template <class T>
PM_INLINE const T* spread_row(const DualRows<T>& dual, std::int64_t i, T* room) {
    if (dual.dense()) return dual.count(i) == 0 ? room : dual.values(i);
    const DualEntry<T>* row = dual.row(i);
    for (int e = 0; e < dual.count(i); ++e) room[row[e].cls] = row[e].p;
    return room;
}

// The row of example i becomes the positive entries of p.
template <class T>
PM_INLINE void store_row(DualRows<T>& dual, std::int64_t i, const T* p, int n_classes) {
    if (dual.dense()) {
        T* row = dual.fill(i);
        for (int j = 0; j < dual.stride(); j += kLanes<T>) Vec<T>::load(p + j).store(row + j);
        return;
    }
    int count = 0;
    for (int j = 0; j < n_classes; ++j) count += p[j] > T(0);
    auto* row = dual.resize(i, count);
    for (int j = 0; j < n_classes; ++j)
        if (p[j] > T(0)) *row++ = {j, p[j]};
}

template <class Loss, class T>
bool visit_dense(const Loss& loss, VisitScratch<T>& w, int padded, Examples<T>& ex,
                 DualRows<T>& dual, std::int64_t i, double scale, VisitTotals& totals) {
    using V = Vec<T>;
    const int y = ex.y[i], count = dual.count(i);
    const double c = ex.c[i], A = ex.curvature(i) * scale;
    T *h = w.s.data(), *b = w.b.data(), *fresh = w.block.p.data();
    const T* old = spread_row(dual, i, w.start.data());
    margins_from_scores(loss, h, ex.n_classes, padded, y);

    const auto [sigma, p_dot_h] = block_sums(old, h, padded);
    const double conjugate = count == 0 ? 0.0 : loss.conjugate_of_all(old, padded, c);
    const double value = c * loss.estimate(h, padded, 0, w.block);
    ex.gap[i] = gap_share(value, p_dot_h, conjugate);
    totals.gap += ex.gap[i];
    totals.loss += value;
    totals.entries += count;

    const V curvature = V::set1(T(A)), shift = V::set1(T(sigma));
    for (int j = 0; j < padded; j += kLanes<T>)
        V::fma(curvature, shift + V::load(old + j), V::load(h + j)).store(b + j);
    ex.threshold[i] = loss.solve_all(b, padded, y, c, A, ex.threshold[i], w.block);

    const V factor = V::set1(T(scale)), zero = V::set1(T(0));
    V largest = zero, size = zero, sum = zero;
    T* change = w.change.data();
    for (int j = 0; j < padded; j += kLanes<T>) {
        const V before = V::load(old + j), after = V::load(fresh + j), moved = before - after;
        largest = V::max(largest, V::max(moved, zero - moved));
        size = V::max(size, V::max(before, after));
        sum = sum - moved;
        (moved * factor).store(change + j);
    }
    w.touched = 0;
    if (!dual.dense()) std::fill_n(w.start.data(), padded, T(0));
    if (!is_motion(largest.maximum(), size.maximum())) return false;
    store_row(dual, i, fresh, ex.n_classes);
    change[y] = T(double(sum.sum()) * scale);
    w.touched = ex.n_classes;
    w.in_place = true;
    totals.dual += conjugate - loss.conjugate_at_solution(b, padded, c, A, ex.threshold[i], fresh);
    ++totals.moved;
    return true;
}

// A visit with all classes, in the way that suits the loss.
template <class Loss, class T>
PM_INLINE bool visit_full(const Loss& loss, VisitScratch<T>& w, int padded, Examples<T>& ex,
                          DualRows<T>& dual, std::int64_t i, double scale, VisitTotals& totals) {
    if constexpr (has_dense_rows<Loss>)
        return visit_dense(loss, w, padded, ex, dual, i, scale, totals);
    else
        return visit_all_classes(loss, w, padded, ex, dual, i, scale, totals);
}

}  // namespace pm
