// The dual variables: per example a list of (class, p) with p >= 0, or, where nearly all p are
// positive, p of all classes in their places.
//
// Rows live in slabs; a row that outgrows its place moves to one twice as large and leaves the old
// one on a free list. Offsets are pointers, so nothing here overflows at n * k >= 2^31.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/pages.hpp"
#include "base/simd.hpp"
#include "losses/dual_entry.hpp"

namespace pm {

template <class T>
class DualRows {
  public:
    using Entry = DualEntry<T>;

    explicit DualRows(std::int64_t n) { make_places(n); }
    // All of so many classes.
    DualRows(std::int64_t n, int n_classes)
        : n_classes_(n_classes),
          stride_(round_up_lanes<T>(n_classes)),
          values_(make_pages<T>(n * stride_, n * stride_ >= kSlab)) {
        make_places(n);
    }

    std::int64_t size() const { return static_cast<std::int64_t>(start_.size()); }
    int count(std::int64_t i) const { return count_[i]; }
    Entry* row(std::int64_t i) { return start_[i]; }
    const Entry* row(std::int64_t i) const { return start_[i]; }

    // Where there are no lists: p of all classes, filled up with zeros; null while all are zero.
    bool dense() const { return values_ != nullptr; }
    const T* values(std::int64_t i) const {
        return count_[i] == 0 ? nullptr : values_.get() + i * stride_;
    }
    // Room for them; whoever asks for it writes all.
    T* fill(std::int64_t i) {
        count_[i] = n_classes_;
        return values_.get() + i * stride_;
    }
    int stride() const { return static_cast<int>(stride_); }

    void prefetch_bounds(std::int64_t i) const {
        if (!dense()) PM_PREFETCH(&start_[i]);
        PM_PREFETCH(&count_[i]);
    }
    void prefetch_row(std::int64_t i) const {
        const void* begin = dense() ? static_cast<const void*>(values(i)) : start_[i];
        const char* row = static_cast<const char*>(begin);
        const std::int64_t size = dense() ? sizeof(T) : sizeof(Entry);
        const std::int64_t bytes = std::min<std::int64_t>(count_[i] * size, kPrefetched);
        PM_PREFETCH(row);
        for (std::int64_t at = kLine; at < bytes; at += kLine) PM_PREFETCH(row + at);
    }

    // For those who go through the examples in order, which may not be that of the rows in memory.
    void prefetch_after(std::int64_t i) const {
        if (i + 2 < size()) prefetch_row(i + 2);
    }

    // Room for `count` entries in row i; what was there is lost when the row has to move. Where
    // memory is refused, the row stays as it is.
    Entry* resize(std::int64_t i, int count) {
        if (count > capacity(order_[i])) {
            std::uint8_t order = 1;
            while (count > capacity(order)) ++order;
            Entry* fresh = take(order);
            release(i);
            start_[i] = fresh;
            order_[i] = order;
        }
        count_[i] = count;
        return start_[i];
    }

  private:
    static constexpr std::int64_t kLine = 64;          // bytes of a cache line
    static constexpr std::int64_t kPrefetched = 4096;  // at most; the hardware sees longer rows
    static constexpr std::int64_t kSlab = std::int64_t(1) << 18;
    static constexpr std::int64_t kPerRow = 16;  // entries, where rows are too few for a slab

    void make_places(std::int64_t n) {
        constexpr double bytes = sizeof(Entry*) + sizeof(std::int32_t) + sizeof(std::uint8_t);
        making("the places of the dual variables", double(n) * bytes, [&] {
            start_.resize(std::size_t(n), nullptr);
            count_.resize(std::size_t(n), 0);
            order_.resize(std::size_t(n), 0);
        });
    }

    static int capacity(std::uint8_t order) { return order == 0 ? 0 : 1 << order; }

    Entry* take(std::uint8_t order) {
        auto& free = free_[order];
        if (!free.empty()) {
            Entry* p = free.back();
            free.pop_back();
            return p;
        }
        const std::int64_t want = capacity(order);
        if (want > left_) {
            const std::int64_t slab = std::max(std::min(kSlab, kPerRow * size()), want);
            slabs_.push_back(make_pages<Entry>(slab, slab == kSlab));  // not for small problems
            next_ = slabs_.back().get();
            left_ = slab;
        }
        Entry* p = next_;
        next_ += want;
        left_ -= want;
        return p;
    }

    void release(std::int64_t i) {
        if (order_[i] != 0) free_[order_[i]].push_back(start_[i]);
    }

    std::vector<Entry*> start_;
    std::vector<std::int32_t> count_;
    std::vector<std::uint8_t> order_;  // log2 of the row's capacity, 0: none
    std::vector<Pages<Entry>> slabs_;
    std::array<std::vector<Entry*>, 32> free_;
    Entry* next_ = nullptr;
    std::int64_t left_ = 0;
    int n_classes_ = 0;
    std::int64_t stride_ = 0;
    Pages<T> values_;
};

}  // namespace pm
