// One visit: the exact block update of one example, given its scores.
//
// With margins h, block p, sigma = sum p and curvature A the restricted problem's data are
// b_j = h_j / A + p_j + sigma (coupled losses) or b_m = h_m / A + p_m (one-vs-rest).
// The visit also yields the example's share of the duality gap before the update, zero exactly when
// the block is optimal.
#pragma once

#include <cmath>
#include <cstdint>

#include "losses/loss.hpp"
#include "sweeps/dual_rows.hpp"
#include "sweeps/examples.hpp"
#include "sweeps/share.hpp"

namespace pm {

// Whether a change of p is more than rounding, for p up to `size`.
template <class T>
PM_INLINE bool is_motion(T change, T size) {
    return change > T(4) * std::numeric_limits<T>::epsilon() * size;
}

// s -> h in place; classes from `n_classes` on are padding. Without coupling there may be no true
// class among them: y < 0.
template <class Loss, class T>
PM_INLINE void margins_from_scores(const Loss& loss, T* s, int n_classes, int padded, int y) {
    using V = Vec<T>;
    const T s_true = Loss::coupled || y >= 0 ? s[y] : T(0);
    if (loss.unit_margins()) {
        const V base = V::set1(Loss::coupled ? T(1) - s_true : T(1));
        for (int j = 0; j < padded; j += kLanes<T>) (V::load(s + j) + base).store(s + j);
    } else if constexpr (takes_margins<Loss>) {
        const V base = V::set1(s_true);
        const T* margins = loss.table->row(y, T());
        const int last = std::min(padded, loss.table->stride());
        for (int j = 0; j < last; j += kLanes<T>)
            (V::load(s + j) + (V::load(margins + j) - base)).store(s + j);
    } else if constexpr (requires { Loss::no_margins; }) {
        const V base = V::set1(s_true);
        for (int j = 0; j < padded; j += kLanes<T>) (V::load(s + j) - base).store(s + j);
    } else {
        for (int j = 0; j < n_classes; ++j) s[j] += T(loss.margin(y, j)) - s_true;
    }
    if (Loss::coupled || y >= 0) s[y] = Loss::coupled ? -kInfinity<T> : T(1) - s_true;
    for (int j = n_classes; j < padded; ++j) s[j] = -kInfinity<T>;
}

// The restricted problem by another method than the loss's own; out of the way of the fast path.
template <class T, class At>
PM_NOINLINE void solve_by_method(VisitScratch<T>& w, int padded, Examples<T>& ex, std::int64_t i,
                                 double cap, const DualEntry<T>* old, int count, At at) {
    for (int e = 0; e < count; ++e) w.start[at(e)] = old[e].p;
    ex.threshold[i] = ex.method(
        {w.b.data(), w.start.data(), padded, ex.c[i], cap, ex.method_tol, ex.threshold[i]}, w.block,
        w.method);
    for (int e = 0; e < count; ++e) w.start[at(e)] = T(0);
}

// Gap and restricted problem of a block whose margins are in w.s and whose old values
// old[0..count) sit at positions at(e). The answer is left in w.block.
template <class Loss, class T, class At>
PM_INLINE void solve_block(const Loss& loss, VisitScratch<T>& w, int padded, Examples<T>& ex,
                           std::int64_t i, double A, const DualEntry<T>* old, int count, At at,
                           double conjugate, VisitTotals& totals) {
    using V = Vec<T>;
    const double c = ex.c[i];
    double sigma = 0, p_dot_h = 0;
    for (int e = 0; e < count; ++e) {
        sigma += double(old[e].p);
        p_dot_h += double(old[e].p) * double(w.s[at(e)]);
    }
    const double hint = A * (double(ex.threshold[i]) - sigma);
    const double value = c * loss.estimate(w.s.data(), padded, hint, w.block);
    const double gap = gap_share(value, p_dot_h, conjugate);
    ex.gap[i] = gap;
    totals.gap += gap;
    totals.entries += count;
    totals.loss += value;
    if constexpr (Loss::has_violation)
        if (ex.violation != nullptr)
            ex.violation[i] = loss.violation(w.s.data(), padded, c, old, count, at);
    const V inverse = V::set1(T(1.0 / A)), shift = V::set1(Loss::coupled ? T(sigma) : T(0));
    for (int j = 0; j < padded; j += kLanes<T>)
        V::fma(V::load(w.s.data() + j), inverse, shift).store(w.b.data() + j);
    for (int e = 0; e < count; ++e) w.b[at(e)] += old[e].p;
    if (ex.method == nullptr)
        ex.threshold[i] = loss.solve(w.b.data(), padded, c, A, ex.threshold[i], w.block);
    else
        solve_by_method(w, padded, ex, i, loss.cap(c), old, count, at);
}

// Full visit: w.s holds the scores of all classes. True when the row moved: then w.classes and
// w.change list the change of a_i.
template <class Loss, class T>
bool visit_all_classes(const Loss& loss, VisitScratch<T>& w, int padded, Examples<T>& ex,
                       DualRows<T>& dual, std::int64_t i, double scale, VisitTotals& totals) {
    const int y = ex.y[i];
    margins_from_scores(loss, w.s.data(), ex.n_classes, padded, y);
    const DualEntry<T>* old = dual.row(i);
    const int count = dual.count(i);
    const double conjugate = loss.conjugate(old, count, ex.c[i]);
    const DualChange<Loss> dual_change(loss, y, ex.c[i], old, count, conjugate);
    w.touched = 0;
    w.in_place = false;
    solve_block(
        loss, w, padded, ex, i, ex.curvature(i) * scale, old, count,
        [old](int e) { return old[e].cls; }, conjugate, totals);

    int touched = 0;
    T size = T(0);
    for (int e = 0; e < count; ++e) {  // a = -p for the wrong classes
        if (!(old[e].p > T(0))) continue;
        w.delta[old[e].cls] = old[e].p;
        size = std::max(size, old[e].p);
        w.classes[touched++] = old[e].cls;
    }
    const Block<T>& fresh = w.block;
    for (int e = 0; e < fresh.count; ++e) {
        const int l = fresh.classes[e];
        if (w.delta[l] == T(0)) w.classes[touched++] = l;
        w.delta[l] -= fresh.p[e];
        size = std::max(size, fresh.p[e]);
    }
    T largest = T(0);
    double sum = 0;
    for (int e = 0; e < touched; ++e) {
        const T change = w.delta[w.classes[e]];
        w.delta[w.classes[e]] = T(0);
        w.change[e] = change * T(scale);
        largest = std::max(largest, std::abs(change));
        sum -= double(change);
    }
    if (!is_motion(largest, size)) return false;
    auto* row = dual.resize(i, fresh.count);
    for (int e = 0; e < fresh.count; ++e) row[e] = {fresh.classes[e], fresh.p[e]};
    if constexpr (Loss::coupled) {
        w.change[touched] = T(sum * scale);
        w.classes[touched++] = y;
    } else {
        for (int e = 0; e < touched; ++e)
            if (w.classes[e] == y) w.change[e] = -w.change[e];
    }
    w.touched = touched;
    totals.dual += dual_change.to(row, fresh.count, sum);
    ++totals.moved;
    return true;
}

// Short visit: only the classes in the example's dual row; w.s holds their scores in row order, the
// true class last. Entries that fall to zero stay listed until the next full visit.
template <class Loss, class T>
bool visit_listed_classes(const Loss& loss, VisitScratch<T>& w, Examples<T>& ex, DualRows<T>& dual,
                          std::int64_t i, double scale, VisitTotals& totals) {
    DualEntry<T>* row = dual.row(i);
    const int count = dual.count(i);
    const int padded = round_up_lanes<T>(count);
    const double conjugate = loss.conjugate(row, count, ex.c[i]);
    const DualChange<Loss> dual_change(loss, ex.y[i], ex.c[i], row, count, conjugate);
    w.touched = 0;
    w.in_place = false;
    if constexpr (Loss::coupled) {
        for (int e = 0; e < count; ++e) w.s[e] += T(loss.margin(ex.y[i], row[e].cls)) - w.s[count];
    } else {
        for (int e = 0; e < count; ++e)
            w.s[e] = row[e].cls == ex.y[i] ? T(1) - w.s[e] : T(1) + w.s[e];
    }
    for (int e = count; e < padded; ++e) w.s[e] = -kInfinity<T>;
    solve_block(
        loss, w, padded, ex, i, ex.curvature(i) * scale, row, count, [](int e) { return e; },
        conjugate, totals);
    T* fresh = w.s.data();  // the margins are no longer needed
    std::fill_n(fresh, count, T(0));
    for (int e = 0; e < w.block.count; ++e) fresh[w.block.classes[e]] = w.block.p[e];
    T largest = T(0), size = T(0);
    double sum = 0;
    for (int e = 0; e < count; ++e) {
        const T change = row[e].p - fresh[e];
        size = std::max(size, std::max(row[e].p, fresh[e]));
        largest = std::max(largest, std::abs(change));
        sum -= double(change);
        w.change[e] = change * T(scale);
    }
    if (!is_motion(largest, size)) return false;
    for (int e = 0; e < count; ++e) {
        w.classes[e] = row[e].cls;
        if (!Loss::coupled && row[e].cls == ex.y[i]) w.change[e] = -w.change[e];
        row[e].p = fresh[e];
    }
    w.touched = count;
    if constexpr (Loss::coupled) {
        w.classes[count] = ex.y[i];
        w.change[count] = T(sum * scale);
        w.touched = count + 1;
    }
    totals.dual += dual_change.to(row, count, sum);
    ++totals.moved;
    return true;
}

}  // namespace pm
