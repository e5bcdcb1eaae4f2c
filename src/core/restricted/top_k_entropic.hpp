// The projection onto the top-k simplex with an entropy: the restricted problem of top-k entropy.
//
//     min A/2 (||p||^2 + (sum p)^2) - A b.p + sum_j p_j log p_j + r log r,    r = c - sum p,
//     over  0 <= p_j <= sum(p) / k,  sum p <= c .
// With y = A b, x = A p and omega Wright's function (base/special.hpp), docs/mathematics.md derives
//     x_j = min(omega(y_j - t), v),   sum_j x_j = k v,   A r = omega(A c - t'),
//     t' = t + 1/k sum_U (y_j - t - v - log v),          U the classes at the cap v,
// and k v + A r = A c, which falls with t, determines t. For a t, U are the u largest y, for the
// smallest u < k with omega_[u+1] <= v = (sum of all omega but the u largest) / (k - u). A Newton
// iteration on the logarithm of k v + A r, as for softmax, which this is with k = 1.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "restricted/block.hpp"
#include "restricted/entropic.hpp"

namespace pm {

// The k-th largest of b, of which at least k are finite. The largest of each lane are k entries of
// b, if there are as many lanes: the k-th of them bounds it from below.
template <class T>
T kth_largest(const T* b, int padded, int k, Block<T>& block) {
    using V = Vec<T>;
    T floor = std::numeric_limits<T>::lowest();
    if (k <= kLanes<T>) {
        V best = V::load(b);
        for (int j = kLanes<T>; j < padded; j += kLanes<T>) best = V::max(best, V::load(b + j));
        T lanes[kLanes<T>];
        best.store(lanes);
        std::nth_element(lanes, lanes + (k - 1), lanes + kLanes<T>, std::greater<>());
        floor = std::max(floor, lanes[k - 1]);
    }
    block.gather(b, padded, floor);
    if (block.count < k) return floor;  // all others of the k are equal to it
    T* values = block.b.data();
    std::nth_element(values, values + (k - 1), values + block.count, std::greater<>());
    return values[k - 1];
}

// Lists the classes above the k-th largest b, the largest first.
template <class T>
T list_above(const T* b, int padded, int k, Block<T>& block) {
    const T kth = kth_largest(b, padded, k, block);
    block.sorted.clear();
    for_each_greater(b, padded, kth, padded, [&](int j) { block.sorted.push_back({j, b[j]}); });
    std::sort(block.sorted.begin(), block.sorted.end(),
              [](const auto& one, const auto& other) { return one.value > other.value; });
    return kth;
}

// Everything relative to the k-th largest y. `rest` are the y up to it, `above` those that exceed
// it, the largest first; both are filled up with -infinity.
template <class T>
struct TopKEntropic {
    const T* rest;
    int padded;
    const T* above;
    int n_above;
    int k;
    T y_true;  // A c
    T sum;     // A c as a length, which knows of no shift
    T* x_rest;
    T* x_above;

    struct At {
        T total;  // k v + A r
        T slope;  // minus its derivative
        T cap;    // v
    };

    PM_INLINE At pass(T t, bool near) const {
        const int width = round_up_lanes<T>(n_above);
        const auto below = near ? entropic_pass<true>(rest, padded, t, x_rest)
                                : entropic_pass<false>(rest, padded, t, x_rest);
        if (width > 0) {
            if (near)
                entropic_pass<true>(above, width, t, x_above);
            else
                entropic_pass<false>(above, width, t, x_above);
        }
        int u = n_above;
        T free = below.total, slope = below.slope;
        for (; u > 0 && free >= T(k - u) * x_above[u - 1]; --u) {
            const T w = x_above[u - 1];
            free += w;
            slope += w / (T(1) + w);
        }
        const T room = T(k - u), v = free / room, v_slope = slope / room, level = v + std::log(v);
        T lifted = T(0);  // sum over U
        for (int e = 0; e < u; ++e) lifted += (above[e] - t) - level;
        const T z = std::max(y_true - t - lifted / T(k), -kEntropicRange<T>);
        const T left = omega(Vec<T>::set1(z)).maximum();
        const T t_slope = (room + T(u) * v_slope * (T(1) + T(1) / v)) / T(k);
        return {T(k) * v + left, T(k) * v_slope + left / (T(1) + left) * t_slope, v};
    }

    // The root, with x as it is there; `near`: x holds the entries at the guess.
    At solve(T& t, bool near) const {
        constexpr T small = sizeof(T) == sizeof(double) ? T(1e-8) : T(2e-4);  // its square is none
        constexpr T nearby = T(0.5);
        constexpr int patience = 8;  // steps before the bracket is halved now and then
        const T most = sum / T(k), least = sum / (T(2) * T(k) * T(padded + n_above));
        const T alone = y_true - sum / T(2) - std::log(sum / T(2));
        T lo = -most - std::log(most), hi = std::max(-least - std::log(least), alone);
        lo -= T(1) + std::abs(lo) * T(1e-3);  // the root may lie at an end
        hi += T(1) + std::abs(hi) * T(1e-3);
        const T largest = n_above > 0 ? std::max(above[0], std::abs(y_true)) : std::abs(y_true);
        const T noise = std::min(T(4) * std::numeric_limits<T>::epsilon() * largest, T(1e-3));
        const bool inside = t > lo && t < hi;
        if (!inside) t = std::min(std::max(T(0), lo + T(0.5)), hi - T(0.5));
        near = near && inside;
        for (int iteration = 0; iteration < 200; ++iteration) {
            const At at = pass(t, near);
            const T step = std::log(at.total / sum) * at.total / at.slope;
            T next = t + step;
            if (std::abs(step) <= std::max(small * std::max(T(1), -t), noise)) {
                t = next;
                return pass(t, true);
            }
            (step > T(0) ? lo : hi) = t;
            const bool halve = iteration >= patience && iteration % 3 == 0;
            if (halve || !(next > lo && next < hi)) next = lo + (hi - lo) / T(2);
            if (!(next > lo && next < hi)) return at;  // the bracket is one rounding wide
            near = std::abs(next - t) <= nearby;
            t = next;
        }
        return pass(t, false);
    }
};

// x of all classes in their places, those of `block.sorted` among them, such that k v + A r = A c.
// Returns the cap v that none exceeds; `t`, in the units of y, is a guess and becomes the root.
template <class T>
T project_top_k_entropic(T* y, int padded, int k, T sum, T kth, T& t, T* x, Block<T>& block) {
    const int n_above = static_cast<int>(block.sorted.size());
    const int width = round_up_lanes<T>(n_above);
    block.above.assign(2 * width, -kInfinity<T>);
    T *above = block.above.data(), *x_above = above + width;
    for (int j = 0; j < padded; ++j) y[j] -= kth;
    for (int e = 0; e < n_above; ++e) {
        above[e] = block.sorted[e].value - kth;
        y[block.sorted[e].cls] = -kInfinity<T>;
    }
    t -= kth;
    bool near = false;
    if constexpr (sizeof(T) == sizeof(double)) {  // the first steps are made in single precision
        constexpr double most = 1e6;              // it has digits enough for this sum
        if (sum < most && sum > 1 / most) {
            const int room = round_up_lanes<float>(padded), few = round_up_lanes<float>(n_above);
            block.single.assign(2 * (room + few), -kInfinity<float>);
            float *ys = block.single.data(), *xs = ys + room, *as = xs + room, *xas = as + few;
            std::copy_n(y, padded, ys);
            std::copy_n(above, n_above, as);
            float guess = float(t);
            const TopKEntropic<float> single{ys,         room, as, n_above, k, float(sum - kth),
                                             float(sum), xs,   xas};
            single.solve(guess, false);
            t = double(guess);
            std::copy_n(xs, padded, x);
            std::copy_n(xas, width, x_above);
            near = true;
        }
    }
    const TopKEntropic<T> problem{y, padded, above, n_above, k, sum - kth, sum, x, x_above};
    const auto at = problem.solve(t, near);
    for (int e = 0; e < n_above; ++e) {
        y[block.sorted[e].cls] = above[e];
        x[block.sorted[e].cls] = x_above[e];
    }
    using V = Vec<T>;
    const V low = V::set1(t - kEntropicRange<T> + T(1));  // what is below is nothing
    const V cap = V::set1(at.cap), factor = V::set1(sum / at.total);
    for (int j = 0; j < padded; j += kLanes<T>)
        V::where_greater(V::load(y + j), low, V::min(V::load(x + j), cap) * factor).store(x + j);
    t += kth;
    return at.cap * (sum / at.total);
}

}  // namespace pm
