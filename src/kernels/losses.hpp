// The five losses: what each one asks of an example's block (DESIGN section 1).
//
// A loss knows, for the margins h_j = 1 + s_j - s_y of the wrong classes (the true class and the
// padding hold -infinity):
//   value     the primal loss, exactly;
//   estimate  the primal loss or an upper bound of it that is exact at the optimum, in one vector
//             pass (`hint` is the example's threshold in units of h);
//   solve     the exact restricted problem: reads b, writes p, returns the threshold.
// One-vs-rest has no coupling between classes: there h_m = 1 - y_m s_m over all classes.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "restricted/threshold.hpp"
#include "restricted/top_k_simplex.hpp"
#include "simd.hpp"

namespace pm {

enum class LossKind { crammer_singer, weston_watkins, top_k_alpha, top_k_beta, one_vs_rest };

// Buffers a loss may use; one per thread.
struct LossWork {
    std::vector<double> values;
};

template <class T>
PM_INLINE void clip_into(const T* b, int padded, T t, T u, T* p) {
    using V = Vec<T>;
    const V low = V::set1(t), zero = V::set1(T(0)), high = V::set1(u);
    for (int j = 0; j < padded; j += kLanes<T>)
        V::min(V::max(V::load(b + j) - low, zero), high).store(p + j);
}

// sum_j max(h_j - t, 0)
template <class T>
PM_INLINE double excess_sum(const T* h, int padded, T t) {
    using V = Vec<T>;
    const V low = V::set1(t), zero = V::set1(T(0));
    V total = zero;
    for (int j = 0; j < padded; j += kLanes<T>) total = total + V::max(V::load(h + j) - low, zero);
    return double(total.sum());
}

template <class T>
double top_k_sum(const T* h, int padded, int k, LossWork& work) {
    work.values.assign(h, h + padded);
    std::nth_element(work.values.begin(), work.values.begin() + (k - 1), work.values.end(),
                     std::greater<>());
    double total = 0;
    for (int j = 0; j < k; ++j) total += work.values[j];
    return total;
}

struct CrammerSinger {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int, LossWork&) {
        return std::max(0.0, double(vector_max(h, padded)));
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int, double) {
        return std::max(0.0, double(vector_max(h, padded)));
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int, T guess, T* p, LossWork&) {
        const T t = solve_threshold<false>(b, padded, kInfinity<T>, T(c), guess);
        clip_into(b, padded, t, kInfinity<T>, p);
        return t;
    }
};

struct WestonWatkins {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int, LossWork&) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int, double) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int, T guess, T* p, LossWork&) {
        const T t = solve_threshold<true>(b, padded, T(c), kInfinity<T>, guess);
        clip_into(b, padded, t, T(c), p);
        return t;
    }
};

// (1/k) sum of the k largest max(0, h). Upper bound: t + (1/k) sum max(h - t, 0) for any t >= 0
// (Lapin, lemma 1).
struct TopKBeta {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int k, LossWork& work) {
        work.values.assign(h, h + padded);
        for (double& x : work.values) x = std::max(x, 0.0);
        std::nth_element(work.values.begin(), work.values.begin() + (k - 1), work.values.end(),
                         std::greater<>());
        double total = 0;
        for (int j = 0; j < k; ++j) total += work.values[j];
        return total / k;
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int k, double hint) {
        const double t = std::max(0.0, hint);
        return t + excess_sum(h, padded, T(t)) / k;
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int k, T guess, T* p, LossWork&) {
        const T u = T(c / k);
        const T t = solve_threshold<true>(b, padded, u, T(c), guess);
        clip_into(b, padded, t, u, p);
        return t;
    }
};

// max(0, (1/k) sum of the k largest h), over the wrong classes only.
struct TopKAlpha {
    static constexpr bool coupled = true;
    template <class T>
    static double value(const T* h, int padded, int k, LossWork& work) {
        return std::max(0.0, top_k_sum(h, padded, k, work) / k);
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int k, double hint) {
        return std::max(0.0, hint + excess_sum(h, padded, T(hint)) / k);
    }
    template <class T>
    static T solve(const T* b, int padded, double c, int k, T guess, T* p, LossWork& work) {
        const auto found = solve_top_k_simplex(b, padded, k, c, double(guess), work.values);
        for (int j = 0; j < padded; ++j) {
            const double above = double(b[j]) - found.t;
            const bool full = found.full && b[j] != -kInfinity<T>;
            p[j] = T(full ? found.u : std::min(std::max(above, 0.0), found.u));
        }
        return T(found.t);
    }
};

struct OneVsRest {
    static constexpr bool coupled = false;
    template <class T>
    static double value(const T* h, int padded, int, LossWork&) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE double estimate(const T* h, int padded, int, double) {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    static PM_INLINE T solve(const T* b, int padded, double c, int, T, T* p, LossWork&) {
        clip_into(b, padded, T(0), T(c), p);
        return T(0);
    }
};

// Calls f with the loss's type: the one place that maps a loss to its code.
template <class F>
decltype(auto) with_loss(LossKind kind, F&& f) {
    switch (kind) {
        case LossKind::crammer_singer:
            return f(CrammerSinger{});
        case LossKind::weston_watkins:
            return f(WestonWatkins{});
        case LossKind::top_k_alpha:
            return f(TopKAlpha{});
        case LossKind::top_k_beta:
            return f(TopKBeta{});
        default:
            return f(OneVsRest{});
    }
}

}  // namespace pm
