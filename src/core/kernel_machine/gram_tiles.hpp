// Kernel values of dense rows with each other, tile by tile: inner products in a tile that stays in
// a cache, and the kernel's function on their way out of it.
//
// The rows are picked from their matrices while they are packed. A value is summed in the same
// order wherever it lies in a tile: whoever computes it, with whatever else, gets the same bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/gemm.hpp"
#include "kernel_machine/kernel_values.hpp"
#include "kernel_machine/row_sums.hpp"

namespace pm {

// Some rows of a matrix and their squared norms.
template <class T>
struct PickedRows {
    const T* matrix;
    std::int64_t d;
    const T* norms;             // of all rows
    const std::int64_t* picks;  // numbers of rows
    std::int64_t count;
    const T* row(std::int64_t i) const { return matrix + picks[i] * d; }
    T norm(std::int64_t i) const { return norms[picks[i]]; }
};

template <class T>
class GramTiles {
  public:
    GramTiles(const Kernel& kernel, const PickedRows<T>& a, const PickedRows<T>& b)
        : kernel_(kernel),
          a_(a),
          b_(b),
          scratch_(std::min(b.count, kColumns)),
          tile_(std::size_t(std::min(a.count, kRows) * kStride)),
          norms_(std::size_t(std::min(b.count, kColumns))) {}

    static double bytes() {
        const double columns = kColumns + GemmScratch<T>::width;
        return (columns * kDepth + kRows * kStride) * sizeof(T) + kPackedBytes;
    }

    // Row i of the values goes to to(i), one value per row of b.
    template <class To>
    void values(To&& to) {
        for (std::int64_t column = 0; column < b_.count; column += kColumns) {
            const std::int64_t n = take_columns(column);
            for (std::int64_t row = 0; row < a_.count; row += kRows) {
                const std::int64_t m = std::min(kRows, a_.count - row);
                multiply(row, m, column, n);
                for (std::int64_t i = 0; i < m; ++i)
                    kernel_.row(tile_.data() + i * kStride, n, a_.norm(row + i), norms_.data(),
                                to(row + i) + column);
            }
        }
    }

    // Sums over the rows i of a of k(a_i, b_j) coef[i][l] are added to to(j)[l], l < n_sums.
    template <class To>
    void add_sums(const T* coef, int n_sums, To&& to) {
        for (std::int64_t row = 0; row < a_.count; row += kRows) {
            const std::int64_t m = std::min(kRows, a_.count - row);
            sums_.take([&](std::int64_t i) { return tile_.data() + i * kStride; }, m,
                       coef + row * n_sums, n_sums);
            for (std::int64_t column = 0; column < b_.count; column += kColumns) {
                const std::int64_t n = take_columns(column);
                multiply(row, m, column, n);
                for (std::int64_t i = 0; i < m; ++i) {
                    T* values = tile_.data() + i * kStride;
                    kernel_.row(values, n, a_.norm(row + i), norms_.data(), values);
                }
                sums_.add(0, n, [&](std::int64_t j) { return to(column + j); });
            }
        }
    }

  private:
    static constexpr std::int64_t kRows = 512, kColumns = 512;
    static constexpr std::int64_t kStride = kColumns + 16;  // not all rows in the same cache lines

    std::int64_t take_columns(std::int64_t first) {
        const std::int64_t n = std::min(kColumns, b_.count - first);
        for (std::int64_t j = 0; j < n; ++j) norms_[j] = b_.norm(first + j);
        return n;
    }

    void multiply(std::int64_t row, std::int64_t m, std::int64_t column, std::int64_t n) {
        const std::int64_t padded = round_up_lanes<T>(int(n));
        for (std::int64_t i = 0; i < m; ++i) std::fill_n(tile_.data() + i * kStride, padded, T(0));
        const auto left = [&](std::int64_t i) { return a_.row(row + i); };
        const auto right = [&](std::int64_t j) { return b_.row(column + std::min(j, n - 1)); };
        gemm_add(0, m, 0, padded, a_.d, ByIndex{left}, ByIndex{right}, tile_.data(), kStride,
                 scratch_);
    }

    Kernel kernel_;
    PickedRows<T> a_, b_;
    GemmScratch<T> scratch_;
    std::vector<T> tile_, norms_;
    FactoredSums<T> sums_;
};

}  // namespace pm
