// A sweep in blocks: the scores of many examples at once, corrected as the visits go.
//
// For the examples of a block: scores S = X_B W at the block's start and the Gram matrix
// G = X_B X_B^T. Visits run in order; before its visit an example's scores take in the changes of
// those before it, s_i += sum_j G_ij change_j. The iterates are those of one-at-a-time sweeps, but
// a row of W is read once per block instead of once per example: two matrix products per block, for
// dense rows and W larger than the caches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/gemm.hpp"
#include "base/parallel.hpp"
#include "rows/rows.hpp"
#include "sweeps/visitor.hpp"

namespace pm {

inline constexpr std::int64_t kBlock = 256;
// Where W is in the second-level cache and every visit changes all classes, to read W again costs
// less than more inner products of examples do. For any number of threads: the bits are the same.
inline constexpr std::int64_t kShortBlock = 64, kInCache = 1 << 20;
inline constexpr std::int64_t kSubBlock = 32;

// What all examples of a block share.
template <class T>
struct BlockProducts {
    BlockProducts(std::int64_t ld, int threads)
        : S(kBlock * ld), G(kBlock * kBlock), gemm(threads, GemmScratch<T>(std::max(ld, kBlock))) {}
    std::vector<T> S, G;
    std::vector<GemmScratch<T>> gemm;  // per thread
};

// The columns of some classes in S and W, and what the block's visits change there.
template <class T>
struct BlockColumns {
    BlockColumns(T* scores, const T* gram, T* weights, std::int64_t stride, std::int64_t columns,
                 int threads)
        : S(scores),
          G(gram),
          W(weights),
          ld(stride),
          width(columns),
          change(kBlock * columns, T(0)),
          touched(kBlock),
          gemm(threads, GemmScratch<T>(std::max(columns, kBlock))) {}
    T* S;
    const T* G;
    T* W;
    std::int64_t ld, width;
    std::vector<T> change;                           // dense rows, zero outside `touched`
    std::vector<std::vector<std::int32_t>> touched;  // classes each example of the block changed
    std::vector<std::int64_t> moved;
    std::vector<GemmScratch<T>> gemm;
};

// S = X_B W and the lower triangle of G = X_B X_B^T.
template <class T>
void block_products(const DenseMatrix<T>& X, const std::int64_t* order, std::int64_t m, const T* W,
                    std::int64_t ld, Team& team, BlockProducts<T>& w) {
    const auto example = [&](std::int64_t i) { return X.row(order[i]).value_; };
    const auto weights = [&](std::int64_t f) { return W + f * ld; };
    const T* W_bias = W + X.d * ld;
    team.ranges(m, kTileRows, [&](int part, std::int64_t begin, std::int64_t end) {
        T *S = w.S.data(), *G = w.G.data();
        for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t j = 0; j < ld; ++j)
                S[i * ld + j] = X.bias != T(0) ? X.bias * W_bias[j] : T(0);
        std::fill(G + begin * kBlock, G + end * kBlock, X.bias * X.bias_step);
        auto& scratch = w.gemm[part];
        gemm_add(begin, end, 0, ld, X.d, ByIndex{example}, ByDepth{weights}, S, ld, scratch);
        const std::int64_t columns = round_up_lanes<T>(static_cast<int>(end));
        const auto padded = [&](std::int64_t i) { return example(std::min(i, m - 1)); };
        gemm_add<true>(begin, end, 0, columns, X.d, ByIndex{example}, ByIndex{padded}, G, kBlock,
                       scratch);
    });
}

// W += X_B^T change, for the examples of the block that moved; then there is no change.
template <class T>
void block_update(const DenseMatrix<T>& X, const std::int64_t* order, Team& team,
                  BlockColumns<T>& w) {
    const auto m = static_cast<std::int64_t>(w.moved.size());
    if (m == 0) return;
    const auto example = [&](std::int64_t k) { return X.row(order[w.moved[k]]).value_; };
    const auto change = [&](std::int64_t k) { return w.change.data() + w.moved[k] * w.width; };
    team.ranges(X.d, kTileRows, [&](int part, std::int64_t begin, std::int64_t end) {
        gemm_add(begin, end, 0, w.width, m, ByDepth{example}, ByDepth{change}, w.W, w.ld,
                 w.gemm[part]);
    });
    if (X.bias != T(0))
        for (std::int64_t k = 0; k < m; ++k)
            axpy_row(X.bias_step, change(k), w.width, w.W + X.d * w.ld);
    for (const auto i : w.moved)
        for (const auto cls : w.touched[i]) w.change[i * w.width + cls] = T(0);
}

// s_i += sum of G_ij change_j over j in [begin, i).
template <class T>
void correct_scores(BlockColumns<T>& w, std::int64_t begin, std::int64_t i) {
    T* s = w.S + i * w.ld;
    for (std::int64_t j = begin; j < i; ++j) {
        const auto& touched = w.touched[j];
        const T g = w.G[i * kBlock + j];
        if (touched.empty() || g == T(0)) continue;
        const T* change = w.change.data() + j * w.width;
        if (static_cast<std::int64_t>(touched.size()) * kLanes<T> < w.width)
            for (const auto cls : touched) s[cls] += g * change[cls];
        else
            axpy_row(g, change, w.width, s);
    }
}

// The rows after a finished sub-block take in its changes in one product.
template <class T>
void correct_rest(BlockColumns<T>& w, std::int64_t begin, std::int64_t end, std::int64_t m,
                  Team& team) {
    std::vector<std::int64_t> moved;
    for (std::int64_t j = begin; j < end; ++j)
        if (!w.touched[j].empty()) moved.push_back(j);
    if (moved.empty() || end == m) return;
    std::vector<T> g((m - end) * moved.size());  // the columns of G that moved, side by side
    for (std::int64_t i = end; i < m; ++i)
        for (std::size_t k = 0; k < moved.size(); ++k)
            g[(i - end) * moved.size() + k] = w.G[i * kBlock + moved[k]];
    const auto gram = [&](std::int64_t i) { return g.data() + i * std::int64_t(moved.size()); };
    const auto change = [&](std::int64_t k) { return w.change.data() + moved[k] * w.width; };
    team.ranges(w.width, GemmScratch<T>::width,
                [&](int part, std::int64_t first, std::int64_t last) {
                    gemm_add(0, m - end, first, last, static_cast<std::int64_t>(moved.size()),
                             ByIndex{gram}, ByDepth{change}, w.S + end * w.ld, w.ld, w.gemm[part]);
                });
}

// The visits of the m examples of a block, in order, and the update of W.
template <class T>
void visit_block(const Visitor<T>& visitor, const DenseMatrix<T>& X, Examples<T>& ex,
                 DualRows<T>& dual, const std::int64_t* order, std::int64_t m, double scale,
                 Team& team, BlockColumns<T>& w, VisitScratch<T>& visit, VisitTotals& totals) {
    w.moved.clear();
    for (std::int64_t begin = 0; begin < m; begin += kSubBlock) {
        const std::int64_t end = std::min(begin + kSubBlock, m);
        for (std::int64_t i = begin; i < end; ++i) {
            correct_scores(w, begin, i);
            std::copy_n(w.S + i * w.ld, w.width, visit.s.data());
            w.touched[i].clear();
            if (!visitor.full(visit, static_cast<int>(w.width), ex, dual, order[i], scale, totals))
                continue;
            w.moved.push_back(i);
            w.touched[i].assign(visit.classes.begin(), visit.classes.begin() + visit.touched);
            T* change = w.change.data() + i * w.width;
            if (visit.in_place)
                std::copy_n(visit.change.data(), w.width, change);
            else
                for (int e = 0; e < visit.touched; ++e) change[visit.classes[e]] = visit.change[e];
        }
        correct_rest(w, begin, end, m, team);
    }
    block_update(X, order, team, w);
}

// Threads share the products; visits too where the classes are cut into ranges.
template <class T>
VisitTotals sweep_blocked(const Visitor<T>& visitor, const DenseMatrix<T>& X, const Examples<T>& ex,
                          ClassRanges<T>& ranges, T* W, std::int64_t ld, const std::int64_t* order,
                          std::int64_t count, double scale, Team& team) {
    struct Part {
        Examples<T> ex;
        BlockColumns<T> columns;
        VisitScratch<T> visit;
        Team alone{1};
        VisitTotals totals = {};
    };
    BlockProducts<T> products(ld, team.size());
    std::vector<std::unique_ptr<Part>> parts;
    for (int r = 0; r < ranges.count(); ++r) {
        const auto first = ranges.range(r).first;
        const auto width = ranges.width(r, ld);
        parts.emplace_back(
            new Part{ranges.range(r).examples(ex),
                     BlockColumns<T>(products.S.data() + first, products.G.data(), W + first, ld,
                                     width, ranges.count() == 1 ? team.size() : 1),
                     VisitScratch<T>(static_cast<int>(width))});
    }
    const bool in_cache = X.d * ld * std::int64_t(sizeof(T)) <= kInCache;
    const std::int64_t block = visitor.dense_rows && in_cache ? kShortBlock : kBlock;
    for (std::int64_t at = 0; at < count; at += block) {
        const std::int64_t m = std::min(block, count - at);
        block_products(X, order + at, m, W, ld, team, products);
        const auto visit = [&](int r, Team& helpers) {
            Part& part = *parts[std::size_t(r)];
            visit_block(visitor, X, part.ex, ranges.range(r).dual, order + at, m, scale, helpers,
                        part.columns, part.visit, part.totals);
        };
        if (ranges.count() == 1)
            visit(0, team);
        else
            team.run([&](int thread) {
                for (int r = thread; r < ranges.count(); r += team.size())
                    visit(r, parts[std::size_t(r)]->alone);
            });
    }
    if (ranges.count() > 1) join_shares(ranges, order, count, team, ex.gap);
    VisitTotals totals;
    for (const auto& part : parts) totals += part->totals;
    return totals;
}

}  // namespace pm
