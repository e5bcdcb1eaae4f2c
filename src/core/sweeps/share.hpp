// What one example contributes: its share of the duality gap, and its part of the dual value.
#pragma once

#include <algorithm>
#include <limits>

#include "base/simd.hpp"
#include "losses/dual_entry.hpp"

namespace pm {

// p.h, where entry e of the block has the margin h[at(e)].
template <class T, class H, class At>
PM_INLINE double inner_product(const DualEntry<T>* block, int count, const H* h, At at) {
    double total[4] = {0, 0, 0, 0};  // four chains hide the latency
    const auto term = [&](int e) { return double(block[e].p) * double(h[at(e)]); };
    int e = 0;
    for (; e + 4 <= count; e += 4) PM_UNROLL for (int r = 0; r < 4; ++r) total[r] += term(e + r);
    for (; e < count; ++e) total[0] += term(e);
    return (total[0] + total[1]) + (total[2] + total[3]);
}

struct BlockSums {
    double sigma, p_dot_h;
};

// sum p and p.h of p in their places; h may be -infinity where p is zero.
template <class T>
PM_INLINE BlockSums block_sums(const T* p, const T* h, int padded) {
    using V = Vec<T>;
    const V lowest = V::set1(std::numeric_limits<T>::lowest());
    V sigma = V::set1(T(0)), p_dot_h = sigma;
    for (int j = 0; j < padded; j += kLanes<T>) {
        const V own = V::load(p + j);
        sigma = sigma + own;
        p_dot_h = V::fma(own, V::max(V::load(h + j), lowest), p_dot_h);
    }
    return {double(sigma.sum()), double(p_dot_h.sum())};
}

// c loss(h) - p.h + conjugate(p), where value = c loss(h).
PM_INLINE double gap_share(double value, double p_dot_h, double conjugate) {
    return std::max(0.0, value - p_dot_h + conjugate);
}

// sum_j margin(y, j) p_j
template <class Loss, class T>
PM_INLINE double margin_sum(const Loss& loss, int y, const DualEntry<T>* block, int count) {
    double total = 0;
    if constexpr (requires { Loss::no_margins; }) return total;
    for (int e = 0; e < count; ++e) total += loss.margin(y, block[e].cls) * double(block[e].p);
    return total;
}

// sum_j margin(y, j) p_j - conjugate(p)
template <class Loss, class T>
double dual_share(const Loss& loss, int y, double c, const DualEntry<T>* block, int count) {
    if (count == 0) return 0;  // also where c is 0
    return margin_sum(loss, y, block, count) - loss.conjugate(block, count, c);
}

// The change of an example's part of the dual over a visit: that of sum p for most losses.
template <class Loss>
class DualChange {
    static bool plain(const Loss& loss) { return Loss::flat && loss.unit_margins(); }

  public:
    template <class T>
    PM_INLINE DualChange(const Loss& loss, int y, double c, const DualEntry<T>* block, int count,
                         double conjugate)
        : loss_(loss), y_(y), c_(c) {
        if (!plain(loss)) before_ = margin_sum(loss, y, block, count) - conjugate;
    }
    template <class T>
    PM_INLINE double to(const DualEntry<T>* block, int count, double sum_change) const {
        if (plain(loss_)) return sum_change;
        return dual_share(loss_, y_, c_, block, count) - before_;
    }

  private:
    const Loss& loss_;
    int y_;
    double c_;
    double before_ = 0;
};

}  // namespace pm
