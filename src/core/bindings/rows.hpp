// Data as Python holds it: checked once, then trusted by every engine.
#pragma once

#include <any>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/common.hpp"
#include "rows/any_rows.hpp"

namespace pm_bind {

// A matrix, the arrays it lies in, and what the look at it found.
template <class T>
class Rows {
  public:
    explicit Rows(Matrix2<const T> X);
    template <class I>
    Rows(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, std::int64_t d);
    // The same, of which every part has been looked at before.
    template <class I>
    static Rows looked_at(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
                          std::int64_t d) {
        Rows rows;
        const auto n = std::int64_t(indptr.shape(0)) - 1;
        rows.matrix_ = pm::CsrMatrix<T, I>{data.data(), indices.data(), indptr.data(), n, d, T(0)};
        rows.holder_ = std::make_tuple(data, indices, indptr);
        return rows;
    }
    static Rows looked_at(Matrix2<const T> X) {
        Rows rows;
        rows.matrix_ =
            pm::DenseMatrix<T>{X.data(), std::int64_t(X.shape(0)), std::int64_t(X.shape(1)), T(0)};
        rows.holder_ = X;
        return rows;
    }

    std::int64_t n() const {
        return std::visit([](const auto& X) { return X.n; }, matrix_);
    }
    std::int64_t d() const {
        return std::visit([](const auto& X) { return X.d; }, matrix_);
    }
    // The matrix with a constant feature of this value.
    pm::AnyMatrix<T> matrix(double bias) const {
        auto X = matrix_;
        std::visit([&](auto& one) { one.bias = one.bias_step = T(bias); }, X);
        return X;
    }
    std::int64_t n_used() const;
    // The same rows without the features that occur in none, whose numbers are written to `used`.
    Rows without_unused(Vector<std::int64_t> used) const;
    // CSR: the same entries with these values.
    Rows<float> with_values(Vector<const float> values) const;

    std::vector<double> squared_norms;  // without a constant feature
    bool canonical = true;              // CSR: sorted, without duplicates

  private:
    template <class>
    friend class Rows;
    Rows() = default;

    pm::AnyMatrix<T> matrix_;
    std::vector<char> occurs_;  // CSR: by feature
    std::any holder_;           // of the arrays
};

}  // namespace pm_bind
