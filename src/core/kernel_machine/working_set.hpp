// Kernel machines: passes of exact block updates over a working set, given its Gram matrix.
//
// F = K A are the scores of all examples. For the examples of the set, scores are kept class by
// class (S^T), so that a visit's change of a few classes is an axpy per class along the set:
//     S^T[class] += change[class] * G[:, i] .
// Nothing outside the set is touched; the caller adds K[:, set] change to F in one product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kernel_machine/row_sums.hpp"
#include "sweeps/visitor.hpp"

namespace pm {

struct WorkingSetLimits {
    int passes;     // at most
    double stop;    // end when a pass finds less than this part of what the first one found,
    double enough;  // or no more than this
};

// How a set is worked through; the values are the caller's.
struct WorkingSetPolicy {
    WorkingSetLimits set;
    int full_every;                  // of the passes one visits everybody, the others leave out
    double idle;                     // those with less than this part of the mean share
    std::int64_t neighbours;         // examples that are solved together,
    WorkingSetLimits neighbourhood;  // within these limits
};

// s_c[j] += delta_c g[j] for the classes c of a change, four at a time: g is read less often.
template <class T>
void add_along_set(const std::int32_t* classes, const double* delta, int count, const T* g,
                   std::int64_t m, T* S) {
    int e = 0;
    for (; e + 3 < count; e += 4) {
        T* PM_RESTRICT s0 = S + classes[e] * m;
        T* PM_RESTRICT s1 = S + classes[e + 1] * m;
        T* PM_RESTRICT s2 = S + classes[e + 2] * m;
        T* PM_RESTRICT s3 = S + classes[e + 3] * m;
        const T d0 = T(delta[e]), d1 = T(delta[e + 1]), d2 = T(delta[e + 2]), d3 = T(delta[e + 3]);
        for (std::int64_t j = 0; j < m; ++j) {
            s0[j] += d0 * g[j];
            s1[j] += d1 * g[j];
            s2[j] += d2 * g[j];
            s3[j] += d3 * g[j];
        }
    }
    for (; e < count; ++e) {
        T* PM_RESTRICT s = S + classes[e] * m;
        const T d = T(delta[e]);
        for (std::int64_t j = 0; j < m; ++j) s[j] += d * g[j];
    }
}

// A working set: m examples, their Gram matrix (m rows of ldg >= m entries), scores and changes of
// the rows a_i (n_classes x m, class by class).
template <class T>
struct WorkingSet {
    const std::int64_t* examples;
    std::int64_t m;
    const T* G;
    std::int64_t ldg;
    T* S;
    double* change;
};

template <class T>
inline void shuffle(std::vector<T>& order, SmallRandom& random) {
    for (std::int64_t i = std::int64_t(order.size()) - 1; i > 0; --i)
        std::swap(order[i], order[random.next() % std::uint64_t(i + 1)]);
}

// Passes of visits over a set, after the first one only to the classes in the dual rows. found[i]:
// the share of the gap that the first pass found.
template <class T>
VisitTotals visit_set(const Visitor<double>& visitor, Examples<double>& ex, DualRows<double>& dual,
                      const WorkingSet<T>& set, WorkingSetLimits limits, VisitScratch<double>& w,
                      double* found, std::vector<std::int32_t>& order, SmallRandom& random) {
    const int padded = round_up_lanes<double>(ex.n_classes);
    const std::int64_t m = set.m;
    order.resize(m);
    std::iota(order.begin(), order.end(), 0);
    VisitTotals all;
    for (int pass = 0; pass < limits.passes; ++pass) {
        shuffle(order, random);
        VisitTotals totals;
        for (const std::int64_t i : order) {
            const std::int64_t example = set.examples[i];
            bool moved;
            if (pass == 0 || visitor.dense_rows) {
                for (int l = 0; l < ex.n_classes; ++l) w.s[l] = double(set.S[l * m + i]);
                moved = visitor.full(w, padded, ex, dual, example, 1.0, totals);
                if (pass == 0) found[i] = ex.gap[example];
            } else {
                const int listed = dual.count(example);
                if (listed == 0) continue;
                const auto* row = dual.row(example);
                for (int e = 0; e < listed; ++e) w.s[e] = double(set.S[row[e].cls * m + i]);
                w.s[listed] = double(set.S[ex.y[example] * m + i]);
                moved = visitor.listed(w, ex, dual, example, 1.0, totals);
            }
            if (!moved) continue;
            add_along_set(w.classes.data(), w.change.data(), w.touched, set.G + i * set.ldg, m,
                          set.S);
            for (int e = 0; e < w.touched; ++e) set.change[w.classes[e] * m + i] += w.change[e];
        }
        all.dual += totals.dual;
        all.moved += totals.moved;
        if (pass == 0) all.gap = totals.gap;
        if (totals.moved == 0 || totals.gap <= std::max(limits.stop * all.gap, limits.enough))
            break;
    }
    return all;
}

// A part of a working set as a set of its own, with room for everything it needs.
template <class T>
class Neighbourhood {
  public:
    Neighbourhood(int n_classes, std::int64_t size)
        : found(size),
          n_classes_(n_classes),
          examples_(size),
          G_(size * size),
          S_(n_classes * size),
          change_(n_classes * size) {}

    // Takes the members at these positions of `all`.
    const WorkingSet<T>& gather(const WorkingSet<T>& all, const std::int32_t* positions,
                                std::int64_t size) {
        for (std::int64_t i = 0; i < size; ++i) {
            examples_[i] = all.examples[positions[i]];
            const T* row = all.G + positions[i] * all.ldg;
            for (std::int64_t j = 0; j <= i; ++j)
                G_[i * size + j] = G_[j * size + i] = row[positions[j]];
        }
        for (int l = 0; l < n_classes_; ++l)
            for (std::int64_t i = 0; i < size; ++i)
                S_[l * size + i] = all.S[l * all.m + positions[i]];
        std::fill_n(change_.begin(), n_classes_ * size, 0.0);
        part_ = {examples_.data(), size, G_.data(), size, S_.data(), change_.data()};
        return part_;
    }

    // Adds what has changed to `all`.
    void scatter(const WorkingSet<T>& all, const std::int32_t* positions) {
        sums_.clear();
        for (std::int64_t i = 0; i < part_.m; ++i) sums_.add_row(all.G + positions[i] * all.ldg);
        for (int l = 0; l < n_classes_; ++l) {
            for (std::int64_t i = 0; i < part_.m; ++i) {
                const double change = change_[l * part_.m + i];
                if (change == 0) continue;
                all.change[l * all.m + positions[i]] += change;
                sums_.add_term(int(i), T(change));
            }
            sums_.end_sum();
        }
        sums_.evaluate(0, all.m, all.S, all.m);
    }

    std::vector<double> found;        // shares of the gap
    std::vector<std::int32_t> order;  // of visits

  private:
    int n_classes_;
    std::vector<std::int64_t> examples_;
    std::vector<T> G_, S_;
    std::vector<double> change_;
    RowSums<T> sums_;
    WorkingSet<T> part_{};
};

// Brings the `size` members that the last one is most coupled to, itself among them, to the end.
// inverse[j]: 1 / G_jj; work: m entries.
template <class T>
void neighbours_last(std::vector<std::int32_t>& waiting, std::int64_t size,
                     const WorkingSet<T>& set, const std::vector<T>& inverse,
                     std::vector<T>& work) {
    if (std::int64_t(waiting.size()) <= size) return;
    const std::int64_t last = waiting.back();
    const T* row = set.G + last * set.ldg;
    for (const std::int32_t j : waiting) work[j] = row[j] * row[j] * inverse[j];  // squared cosine
    work[last] = std::numeric_limits<T>::infinity();
    std::nth_element(waiting.begin(), waiting.end() - size, waiting.end(),
                     [&work](std::int32_t a, std::int32_t b) { return work[a] < work[b]; });
}

// Updates the blocks of a working set, neighbourhood by neighbourhood: examples that resemble each
// other are the ones that undo each other's updates, and the Gram matrix of a few of them stays in
// a cache. S is brought up to date and change added to.
template <class T>
VisitTotals solve_working_set(const Visitor<double>& visitor, Examples<double>& ex,
                              DualRows<double>& dual, const WorkingSet<T>& set,
                              const WorkingSetPolicy& policy, SmallRandom random) {
    const WorkingSetLimits& limits = policy.set;
    VisitScratch<double> w(round_up_lanes<double>(ex.n_classes));
    const std::int64_t most = std::min(set.m, policy.neighbours);
    Neighbourhood<T> few(ex.n_classes, most);
    std::vector<double> found(set.m);
    std::vector<T> inverse(set.m), work(set.m);
    for (std::int64_t i = 0; i < set.m; ++i) {
        const double own = ex.squared_norm[set.examples[i]];
        inverse[i] = own > 0 ? T(1 / own) : T(0);
    }
    std::vector<std::int32_t> waiting;
    VisitTotals all;
    double floor = 0;
    for (int pass = 0; pass < limits.passes; ++pass) {
        const bool full = pass % policy.full_every == 0;
        for (std::int64_t i = 0; i < set.m; ++i)
            if (full || found[i] >= floor) waiting.push_back(std::int32_t(i));
        shuffle(waiting, random);
        VisitTotals totals;
        while (!waiting.empty()) {
            const std::int64_t size = std::min(most, std::int64_t(waiting.size()));
            neighbours_last(waiting, size, set, inverse, work);
            const std::int32_t* positions = waiting.data() + waiting.size() - size;
            const WorkingSet<T>& part = few.gather(set, positions, size);
            totals += visit_set(visitor, ex, dual, part, policy.neighbourhood, w, few.found.data(),
                                few.order, random);
            few.scatter(set, positions);
            for (std::int64_t i = 0; i < size; ++i) found[positions[i]] = few.found[i];
            waiting.resize(waiting.size() - size);
        }
        all.dual += totals.dual;
        all.moved += totals.moved;
        if (pass == 0) all.gap = totals.gap;
        if (full) floor = policy.idle * totals.gap / double(set.m);
        if (totals.moved == 0 || totals.gap <= std::max(limits.stop * all.gap, limits.enough))
            break;
    }
    return all;
}

// value[r] = c_i loss_i and gap[r], its share of the gap, for the examples rows[r], whose scores
// are the rows of F; returns sum_i a_i.F_i, their share of ||W||^2.
inline double evaluate_scores(const Visitor<double>& visitor, const double* F,
                              const std::int64_t* rows, std::int64_t count,
                              const Examples<double>& ex, const ClassRanges<double>& dual,
                              double* value, double* gap) {
    const int padded = round_up_lanes<double>(ex.n_classes);
    std::vector<double> s(padded);
    ShareScratch work(padded);
    double norm = 0;
    for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t i = rows[r];
        const double* scores = F + r * ex.n_classes;
        const double s_true = scores[ex.y[i]];
        std::copy_n(scores, ex.n_classes, s.data());
        const Share share = visitor.share(s.data(), padded, ex, dual, i, {}, work);
        value[r] = share.value;
        gap[r] = share.gap;
        if (ex.c[i] == 0 || ex.squared_norm[i] == 0) continue;
        dual.for_each_entry(i, [&](const DualEntry<double>& entry) {
            const bool own = entry.cls == ex.y[i];  // one-vs-rest only
            const double score = scores[entry.cls];
            norm += entry.p * (visitor.coupled ? s_true - score : (own ? score : -score));
        });
    }
    return norm;
}

}  // namespace pm
