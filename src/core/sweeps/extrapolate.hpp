// The outer step of the accelerated proximal point method, in one pass over the weights.
//
//     V <- (1 + kappa) W - kappa Y          (what the dual says)
//     Y <- W + beta (W - P),  P <- W        (extrapolation; P is the previous W)
//     W <- (kappa Y + V) / (1 + kappa)
// and M, a moving average of W, takes in W before it changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace pm {

struct WeightNorms {
    double w = 0;     // ||W||^2
    double v = 0;     // ||V||^2
    double both = 0;  // W.V
};

inline constexpr std::int64_t kNormBlock = 1024;          // short sums in T, the rest in double
inline constexpr std::int64_t kSummed = 64 * kNormBlock;  // a sum each, whoever computes it

// One step for the entries [first, last); a multiple of the vector width.
template <class T>
WeightNorms extrapolate(T* W, T* Y, T* P, T* M, std::int64_t first, std::int64_t last, double kappa,
                        double beta, double blend) {
    using V = Vec<T>;
    const V one_plus = V::set1(T(1 + kappa)), minus = V::set1(T(-kappa)),
            next = V::set1(T(kappa / (1 + kappa))), keep = V::set1(T(1 / (1 + kappa))),
            momentum = V::set1(T(beta)), share = V::set1(T(blend));
    WeightNorms norms;
    for (std::int64_t begin = first; begin < last; begin += kNormBlock) {
        const std::int64_t end = std::min(begin + kNormBlock, last);
        V ww = V::set1(T(0)), vv = ww, wv = ww;
        for (std::int64_t j = begin; j < end; j += kLanes<T>) {
            const V w = V::load(W + j), v = V::fma(minus, V::load(Y + j), one_plus * w);
            ww = V::fma(w, w, ww);
            vv = V::fma(v, v, vv);
            wv = V::fma(w, v, wv);
            if (blend != 0) {
                const V m = V::load(M + j);
                V::fma(share, w - m, m).store(M + j);
            }
            const V y = V::fma(momentum, w - V::load(P + j), w);
            y.store(Y + j);
            w.store(P + j);
            V::fma(next, y, keep * v).store(W + j);
        }
        norms.w += double(ww.sum());
        norms.v += double(vv.sum());
        norms.both += double(wv.sum());
    }
    return norms;
}

// All arrays have `size` entries, a multiple of the vector width; blend = 0 leaves M alone. The
// norms have the same bits for any number of threads.
template <class T>
WeightNorms extrapolate(T* W, T* Y, T* P, T* M, std::int64_t size, double kappa, double beta,
                        double blend, Team& team) {
    std::vector<WeightNorms> sums(std::size_t((size + kSummed - 1) / kSummed));
    team.ranges(size, kSummed, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t first = begin; first < end; first += kSummed)
            sums[std::size_t(first / kSummed)] =
                extrapolate(W, Y, P, M, first, std::min(first + kSummed, end), kappa, beta, blend);
    });
    WeightNorms total;
    for (const auto& sum : sums) {
        total.w += sum.w;
        total.v += sum.v;
        total.both += sum.both;
    }
    return total;
}

}  // namespace pm
