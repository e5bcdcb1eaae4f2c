// A growing CSR matrix, and inner products with its rows.
//
// Several sparse examples at a time are laid out by feature, a vector of their values for each
// feature that one of them has. The nonzeros of a pattern then take one vector each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <variant>
#include <vector>

#include "larank/pattern_source.hpp"
#include "rows/rows.hpp"

namespace pm {

template <class T>
class CsrRows {
  public:
    using Index = std::int32_t;
    using Row = CsrRow<T, Index>;
    using Batch = std::variant<CsrMatrix<T, std::int32_t>, CsrMatrix<T, std::int64_t>>;

    explicit CsrRows(std::int64_t n_features) : d_(n_features) {
        if (n_features > std::numeric_limits<Index>::max())
            throw std::invalid_argument("sparse patterns have at most 2^31 - 1 features");
    }

    Row row(std::int64_t slot) const {
        const std::int64_t begin = ends_[slot];
        return {values_.data() + begin, indices_.data() + begin, ends_[slot + 1] - begin};
    }

    template <class I>
    void append(const CsrRow<T, I>& x) {
        indices_.resize(ends_.back());  // there is more if memory ran out here before
        values_.resize(ends_.back());
        indices_.insert(indices_.end(), x.index_, x.index_ + x.count);
        values_.insert(values_.end(), x.value_, x.value_ + x.count);
        ends_.push_back(std::int64_t(values_.size()));
    }

    // In increasing order: rows only move down.
    void keep(const SlotList& slots) {
        std::int64_t end = 0;
        for (std::size_t s = 0; s < slots.size(); ++s) {
            const Row x = row(slots[s]);
            std::copy_n(x.value_, x.count, values_.data() + end);
            std::copy_n(x.index_, x.count, indices_.data() + end);
            ends_[s + 1] = end += x.count;
        }
        ends_.resize(slots.size() + 1);
        values_.resize(end);
        indices_.resize(end);
    }

    // Calls sink(i, first, n, products): those of x(i) with the patterns slots[first + 0..n-1].
    template <class X, class Sink>
    void products(const X& x, std::int64_t m, const SlotList& slots, Sink&& sink) {
        place_.resize(d_, 0);
        const auto count = std::int64_t(slots.size());
        for (std::int64_t i = 0; i < m;) {
            const auto group = [&](std::int64_t l) { return x(i + l); };
            const auto n = std::min<std::int64_t>(m - i, kWidest * kLanes<T>);
            const std::int64_t width = width_for(n);
            lay_out(group, n, width);
            tile_.resize(n * kColumns);
            for (std::int64_t first = 0; first < count; first += kColumns) {
                const std::int64_t columns = std::min(kColumns, count - first);
                fill_tile(n, width, slots.data() + first, columns);
                for (std::int64_t l = 0; l < n; ++l)
                    sink(i + l, first, columns, tile_.data() + l * kColumns);
            }
            clear(group, n);
            i += n;
        }
    }

    void free_scratch() {
        place_ = {};
        lines_ = tile_ = {};
    }

  private:
    static constexpr std::int64_t kColumns = 512;
    static constexpr int kWidest = 4;  // vectors of examples

    // Lines of `width` values: that of a feature is place_[feature], and 0 that of all the others.
    template <class X>
    void lay_out(const X& x, std::int64_t n, std::int64_t width) {
        std::int32_t used = 0;
        lines_.assign(width, T(0));
        for (std::int64_t l = 0; l < n; ++l) {
            const auto row = x(l);
            for (std::int64_t e = 0; e < row.count; ++e) {
                std::int32_t& place = place_[row.feature(e)];
                if (place == 0) {
                    place = ++used;
                    lines_.resize((used + 1) * width, T(0));
                }
                lines_[place * width + l] += row.value(e);
            }
        }
    }
    template <class X>
    void clear(const X& x, std::int64_t n) {
        for (std::int64_t l = 0; l < n; ++l) {
            const auto row = x(l);
            for (std::int64_t e = 0; e < row.count; ++e) place_[row.feature(e)] = 0;
        }
    }

    // Values in a line: of one example, or whole vectors of them.
    static std::int64_t width_for(std::int64_t n) {
        if (n == 1) return 1;
        const std::int64_t vectors = (n + kLanes<T> - 1) / kLanes<T>;
        return (vectors <= 2 ? vectors : kWidest) * kLanes<T>;
    }

    // Products of the `n` examples laid out with these patterns, a row of the tile each. Not a part
    // of `products`, which is compiled for every kind of x.
    void fill_tile(std::int64_t n, std::int64_t width, const std::int32_t* slots,
                   std::int64_t columns) {
        if (width == 1)
            fill_for_one(slots, columns);
        else if (width == kLanes<T>)
            fill_for_group<1>(n, slots, columns);
        else if (width == 2 * kLanes<T>)
            fill_for_group<2>(n, slots, columns);
        else
            fill_for_group<kWidest>(n, slots, columns);
    }

    template <int NV>
    PM_NOINLINE void fill_for_group(std::int64_t n, const std::int32_t* slots,
                                    std::int64_t columns) {
        using V = Vec<T>;
        constexpr std::int64_t width = NV * kLanes<T>;
        for (std::int64_t j = 0; j < columns; ++j) {
            const Row z = row(slots[j]);
            V sum[NV];
            PM_UNROLL for (int v = 0; v < NV; ++v) sum[v] = V::set1(T(0));
            for (std::int64_t e = 0; e < z.count; ++e) {
                const T* line = lines_.data() + place_[z.index_[e]] * width;
                const V value = V::set1(z.value_[e]);
                PM_UNROLL for (int v = 0; v < NV; ++v) sum[v] =
                    V::fma(value, V::load(line + v * kLanes<T>), sum[v]);
            }
            T sums[width];
            PM_UNROLL for (int v = 0; v < NV; ++v) sum[v].store(sums + v * kLanes<T>);
            for (std::int64_t l = 0; l < n; ++l) tile_[l * kColumns + j] = sums[l];
        }
    }

    PM_NOINLINE void fill_for_one(const std::int32_t* slots, std::int64_t columns) {
        for (std::int64_t j = 0; j < columns; ++j) {
            const Row z = row(slots[j]);
            T even = 0, odd = 0;
            std::int64_t e = 0;
            for (; e + 1 < z.count; e += 2) {
                even += z.value_[e] * lines_[place_[z.index_[e]]];
                odd += z.value_[e + 1] * lines_[place_[z.index_[e + 1]]];
            }
            if (e < z.count) even += z.value_[e] * lines_[place_[z.index_[e]]];
            tile_[j] = even + odd;
        }
    }

    std::int64_t d_;
    std::vector<T> values_;
    std::vector<Index> indices_;
    std::vector<std::int64_t> ends_ = {0};
    std::vector<std::int32_t> place_;
    std::vector<T> lines_, tile_;
};

}  // namespace pm
