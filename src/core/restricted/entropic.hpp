// The projection onto the simplex with an entropy: the restricted problem of softmax.
//
//     min 1/2 ||q - v||^2 + (1/A) sum_j q_j log q_j   over   sum q = c
// has A q_j = omega(A v_j - t), omega Wright's function (base/special.hpp), for the root t of
//     sum_j omega(A v_j - t) = A c .
// The sum falls and is convex. A Newton iteration on its logarithm, which is nearly linear where
// the entries are small, within a bracket: the largest entry alone is at most A c, and at least its
// share of it. While t moves little, the entries of the last step are improved instead of computed
// anew; the last and smallest step is taken along the derivatives.
#pragma once

#include <vector>

#include "base/special.hpp"

namespace pm {

// Entries below e to the minus this are nothing.
template <class T>
inline constexpr T kEntropicRange = FloatFormat<float>::range - T(1);

template <class T>
struct EntropicSums {
    T total;  // sum omega
    T slope;  // minus its derivative, sum omega / (1 + omega)
};

// x_j = omega(y_j - t), from what x holds if it is near.
template <bool Near, class T>
PM_INLINE EntropicSums<T> entropic_pass(const T* y, int padded, T t, T* x) {
    using V = Vec<T>;
    const V shift = V::set1(t), one = V::set1(T(1)), zero = V::set1(T(0));
    const V floor = V::set1(-kEntropicRange<T>);
    V total = zero, slope = zero;
    for (int j = 0; j < padded; j += kLanes<T>) {
        const V z = V::max(V::load(y + j) - shift, floor);
        const V w = Near ? improved_omega(V::load(x + j), z) : omega(z);
        w.store(x + j);
        total = total + w;
        slope = slope + w / (w + one);
    }
    return {total.sum(), slope.sum()};
}

// The root t, with x_j = omega(y_j - t) in the last place but `step`, which is left to take. y is
// filled up with -infinity to `padded` entries, the largest y_max; `guess` is a t that may be near,
// and x are its entries if `near`.
template <class T>
T entropic_threshold(const T* y, int padded, T sum, T y_max, T guess, bool near, T* x, T& step) {
    constexpr T small = sizeof(T) == sizeof(double) ? T(1e-5) : T(2e-3);  // its cube is nothing
    constexpr T nearby = T(0.5);
    const T share = sum / T(padded);
    T lo = y_max - sum - std::log(sum), hi = y_max - share - std::log(share);
    const bool inside = guess > lo && guess < hi;
    T t = inside ? guess : lo + (hi - lo) / T(2);
    near = near && inside;
    for (int iteration = 0; iteration < 100; ++iteration) {
        const auto sums =
            near ? entropic_pass<true>(y, padded, t, x) : entropic_pass<false>(y, padded, t, x);
        step = std::log(sums.total / sum) * sums.total / sums.slope;
        if (std::abs(step) <= small) return t;
        (step > T(0) ? lo : hi) = t;
        T next = t + step;
        if (!(next > lo && next < hi)) next = lo + (hi - lo) / T(2);
        step = T(0);
        if (!(next > lo && next < hi)) return t;  // the bracket is one rounding wide
        near = std::abs(next - t) <= nearby;
        t = next;
    }
    return t;
}

// Returns t; leaves x_j = A q_j, which add up to `sum` = A c. y = A v. In double precision, the
// first steps are made in single.
template <class T>
T project_entropic(const T* y, int padded, T sum, T y_max, T guess, T* x,
                   std::vector<float>& single) {
    using V = Vec<T>;
    bool near = false;
    if constexpr (sizeof(T) == sizeof(double)) {
        constexpr double most = 1e6;  // single precision has digits enough for this sum
        if (sum < most && sum > 1 / most) {
            const int room = round_up_lanes<float>(padded);
            single.assign(2 * room, -kInfinity<float>);
            float *y_single = single.data(), *x_single = y_single + room, left = 0;
            for (int j = 0; j < padded; ++j) y_single[j] = float(y[j] - y_max);
            const float t = entropic_threshold(y_single, room, float(sum), 0.0f,
                                               float(guess - y_max), false, x_single, left);
            for (int j = 0; j < padded; ++j) x[j] = double(x_single[j]);
            guess = double(t) + double(left) + y_max;
            near = true;
        }
    }
    T step = T(0);
    const T t = entropic_threshold(y, padded, sum, y_max, guess, near, x, step);
    const V along = V::set1(step), one = V::set1(T(1)), half = V::set1(T(0.5)),
            low = V::set1(-kEntropicRange<T> + T(1));
    V total = V::set1(T(0));
    for (int j = 0; j < padded; j += kLanes<T>) {
        const V w = V::load(x + j), z = V::load(y + j) - V::set1(t);
        const V inverse = one / (w + one), d = along * inverse;  // to second order
        const V change = d * w * (one - half * d * inverse);
        const V moved = V::where_greater(z, low, w - change);  // others are nothing
        moved.store(x + j);
        total = total + moved;
    }
    const V factor = V::set1(sum / total.sum());
    for (int j = 0; j < padded; j += kLanes<T>) (V::load(x + j) * factor).store(x + j);
    return t + step;
}

}  // namespace pm
