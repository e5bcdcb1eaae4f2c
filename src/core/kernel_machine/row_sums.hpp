// Several sums of multiples of the same rows, most multiples being zero: a product of a matrix with
// a sparse one. Tile by tile, so that every row is read from memory once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/gemm.hpp"
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

// Sums of rows K_i times factors coef[i][l], l < n_sums, for some rows at a time: by a list of the
// factors that are not zero or, where most are not, as a product of blocks.
template <class T>
class FactoredSums {
  public:
    // The factors of the rows row(0..m-1), of which as many entries exist as vectors need.
    template <class Rows>
    void take(Rows&& row, std::int64_t m, const T* coef, int n_sums) {
        n_sums_ = n_sums;
        const std::int64_t size = m * n_sums;
        many_ = double(size - std::count(coef, coef + size, T(0))) >= kMany * double(size);
        rows_.resize(std::size_t(m));
        for (std::int64_t i = 0; i < m; ++i) rows_[i] = row(i);
        if (many_) {
            padded_ = round_up_lanes<T>(n_sums);
            factors_.assign(std::size_t(m * padded_), T(0));
            for (std::int64_t i = 0; i < m; ++i)
                std::copy_n(coef + i * n_sums, n_sums, factors_.data() + i * padded_);
            return;
        }
        sums_.clear();
        for (const T* values : rows_) sums_.add_row(values);
        for (int l = 0; l < n_sums; ++l) {
            for (std::int64_t i = 0; i < m; ++i)
                if (const T factor = coef[i * n_sums + l]; factor != T(0))
                    sums_.add_term(int(i), factor);
            sums_.end_sum();
        }
    }

    // place(j)[l] += sum l at column first + j, for j < n.
    template <class Place>
    void add(std::int64_t first, std::int64_t n, Place&& place) {
        for (std::int64_t at = 0; at < n; at += kColumns) {
            const std::int64_t width = std::min(kColumns, n - at);
            const auto to = [&](std::int64_t j) { return place(at + j); };
            many_ ? add_many(first + at, width, to) : add_few(first + at, width, to);
        }
    }

  private:
    static constexpr double kMany = 0.4;
    static constexpr std::int64_t kColumns = RowSums<T>::kTile;

    template <class Place>
    void add_few(std::int64_t first, std::int64_t n, Place&& place) {
        part_.assign(std::size_t(n_sums_ * kColumns), T(0));
        sums_.evaluate(first, first + n, part_.data(), kColumns);
        for (std::int64_t j = 0; j < n; ++j) {
            double* to = place(j);
            for (int l = 0; l < n_sums_; ++l) to[l] += double(part_[l * kColumns + j]);
        }
    }

    template <class Place>
    void add_many(std::int64_t first, std::int64_t n, Place&& place) {
        part_.assign(std::size_t(n * padded_), T(0));
        if (!scratch_) scratch_ = std::make_unique<GemmScratch<T>>(padded_);
        const auto left = [&](std::int64_t i) { return rows_[i] + first; };
        const auto right = [&](std::int64_t i) { return factors_.data() + i * padded_; };
        gemm_add(0, n, 0, padded_, std::int64_t(rows_.size()), ByDepth{left}, ByDepth{right},
                 part_.data(), padded_, *scratch_);
        for (std::int64_t j = 0; j < n; ++j) {
            double* to = place(j);
            for (int l = 0; l < n_sums_; ++l) to[l] += double(part_[j * padded_ + l]);
        }
    }

    RowSums<T> sums_;
    std::vector<const T*> rows_;
    std::vector<T> factors_, part_;
    std::unique_ptr<GemmScratch<T>> scratch_;  // made when it is needed
    std::int64_t padded_ = 0;
    int n_sums_ = 0;
    bool many_ = false;
};

// out (columns x n_sums) += K^T coef, where K has `rows` rows of ldk >= columns entries. Sums of
// the products are taken over `kRows` rows at a time, which stay in a cache.
template <class T>
void add_product(const T* K, std::int64_t rows, std::int64_t ldk, std::int64_t columns,
                 const T* coef, std::int64_t n_sums, double* out) {
    constexpr std::int64_t kRows = 512;
    FactoredSums<T> sums;
    for (std::int64_t top = 0; top < rows; top += kRows) {
        sums.take([&](std::int64_t i) { return K + (top + i) * ldk; }, std::min(kRows, rows - top),
                  coef + top * n_sums, int(n_sums));
        sums.add(0, columns, [&](std::int64_t j) { return out + j * n_sums; });
    }
}

}  // namespace pm
