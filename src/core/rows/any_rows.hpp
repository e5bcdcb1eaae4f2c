// The data of a problem in whatever layout, and the one look at all of it.
#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "rows/rows.hpp"

namespace pm {

template <class T>
using AnyMatrix =
    std::variant<DenseMatrix<T>, CsrMatrix<T, std::int32_t>, CsrMatrix<T, std::int64_t>>;

// Rows [first, first + n) of the same matrix.
template <class T>
DenseMatrix<T> part_of(DenseMatrix<T> X, std::int64_t first, std::int64_t n) {
    X.data += first * X.d;
    X.n = n;
    return X;
}
template <class T, class I>
CsrMatrix<T, I> part_of(CsrMatrix<T, I> X, std::int64_t first, std::int64_t n) {
    X.indptr += first;
    X.n = n;
    return X;
}

// The sum of squares, in the same order for the same row wherever it is stored.
template <class T>
double sum_of_squares(const T* values, std::int64_t count) {
    double sum[4] = {0, 0, 0, 0};
    std::int64_t e = 0;
    for (; e + 4 <= count; e += 4)
        PM_UNROLL for (int l = 0; l < 4; ++l) sum[l] +=
            double(values[e + l]) * double(values[e + l]);
    for (; e < count; ++e) sum[0] += double(values[e]) * double(values[e]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// ||x_i||^2 with the constant feature.
template <class Matrix>
double squared_norm(const Matrix& X, std::int64_t i) {
    const auto x = X.row(i);
    return sum_of_squares(x.value_, x.count) + double(X.bias) * double(X.bias);
}

// What a look at CSR rows tells: whether every index lies in the matrix and, in each row, they rise
// strictly; the squared norms (not finite where an entry is not); and which features occur.
struct CsrScan {
    bool in_range = true;
    bool rising = true;
    std::vector<char> occurs;
};

// The row pointers must have been checked.
template <class T, class I>
CsrScan scan_csr(const CsrMatrix<T, I>& X, double* squared_norms) {
    CsrScan scan;
    scan.occurs.assign(std::size_t(X.d), 0);
    for (std::int64_t i = 0; i < X.n; ++i) {
        const auto x = X.row(i);
        std::int64_t last = -1;
        for (std::int64_t e = 0; e < x.count; ++e) {
            const std::int64_t feature = x.feature(e);
            if (feature < 0 || feature >= X.d) {
                scan.in_range = false;
                return scan;
            }
            scan.rising &= feature > last;
            last = feature;
            scan.occurs[std::size_t(feature)] = 1;
        }
        squared_norms[i] = sum_of_squares(x.value_, x.count);
    }
    return scan;
}

}  // namespace pm
