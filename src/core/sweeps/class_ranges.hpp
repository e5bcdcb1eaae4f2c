// The dual, cut by classes into ranges that threads can own.
//
// Without coupling every class is a problem of its own, and an example's block is no more than a
// list of them: a range of classes has its columns of W, its part of every dual row and its part of
// every share of the gap, and a sweep over it needs nothing of the others. So threads that own
// ranges do not wait for each other before the end of the sweep. Coupled losses have one range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"
#include "rows/rows.hpp"
#include "sweeps/dual_rows.hpp"
#include "sweeps/examples.hpp"

namespace pm {

// The classes [first, last).
template <class T>
struct ClassRange {
    int first, last;
    DualRows<T> dual;  // classes are counted from `first`
    // Of a range among several: the examples' classes counted from `first` (-1: elsewhere), and
    // what its visits leave.
    std::vector<std::int32_t> y;
    std::vector<T> threshold;
    std::vector<double> gap;

    Examples<T> examples(Examples<T> all) {
        if (y.empty()) return all;
        all.y = y.data();
        all.threshold = threshold.data();
        all.gap = gap.data();
        all.n_classes = last - first;
        return all;
    }
};

template <class T>
class ClassRanges {
  public:
    // `dense`: rows of all classes, which are not cut.
    ClassRanges(std::int64_t n, int n_classes, bool dense = false) : n_(n), n_classes_(n_classes) {
        ranges_.push_back(
            {0, n_classes, dense ? DualRows<T>(n, n_classes) : DualRows<T>(n), {}, {}, {}});
    }

    std::int64_t size() const { return n_; }
    int count() const { return static_cast<int>(ranges_.size()); }
    ClassRange<T>& range(int r) { return ranges_[std::size_t(r)]; }
    const ClassRange<T>& range(int r) const { return ranges_[std::size_t(r)]; }
    // Where there is only one.
    DualRows<T>& whole() { return ranges_.front().dual; }
    const DualRows<T>& whole() const { return ranges_.front().dual; }
    // Columns of W that belong to a range; the last has the padding.
    std::int64_t width(int r, std::int64_t ld) const {
        return (r + 1 < count() ? range(r).last : ld) - range(r).first;
    }

    void prefetch_after(std::int64_t i) const {
        for (const auto& range : ranges_) range.dual.prefetch_after(i);
    }

    // A row of all classes, filled up with zeros to `padded` of them; false while all are zero.
    bool in_double(std::int64_t i, int padded, double* p) const {
        const T* values = whole().values(i);
        if (values == nullptr) return false;
        const int count = std::min(padded, whole().stride());
        for (int j = 0; j < count; ++j) p[j] = double(values[j]);
        std::fill(p + count, p + padded, 0.0);
        return true;
    }

    // f(entries, count, first) for the parts of example i's row, where rows are lists.
    template <class F>
    void for_each_part(std::int64_t i, F&& f) const {
        if (whole().dense()) return;
        for (const auto& range : ranges_) f(range.dual.row(i), range.dual.count(i), range.first);
    }
    // f(entry) for the entries of example i, with their true classes.
    template <class F>
    void for_each_entry(std::int64_t i, F&& f) const {
        if (whole().dense()) {
            const T* p = whole().values(i);
            for (int j = 0; j < whole().count(i); ++j) f(DualEntry<T>{j, p[j]});
            return;
        }
        for_each_part(i, [&](const DualEntry<T>* row, int count, int first) {
            for (int e = 0; e < count; ++e) f(DualEntry<T>{row[e].cls + first, row[e].p});
        });
    }
    // Gives example i these entries, in this order within each range.
    void assign(std::int64_t i, const std::vector<DualEntry<T>>& entries) {
        if (whole().dense()) {
            if (entries.empty() && whole().count(i) == 0) return;
            T* p = whole().fill(i);
            std::fill_n(p, whole().stride(), T(0));
            for (const auto& entry : entries) p[entry.cls] = entry.p;
            return;
        }
        for (auto& range : ranges_) {
            const auto here = [&](const auto& entry) {
                return entry.cls >= range.first && entry.cls < range.last;
            };
            const auto count = std::count_if(entries.begin(), entries.end(), here);
            auto* row = range.dual.resize(i, static_cast<int>(count));
            for (const auto& entry : entries)
                if (here(entry)) *row++ = {entry.cls - range.first, entry.p};
        }
    }

    // Cuts the classes into at most `ranges` ranges at cache lines of W, whatever the dual is now.
    void cut(int ranges, const std::int32_t* y) {
        constexpr int line = static_cast<int>(kLine / std::int64_t(sizeof(T)));
        const int lines = (n_classes_ + line - 1) / line;
        ranges = std::clamp(ranges, 1, lines);
        auto old = ClassRanges(0, n_classes_);
        std::swap(old, *this);
        n_ = old.n_;
        ranges_.clear();
        for (int r = 0; r < ranges; ++r) {
            const int first = lines * r / ranges * line;
            const int last = std::min(n_classes_, lines * (r + 1) / ranges * line);
            ranges_.push_back({first, last, DualRows<T>(n_), {}, {}, {}});
            if (ranges > 1) localize(ranges_.back(), y);
        }
        std::vector<DualEntry<T>> entries;
        for (std::int64_t i = 0; i < n_; ++i) {
            entries.clear();
            old.for_each_entry(i, [&](const auto& entry) { entries.push_back(entry); });
            if (!entries.empty()) assign(i, entries);
        }
    }

  private:
    void localize(ClassRange<T>& range, const std::int32_t* y) {
        const auto n = std::size_t(n_);
        range.threshold.assign(n, T(0));
        range.gap.assign(n, 0.0);
        range.y.resize(n);
        for (std::size_t i = 0; i < n; ++i)
            range.y[i] = y[i] >= range.first && y[i] < range.last ? y[i] - range.first : -1;
    }

    std::int64_t n_;
    int n_classes_;
    std::vector<ClassRange<T>> ranges_;
};

// The shares of the gap that the ranges' visits of order[0..count) left, added up.
template <class T>
void join_shares(const ClassRanges<T>& ranges, const std::int64_t* order, std::int64_t count,
                 Team& team, double* gap) {
    team.ranges(count, 64, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin; at < end; ++at) {
            double total = 0;
            for (int r = 0; r < ranges.count(); ++r) total += ranges.range(r).gap[order[at]];
            gap[order[at]] = total;
        }
    });
}

// sweep(range, examples, first column, width) on every range, which may be one; each range is one
// thread's.
template <class T, class Sweep>
VisitTotals sweep_ranges(ClassRanges<T>& ranges, const Examples<T>& ex, std::int64_t ld,
                         const std::int64_t* order, std::int64_t count, Team& team,
                         const Sweep& sweep) {
    if (ranges.count() == 1) return sweep(ranges.whole(), ex, 0, ld);
    std::vector<VisitTotals> totals(std::size_t(ranges.count()));
    team.run([&](int part) {
        for (int r = part; r < ranges.count(); r += team.size()) {
            auto& range = ranges.range(r);
            totals[std::size_t(r)] =
                sweep(range.dual, range.examples(ex), range.first, ranges.width(r, ld));
        }
    });
    join_shares(ranges, order, count, team, ex.gap);
    VisitTotals total;
    for (const auto& one : totals) total += one;
    return total;
}

}  // namespace pm
