// The outer step of the accelerated proximal point method, in one pass over the weights.
//
//     V <- (1 + kappa) W - kappa Y          (what the dual says)
//     Y <- W + beta (W - P),  P <- W        (extrapolation; P is the previous W)
//     W <- (kappa' Y + V) / (1 + kappa')    (kappa' may differ from kappa)
// and M, a moving average of W, takes in W before it changes.
#pragma once

#include <cstdint>

#include "parallel.hpp"
#include "simd.hpp"

namespace pm {

struct WeightNorms {
    double w = 0;     // ||W||^2
    double v = 0;     // ||V||^2
    double both = 0;  // W.V
};

inline constexpr std::int64_t kNormBlock = 1024;  // short sums in T, the rest in double

template <class T>
WeightNorms extrapolate(T* W, T* Y, T* P, T* M, std::int64_t size, double kappa, double kappa_next,
                        double beta, double blend) {
    const T one_plus = T(1 + kappa), k = T(kappa), next = T(kappa_next / (1 + kappa_next)),
            keep = T(1 / (1 + kappa_next)), momentum = T(beta), share = T(blend);
    WeightNorms norms;
    for (std::int64_t begin = 0; begin < size; begin += kNormBlock) {
        const std::int64_t end = begin + kNormBlock < size ? begin + kNormBlock : size;
        T ww = 0, vv = 0, wv = 0;
        for (std::int64_t j = begin; j < end; ++j) {
            const T w = W[j], v = one_plus * w - k * Y[j];
            ww += w * w;
            vv += v * v;
            wv += w * v;
            M[j] += share * (w - M[j]);
            const T y = w + momentum * (w - P[j]);
            Y[j] = y;
            P[j] = w;
            W[j] = next * y + keep * v;
        }
        norms.w += double(ww);
        norms.v += double(vv);
        norms.both += double(wv);
    }
    return norms;
}

}  // namespace pm
