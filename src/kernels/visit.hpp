// One visit: the exact block update of one example, given its scores.
//
// With margins h, block p, sigma = sum p and curvature A the restricted problem's data are
// b_j = h_j / A + p_j + sigma (coupled losses) or b_m = h_m / A + p_m (one-vs-rest).
// The visit also yields the example's share of the duality gap before the update,
//     gap_i = c loss(h) - p.h  >= 0 ,
// zero exactly when the block is optimal.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "dual_rows.hpp"
#include "losses.hpp"

namespace pm {

template <class T>
struct VisitScratch {
    explicit VisitScratch(int ld)
        : s(ld), b(ld), p(ld), delta(ld, T(0)), small_delta(ld + kLanes<T>), classes(ld + 1) {}
    std::vector<T> s, b, p;
    std::vector<T> delta;               // change of the row a_i, zero between visits
    std::vector<T> small_delta;         // the same, only the touched classes
    std::vector<std::int32_t> classes;  // touched classes
    LossWork work;
    int touched = 0;
};

// What a sweep knows of the examples. Arrays of length n.
template <class T>
struct Examples {
    const std::int32_t* y;
    const double* c;
    const double* squared_norm;  // A, with the constant feature
    T* threshold;                // root of the restricted problem at the last visit
    double* gap;                 // share of the duality gap at the last visit
    std::uint8_t* still;         // visits in a row that left the block as it was
    int n_classes;
    int top_k;
};

struct VisitTotals {
    double gap = 0;   // sum of gap_i
    double loss = 0;  // sum of c_i loss_i (an upper bound for top-k)
    double dual = 0;  // change of sum p
    std::int64_t moved = 0;
};

template <class T>
PM_INLINE T motion_tolerance(double c) {
    return T(8) * std::numeric_limits<T>::epsilon() * T(c);
}

// s -> h in place; classes from `n_classes` on are padding.
template <class Loss, class T>
PM_INLINE void margins_from_scores(T* s, int n_classes, int padded, int y) {
    using V = Vec<T>;
    const T s_true = s[y];
    const V base = V::set1(Loss::coupled ? T(1) - s_true : T(1));
    for (int j = 0; j < padded; j += kLanes<T>) (V::load(s + j) + base).store(s + j);
    s[y] = Loss::coupled ? -kInfinity<T> : T(1) - s_true;
    for (int j = n_classes; j < padded; ++j) s[j] = -kInfinity<T>;
}

// Gap, restricted problem and new p for a block of m classes (padded) whose margins are in w.s and
// whose old values old[0..count) sit at positions at(e). False: nothing to do.
template <class Loss, class T, class At>
PM_INLINE bool solve_block(VisitScratch<T>& w, int padded, Examples<T>& ex, std::int64_t i,
                           double A, const DualEntry<T>* old, int count, At at, double skip,
                           VisitTotals& totals) {
    using V = Vec<T>;
    const double c = ex.c[i];
    double sigma = 0, p_dot_h = 0;
    for (int e = 0; e < count; ++e) {
        sigma += double(old[e].p);
        p_dot_h += double(old[e].p) * double(w.s[at(e)]);
    }
    const double hint = A * (double(ex.threshold[i]) - sigma);
    const double loss = c * Loss::estimate(w.s.data(), padded, ex.top_k, hint);
    const double gap = std::max(0.0, loss - p_dot_h);
    ex.gap[i] = gap;
    totals.gap += gap;
    totals.loss += loss;
    if (gap <= skip) return false;
    const V inverse = V::set1(T(1.0 / A)), shift = V::set1(Loss::coupled ? T(sigma) : T(0));
    for (int j = 0; j < padded; j += kLanes<T>)
        V::fma(V::load(w.s.data() + j), inverse, shift).store(w.b.data() + j);
    for (int e = 0; e < count; ++e) w.b[at(e)] += old[e].p;
    ex.threshold[i] =
        Loss::solve(w.b.data(), padded, c, ex.top_k, ex.threshold[i], w.p.data(), w.work);
    return true;
}

// Ends a visit that found nothing to change.
template <class T>
PM_INLINE bool stay(Examples<T>& ex, std::int64_t i) {
    if (ex.still[i] < 255) ++ex.still[i];
    return false;
}

// Full visit: w.s holds the scores of all classes. True when the row moved: then w.classes and
// w.small_delta list the change of a_i, and w.delta holds it densely until clear_delta.
template <class Loss, class T>
bool visit_all_classes(VisitScratch<T>& w, int padded, Examples<T>& ex, DualRows<T>& dual,
                       std::int64_t i, double scale, double skip, VisitTotals& totals) {
    const int y = ex.y[i];
    margins_from_scores<Loss>(w.s.data(), ex.n_classes, padded, y);
    const DualEntry<T>* old = dual.row(i);
    const int count = dual.count(i);
    w.touched = 0;
    if (!solve_block<Loss>(
            w, padded, ex, i, ex.squared_norm[i] * scale, old, count,
            [old](int e) { return old[e].cls; }, skip, totals))
        return stay(ex, i);

    int touched = 0;
    for (int e = 0; e < count; ++e) {  // a = -p for the wrong classes
        if (!(old[e].p > T(0))) continue;
        w.delta[old[e].cls] = old[e].p;
        w.classes[touched++] = old[e].cls;
    }
    int fresh = 0;
    for (int j = 0; j < padded; j += kLanes<T>) {
        if (!(Vec<T>::load(w.p.data() + j).maximum() > T(0))) continue;
        for (int l = j; l < j + kLanes<T>; ++l) {
            if (!(w.p[l] > T(0))) continue;
            ++fresh;
            if (w.delta[l] == T(0)) w.classes[touched++] = l;
            w.delta[l] -= w.p[l];
        }
    }
    T largest = T(0);
    double sum = 0;
    for (int e = 0; e < touched; ++e) {
        const T change = w.delta[w.classes[e]];
        largest = std::max(largest, std::abs(change));
        sum -= double(change);
    }
    if (largest <= motion_tolerance<T>(ex.c[i])) {
        for (int e = 0; e < touched; ++e) w.delta[w.classes[e]] = T(0);
        return stay(ex, i);
    }
    auto* row = dual.resize(i, fresh);
    for (int e = 0, at = 0; at < fresh; ++e) {
        const int l = w.classes[e];
        if (w.p[l] > T(0)) row[at++] = {l, w.p[l]};
    }
    if constexpr (Loss::coupled) {
        w.delta[y] = T(sum);
        w.classes[touched++] = y;
    } else {
        w.delta[y] = -w.delta[y];
    }
    for (int e = 0; e < touched; ++e) w.small_delta[e] = w.delta[w.classes[e]] * T(scale);
    w.touched = touched;
    ex.still[i] = 0;
    totals.dual += sum;
    ++totals.moved;
    return true;
}

template <class T>
PM_INLINE void clear_delta(VisitScratch<T>& w) {
    for (int e = 0; e < w.touched; ++e) w.delta[w.classes[e]] = T(0);
    w.touched = 0;
}

// Short visit: only the classes in the example's dual row; w.s holds their scores in row order, the
// true class last. Entries that fall to zero stay listed until the next full visit.
template <class Loss, class T>
bool visit_listed_classes(VisitScratch<T>& w, Examples<T>& ex, DualRows<T>& dual, std::int64_t i,
                          double scale, double skip, VisitTotals& totals) {
    DualEntry<T>* row = dual.row(i);
    const int count = dual.count(i);
    const int padded = round_up_lanes<T>(count);
    if constexpr (Loss::coupled) {
        const T base = T(1) - w.s[count];
        for (int e = 0; e < count; ++e) w.s[e] += base;
    } else {
        for (int e = 0; e < count; ++e)
            w.s[e] = row[e].cls == ex.y[i] ? T(1) - w.s[e] : T(1) + w.s[e];
    }
    for (int e = count; e < padded; ++e) w.s[e] = -kInfinity<T>;
    if (!solve_block<Loss>(
            w, padded, ex, i, ex.squared_norm[i] * scale, row, count, [](int e) { return e; }, skip,
            totals))
        return stay(ex, i);
    T largest = T(0);
    double sum = 0;
    for (int e = 0; e < count; ++e) {
        const T change = row[e].p - w.p[e];
        largest = std::max(largest, std::abs(change));
        sum -= double(change);
        w.small_delta[e] = change * T(scale);
    }
    if (largest <= motion_tolerance<T>(ex.c[i])) return stay(ex, i);
    for (int e = 0; e < count; ++e) {
        w.classes[e] = row[e].cls;
        if (!Loss::coupled && row[e].cls == ex.y[i]) w.small_delta[e] = -w.small_delta[e];
        row[e].p = w.p[e];
    }
    w.touched = count;
    if constexpr (Loss::coupled) {
        w.classes[count] = ex.y[i];
        w.small_delta[count] = T(sum * scale);
        w.touched = count + 1;
    }
    ex.still[i] = 0;
    totals.dual += sum;
    ++totals.moved;
    return true;
}

}  // namespace pm
