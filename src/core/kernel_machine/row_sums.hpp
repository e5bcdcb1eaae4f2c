// Several sums of multiples of the same rows, most multiples being zero: a product of a matrix with
// a sparse one. Tile by tile, so that every row is read from memory once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/simd.hpp"

namespace pm {

template <class T>
class RowSums {
  public:
    void clear() {
        rows_.clear();
        used_.clear();
        terms_.clear();
        ends_.clear();
    }
    void add_row(const T* row) { rows_.push_back({row, false}); }
    // Sum after sum: its terms, then its end.
    void add_term(int row, T factor) {
        Row& r = rows_[row];
        if (!r.used) used_.push_back(r.values);
        r.used = true;
        terms_.push_back({r.values, factor});
    }
    void end_sum() { ends_.push_back(terms_.size()); }

    // out[l * ld + j] += sum l at column first + j, for first + j < last.
    void evaluate(std::int64_t first, std::int64_t last, T* out, std::int64_t ld) const {
        prefetch(first, std::min(first + kTile, last));
        for (std::int64_t tile = first; tile < last; tile += kTile) {
            const std::int64_t end = std::min(tile + kTile, last);
            prefetch(end, std::min(end + kTile, last));
            std::size_t begin = 0;
            for (std::size_t l = 0; l < ends_.size(); ++l) {
                add_terms(begin, ends_[l], tile, end - tile,
                          out + std::int64_t(l) * ld + (tile - first));
                begin = ends_[l];
            }
        }
    }

    static constexpr std::int64_t kTile = 256;  // columns

  private:
    struct Row {
        const T* values;
        bool used;
    };
    struct Term {
        const T* row;
        T factor;
    };

    void prefetch(std::int64_t first, std::int64_t last) const {
        constexpr std::int64_t line = 64 / sizeof(T);
        for (const T* row : used_)
            for (std::int64_t j = first; j < last; j += line) PM_PREFETCH(row + j);
    }

    // s[j] += the terms' entries first + j, for j < width.
    void add_terms(std::size_t begin, std::size_t end, std::int64_t first, std::int64_t width,
                   T* s) const {
        using V = Vec<T>;
        constexpr int wide = 4;
        if (begin == end) return;
        std::int64_t j = 0;
        for (; j + wide * kLanes<T> <= width; j += wide * kLanes<T>) {
            V sum[wide];
            PM_UNROLL for (int v = 0; v < wide; ++v) sum[v] = V::load(s + j + v * kLanes<T>);
            for (std::size_t t = begin; t < end; ++t) {
                const V factor = V::set1(terms_[t].factor);
                const T* row = terms_[t].row + first + j;
                PM_UNROLL for (int v = 0; v < wide; ++v) sum[v] =
                    V::fma(factor, V::load(row + v * kLanes<T>), sum[v]);
            }
            PM_UNROLL for (int v = 0; v < wide; ++v) sum[v].store(s + j + v * kLanes<T>);
        }
        for (; j < width; ++j)
            for (std::size_t t = begin; t < end; ++t)
                s[j] += terms_[t].factor * terms_[t].row[first + j];
    }

    std::vector<Row> rows_;
    std::vector<const T*> used_;  // by some sum
    std::vector<Term> terms_;
    std::vector<std::size_t> ends_;
};

// out (columns x n_sums) += K^T coef, where K has `rows` rows of ldk >= columns entries. Sums of
// the products are taken over `kRows` rows at a time, which stay in a cache.
template <class T>
void add_product(const T* K, std::int64_t rows, std::int64_t ldk, std::int64_t columns,
                 const T* coef, std::int64_t n_sums, double* out) {
    constexpr std::int64_t kRows = 512, kColumns = RowSums<T>::kTile;
    RowSums<T> sums;
    std::vector<T> part(n_sums * kColumns);
    for (std::int64_t top = 0; top < rows; top += kRows) {
        const std::int64_t height = std::min(kRows, rows - top);
        sums.clear();
        for (std::int64_t i = 0; i < height; ++i) sums.add_row(K + (top + i) * ldk);
        for (std::int64_t l = 0; l < n_sums; ++l) {
            for (std::int64_t i = 0; i < height; ++i)
                if (const T factor = coef[(top + i) * n_sums + l]; factor != T(0))
                    sums.add_term(int(i), factor);
            sums.end_sum();
        }
        for (std::int64_t first = 0; first < columns; first += kColumns) {
            const std::int64_t width = std::min(kColumns, columns - first);
            std::fill(part.begin(), part.end(), T(0));
            sums.evaluate(first, first + width, part.data(), kColumns);
            for (std::int64_t j = 0; j < width; ++j) {
                double* to = out + (first + j) * n_sums;
                for (std::int64_t l = 0; l < n_sums; ++l) to[l] += double(part[l * kColumns + j]);
            }
        }
    }
}

}  // namespace pm
