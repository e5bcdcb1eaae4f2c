// What a certificate is made of: losses and gap shares of all examples at W, and the blocks' part
// of the dual. Everything accumulates in double.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/gemm.hpp"
#include "base/parallel.hpp"
#include "rows/rows.hpp"
#include "sweeps/class_ranges.hpp"
#include "sweeps/visit.hpp"

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

// Multiples of W, and the sums of c_i loss_i there.
struct Multiples {
    const double* factors;
    int count;
    double* sums;  // a row for every kRowsSummed rows of X: the same sums for any number of threads
};

inline constexpr std::int64_t kRowsSummed = 1024;

// Whether the loss at a multiple of the scores follows from the margins, where these are 1 at zero.
template <class Loss>
inline constexpr bool has_value_at_multiple =
    Loss::flat &&
    requires(const Loss& loss, const double* h) { loss.value_at_multiple(h, 0, 1.0); };

// value[i] = c_i loss_i, gap[i] its share of the gap (zero for rows without features) of the
// examples that X holds.
template <class Loss, class Matrix, class T>
void evaluate_examples(const Loss& loss, const Matrix& X, const T* W, std::int64_t ld,
                       const Examples<T>& ex, const ClassRanges<T>& dual, Team& team, double* value,
                       double* gap, const Multiples& also) {
    team.ranges(X.n, kRowsSummed, [&](int, std::int64_t begin, std::int64_t end) {
        const int padded = static_cast<int>(ld);
        Block<double> work(padded);
        std::vector<double> multiple(padded);
        std::int64_t r = begin;
        PreciseScores<Matrix, T>(X, W, ld).of(begin, end, [&](std::int64_t i, double* s) {
            double* sums = also.sums + r++ / kRowsSummed * also.count;
            value[i] = gap[i] = 0;
            dual.prefetch_after(i);
            if (ex.c[i] == 0) return;
            const bool by_margins = loss.unit_margins() && has_value_at_multiple<Loss>;
            if (!by_margins)
                for (int f = 0; f < also.count; ++f) {
                    for (int j = 0; j < padded; ++j) multiple[j] = also.factors[f] * s[j];
                    margins_from_scores(loss, multiple.data(), ex.n_classes, padded, ex.y[i]);
                    sums[f] += ex.c[i] * loss.value(multiple.data(), padded, work);
                }
            margins_from_scores(loss, s, ex.n_classes, padded, ex.y[i]);
            value[i] = ex.c[i] * loss.value(s, padded, work);
            if constexpr (has_value_at_multiple<Loss>)
                if (by_margins)
                    for (int f = 0; f < also.count; ++f)
                        sums[f] += ex.c[i] * loss.value_at_multiple(s, padded, also.factors[f]);
            if (ex.squared_norm[i] == 0) return;
            double p_dot_h = 0, conjugate = 0;
            if constexpr (has_dense_rows<Loss>) {
                gap[i] = value[i];  // where p is zero
                if (!dual.in_double(i, padded, work.b.data())) return;
                p_dot_h = block_sums(work.b.data(), s, padded).p_dot_h;
                conjugate = loss.conjugate_of_all(work.b.data(), padded, ex.c[i]);
            }
            dual.for_each_part(i, [&](const auto* row, int count, int first) {
                p_dot_h +=
                    inner_product(row, count, s + first, [row](int e) { return row[e].cls; });
                conjugate += loss.conjugate(row, count, ex.c[i]);
            });
            gap[i] = gap_share(value[i], p_dot_h, conjugate);
        });
    });
}

// The dual value without -1/2 ||V||^2.
template <class Loss, class T>
double dual_sum(const Loss& loss, const Examples<T>& ex, const ClassRanges<T>& dual) {
    double total = 0;
    const int padded = round_up_lanes<double>(ex.n_classes);
    std::vector<double> p(has_dense_rows<Loss> ? padded : 0);
    for (std::int64_t i = 0; i < dual.size(); ++i) {
        dual.prefetch_after(i);
        if constexpr (has_dense_rows<Loss>) {
            static_assert(Loss::no_margins);
            if (dual.in_double(i, padded, p.data()))
                total -= loss.conjugate_of_all(p.data(), padded, ex.c[i]);
        }
        dual.for_each_part(i, [&](const auto* row, int count, int) {
            total += dual_share(loss, ex.y[i], ex.c[i], row, count);
        });
    }
    return total;
}

}  // namespace pm
