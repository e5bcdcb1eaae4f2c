// What a certificate is made of: losses and gap shares of all examples at W. Everything accumulates
// in double.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/gemm.hpp"
#include "base/parallel.hpp"
#include "rows/rows.hpp"
#include "sweeps/visitor.hpp"

namespace pm {

// The scores of some examples at a time, in double; one per thread.
template <class Matrix, class T>
class PreciseScores {
  public:
    PreciseScores(const Matrix& X, const T* W, std::int64_t ld) : X_(X), W_(W), ld_(ld) {
        if constexpr (dense)
            if (X.d * ld * std::int64_t(sizeof(T)) > kSmall) {
                rows_ = kPackedRows<double>;
                gemm_ = std::make_unique<GemmScratch<double>>(ld);
            }
        scores_.resize(rows_ * ld);
    }

    // f(i, scores) for the examples of the rows [begin, end).
    template <class F>
    void of(std::int64_t begin, std::int64_t end, F&& f) {
        for (std::int64_t first = begin; first < end; first += rows_) {
            const std::int64_t last = std::min(first + rows_, end);
            compute(first, last);
            for (std::int64_t r = first; r < last; ++r)
                f(X_.held.example_at(r), scores_.data() + (r - first) * ld_);
        }
    }

  private:
    static constexpr bool dense = std::is_same_v<Matrix, DenseMatrix<T>>;
    static constexpr std::int64_t kSmall =
        32768;  // bytes of weights that a product does not pay for

    void compute(std::int64_t first, std::int64_t last) {
        if constexpr (dense)
            if (gemm_ != nullptr) return compute_product(first, last);
        const std::int64_t i = X_.held.example_at(first);
        if constexpr (sizeof(T) == sizeof(double))
            row_scores(X_, i, W_, ld_, scores_.data());
        else
            row_scores_precise(X_, i, W_, ld_, scores_.data());
    }
    // As a product of matrices, which reads W once for many examples.
    void compute_product(std::int64_t first, std::int64_t last) {
        const T* W_bias = W_ + X_.d * ld_;
        for (std::int64_t i = first; i < last; ++i)
            for (std::int64_t j = 0; j < ld_; ++j)
                scores_[(i - first) * ld_ + j] =
                    X_.bias != T(0) ? double(X_.bias) * double(W_bias[j]) : 0.0;
        const auto example = [&](std::int64_t i) { return X_.data + (first + i) * X_.d; };
        const auto weights = [&](std::int64_t feature) { return W_ + feature * ld_; };
        gemm_add(0, last - first, 0, ld_, X_.d, ByIndex{example}, ByDepth{weights}, scores_.data(),
                 ld_, *gemm_);
    }

    const Matrix& X_;
    const T* W_;
    std::int64_t ld_;
    std::int64_t rows_ = 1;  // at a time
    std::vector<double> scores_;
    std::unique_ptr<GemmScratch<double>> gemm_;
};

// Sums at multiples are taken of so many rows of X at a time, each in a row of its own of `sums`:
// the same for any number of threads.
inline constexpr std::int64_t kRowsSummed = 1024;

// value[i] = c_i loss_i, gap[i] its share of the gap (zero for rows without features) of the
// examples that X holds.
template <class Matrix, class T>
void evaluate_examples(const Visitor<T>& visitor, const Matrix& X, const T* W, std::int64_t ld,
                       const Examples<T>& ex, const ClassRanges<T>& dual, Team& team, double* value,
                       double* gap, const AtMultiples& also) {
    team.ranges(X.n, kRowsSummed, [&](int, std::int64_t begin, std::int64_t end) {
        const int padded = static_cast<int>(ld);
        ShareScratch work(padded);
        std::int64_t r = begin;
        PreciseScores<Matrix, T>(X, W, ld).of(begin, end, [&](std::int64_t i, double* s) {
            double* sums = also.sums + r++ / kRowsSummed * also.count;
            dual.prefetch_after(i);
            const Share share =
                visitor.share(s, padded, ex, dual, i, {also.factors, also.count, sums}, work);
            value[i] = share.value;
            gap[i] = share.gap;
        });
    });
}

}  // namespace pm
