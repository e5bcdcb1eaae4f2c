// The projection onto the simplex with an entropy: the restricted problem of softmax.
//
//     min 1/2 ||q - v||^2 + (1/A) sum_j q_j log q_j   over   sum q = c
// has A q_j = omega(A v_j - t), omega Wright's function (base/special.hpp), for the root t of
//     sum_j omega(A v_j - t) = A c .
// The sum falls and is convex. A Newton iteration on its logarithm, which is nearly linear where
// the entries are small, within a bracket: the largest entry alone is at most A c, and at least its
// share of it. While t moves little, the entries of the last step are improved instead of computed
// anew; the last and smallest step is taken along the derivatives.
//
// In single precision, and where A c is not large, a step takes no exponential and no logarithm of
// an entry: omega(y - t) = W(u), u = s E, with E = e^(y - y_max), the same in all steps,
// s = e^(y_max - t), and W Lambert's function, which is a rational one up to rounding for small u.
// Few entries have a large one: together they are A c.
#pragma once

#include <vector>

#include "base/special.hpp"

namespace pm {

// Entries below e to the minus this are nothing.
template <class T>
inline constexpr T kEntropicRange = FloatFormat<float>::range - T(1);
inline constexpr float kTinyEntry = 4.9e-35f;  // e to the minus that

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

// Newton's steps on log(sum omega / sum) from t, a step of `pass(t, near)` each, which leaves
// x_j = omega(y_j - t) and returns their sums. Returns the root in the last place but `step`, which
// is left to take.
template <class T, class Pass>
PM_INLINE T entropic_root(T t, T lo, T hi, T sum, bool near, T& step, Pass&& pass) {
    constexpr T small = sizeof(T) == sizeof(double) ? T(1e-5) : T(2e-3);  // its cube is nothing
    constexpr T nearby = T(0.5);
    for (int iteration = 0; iteration < 100; ++iteration) {
        const EntropicSums<T> sums = pass(t, near);
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

// The root t of y, filled up with -infinity to `padded` entries, the largest y_max; `guess` is a t
// that may be near, and x are its entries if `near`.
template <class T>
T entropic_threshold(const T* y, int padded, T sum, T y_max, T guess, bool near, T* x, T& step) {
    const T share = sum / T(padded);
    const T lo = y_max - sum - std::log(sum), hi = y_max - share - std::log(share);
    const bool inside = guess > lo && guess < hi;
    return entropic_root(inside ? guess : lo + (hi - lo) / T(2), lo, hi, sum, near && inside, step,
                         [&](T t, bool close) {
                             return close ? entropic_pass<true>(y, padded, t, x)
                                          : entropic_pass<false>(y, padded, t, x);
                         });
}

// The sums for which that is of use: with them, no omega is larger than omega(19).
inline constexpr float kScaledRange[] = {1e-6f, 16.0f};

// c_0 + c_1 x + ...
template <int n>
PM_INLINE Vec<float> polynomial(const float (&c)[n], Vec<float> x) {
    auto sum = Vec<float>::set1(c[n - 1]);
    PM_UNROLL for (int k = n - 2; k >= 0; --k) sum =
        Vec<float>::fma(sum, x, Vec<float>::set1(c[k]));
    return sum;
}

// x_j = omega(y_j - t), where e_j = e^(y_j) and the largest y is zero.
PM_INLINE EntropicSums<float> scaled_pass(const float* y, const float* e, int padded, float t,
                                          float* x) {
    using V = Vec<float>;
    // minimax in relative error: W(u) / u on [0, e] to 3.2e-8, omega(z) on [1, 19] to 4.6e-9
    constexpr float p[] = {1.0f, 3.13248224f, 2.48346339f, 0.447417267f, 0.00462573525f};
    constexpr float q[] = {1.0f, 4.13247841f, 5.11608019f, 2.02967133f, 0.184208685f};
    constexpr float P[] = {0.567189435f,  0.63487352f,   0.322774261f,
                           0.0894935459f, 0.0131995253f, 0.000297111074f};
    constexpr float Q[] = {1.0f, 0.481681781f, 0.131144466f, 0.0147022723f, 0.000298871984f};
    const float scale = std::exp(-t), most = 2.7182817f / scale;
    const V factor = V::set1(scale), limit = V::set1(most);
    const V shift = V::set1(t), tiny = V::set1(kTinyEntry);
    V total = V::set1(0.0f), slope = total;
    for (int j = 0; j < padded; j += kLanes<float>) {
        const V own = V::load(e + j), u = factor * V::min(own, limit);
        V above = u * polynomial(p, u), below = polynomial(q, u);
        if (greater_mask(e + j, most) != 0) {
            const V z = V::load(y + j) - shift;
            above = select_greater(own, limit, polynomial(P, z), above);
            below = select_greater(own, limit, polynomial(Q, z), below);
        }
        const V w = V::max(above / below, tiny);
        w.store(x + j);
        total = total + w;
        slope = slope + above / (below + above);
    }
    return {total.sum(), slope.sum()};
}

// entropic_threshold for a largest y of zero. Entries out of range become -infinity; e: room.
inline float scaled_threshold(float* y, int padded, float sum, float guess, float* x, float* e,
                              float& step) {
    using V = Vec<float>;
    const V low = V::set1(-kEntropicRange<float>), none = V::set1(-kInfinity<float>);
    V total = V::set1(0.0f);
    for (int j = 0; j < padded; j += kLanes<float>) {
        const V own = V::load(y + j), value = V::where_greater(own, low, exp(own));
        select_greater(own, low, own, none).store(y + j);
        value.store(e + j);
        total = total + value;
    }
    const float share = sum / float(padded), all = total.sum();
    const float lo = -sum - std::log(sum), hi = -share - std::log(share);
    // W(u) <= u: the root is no larger than this
    const float start = guess > lo && guess < hi ? guess : std::log(all / sum);
    return entropic_root(start, lo, hi, sum, false, step,
                         [&](float t, bool) { return scaled_pass(y, e, padded, t, x); });
}

// Either of them: y is relative to the largest.
inline float single_threshold(float* y, int padded, float sum, float guess, float* x, float* e,
                              float& step) {
    if (sum > kScaledRange[0] && sum < kScaledRange[1])
        return scaled_threshold(y, padded, sum, guess, x, e, step);
    return entropic_threshold(y, padded, sum, 0.0f, guess, false, x, step);
}

// Returns t; leaves x_j = A q_j, which add up to `sum` = A c. y = A v, which is lost. In
// double precision, the first steps are made in single.
template <class T>
T project_entropic(T* y, int padded, T sum, T y_max, T guess, T* x, std::vector<float>& single) {
    using V = Vec<T>;
    T step = T(0), t;
    for (int j = 0; j < padded; ++j) y[j] -= y_max;
    guess -= y_max;
    if constexpr (sizeof(T) == sizeof(float)) {
        single.resize(padded);
        t = single_threshold(y, padded, sum, guess, x, single.data(), step);
    } else {
        bool near = false;
        constexpr double most = 1e6;  // single precision has digits enough for this sum
        if (sum < most && sum > 1 / most) {
            const int room = round_up_lanes<float>(padded);
            single.resize(3 * room);
            float *y_single = single.data(), *x_single = y_single + room, left = 0;
            for (int j = 0; j < padded; ++j) y_single[j] = float(y[j]);
            std::fill(y_single + padded, y_single + room, -kInfinity<float>);
            const float found = single_threshold(y_single, room, float(sum), float(guess), x_single,
                                                 x_single + room, left);
            for (int j = 0; j < padded; ++j) {
                x[j] = double(x_single[j]);
                y[j] = y_single[j] == -kInfinity<float> ? -kInfinity<double> : y[j];
            }
            guess = double(found) + double(left);
            near = true;
        }
        t = entropic_threshold(y, padded, sum, T(0), guess, near, x, step);
    }
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
    return t + step + y_max;
}

}  // namespace pm
