// Sweeps over dense rows with the weights of a class side by side.
//
// W has a row per feature, so the weights of one class lie far apart, and a visit that changes a
// few classes touches as many places as there are features. For the length of a sweep W is copied
// to a row per class: then scores are inner products of contiguous numbers, and updates sums of
// them. All scores of a few examples are computed at a time, which reads W once for them; before
// its visit an example's scores take in the changes of those before it, s_i += (x_i.x_j) change_j.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rows/inner_products.hpp"
#include "sweeps/sweep_rows.hpp"

namespace pm {

// to(j, i) = from(i, j) for i in [0, rows) and j in [0, columns), in tiles that fit a cache.
template <class T>
void transpose(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               T* to, std::int64_t to_stride) {
    constexpr std::int64_t tile = 16;
    for (std::int64_t i0 = 0; i0 < rows; i0 += tile)
        for (std::int64_t j0 = 0; j0 < columns; j0 += tile)
            for (std::int64_t j = j0; j < std::min(j0 + tile, columns); ++j)
                for (std::int64_t i = i0; i < std::min(i0 + tile, rows); ++i)
                    to[j * to_stride + i] = from[i * from_stride + j];
}

// y += a x
template <class T>
PM_INLINE void add_multiple(T a, const T* x, std::int64_t d, T* y) {
    using V = Vec<T>;
    const V factor = V::set1(a);
    std::int64_t k = 0;
    for (; k + kLanes<T> <= d; k += kLanes<T>)
        V::fma(factor, V::load(x + k), V::load(y + k)).store(y + k);
    for (; k < d; ++k) y[k] += a * x[k];
}

// Inner products of E rows x with K rows w, to S[e * stride + c].
template <int E, int K, class T>
PM_INLINE void inner_product_tile(const T* const* x, const T* const* w, std::int64_t d, T* S,
                                  std::int64_t stride) {
    using V = Vec<T>;
    V sum[E][K];
    PM_UNROLL for (int e = 0; e < E; ++e) PM_UNROLL for (int c = 0; c < K; ++c) sum[e][c] =
        V::set1(T(0));
    std::int64_t k = 0;
    for (; k + kLanes<T> <= d; k += kLanes<T>) {
        V right[K];
        PM_UNROLL for (int c = 0; c < K; ++c) right[c] = V::load(w[c] + k);
        PM_UNROLL for (int e = 0; e < E; ++e) {
            const V left = V::load(x[e] + k);
            PM_UNROLL for (int c = 0; c < K; ++c) sum[e][c] = V::fma(left, right[c], sum[e][c]);
        }
    }
    for (int e = 0; e < E; ++e)
        for (int c = 0; c < K; ++c) {
            T total = sum[e][c].sum();
            for (std::int64_t rest = k; rest < d; ++rest) total += x[e][rest] * w[c][rest];
            S[e * stride + c] = total;
        }
}

// The weights by class for the length of a sweep.
template <class T>
class ByClass {
  public:
    ByClass(const DenseMatrix<T>& X, T* W, std::int64_t ld, std::int64_t width, int n_classes)
        : X_(X),
          W_(W),
          ld_(ld),
          width_(width),
          n_classes_(n_classes),
          stride_(X.d + kLine / std::int64_t(sizeof(T))),  // not a power of two
          weights_(n_classes * stride_) {
        transpose(W, ld, X.d, n_classes, weights_.data(), stride_);
    }
    void write_back() { transpose(weights_.data(), stride_, n_classes_, X_.d, W_, ld_); }

    const T* of(std::int64_t cls) const { return weights_.data() + cls * stride_; }

    void scores_of(std::int64_t i, const std::int32_t* classes, int m, T* s) const {
        inner_products_of(
            X_.row(i).value_, [&](std::int64_t j) { return of(classes[j]); }, m, X_.d, s);
        for (int j = 0; X_.bias != T(0) && j < m; ++j) s[j] += X_.bias * bias_of(classes[j]);
    }

    // All scores of `m` examples, a row of `width` each.
    void scores(const std::int64_t* examples, int m, T* S) const {
        constexpr int K = 4;
        const T *x[kAtOnce], *w[K];
        for (int e = 0; e < m; ++e) x[e] = X_.row(examples[e]).value_;
        int j = 0;
        for (; j + K <= n_classes_; j += K) {
            for (int c = 0; c < K; ++c) w[c] = of(j + c);
            tiles<K>(x, m, w, S + j);
        }
        for (; j < n_classes_; ++j) {
            w[0] = of(j);
            tiles<1>(x, m, w, S + j);
        }
        if (X_.bias == T(0)) return;
        for (int e = 0; e < m; ++e)
            for (j = 0; j < n_classes_; ++j) S[e * width_ + j] += X_.bias * bias_of(j);
    }

    // What the visit in w changed.
    void add(std::int64_t i, const VisitScratch<T>& w) {
        for (int e = 0; e < w.touched; ++e) {
            T* row = weights_.data() + w.classes[e] * stride_;
            add_multiple(w.change[e], X_.row(i).value_, X_.d, row);
            if (X_.bias != T(0)) W_[X_.d * ld_ + w.classes[e]] += X_.bias_step * w.change[e];
        }
    }

    static constexpr int kAtOnce = 6;  // examples

  private:
    T bias_of(std::int64_t cls) const { return W_[X_.d * ld_ + cls]; }

    template <int K>
    void tiles(const T* const* x, int m, const T* const* w, T* S) const {
        constexpr int E = 3;
        int e = 0;
        for (; e + E <= m; e += E) inner_product_tile<E, K>(x + e, w, X_.d, S + e * width_, width_);
        for (; e < m; ++e) inner_product_tile<1, K>(x + e, w, X_.d, S + e * width_, width_);
    }

    const DenseMatrix<T>& X_;
    T* W_;
    std::int64_t ld_, width_;
    int n_classes_;
    std::int64_t stride_;
    std::vector<T> weights_;
};

// Visits order[0..count) with all classes, `width` of them from the one W points at.
template <class T>
VisitTotals sweep_all_by_class(const Visitor<T>& visitor, const DenseMatrix<T>& X, Examples<T> ex,
                               DualRows<T>& dual, T* W, std::int64_t ld, std::int64_t width,
                               const std::int64_t* order, std::int64_t count, double scale) {
    constexpr int most = ByClass<T>::kAtOnce;
    ByClass<T> weights(X, W, ld, width, ex.n_classes);
    VisitScratch<T> w(static_cast<int>(width));
    std::vector<T> S(most * width);
    std::vector<std::int32_t> classes[most];
    std::vector<T> changes[most];
    VisitTotals totals;
    for (std::int64_t first = 0; first < count; first += most) {
        const int m = static_cast<int>(std::min<std::int64_t>(most, count - first));
        for (int e = 0; e < m; ++e)
            prefetch_visits(X, ex, dual, order, first + e + most - 4, count);
        weights.scores(order + first, m, S.data());
        for (int e = 0; e < m; ++e) {
            const std::int64_t i = order[first + e];
            T* s = S.data() + e * width;
            for (int before = 0; before < e; ++before) {
                if (classes[before].empty()) continue;
                const T *x = X.row(i).value_, *other = X.row(order[first + before]).value_;
                T product;
                inner_products<1>(x, &other, X.d, &product);
                product += X.bias * X.bias_step;
                for (std::size_t j = 0; j < classes[before].size(); ++j)
                    s[classes[before][j]] += product * changes[before][j];
            }
            std::copy_n(s, width, w.s.data());
            classes[e].clear();
            if (!visitor.full(w, static_cast<int>(width), ex, dual, i, scale, totals)) continue;
            classes[e].assign(w.classes.begin(), w.classes.begin() + w.touched);
            changes[e].assign(w.change.begin(), w.change.begin() + w.touched);
            weights.add(i, w);
        }
    }
    weights.write_back();
    return totals;
}

// Visits order[0..count), each with the classes of its dual row only.
template <class T>
VisitTotals sweep_listed_by_class(const Visitor<T>& visitor, const DenseMatrix<T>& X,
                                  const Examples<T>& ex, DualRows<T>& dual, T* W, std::int64_t ld,
                                  std::int64_t width, const std::int64_t* order, std::int64_t count,
                                  double scale) {
    ByClass<T> weights(X, W, ld, width, ex.n_classes);
    const auto totals = sweep_listed(visitor, X, ex, dual, weights, width, order, count, scale);
    weights.write_back();
    return totals;
}

}  // namespace pm
