// Top-k entropy (Lapin, Hein and Schiele 2016): softmax on the block set of top-k alpha,
// p_j <= sum(p) / k, sum p <= c. The same as softmax with k = 1.
//
// With p = s x, sum x = 1, the maximum over s of p.h - conjugate(p) is a logarithm, so that
//     loss(h) = log(1 + e^E),   E = max { x.h - sum_j x_j log x_j : x_j <= 1/k, sum x = 1 } .
// There x_j = min(e^(h_j - t), 1/k): the u largest are at 1/k, for the smallest u < k with
// (k - u) e^h_[u+1] <= Z, the sum of all e^h_j but the u largest, and
//     E = 1/k (h_[1] + ... + h_[u] + (k - u) log(Z / (k - u))) + log k .
// Nothing to iterate: from the k-th largest up, classes join Z while they can.
#pragma once

#include "losses/softmax.hpp"
#include "restricted/top_k_entropic.hpp"

namespace pm {

struct TopKEntropy : Softmax {
    static constexpr const char* name = "top_k_entropy";
    int k;

    explicit TopKEntropy(int top_k) : k(top_k) {
        if (k < 1) throw std::invalid_argument("top_k must be at least 1");
    }
    static TopKEntropy make(const LossParameters& p) { return TopKEntropy(p.top_k); }
    TopKEntropy limited(int wrong) const { return TopKEntropy(std::min(k, wrong)); }
    double cap(double c) const { return c / k; }

    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        return estimate(h, padded, 0, block);
    }
    template <class T>
    double estimate(const T* h, int padded, double, Block<T>& block) const {
        using V = Vec<T>;
        const T kth = list_above(h, padded, k, block);
        const V shift = V::set1(kth), most = V::set1(T(0)), none = V::set1(-kInfinity<T>);
        double Z = sum_of(h, padded, [&](V x) {  // in units of e^h_[k]
            const V z = x - shift;
            return exp(select_greater(z, most, none, z));
        });
        int u = static_cast<int>(block.sorted.size());
        for (; u > 0; --u) {
            const double next = std::exp(double(block.sorted[u - 1].value) - double(kth));
            if (!(Z >= (k - u) * next)) break;
            Z += next;
        }
        double sum = (k - u) * (std::log(Z / (k - u)) + double(kth));
        for (int e = 0; e < u; ++e) sum += double(block.sorted[e].value);
        const double E = sum / k + std::log(double(k));
        return std::max(E, 0.0) + std::log1p(std::exp(-std::abs(E)));
    }
    template <class T>
    T solve(const T* b, int padded, double c, double A, T guess, Block<T>& block) const {
        for (int j = 0; j < padded; ++j) block.b[j] = T(A) * b[j];
        return list_solution(block.b.data(), padded, c, A, guess, block);
    }
    template <class T>
    T solve_all(const T* y, int padded, int, double c, double A, T guess, Block<T>& block) const {
        const T t = list_solution(y, padded, c, A, guess, block);
        T* p = block.work_of(padded);
        std::fill_n(p, padded, T(0));
        for (int e = 0; e < block.count; ++e) p[block.classes[e]] = block.p[e];
        std::copy_n(p, padded, block.p.data());
        return t;
    }
    template <class T>
    double conjugate_at_solution(const T*, int padded, double c, double, T, const T* p) const {
        return this->conjugate_of_all(p, padded, c);  // not where p is at its bound
    }

  private:
    template <class T>
    T list_solution(const T* given, int padded, double c, double A, T guess,
                    Block<T>& block) const {
        T *y = block.work_of(2 * padded), *x = y + padded, t = guess;
        std::copy_n(given, padded, y);
        const T kth = list_above(y, padded, k, block);
        const T cap = project_top_k_entropic(y, padded, k, T(A * c), kth, t, x, block);
        const T inverse = T(1 / A);
        for (int j = 0; j < padded; ++j) block.p[j] = x[j] * inverse;
        block.list_positive(padded);
        if (block.count < k) block.count = 0;  // their sum is nothing
        block.lower_cap(double(cap * inverse), k);
        block.scale_to(c);
        return t;
    }
};

}  // namespace pm
