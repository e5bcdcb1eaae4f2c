// A hinge loss, smoothed: its conjugate gains gamma / (2 c) ||p||^2.
//
// On the same block set, c loss(h) is then max { p.h - gamma / (2 c) ||p||^2 : p in B(c) }: it lies
// below the hinge loss by at most gamma / 2 ||q||^2, q = p / c, and its gradient is Lipschitz with
// 1 / gamma. This is the convention of Shalev-Shwartz and Zhang (2014) and of libsdca's smooth
// top-k losses. The restricted problem keeps its form, with w = 1 + gamma / (c A) for the weight of
// ||p||^2. As a struct of its own, it costs losses without smoothing nothing.
#pragma once

#include "losses/loss.hpp"

namespace pm {

template <class Hinge>
struct Smoothed : Hinge {
    static constexpr bool flat = false;
    static constexpr bool has_violation = false;
    double gamma;

    Smoothed(const Hinge& hinge, double smoothing) : Hinge(hinge), gamma(smoothing) {}
    static Smoothed make(const LossParameters& p) { return {Hinge::make(p), p.smoothing}; }
    Smoothed limited(int wrong) const {
        if constexpr (requires(const Hinge& hinge) { hinge.limited(wrong); })
            return {Hinge::limited(wrong), gamma};
        else
            return *this;
    }

    // Where all margins are 1, all q are the same.
    double at_zero(int n_classes) const {
        const double m = Hinge::coupled ? n_classes - 1 : n_classes;
        const double q = std::min(1 / gamma, Hinge::at_zero(n_classes) / m);
        return m * q * (1 - gamma / 2 * q);
    }
    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        return Hinge::smooth_value(h, padded, gamma, 0, block);
    }
    template <class T>
    double estimate(const T* h, int padded, double hint, Block<T>& block) const {
        if constexpr (requires { Hinge::smooth_bound(h, padded, gamma, hint, block); })
            return Hinge::smooth_bound(h, padded, gamma, hint, block);
        return Hinge::smooth_value(h, padded, gamma, hint, block);
    }
    template <class T>
    double conjugate(const DualEntry<T>* p, int count, double c) const {
        return gamma / (2 * c) * squared_length(p, count);
    }
    template <class T>
    T solve(const T* b, int padded, double c, double A, T guess, Block<T>& block) const {
        return Hinge::solve(b, padded, c, A, guess, block, 1 + gamma / (c * A));
    }
};

}  // namespace pm
