// Learning from a stream: one exact restricted step per example, which is then forgotten.
//
// A new example has the block p = 0; its step is that of a sweep. What the examples before it
// contributed to W stays as it is: W is that of a feasible dual of all examples seen.
//
// Optional: a reservoir of at most `capacity` examples whose blocks are not zero, `revisits` of
// which, drawn at random, are visited again after every new example; a new one takes the place of
// one of the oldest. And sums from which the average of the iterates follows: with W_s the weights
// after example s, mean_t = (1/t) sum_s W_s = W_t - U_t / t, U_t = sum_s (s - 1) (W_s - W_{s-1}).
// Each class has its own clock, which starts when the class appears.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "rows/rows.hpp"
#include "sweeps/sweep_rows.hpp"
#include "sweeps/visitor.hpp"

namespace pm {

// An example that is kept; a dense row has no indices.
template <class T>
struct KeptRow {
    std::vector<T> values;
    std::vector<std::int32_t> indices;
    bool dense() const { return values.size() != indices.size(); }
};

template <class T>
struct StreamSettings {
    LossPointer loss;
    std::int64_t d;
    T bias;
    std::int64_t capacity;
    int revisits;
    std::uint64_t seed;
};

template <class T>
class Stream {
  public:
    explicit Stream(const StreamSettings<T>& settings)
        : set(settings),
          kept(settings.capacity),
          y(settings.capacity + 1),
          c(settings.capacity + 1),
          norm(settings.capacity + 1),
          threshold(settings.capacity + 1),
          gap(settings.capacity + 1),
          dual(settings.capacity + 1) {}

    // A class that appears now, its clock at zero; or one that has been like class `model` so far.
    void add_class(int model) {
        born.push_back(model < 0 ? seen : born[model]);
        if (model < 0) return;
        const auto fresh = static_cast<std::int32_t>(born.size()) - 1;
        for (std::int64_t i = 0; i < filled; ++i) {
            const int count = dual.count(i);
            std::vector<DualEntry<T>> row(dual.row(i), dual.row(i) + count);
            for (int e = 0; e < count; ++e)
                if (row[e].cls == model) row.push_back({fresh, row[e].p});
            std::copy(row.begin(), row.end(), dual.resize(i, static_cast<int>(row.size())));
        }
    }

    // One step per row. Examples of weight zero count as absent. U may be null.
    template <class Matrix>
    void learn(const Matrix& X, const std::int32_t* labels, const double* weights,
               const double* norms, T* W, T* U, std::int64_t ld) {
        const int n_classes = static_cast<int>(born.size());
        const LossPointer loss = limited_to(*set.loss, std::max(1, n_classes - 1));
        const Visitor<T> visitor(*loss);
        const bool any_wrong = n_classes > 1 || !visitor.coupled;
        const std::int64_t fresh = set.capacity;
        Examples<T> ex{y.data(), c.data(), norm.data(), threshold.data(), gap.data(), n_classes};
        VisitScratch<T> w(static_cast<int>(ld));
        for (std::int64_t i = 0; i < X.n; ++i) {
            if (!(weights[i] > 0)) continue;
            if (i + 1 < X.n) prefetch_first_weights(X.row(i + 1), W, ld, ld);
            y[fresh] = labels[i];
            c[fresh] = weights[i];
            norm[fresh] = norms[i];
            threshold[fresh] = T(0);
            dual.resize(fresh, 0);
            if (any_wrong && norm[fresh] > 0 && visit(visitor, X, i, fresh, ex, w, W, U, ld))
                if (set.capacity > 0) keep(X, i);
            for (int r = 0; r < set.revisits && filled > 0; ++r) revisit(visitor, ex, w, W, U, ld);
            ++seen;
        }
    }

    // Scores of row i for all classes, of the last or of the average weights.
    template <class Matrix>
    void scores(const Matrix& X, std::int64_t i, const T* W, const T* U, std::int64_t ld,
                std::vector<T>& s, std::vector<T>& u) const {
        row_scores(X, i, W, ld, s.data());
        if (U == nullptr) return;
        row_scores(X, i, U, ld, u.data());
        for (std::size_t j = 0; j < born.size(); ++j) s[j] -= u[j] * share(static_cast<int>(j));
    }

    // What U is multiplied with for class j: the inverse of the iterates since it appeared.
    T share(int j) const { return seen > born[j] ? T(1.0 / double(seen - born[j])) : T(0); }

    // All of it is state: exported and imported by the bindings.
    StreamSettings<T> set;
    std::vector<std::int64_t> born;  // examples seen before each class
    std::int64_t seen = 0;
    std::int64_t filled = 0;  // places 0..filled-1 of the reservoir are taken
    std::int64_t oldest = 0;  // the place that the next example takes when it is full
    std::uint64_t drawn = 0;  // random numbers used
    std::vector<KeptRow<T>> kept;
    std::vector<std::int32_t> y;  // as in Examples; the last place is that of the new example
    std::vector<double> c, norm;
    std::vector<T> threshold;
    std::vector<double> gap;
    DualRows<T> dual;

  private:
    template <class Matrix>
    bool visit(const Visitor<T>& visitor, const Matrix& X, std::int64_t i, std::int64_t place,
               Examples<T>& ex, VisitScratch<T>& w, T* W, T* U, std::int64_t ld) {
        VisitTotals totals;
        row_scores(X, i, W, ld, w.s.data());
        if (!visitor.full(w, static_cast<int>(ld), ex, dual, place, 1.0, totals)) return false;
        apply_change(X, i, w, W, ld, ld);
        if (U != nullptr) {
            for (int e = 0; e < w.touched; ++e) w.change[e] *= T(seen - born[w.classes[e]]);
            apply_change(X, i, w, U, ld, ld);
        }
        return true;
    }

    void revisit(const Visitor<T>& visitor, Examples<T>& ex, VisitScratch<T>& w, T* W, T* U,
                 std::int64_t ld) {
        const auto i = std::int64_t(random_at(set.seed, drawn++) % std::uint64_t(filled));
        const auto& row = kept[i];
        const auto count = static_cast<std::int64_t>(row.values.size());
        if (row.dense()) {
            const DenseMatrix<T> X{row.values.data(), 1, set.d, set.bias};
            visit(visitor, X, 0, i, ex, w, W, U, ld);
        } else {
            const std::int32_t bounds[2] = {0, static_cast<std::int32_t>(count)};
            const CsrMatrix<T, std::int32_t> X{
                row.values.data(), row.indices.data(), bounds, 1, set.d, set.bias};
            visit(visitor, X, 0, i, ex, w, W, U, ld);
        }
        if (dual.count(i) == 0) drop(i);
    }

    template <class Matrix>
    void keep(const Matrix& X, std::int64_t i) {
        const std::int64_t place = filled < set.capacity ? filled++ : oldest++ % set.capacity;
        const auto x = X.row(i);
        auto& row = kept[place];
        row.values.resize(x.count);
        row.indices.resize(x.scattered ? x.count : 0);
        for (std::int64_t e = 0; e < x.count; ++e) {
            row.values[e] = x.value(e);
            if (x.scattered) row.indices[e] = static_cast<std::int32_t>(x.feature(e));
        }
        move_block(set.capacity, place);
    }

    // The last example takes the place of one whose block became zero.
    void drop(std::int64_t i) {
        if (i != --filled) {
            std::swap(kept[i], kept[filled]);
            move_block(filled, i);
        }
    }

    void move_block(std::int64_t from, std::int64_t to) {
        y[to] = y[from];
        c[to] = c[from];
        norm[to] = norm[from];
        threshold[to] = threshold[from];
        const int count = dual.count(from);
        auto* row = dual.resize(to, count);
        std::copy_n(dual.row(from), count, row);
    }
};

}  // namespace pm
