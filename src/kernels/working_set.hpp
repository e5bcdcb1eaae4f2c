// Kernel machines: passes of exact block updates over a working set, given its Gram matrix.
//
// F = K A are the scores of all examples. For the examples of the set, scores are kept class by
// class (S^T), so that a visit's change of a few classes is an axpy per class along the set:
//     S^T[class] += change[class] * G[:, i] .
// Nothing outside the set is touched; the caller adds K[:, set] change to F in one product.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "visit.hpp"

namespace pm {

inline std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

inline constexpr int kFullEvery = 5;  // of the passes one visits everybody, the others leave out
inline constexpr double kIdle = 0.1;  // those with less than this part of the mean share

struct WorkingSetLimits {
    int passes;     // at most
    double stop;    // end when a pass finds less than this part of what the first one found,
    double enough;  // or no more than this
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

// set: m examples. G: m rows of ldg >= m entries. S and change: n_classes x m, class by class; S is
// brought up to date, change receives the change of the rows a_i.
template <class Loss, class T>
VisitTotals solve_working_set(Examples<double>& ex, DualRows<double>& dual, const std::int64_t* set,
                              std::int64_t m, const T* G, std::int64_t ldg, T* S, double* change,
                              WorkingSetLimits limits, std::uint64_t seed) {
    const int padded = round_up_lanes<double>(ex.n_classes);
    VisitScratch<double> w(padded);
    std::vector<std::int64_t> order(m);
    for (std::int64_t i = 0; i < m; ++i) order[i] = i;
    VisitTotals all;
    double first = 0, floor = 0;
    for (int pass = 0; pass < limits.passes; ++pass) {
        const bool full = pass % kFullEvery == 0;
        for (std::int64_t i = m - 1; i > 0; --i)
            std::swap(order[i], order[next_random(seed) % std::uint64_t(i + 1)]);
        VisitTotals totals;
        for (const std::int64_t i : order) {
            if (!full && ex.gap[set[i]] < floor) continue;  // gained next to nothing last time
            for (int l = 0; l < ex.n_classes; ++l) w.s[l] = double(S[l * m + i]);
            if (!visit_all_classes<Loss>(w, padded, ex, dual, set[i], 1.0, totals)) continue;
            add_along_set(w.classes.data(), w.change.data(), w.touched, G + i * ldg, m, S);
            for (int e = 0; e < w.touched; ++e) change[w.classes[e] * m + i] += w.change[e];
        }
        all.dual += totals.dual;
        all.moved += totals.moved;
        if (pass == 0) all.gap = first = totals.gap;
        if (full) floor = kIdle * totals.gap / double(m);
        if (totals.moved == 0 || totals.gap <= std::max(limits.stop * first, limits.enough)) break;
    }
    return all;
}

// loss[r] = c_i loss_i and gap[r] = c_i loss_i - p_i.h_i for the examples rows[r], whose scores
// are the rows of F; returns sum_i a_i.F_i, their share of ||W||^2.
template <class Loss>
double evaluate_scores(const double* F, const std::int64_t* rows, std::int64_t count,
                       const Examples<double>& ex, const DualRows<double>& dual, double* loss,
                       double* gap) {
    const int padded = round_up_lanes<double>(ex.n_classes);
    std::vector<double> s(padded);
    Block<double> work(padded);
    double norm = 0;
    for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t i = rows[r];
        loss[r] = gap[r] = 0;
        if (ex.c[i] == 0) continue;
        std::copy_n(F + r * ex.n_classes, ex.n_classes, s.data());
        const double s_true = s[ex.y[i]];
        margins_from_scores<Loss>(s.data(), ex.n_classes, padded, ex.y[i]);
        loss[r] = ex.c[i] * Loss::value(s.data(), padded, ex.top_k, work);
        if (ex.squared_norm[i] == 0) continue;
        double p_dot_h = 0;
        const auto* row = dual.row(i);
        for (int e = 0; e < dual.count(i); ++e) {
            const double p = row[e].p, score = F[r * ex.n_classes + row[e].cls];
            p_dot_h += p * s[row[e].cls];
            const bool own = row[e].cls == ex.y[i];  // one-vs-rest only
            norm += Loss::coupled ? p * (s_true - score) : (own ? p * score : -p * score);
        }
        gap[r] = std::max(0.0, loss[r] - p_dot_h);
    }
    return norm;
}

}  // namespace pm
