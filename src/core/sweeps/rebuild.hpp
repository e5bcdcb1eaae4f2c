// V = sum_i x_i a_i^T from the dual, in double: what float32 certificates and warm starts begin
// with.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/gemm.hpp"
#include "rows/rows.hpp"
#include "sweeps/class_ranges.hpp"

namespace pm {

inline constexpr std::int64_t kSparse = 4;  // rows with fewer classes than one in so many

// Rows of the dual with most of the classes, as those of softmax: spread out, and added to V as
// vectors; many at a time as a product of matrices where X is dense.
template <class Matrix, class T>
class WideRows {
  public:
    WideRows(const Matrix& X, int classes, double* V, std::int64_t width)
        : X_(X), classes_(classes), ld_(round_up_lanes<double>(classes)), V_(V), width_(width) {}

    void add(std::int64_t i, const std::vector<std::int64_t>& column,
             const std::vector<double>& value) {
        double* row = next();
        for (std::size_t j = 0; j < column.size(); ++j) row[column[j]] = value[j];
        end(i);
    }
    // The classes from `first` on of p of all, which are coupled; `own` is the true one.
    void add_all(std::int64_t i, const T* p, int n_classes, int first, int own) {
        double* row = next();
        double sigma = 0;
        for (int j = 0; j < n_classes; ++j) sigma += double(p[j]);
        for (int j = 0; j < classes_; ++j) row[j] = -double(p[first + j]);
        if (own >= first && own < first + classes_) row[own - first] = sigma;
        end(i);
    }

    void finish() {
        if constexpr (dense)
            add_product();
        else
            for (const auto i : rows_) add_row(i);
        for (std::size_t k = 0; k < rows_.size(); ++k)
            if (X_.bias != T(0))
                add_multiple(double(X_.bias), spread_.data() + k * ld_, V_ + X_.d * width_);
        rows_.clear();
    }

  private:
    static constexpr bool dense = std::is_same_v<Matrix, DenseMatrix<T>>;
    static constexpr std::size_t kRows = 256;  // at a time

    double* next() {
        if (rows_.empty()) spread_.assign((dense ? kRows : 1) * ld_, 0.0);
        return spread_.data() + std::int64_t(rows_.size()) * ld_;
    }
    void end(std::int64_t i) {
        rows_.push_back(i);
        if (!dense || rows_.size() == kRows) finish();
    }
    void add_multiple(double x, const double* row, double* v) const {
        for (std::int64_t j = 0; j < classes_; ++j) v[j] += x * row[j];
    }
    void add_row(std::int64_t i) const {
        const auto x = X_.row(i);
        for (std::int64_t e = 0; e < x.count; ++e)
            add_multiple(double(x.value(e)), spread_.data(), V_ + x.feature(e) * width_);
    }
    void add_product() {
        if (rows_.empty()) return;
        GemmScratch<double> gemm(ld_);
        std::vector<double> sum(X_.d * ld_, 0.0);
        const auto example = [&](std::int64_t k) { return X_.row(rows_[k]).value_; };
        const auto row = [&](std::int64_t k) { return spread_.data() + k * ld_; };
        gemm_add(0, X_.d, 0, ld_, std::int64_t(rows_.size()), ByDepth{example}, ByDepth{row},
                 sum.data(), ld_, gemm);
        for (std::int64_t f = 0; f < X_.d; ++f)
            add_multiple(1.0, sum.data() + f * ld_, V_ + f * width_);
    }

    const Matrix& X_;
    std::int64_t classes_, ld_;
    double* V_;
    std::int64_t width_;
    std::vector<std::int64_t> rows_;
    std::vector<double> spread_;
};

// Adds the examples that X holds to V for the classes [first, last); V has d rows (one more with a
// constant feature) of `width` columns, of which those classes are the first.
template <class Matrix, class T>
void rebuild_weights(const Matrix& X, const Examples<T>& ex, bool coupled,
                     const ClassRanges<T>& dual, int first, int last, double* V,
                     std::int64_t width) {
    WideRows<Matrix, T> wide(X, last - first, V, width);
    std::vector<std::int64_t> column;
    std::vector<double> value;
    for (std::int64_t r = 0; r < X.n; ++r) {
        const std::int64_t i = X.held.example_at(r);
        if (dual.whole().dense()) {
            const T* p = dual.whole().values(i);
            if (p != nullptr) wide.add_all(i, p, ex.n_classes, first, ex.y[i]);
            continue;
        }
        column.clear();
        value.clear();
        double sigma = 0;
        dual.for_each_entry(i, [&](const DualEntry<T>& entry) {
            const bool own = entry.cls == ex.y[i];
            sigma += double(entry.p);
            if (entry.cls < first || entry.cls >= last || entry.p == T(0)) return;
            column.push_back(entry.cls - first);
            value.push_back(own ? double(entry.p) : -double(entry.p));
        });
        if (coupled && sigma != 0 && ex.y[i] >= first && ex.y[i] < last) {
            column.push_back(ex.y[i] - first);
            value.push_back(sigma);
        }
        if (column.empty()) continue;
        if (std::int64_t(column.size()) * kSparse >= last - first) {
            wide.add(i, column, value);
            continue;
        }
        const auto x = X.row(i);
        for (std::int64_t e = 0; e < x.count; ++e) {
            double* v = V + x.feature(e) * width;
            const double feature = double(x.value(e));
            for (std::size_t j = 0; j < column.size(); ++j) v[column[j]] += feature * value[j];
        }
        if (X.bias != T(0)) {
            double* v = V + X.d * width;
            for (std::size_t j = 0; j < column.size(); ++j)
                v[column[j]] += double(X.bias) * value[j];
        }
    }
    wide.finish();
}

}  // namespace pm
