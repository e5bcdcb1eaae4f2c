// Top-k alpha: max(0, (1/k) sum of the k largest h_j) over the wrong classes only, block set
// p_j <= (1/k) sum p, sum p <= c.
#pragma once

#include "losses/loss.hpp"
#include "restricted/top_k_simplex.hpp"

namespace pm {

struct TopKAlpha : TopKLoss<TopKAlpha> {
    static constexpr const char* name = "top_k_alpha";
    using TopKLoss::TopKLoss;

    template <class T>
    double value(const T* h, int padded, Block<T>& block) const {
        block.values.assign(h, h + padded);
        return std::max(0.0, top_k_sum(block.values, k) / k);
    }
    template <class T>
    PM_INLINE double estimate(const T* h, int padded, double hint, Block<T>&) const {
        return std::max(0.0, hint + excess_sum(h, padded, T(hint)) / k);
    }
    template <class T>
    T solve(const T* b, int padded, double c, double, T guess, Block<T>& block,
            double w = 1) const {
        return project(b, padded, c, w, 1, guess, block);
    }
    template <class T>
    double smooth_value(const T* h, int padded, double gamma, double hint, Block<T>& block) const {
        project(h, padded, 1, gamma, 0, T(hint), block);
        double total = 0;
        for (int e = 0; e < block.count; ++e) {
            const double q = double(block.p[e]);
            total += q * (double(h[block.classes[e]]) - gamma / 2 * q);
        }
        return total;
    }

  private:
    // min w/2 ||p||^2 + rho/2 (sum p)^2 - b.p: as if b / w were b, and rho / w rho
    template <class T>
    PM_INLINE T project(const T* b, int padded, double c, double w, double rho, T guess,
                        Block<T>& block) const {
        constexpr T lowest = std::numeric_limits<T>::lowest();
        int total = 0;
        for (int j = 0; j < padded; j += kLanes<T>)
            total += std::popcount(greater_mask(b + j, -kInfinity<T>));
        TopKThresholds found{0, 0};
        block.gather(b, padded, guess);
        if (!try_top_k_simplex(block.b.data(), block.count, total, k, c, double(guess),
                               block.values, found, w, rho)) {
            block.gather(b, padded, lowest);
            try_top_k_simplex(block.b.data(), block.count, total, k, c, -kInfinity<double>,
                              block.values, found, w, rho);
        }
        if (found.full)
            std::fill(block.p.begin(), block.p.begin() + block.count, T(found.u));
        else {
            block.clip(found.t, found.u, w);
            block.lower_cap(found.u, k);
            block.scale_to(c);
        }
        if (found.u == 0) block.count = 0;
        return T(found.t);
    }
};

}  // namespace pm
