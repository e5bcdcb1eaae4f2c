// Softmax (multinomial logistic regression): log(1 + sum_j exp(h_j)) with h_j = s_j - s_y, a margin
// of zero; block set sum p <= c.
//
// The conjugate of c loss is sum_j p_j log(p_j / c) + r log(r / c), r = c - sum p. With q = (p, r),
// the last entry that of the true class, and v = (b, c) the restricted problem is the entropic
// projection of v onto the simplex (restricted/entropic.hpp). Every p is positive: the dual is
// dense.
#pragma once

#include "base/special.hpp"
#include "losses/loss.hpp"
#include "restricted/entropic.hpp"

namespace pm {

struct Softmax {
    static constexpr const char* name = "softmax";
    static constexpr bool coupled = true;
    static constexpr bool unit_margins() { return false; }
    static constexpr bool no_margins = true;  // they are all zero: nothing to add up
    static constexpr bool flat = false;
    static constexpr bool has_violation = false;
    static constexpr bool dense_rows = true;  // sweeps/visit_dense.hpp

    static Softmax make(const LossParameters&) { return {}; }
    double margin(int, int) const { return 0; }
    double at_zero(int n_classes) const { return std::log(double(n_classes)); }
    double cap(double) const { return kInfinity<double>; }

    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        return estimate(h, padded, 0, block);
    }
    template <class T>
    PM_INLINE double estimate(const T* h, int padded, double, Block<T>&) const {
        using V = Vec<T>;
        const T top = std::max(T(0), vector_max(h, padded));
        const V shift = V::set1(top);
        const double others = sum_of(h, padded, [&](V x) { return exp(x - shift); });
        // where the true class is ahead, the loss is small: log1p keeps its digits
        return top > T(0) ? double(top) + std::log(std::exp(-double(top)) + others)
                          : std::log1p(others);
    }
    template <class T>
    double conjugate(const DualEntry<T>* block, int count, double c) const {
        constexpr int chunk = 64;  // values are far away by the time that vectors are read of them
        Entropy<double> total(c);
        double p[chunk];
        for (int first = 0; first < count; first += chunk) {
            const int size = std::min(chunk, count - first);
            for (int e = 0; e < size; ++e) p[e] = double(block[first + e].p);
            std::fill(p + size, p + round_up_lanes<double>(size), 0.0);
            for (int e = 0; e < size; e += kLanes<double>) total.add(Vec<double>::load(p + e));
        }
        return total.value(c);
    }
    template <class T>
    PM_INLINE double conjugate_of_all(const T* p, int padded, double c) const {
        Entropy<T> total(c);
        for (int j = 0; j < padded; j += kLanes<T>) total.add(Vec<T>::load(p + j));
        return total.value(c);
    }
    // There log(A p_j) = y_j - t - A p_j: no logarithms.
    template <class T>
    PM_INLINE double conjugate_at_solution(const T* y, int padded, double c, double A, T t,
                                           const T* p) const {
        using V = Vec<T>;
        const V lowest = V::set1(std::numeric_limits<T>::lowest()), minus = V::set1(T(-A));
        V total = V::set1(T(0)), sum = total;
        for (int j = 0; j < padded; j += kLanes<T>) {
            const V own = V::load(p + j);
            sum = sum + own;
            total = V::fma(own, V::fma(minus, own, V::max(V::load(y + j), lowest)), total);
        }
        const double sigma = double(sum.sum()), rest = c - sigma;
        return double(total.sum()) - sigma * (double(t) + std::log(A * c)) +
               (rest > 0 ? rest * std::log(rest / c) : 0.0);
    }
    template <class T>
    T solve(const T* b, int padded, double c, double A, T guess, Block<T>& block) const {
        const V<T> factor = V<T>::set1(T(A)), none = V<T>::set1(-kInfinity<T>);
        for (int j = 0; j < padded; j += kLanes<T>)
            (V<T>::load(b + j) * factor).store(block.b.data() + j);
        none.store(block.b.data() + padded);
        const T t = solve_all(block.b.data(), padded + kLanes<T>, padded, c, A, guess, block);
        block.list_positive(padded);
        return t;
    }
    // All of p, where y has its place; y = A b is -infinity for the true class.
    template <class T>
    PM_INLINE T solve_all(const T* y, int padded, int own, double c, double A, T guess,
                          Block<T>& block) const {
        T *shifted = block.work_of(padded), *p = block.p.data();
        const V<T> inverse = V<T>::set1(T(1 / A));
        std::copy_n(y, padded, shifted);
        shifted[own] = T(A * c);
        const T top = vector_max(shifted, padded);
        const T t = project_entropic(shifted, padded, T(A * c), top, guess, p, block.single);
        for (int j = 0; j < padded; j += kLanes<T>) (V<T>::load(p + j) * inverse).store(p + j);
        p[own] = T(0);
        return t;
    }

  private:
    template <class T>
    using V = Vec<T>;
    // sum_j p_j log(p_j / c) + r log(r / c), of vectors of p
    template <class T>
    struct Entropy {
        using V = Vec<T>;
        V inverse, total = V::set1(T(0)), sum = V::set1(T(0));
        explicit Entropy(double c) : inverse(V::set1(T(1 / c))) {}
        PM_INLINE void add(V p) {
            const V tiny = V::set1(std::numeric_limits<T>::min());  // p may be 0
            sum = sum + p;
            total = V::fma(p, log(V::max(p * inverse, tiny)), total);
        }
        double value(double c) const {
            const double rest = c - double(sum.sum());
            return double(total.sum()) + (rest > 0 ? rest * std::log(rest / c) : 0.0);
        }
    };
};

}  // namespace pm
