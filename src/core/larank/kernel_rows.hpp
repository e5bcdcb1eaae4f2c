// Kernel values of examples with the support patterns, in a bounded amount of memory.
//
// A support pattern occupies a slot. A row holds k(x, x_slot) by slot, NaN where it has not been
// computed. The paper caches E(y, j), the values of pattern j with the support vectors of class y,
// and so several copies of a value; here a pattern has one row, which is completed for the
// support vectors of a class when that class is asked for.
//
// Rows of support patterns are evicted in least-recently-used order. What room they leave is used
// for rows of other examples, which are worth having when the examples come back in a later epoch.
// A few rows of the examples that come next are kept beside, as they are computed together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pm {

template <class T>
class KernelRows {
  public:
    using Row = std::vector<T>;
    static constexpr T kMissing = std::numeric_limits<T>::quiet_NaN();

    KernelRows(std::size_t budget, bool keep_others) : budget_(budget), keep_others_(keep_others) {}

    std::int64_t size() const { return std::int64_t(slots_.size()); }
    std::size_t bytes() const { return bytes_; }
    void set_keep_others(bool keep) {
        keep_others_ = keep;
        if (!keep) drop_others(bytes_);
    }

    // The row of a slot for use: as long as there are slots, most recently used. May evict others.
    Row& use(std::int32_t slot) {
        Slot& s = slots_[slot];
        if (s.listed)
            recent_.splice(recent_.begin(), recent_, s.place);
        else
            s.place = recent_.insert(recent_.begin(), slot), s.listed = true;
        if (s.row.size() < slots_.size()) grow(slot);
        return s.row;
    }

    // k(x_slot, x_other) if some row has it.
    T peek(std::int32_t slot, std::int32_t other) const {
        const Row& row = slots_[slot].row;
        return std::size_t(other) < row.size() ? row[other] : kMissing;
    }

    // How many of the first entries of a slot's row need not be looked at: kept by the user.
    std::size_t& known(std::int32_t slot) { return slots_[slot].known; }

    // Makes a row as long as there are slots, with room for more: every new pattern needs it.
    void lengthen(Row& row) const {
        if (row.capacity() < slots_.size()) row.reserve(slots_.size() + slots_.size() / 8 + 16);
        row.resize(slots_.size(), kMissing);
    }

    // A new slot with the row of its example.
    void add_slot(Row row) {
        slots_.emplace_back();
        bytes_ += capacity(row);
        slots_.back().row = std::move(row);
        use(std::int32_t(slots_.size() - 1));
    }

    // The pattern in `slot` is no longer one; its row may still serve its example.
    void release(std::int32_t slot, std::int64_t example) {
        Slot& s = slots_[slot];
        if (s.listed) recent_.erase(s.place);
        s.listed = false;
        bytes_ -= capacity(s.row);
        Row row = std::exchange(s.row, Row());
        give_back(example, std::move(row));
    }

    // The row of an example that is no support pattern, or an empty one.
    Row take(std::int64_t example) {
        for (auto* rows : {&ahead_, &others_})
            if (auto found = rows->extract(example)) {
                bytes_ -= capacity(found.mapped());
                return std::move(found.mapped());
            }
        return Row();
    }
    void give_back(std::int64_t example, Row row) {
        if (!keep_others_ || row.empty() || bytes_ + capacity(row) > budget_) return;
        bytes_ += capacity(row);
        others_.insert_or_assign(example, std::move(row));
    }

    // Rows of examples that are to come soon; as many as an eighth of the budget allows.
    void set_ahead(std::int64_t example, Row row) {
        bytes_ += capacity(row);
        ahead_.emplace(example, std::move(row));
        keep_to_budget(-1);
    }
    bool is_ahead(std::int64_t example) const { return ahead_.count(example) != 0; }
    bool is_kept(std::int64_t example) const { return others_.count(example) != 0; }
    std::int64_t room_ahead() const {
        return std::int64_t(budget_ / 8 / (sizeof(T) * std::max<std::size_t>(1, slots_.size())));
    }
    void clear_ahead() {
        for (const auto& [example, row] : ahead_) bytes_ -= capacity(row);
        ahead_.clear();
    }

    // Frees all rows; they are computed again when they are needed.
    void clear() {
        ahead_.clear();
        others_.clear();
        recent_.clear();
        bytes_ = 0;
        for (Slot& slot : slots_) slot = Slot();
    }

    // Slots are renumbered: keep[new] = old, in increasing order.
    void compact(const std::vector<std::int32_t>& keep) {
        std::vector<Slot> kept(keep.size());
        std::vector<std::int32_t> renumbered(slots_.size(), -1);
        for (std::size_t s = 0; s < keep.size(); ++s) {
            renumbered[keep[s]] = std::int32_t(s);
            kept[s] = std::move(slots_[keep[s]]);
            pack(kept[s].row, keep);
            kept[s].known =
                std::lower_bound(keep.begin(), keep.end(), std::int64_t(kept[s].known)) -
                keep.begin();
        }
        slots_ = std::move(kept);
        for (auto& slot : recent_) slot = renumbered[slot];
        for (auto& [example, row] : others_) pack(row, keep);
        for (auto& [example, row] : ahead_) pack(row, keep);
    }

  private:
    struct Slot {
        Row row;
        std::list<std::int32_t>::iterator place;
        std::size_t known = 0;
        bool listed = false;
    };

    static std::size_t capacity(const Row& row) { return row.capacity() * sizeof(T); }

    static void pack(Row& row, const std::vector<std::int32_t>& keep) {
        std::size_t n = 0;
        for (; n < keep.size() && std::size_t(keep[n]) < row.size(); ++n) row[n] = row[keep[n]];
        row.resize(n);
    }

    void grow(std::int32_t slot) {
        Row& row = slots_[slot].row;
        bytes_ -= capacity(row);
        lengthen(row);
        bytes_ += capacity(row);
        keep_to_budget(slot);
    }

    // Frees rows, but not that of this slot.
    void keep_to_budget(std::int32_t slot) {
        if (bytes_ > budget_) drop_others(bytes_ - budget_);
        while (bytes_ > budget_ && !recent_.empty() && recent_.back() != slot) {
            Slot& last = slots_[recent_.back()];
            recent_.pop_back();
            last.listed = false;
            bytes_ -= capacity(last.row);
            last.row = Row();
            last.known = 0;
        }
    }

    void drop_others(std::size_t at_least) {
        std::size_t freed = 0;
        while (freed < at_least && !others_.empty()) {
            const auto any = others_.begin();
            freed += capacity(any->second);
            bytes_ -= capacity(any->second);
            others_.erase(any);
        }
    }

    std::size_t budget_, bytes_ = 0;
    bool keep_others_;
    std::vector<Slot> slots_;
    std::list<std::int32_t> recent_;
    std::unordered_map<std::int64_t, Row> others_, ahead_;
};

}  // namespace pm
