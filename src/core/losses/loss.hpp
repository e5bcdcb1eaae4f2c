// What a loss is to the rest of the core, and what the hinge losses share.
//
// Margins h_j = margin(y, j) + s_j - s_y of the wrong classes j (coupled losses; the true class and
// the padding hold -infinity), or h_m = 1 - y_m s_m of all classes (one-vs-rest). The dual block p
// of an example lies in the loss's block set; the share of the duality gap it owns is
//     c loss(h) - p.h + conjugate(p)  >=  0 .
// A loss is a small struct that holds its own parameters:
//   name, coupled   how it is called, and whether its classes are compared with the true one;
//   unit_margins    whether margin(y, j) is 1 for all classes: at compile time, or, where a table
//                   of margins may be given (margins.hpp), a branch per visit;
//   flat            whether the conjugate is zero on the block set: at compile time, so that what
//                   is not needed costs nothing;
//   make            from the parameters that Python gives, checked;
//   value           the primal loss, exactly;
//   value_at_multiple  the same at so many times the scores, from unit margins h = 1 + s_j - s_y;
//                   may be left out;
//   estimate        the same or an upper bound that is exact at the optimum, in one vector pass
//                   (`hint` is the example's threshold in units of h);
//   conjugate       of c loss, at a block of the set;
//   cap             the bound on a single p_j, infinity where only the sum is bounded;
//   solve           the restricted problem
//                       min A/2 (||p||^2 + (sum p)^2) - A b.p + conjugate(p)
//                   (not coupled: without the sum): lists the classes with p > 0 in `block` and
//                   returns a threshold that helps at the example's next visit;
//   violation       of the block's optimality conditions, where the loss has one (has_violation);
//   limited         the loss while there are only so many wrong classes, where that matters;
//   dense_rows      there where nearly all p are positive, so that the dual has no lists of classes
//                   and visits work on all (sweeps/visit_dense.hpp).
// A new one is a header like those beside this file, and a word in table.hpp.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "base/simd.hpp"
#include "losses/any_loss.hpp"
#include "losses/dual_entry.hpp"
#include "losses/margins.hpp"
#include "losses/violation.hpp"
#include "restricted/block.hpp"
#include "restricted/threshold.hpp"

namespace pm {

// Hinge losses are piecewise linear: no conjugate on their block sets.
template <class Margins>
struct HingeLoss : Margins {
    static constexpr bool flat = true;
    template <class T>
    double conjugate(const DualEntry<T>*, int, double) const {
        return 0;
    }
};

template <class Loss>
inline constexpr bool has_dense_rows = requires { Loss::dense_rows; };

// sum_j f(h_j), f on vectors
template <class T, class F>
PM_INLINE double sum_of(const T* h, int padded, const F& f) {
    using V = Vec<T>;
    const V zero = V::set1(T(0));
    V total[4] = {zero, zero, zero, zero};  // four chains hide the latency
    int j = 0;
    for (; j + 4 * kLanes<T> <= padded; j += 4 * kLanes<T>)
        PM_UNROLL for (int r = 0; r < 4; ++r) total[r] =
            total[r] + f(V::load(h + j + r * kLanes<T>));
    for (; j < padded; j += kLanes<T>) total[0] = total[0] + f(V::load(h + j));
    return double(((total[0] + total[1]) + (total[2] + total[3])).sum());
}

// sum_j max(h_j - t, 0)
template <class T>
PM_INLINE double excess_sum(const T* h, int padded, T t) {
    using V = Vec<T>;
    const V low = V::set1(t), zero = V::set1(T(0));
    return sum_of(h, padded, [&](V x) { return V::max(x - low, zero); });
}

// sum_j max over 0 <= q <= u of q (h_j - t) - gamma/2 q^2: a parabola, then a line
template <class T>
PM_INLINE double smooth_sum(const T* h, int padded, T t, double u, double gamma) {
    using V = Vec<T>;
    const V low = V::set1(t), zero = V::set1(T(0)), bound = V::set1(T(u));
    const V inverse = V::set1(T(1 / gamma)), half = V::set1(T(gamma / 2));
    return sum_of(h, padded, [&](V x) {
        const V excess = V::max(x - low, zero), q = V::min(excess * inverse, bound);
        return q * (excess - half * q);
    });
}

// max over 0 <= q <= u, sum q <= 1 of q.h - gamma/2 ||q||^2, by duality the smallest t + smooth_sum
// over t >= 0. No t makes it too small.
template <bool Capped, class T>
PM_NOINLINE double value_by_threshold(const T* h, int padded, double u, double gamma, double hint) {
    constexpr T steep = T(1e30);  // the right side has no (sum q)^2 to hold it down
    const T h_max = vector_max(h, padded);
    if (!(h_max > T(0))) return 0;
    const T bound = T(gamma * u), sum = T(gamma);
    const T floor = threshold_floor(h_max, bound, sum, steep);
    const T t = solve_threshold<Capped>(h, padded, bound, sum, T(hint), floor, h_max, steep);
    return double(t) + smooth_sum(h, padded, t, u, gamma);
}

// An upper bound of it, exact where `hint` is the best t: one look at the margins. Nothing is known
// of the best t where the hint is 0.
template <bool Capped, class T>
PM_INLINE double value_bound(const T* h, int padded, double u, double gamma, double hint) {
    if (hint == 0) return value_by_threshold<Capped>(h, padded, u, gamma, hint);
    const T t = T(std::max(hint, 0.0));
    return std::min(double(t) + smooth_sum(h, padded, t, u, gamma),
                    std::max(0.0, double(vector_max(h, padded))));
}

inline double top_k_sum(std::vector<double>& values, int k) {
    std::nth_element(values.begin(), values.begin() + (k - 1), values.end(), std::greater<>());
    double total = 0;
    for (int j = 0; j < k; ++j) total += values[j];
    return total;
}

// The hinge of every margin: sum_j max(0, h_j), block set p_j <= c.
template <class Margins>
struct SumOfHinges : HingeLoss<Margins> {
    static constexpr bool has_violation = true;
    double cap(double c) const { return c; }

    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        return estimate(h, padded, 0, block);
    }
    template <class T>
    PM_INLINE double estimate(const T* h, int padded, double, Block<T>&) const {
        return excess_sum(h, padded, T(0));
    }
    template <class T>
    double value_at_multiple(const T* h, int padded, double factor) const {
        using V = Vec<T>;  // max(0, 1 + factor (h - 1))
        const V times = V::set1(T(factor)), rest = V::set1(T(1 - factor)), zero = V::set1(T(0));
        return sum_of(h, padded, [&](V x) { return V::max(V::fma(x, times, rest), zero); });
    }
    template <class T>
    double smooth_value(const T* h, int padded, double gamma, double, Block<T>&) const {
        return smooth_sum(h, padded, T(0), 1, gamma);
    }
    template <class T, class At>
    double violation(T* h, int padded, double c, const DualEntry<T>* old, int count, At at) const {
        return box_violation(h, padded, c, old, count, at);
    }
};

// Those that look at the k largest margins.
template <class Derived>
struct TopKLoss : HingeLoss<ClassMargins> {
    static constexpr bool coupled = true;
    static constexpr bool has_violation = false;
    int k;

    explicit TopKLoss(int top_k) : k(top_k) {
        if (k < 1) throw std::invalid_argument("top_k must be at least 1");
    }
    static Derived make(const LossParameters& p) {
        Derived made(p.top_k);
        made.table = p.margins;
        return made;
    }
    Derived limited(int wrong) const {
        Derived fewer(static_cast<const Derived&>(*this));
        fewer.k = std::min(k, wrong);
        return fewer;
    }
    double at_zero(int) const { return 1; }
    double cap(double c) const { return c / k; }
};

inline constexpr int kFew = 4;  // one class of so many is worth a list

// Crammer-Singer, Weston-Watkins and top-k beta: the Newton iteration on the threshold. Only
// classes above a lower bound of the root can have p > 0: where they are few, they are listed first
// and the iteration looks at nothing else; where they are many (the first passes, small C), listing
// them costs more than it saves, and those above the root are listed at the end. `w` is the weight
// of ||p||^2 against (sum p)^2: 1, but for smoothed losses.
template <bool Capped, class T>
PM_INLINE T solve_by_threshold(const T* b, int padded, double u, double s, T guess, Block<T>& block,
                               double w = 1) {
    constexpr T slack = T(1e-3);  // rounding must not drop a class
    block.count = 0;
    const T b_max = vector_max(b, padded), bound = T(w * u), sum = T(w * s);
    if (!(b_max > T(0))) return T(0);
    const T floor = threshold_floor(b_max, bound, sum, T(w));
    const bool few = block.gather_few(b, padded, floor, std::max(kLanes<T>, padded / kFew));
    const T* of = few ? block.b.data() : b;
    const int width = few ? block.pad() : padded;
    const T t = solve_threshold<Capped>(of, width, bound, sum, guess, floor, b_max, T(w));
    if (!few) block.gather(b, padded, t - slack * (b_max - t));
    block.clip(refined_threshold(block.b.data(), block.count, t, w * u, w * s, w), u, w);
    block.scale_to(s);
    return t;
}

}  // namespace pm
