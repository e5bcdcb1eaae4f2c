// A sweep in blocks: the scores of many examples at once, corrected as the visits go.
//
// For the examples of a block: scores S = X_B W at the block's start and the Gram matrix
// G = X_B X_B^T. Visits run in order; before its visit an example's scores take in the changes of
// those before it, s_i += sum_j G_ij change_j. The iterates are those of one-at-a-time sweeps, but
// a row of W is read once per block instead of once per example: two matrix products per block, for
// dense rows and W larger than the caches.
#pragma once

#include <cstdint>
#include <vector>

#include "base/gemm.hpp"
#include "base/parallel.hpp"
#include "rows/rows.hpp"
#include "sweeps/visit_dense.hpp"

namespace pm {

inline constexpr std::int64_t kBlock = 256;
inline constexpr std::int64_t kSubBlock = 32;

template <class T>
struct BlockScratch {
    BlockScratch(std::int64_t block, std::int64_t ld, int threads)
        : S(block * ld),
          G(block * block),
          change(block * ld, T(0)),
          touched(block),
          gemm(threads, GemmScratch<T>(std::max(ld, block))) {}
    std::vector<T> S, G;
    std::vector<T> change;                           // dense rows, zero outside `touched`
    std::vector<std::vector<std::int32_t>> touched;  // classes each example of the block changed
    std::vector<GemmScratch<T>> gemm;                // per thread
};

// S = X_B W and the lower triangle of G = X_B X_B^T.
template <class T>
void block_products(const DenseMatrix<T>& X, const std::int64_t* order, std::int64_t m, const T* W,
                    std::int64_t ld, Team& team, BlockScratch<T>& w) {
    const auto example = [&](std::int64_t i) { return X.row(order[i]).value_; };
    const auto weights = [&](std::int64_t f) { return W + f * ld; };
    const T* W_bias = W + X.d * ld;
    team.ranges(m, kTileRows, [&](int part, std::int64_t begin, std::int64_t end) {
        T *S = w.S.data(), *G = w.G.data();
        for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t j = 0; j < ld; ++j)
                S[i * ld + j] = X.bias != T(0) ? X.bias * W_bias[j] : T(0);
        std::fill(G + begin * kBlock, G + end * kBlock, X.bias * X.bias);
        auto& scratch = w.gemm[part];
        gemm_add(begin, end, 0, ld, X.d, ByIndex{example}, ByDepth{weights}, S, ld, scratch);
        const std::int64_t columns = round_up_lanes<T>(static_cast<int>(end));
        const auto padded = [&](std::int64_t i) { return example(std::min(i, m - 1)); };
        gemm_add<true>(begin, end, 0, columns, X.d, ByIndex{example}, ByIndex{padded}, G, kBlock,
                       scratch);
    });
}

// W += X_B^T change, for the examples of the block that moved.
template <class T>
void block_update(const DenseMatrix<T>& X, const std::vector<std::int64_t>& moved,
                  const std::int64_t* order, T* W, std::int64_t ld, Team& team,
                  BlockScratch<T>& w) {
    const auto m = static_cast<std::int64_t>(moved.size());
    if (m == 0) return;
    const auto example = [&](std::int64_t k) { return X.row(order[moved[k]]).value_; };
    const auto change = [&](std::int64_t k) { return w.change.data() + moved[k] * ld; };
    team.ranges(X.d, kTileRows, [&](int part, std::int64_t begin, std::int64_t end) {
        gemm_add(begin, end, 0, ld, m, ByDepth{example}, ByDepth{change}, W, ld, w.gemm[part]);
    });
    if (X.bias != T(0))
        for (std::int64_t k = 0; k < m; ++k) axpy_row(X.bias, change(k), ld, W + X.d * ld);
}

// s_i += sum of G_ij change_j over j in [begin, i).
template <class T>
void correct_scores(BlockScratch<T>& w, std::int64_t begin, std::int64_t i, std::int64_t ld) {
    T* s = w.S.data() + i * ld;
    for (std::int64_t j = begin; j < i; ++j) {
        const auto& touched = w.touched[j];
        const T g = w.G[i * kBlock + j];
        if (touched.empty() || g == T(0)) continue;
        const T* change = w.change.data() + j * ld;
        if (static_cast<std::int64_t>(touched.size()) * kLanes<T> < ld)
            for (const auto cls : touched) s[cls] += g * change[cls];
        else
            axpy_row(g, change, ld, s);
    }
}

// The rows after a finished sub-block take in its changes in one product.
template <class T>
void correct_rest(BlockScratch<T>& w, std::int64_t begin, std::int64_t end, std::int64_t m,
                  std::int64_t ld, Team& team) {
    std::vector<std::int64_t> moved;
    for (std::int64_t j = begin; j < end; ++j)
        if (!w.touched[j].empty()) moved.push_back(j);
    if (moved.empty() || end == m) return;
    std::vector<T> g((m - end) * moved.size());  // the columns of G that moved, side by side
    for (std::int64_t i = end; i < m; ++i)
        for (std::size_t k = 0; k < moved.size(); ++k)
            g[(i - end) * moved.size() + k] = w.G[i * kBlock + moved[k]];
    const auto gram = [&](std::int64_t i) { return g.data() + i * std::int64_t(moved.size()); };
    const auto change = [&](std::int64_t k) { return w.change.data() + moved[k] * ld; };
    team.ranges(ld, GemmScratch<T>::width, [&](int part, std::int64_t first, std::int64_t last) {
        gemm_add(0, m - end, first, last, static_cast<std::int64_t>(moved.size()), ByIndex{gram},
                 ByDepth{change}, w.S.data() + end * ld, ld, w.gemm[part]);
    });
}

template <class Loss, class T>
VisitTotals sweep_blocked(const Loss& loss, const DenseMatrix<T>& X, Examples<T> ex,
                          DualRows<T>& dual, T* W, std::int64_t ld, const std::int64_t* order,
                          std::int64_t count, double scale, int threads) {
    Team team(threads);
    VisitScratch<T> visit(static_cast<int>(ld));
    BlockScratch<T> w(kBlock, ld, team.size());
    std::vector<std::int64_t> moved;
    VisitTotals totals;
    for (std::int64_t at = 0; at < count; at += kBlock) {
        const std::int64_t m = std::min(kBlock, count - at);
        block_products(X, order + at, m, W, ld, team, w);
        moved.clear();
        for (std::int64_t begin = 0; begin < m; begin += kSubBlock) {
            const std::int64_t end = std::min(begin + kSubBlock, m);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t example = order[at + i];
                correct_scores(w, begin, i, ld);
                std::copy_n(w.S.data() + i * ld, ld, visit.s.data());
                w.touched[i].clear();
                if (!visit_full(loss, visit, static_cast<int>(ld), ex, dual, example, scale,
                                totals))
                    continue;
                moved.push_back(i);
                w.touched[i].assign(visit.classes.begin(), visit.classes.begin() + visit.touched);
                T* change = w.change.data() + i * ld;
                for (int e = 0; e < visit.touched; ++e) change[visit.classes[e]] = visit.change[e];
            }
            correct_rest(w, begin, end, m, ld, team);
        }
        block_update(X, moved, order + at, W, ld, team, w);
        for (const auto i : moved)
            for (const auto cls : w.touched[i]) w.change[i * ld + cls] = T(0);
    }
    return totals;
}

}  // namespace pm
