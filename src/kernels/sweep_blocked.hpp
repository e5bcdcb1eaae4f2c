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

#include "gemm.hpp"
#include "parallel.hpp"
#include "rows.hpp"
#include "visit.hpp"

namespace pm {

inline constexpr std::int64_t kBlock = 256;
inline constexpr std::int64_t kSubBlock = 32;

template <class T>
struct BlockScratch {
    BlockScratch(std::int64_t block, std::int64_t ld)
        : S(block * ld), G(block * block), change(block * ld, T(0)), touched(block) {}
    std::vector<T> S, G;
    std::vector<T> change;                           // dense rows, zero outside `touched`
    std::vector<std::vector<std::int32_t>> touched;  // classes each example of the block changed
};

// Splits the columns among threads at vector boundaries.
template <class T, class F>
void parallel_columns(std::int64_t ld, int threads, F&& f) {
    constexpr std::int64_t width = kTileVectors * kLanes<T>;
    parallel_ranges((ld + width - 1) / width, threads, [&](std::int64_t begin, std::int64_t end) {
        f(begin * width, std::min(end * width, ld));
    });
}

template <class T>
void block_scores(const DenseMatrix<T>& X, const std::int64_t* order, std::int64_t m, const T* W,
                  std::int64_t ld, int threads, T* S) {
    parallel_columns<T>(ld, threads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = first; j < last; ++j)
                S[i * ld + j] = X.bias != T(0) ? X.bias * W[X.d * ld + j] : T(0);
        gemm_add(
            m, first, last, X.d,
            [&](std::int64_t i, std::int64_t f) { return X.data[order[i] * X.d + f]; },
            [&](std::int64_t f, std::int64_t column, int vectors, T* out) {
                std::copy_n(W + f * ld + column, vectors * kLanes<T>, out);
            },
            S, ld);
    });
}

// The lower triangle of G, by strips of kSubBlock rows.
template <class T>
void block_gram(const DenseMatrix<T>& X, const std::int64_t* order, std::int64_t m, int threads,
                T* G, std::int64_t ldg) {
    const std::int64_t strips = (m + kSubBlock - 1) / kSubBlock;
    std::fill_n(G, m * ldg, X.bias * X.bias);
    parallel_ranges(strips, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t strip = begin; strip < end; ++strip) {
            const std::int64_t row = strip * kSubBlock, rows = std::min(kSubBlock, m - row);
            gemm_add(
                rows, 0, std::min(ldg, row + kSubBlock), X.d,
                [&](std::int64_t i, std::int64_t f) { return X.data[order[row + i] * X.d + f]; },
                [&](std::int64_t f, std::int64_t column, int vectors, T* out) {
                    for (int l = 0; l < vectors * kLanes<T>; ++l)
                        out[l] = column + l < m ? X.data[order[column + l] * X.d + f] : T(0);
                },
                G + row * ldg, ldg);
        }
    });
}

// W += X_B^T change, for the examples of the block that moved.
template <class T>
void block_update(const DenseMatrix<T>& X, const std::vector<std::int64_t>& moved,
                  const std::int64_t* order, const T* change, T* W, std::int64_t ld, int threads) {
    const auto m = static_cast<std::int64_t>(moved.size());
    if (m == 0) return;
    parallel_columns<T>(ld, threads, [&](std::int64_t first, std::int64_t last) {
        const auto row = [&](std::int64_t k, std::int64_t column, int vectors, T* out) {
            std::copy_n(change + moved[k] * ld + column, vectors * kLanes<T>, out);
        };
        gemm_add(
            X.d, first, last, m,
            [&](std::int64_t f, std::int64_t k) { return X.data[order[moved[k]] * X.d + f]; }, row,
            W, ld);
        if (X.bias != T(0))
            gemm_add(
                1, first, last, m, [&](std::int64_t, std::int64_t) { return X.bias; }, row,
                W + X.d * ld, ld);
    });
}

// s_i += sum of G_ij change_j over j in [begin, i).
template <class T>
void correct_scores(BlockScratch<T>& w, std::int64_t begin, std::int64_t i, std::int64_t ldg,
                    std::int64_t ld) {
    T* s = w.S.data() + i * ld;
    for (std::int64_t j = begin; j < i; ++j) {
        const auto& touched = w.touched[j];
        const T g = w.G[i * ldg + j];
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
                  std::int64_t ldg, std::int64_t ld, int threads) {
    std::vector<std::int64_t> moved;
    for (std::int64_t j = begin; j < end; ++j)
        if (!w.touched[j].empty()) moved.push_back(j);
    if (moved.empty() || end == m) return;
    parallel_columns<T>(ld, threads, [&](std::int64_t first, std::int64_t last) {
        gemm_add(
            m - end, first, last, static_cast<std::int64_t>(moved.size()),
            [&](std::int64_t i, std::int64_t k) { return w.G[(end + i) * ldg + moved[k]]; },
            [&](std::int64_t k, std::int64_t column, int vectors, T* out) {
                std::copy_n(w.change.data() + moved[k] * ld + column, vectors * kLanes<T>, out);
            },
            w.S.data() + end * ld, ld);
    });
}

template <class Loss, class T>
VisitTotals sweep_blocked(const DenseMatrix<T>& X, Examples<T> ex, DualRows<T>& dual, T* W,
                          std::int64_t ld, const std::int64_t* order, std::int64_t count,
                          double scale, double skip, int threads) {
    constexpr std::int64_t ldg = kBlock;
    VisitScratch<T> visit(static_cast<int>(ld));
    BlockScratch<T> w(ldg, ld);
    std::vector<std::int64_t> moved;
    VisitTotals totals;
    for (std::int64_t at = 0; at < count; at += ldg) {
        const std::int64_t m = std::min(ldg, count - at);
        block_scores(X, order + at, m, W, ld, threads, w.S.data());
        block_gram(X, order + at, m, threads, w.G.data(), ldg);
        moved.clear();
        for (std::int64_t begin = 0; begin < m; begin += kSubBlock) {
            const std::int64_t end = std::min(begin + kSubBlock, m);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t example = order[at + i];
                correct_scores(w, begin, i, ldg, ld);
                std::copy_n(w.S.data() + i * ld, ld, visit.s.data());
                w.touched[i].clear();
                if (!visit_all_classes<Loss>(visit, static_cast<int>(ld), ex, dual, example, scale,
                                             skip, totals))
                    continue;
                moved.push_back(i);
                w.touched[i].assign(visit.classes.begin(), visit.classes.begin() + visit.touched);
                T* change = w.change.data() + i * ld;
                for (int e = 0; e < visit.touched; ++e) change[visit.classes[e]] = visit.change[e];
            }
            correct_rest(w, begin, end, m, ldg, ld, threads);
        }
        block_update(X, moved, order + at, w.change.data(), W, ld, threads);
        for (const auto i : moved)
            for (const auto cls : w.touched[i]) w.change[i * ld + cls] = T(0);
    }
    return totals;
}

}  // namespace pm
