// What a certificate is made of: losses and gap shares of all examples at W, the blocks' part of
// the dual, and V = sum_i x_i a_i^T rebuilt from the dual. Everything accumulates in double.
#pragma once

#include <cstdint>

#include "base/parallel.hpp"
#include "rows/rows.hpp"
#include "sweeps/dual_rows.hpp"
#include "sweeps/visit.hpp"

namespace pm {

// value[i] = c_i loss_i, gap[i] its share of the gap (zero for rows without features).
template <class Loss, class Matrix, class T>
void evaluate_examples(const Loss& loss, const Matrix& X, const T* W, std::int64_t ld,
                       const Examples<T>& ex, const DualRows<T>& dual, int threads, double* value,
                       double* gap) {
    Team(threads).ranges(X.n, 1, [&](int, std::int64_t begin, std::int64_t end) {
        std::vector<double> s(ld);
        const int padded = static_cast<int>(ld);
        Block<double> work(padded);
        for (std::int64_t i = begin; i < end; ++i) {
            value[i] = gap[i] = 0;
            if (ex.c[i] == 0) continue;
            if constexpr (sizeof(T) == sizeof(double))
                row_scores(X, i, W, ld, s.data());
            else
                row_scores_precise(X, i, W, ld, s.data());
            margins_from_scores(loss, s.data(), ex.n_classes, padded, ex.y[i]);
            value[i] = ex.c[i] * loss.value(s.data(), padded, work);
            if (ex.squared_norm[i] == 0) continue;
            const auto* row = dual.row(i);
            const double p_dot_h =
                inner_product(row, dual.count(i), s.data(), [row](int e) { return row[e].cls; });
            gap[i] = gap_share(loss, value[i], p_dot_h, ex.c[i], row, dual.count(i));
        }
    });
}

// The dual value without -1/2 ||V||^2.
template <class Loss, class T>
double dual_sum(const Loss& loss, const Examples<T>& ex, const DualRows<T>& dual) {
    double total = 0;
    for (std::int64_t i = 0; i < dual.size(); ++i)
        total += dual_share(loss, ex.y[i], ex.c[i], dual.row(i), dual.count(i));
    return total;
}

// V for the classes [first, last), (d + 1 with a constant feature) x (last - first), zeroed before.
template <class Matrix, class T>
void rebuild_weights(const Matrix& X, const Examples<T>& ex, bool coupled, const DualRows<T>& dual,
                     int first, int last, double* V) {
    const std::int64_t width = last - first;
    std::vector<std::int64_t> column;
    std::vector<double> value;
    for (std::int64_t i = 0; i < X.n; ++i) {
        const auto* row = dual.row(i);
        column.clear();
        value.clear();
        double sigma = 0;
        for (int e = 0; e < dual.count(i); ++e) {
            const bool own = row[e].cls == ex.y[i];
            sigma += double(row[e].p);
            if (row[e].cls < first || row[e].cls >= last || row[e].p == T(0)) continue;
            column.push_back(row[e].cls - first);
            value.push_back(own ? double(row[e].p) : -double(row[e].p));
        }
        if (coupled && sigma != 0 && ex.y[i] >= first && ex.y[i] < last) {
            column.push_back(ex.y[i] - first);
            value.push_back(sigma);
        }
        if (column.empty()) continue;
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
}

}  // namespace pm
