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
        for (std::int64_t i = 0; i < m;) {
            const auto group = [&](std::int64_t l) { return x(i + l); };
            const auto to = [&](std::int64_t l, std::int64_t first, std::int64_t n, const T* p) {
                sink(i + l, first, n, p);
            };
            const auto width = std::min<std::int64_t>(m - i, kWidest * kLanes<T>);
            if (width == 1)
                of_one(group, slots, to);
            else if (width <= kLanes<T>)
                of_group<1>(group, width, slots, to);
            else if (width <= 2 * kLanes<T>)
                of_group<2>(group, width, slots, to);
            else
                of_group<kWidest>(group, width, slots, to);
            i += width;
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

    template <int NV, class X, class Sink>
    void of_group(const X& x, std::int64_t n, const SlotList& slots, Sink&& sink) {
        using V = Vec<T>;
        constexpr std::int64_t width = NV * kLanes<T>;
        lay_out(x, n, width);
        tile_.resize(width * kColumns);
        const auto count = std::int64_t(slots.size());
        for (std::int64_t first = 0; first < count; first += kColumns) {
            const std::int64_t columns = std::min(kColumns, count - first);
            for (std::int64_t j = 0; j < columns; ++j) {
                const Row z = row(slots[first + j]);
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
            for (std::int64_t l = 0; l < n; ++l) sink(l, first, columns, &tile_[l * kColumns]);
        }
        clear(x, n);
    }

    template <class X, class Sink>
    void of_one(const X& x, const SlotList& slots, Sink&& sink) {
        lay_out(x, 1, 1);
        const auto count = std::int64_t(slots.size());
        tile_.resize(count);
        for (std::int64_t j = 0; j < count; ++j) {
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
        sink(0, 0, count, tile_.data());
        clear(x, 1);
    }

    std::int64_t d_;
    std::vector<T> values_;
    std::vector<Index> indices_;
    std::vector<std::int64_t> ends_ = {0};
    std::vector<std::int32_t> place_;
    std::vector<T> lines_, tile_;
};

}  // namespace pm
