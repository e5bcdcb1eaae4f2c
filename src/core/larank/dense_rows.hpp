// A growing matrix of dense rows, and inner products with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/gemm.hpp"
#include "larank/pattern_source.hpp"
#include "rows/inner_products.hpp"
#include "rows/rows.hpp"

namespace pm {

template <class T>
class DenseRows {
  public:
    using Batch = std::variant<DenseMatrix<T>>;

    explicit DenseRows(std::int64_t n_features) : d_(n_features) {}

    DenseRow<T> row(std::int64_t slot) const { return {values_.data() + slot * d_, d_}; }

    void append(const DenseRow<T>& x) { values_.insert(values_.end(), x.value_, x.value_ + d_); }

    // In increasing order: rows only move down.
    void keep(const SlotList& slots) {
        for (std::size_t s = 0; s < slots.size(); ++s)
            if (std::size_t(slots[s]) != s)
                std::copy_n(row(slots[s]).value_, d_, values_.data() + std::int64_t(s) * d_);
        values_.resize(slots.size() * std::size_t(d_));
    }

    // Calls sink(i, first, n, products): those of x(i) with the patterns slots[first + 0..n-1].
    template <class X, class Sink>
    void products(const X& x, std::int64_t m, const SlotList& slots, Sink&& sink) {
        const auto count = std::int64_t(slots.size());
        tile_.resize(std::size_t(m * kStride));
        for (std::int64_t first = 0; first < count; first += kColumns) {
            const std::int64_t n = std::min(kColumns, count - first);
            if (m >= kFewest)
                block(x, m, slots.data() + first, n);
            else
                for (std::int64_t i = 0; i < m; ++i)
                    single(x(i).value_, slots.data() + first, n, tile_.data() + i * kStride);
            for (std::int64_t i = 0; i < m; ++i) sink(i, first, n, tile_.data() + i * kStride);
        }
    }

    void free_scratch() {
        gemm_.reset();
        tile_ = {};
    }

  private:
    static constexpr std::int64_t kColumns = 512;           // a block of products stays in a cache
    static constexpr std::int64_t kStride = kColumns + 16;  // not all rows in the same cache lines
    static constexpr std::int64_t kFewest = 8;              // examples that are worth packing

    template <class X>
    void block(const X& x, std::int64_t m, const std::int32_t* slots, std::int64_t n) {
        if (gemm_ == nullptr) gemm_ = std::make_unique<GemmScratch<T>>();
        const auto example = [&](std::int64_t i) { return x(i).value_; };
        const auto pattern = [&](std::int64_t j) { return row(slots[std::min(j, n - 1)]).value_; };
        const std::int64_t columns = round_up_lanes<T>(int(n));
        for (std::int64_t i = 0; i < m; ++i) std::fill_n(tile_.data() + i * kStride, columns, T(0));
        gemm_add(0, m, 0, columns, d_, ByIndex{example}, ByIndex{pattern}, tile_.data(), kStride,
                 *gemm_);
    }

    void single(const T* x, const std::int32_t* slots, std::int64_t n, T* out) const {
        inner_products_of(x, [&](std::int64_t j) { return row(slots[j]).value_; }, n, d_, out);
    }

    std::int64_t d_;
    std::vector<T> values_;
    std::vector<T> tile_;
    std::unique_ptr<GemmScratch<T>> gemm_;
};

}  // namespace pm
