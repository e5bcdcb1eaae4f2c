// One visit for losses whose dual is dense (softmax): every class moves, so all is done on vectors.
//
// The same as visit_all_classes, which would list all classes twice. A loss has `dense_rows`, and
//   solve_all             the restricted problem, with p of all classes, in their places, in
//   block.p conjugate_of_all      its conjugate at such a p conjugate_at_solution the same where
//   solve_all has just ended.
#pragma once

#include "sweeps/visit.hpp"

namespace pm {

template <class Loss>
inline constexpr bool has_dense_rows = requires { Loss::dense_rows; };

struct BlockSums {
    double sigma, p_dot_h;
};

// sum p and p.h; h may be -infinity where p is zero.
template <class T>
PM_INLINE BlockSums block_sums(const T* p, const T* h, int padded) {
    using V = Vec<T>;
    const V lowest = V::set1(std::numeric_limits<T>::lowest());
    V sigma = V::set1(T(0)), p_dot_h = sigma;
    for (int j = 0; j < padded; j += kLanes<T>) {
        const V own = V::load(p + j);
        sigma = sigma + own;
        p_dot_h = V::fma(own, V::max(V::load(h + j), lowest), p_dot_h);
    }
    return {double(sigma.sum()), double(p_dot_h.sum())};
}

// The row of example i becomes the positive entries of p.
template <class T>
void store_row(DualRows<T>& dual, std::int64_t i, int y, const T* p, int n_classes) {
    int count = 0;
    for (int j = 0; j < n_classes; ++j) count += p[j] > T(0);
    auto* row = dual.resize(i, count);
    if (count == n_classes - 1 && p[y] == T(0)) {
        for (int j = 0; j < y; ++j) row[j] = {j, p[j]};
        for (int j = y + 1; j < n_classes; ++j) row[j - 1] = {j, p[j]};
        return;
    }
    for (int j = 0; j < n_classes; ++j)
        if (p[j] > T(0)) *row++ = {j, p[j]};
}

template <class Loss, class T>
bool visit_dense(const Loss& loss, VisitScratch<T>& w, int padded, Examples<T>& ex,
                 DualRows<T>& dual, std::int64_t i, double scale, VisitTotals& totals) {
    using V = Vec<T>;
    const int y = ex.y[i], count = dual.count(i);
    const double c = ex.c[i], A = ex.squared_norm[i] * scale;
    T *h = w.s.data(), *b = w.b.data(), *old = w.start.data(), *fresh = w.block.p.data();
    margins_from_scores(loss, h, ex.n_classes, padded, y);
    const DualEntry<T>* row = dual.row(i);
    for (int e = 0; e < count; ++e) old[row[e].cls] = row[e].p;

    const auto [sigma, p_dot_h] = block_sums(old, h, padded);
    const double conjugate = count == 0 ? 0.0 : loss.conjugate_of_all(old, padded, c);
    const double value = c * loss.estimate(h, padded, 0, w.block);
    ex.gap[i] = gap_share(value, p_dot_h, conjugate);
    totals.gap += ex.gap[i];
    totals.loss += value;
    totals.entries += count;

    const V inverse = V::set1(T(1.0 / A)), shift = V::set1(T(sigma));
    for (int j = 0; j < padded; j += kLanes<T>)
        V::fma(V::load(h + j), inverse, shift + V::load(old + j)).store(b + j);
    ex.threshold[i] = loss.solve_all(b, padded, c, A, ex.threshold[i], w.block);

    const V factor = V::set1(T(scale)), zero = V::set1(T(0));
    V largest = zero, size = zero, sum = zero;
    T* change = w.change.data();
    for (int j = 0; j < padded; j += kLanes<T>) {
        const V before = V::load(old + j), after = V::load(fresh + j), moved = before - after;
        zero.store(old + j);
        largest = V::max(largest, V::max(moved, zero - moved));
        size = V::max(size, V::max(before, after));
        sum = sum - moved;
        (moved * factor).store(change + j);
    }
    w.touched = 0;
    if (!is_motion(largest.maximum(), size.maximum())) return false;
    store_row(dual, i, y, fresh, ex.n_classes);
    change[y] = T(double(sum.sum()) * scale);
    for (int j = 0; j < ex.n_classes; ++j) w.classes[j] = j;
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
