// LaRank: an online solver of the Crammer-Singer dual for any kernel (Bordes et al. 2007).
//
// In the paper's notation, problem (7): maximise
//
//     sum_i beta_i^{y_i} - 1/2 sum_ij sum_y beta_i^y beta_j^y k(x_i, x_j)
//     subject to  beta_i^y <= C delta(y, y_i)  and  sum_y beta_i^y = 0.
//
// With costs between classes ("variable margins") the linear term is -sum_iy Delta(y_i, y)
// beta_i^y, which is the same where Delta is 1 for all wrong classes; delta(y, y_i) becomes 1 -
// Delta(y_i, y).
//
// A support vector is a pair (x_i, y) with beta_i^y != 0, a support pattern an x_i that has one.
// Coefficients and gradients g_i(y) = delta(y, y_i) - S(x_i, y) are kept for support vectors only,
// by class. Nothing is changed before every kernel value that a step needs is there: when the
// kernel throws, the machine is as it was before the operation.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "larank/kernel_rows.hpp"
#include "larank/pattern_source.hpp"
#include "larank/schedule.hpp"

namespace pm {

struct LaRankSettings {
    double C = 1;
    double tau = 1e-4;                           // SmoStep exits when g(y+) - g(y-) <= tau
    double kappa = 1e-4;                         // y+ needs this much room, as a fraction of C
    double evaluation_cost = 1;                  // of a kernel value, in gradient entries
    bool measure_time = false;                   // else cost is counted
    static constexpr int kOptimizeRepeats = 10;  // ten Optimize are one operation
    static constexpr std::int64_t kAhead = 64;   // examples whose kernel rows are computed at once
    static constexpr double kEntriesPerUnit = 1e8;  // counted cost on the scale of seconds
};

struct LaRankCounts {
    std::array<std::int64_t, kOperations> operations{};  // single Optimize steps are counted
    std::array<std::int64_t, kOperations> steps{};       // operations that changed something
    std::int64_t evaluations = 0, arg_max = 0;
};

template <class T>
class LaRank {
  public:
    using Row = typename KernelRows<T>::Row;
    struct Entry {
        std::int32_t y, position;  // in the list of class y
    };
    struct Pattern {
        std::int64_t example;
        std::int32_t y;
        std::int32_t place;  // in live_, -1 when it is no support pattern any more
        double diagonal;
        std::vector<Entry> entries;
    };
    struct ClassList {
        std::vector<std::int32_t> slot;
        std::vector<double> beta, gradient;
    };

    LaRankSettings settings;
    LaRankCounts counts;
    Schedule schedule;
    SmallRandom random;

    LaRank(const LaRankSettings& s, std::size_t cache_bytes, std::uint64_t seed)
        : settings(s), random(seed), rows_(cache_bytes, false) {}

    const std::vector<Pattern>& patterns() const { return patterns_; }
    const std::vector<ClassList>& classes() const { return classes_; }
    std::int64_t n_patterns() const { return std::int64_t(live_.size()); }
    KernelRows<T>& rows() { return rows_; }
    void set_n_classes(std::int32_t n) {
        if (std::size_t(n) > classes_.size()) classes_.resize(n);
    }

    // Delta by codes, n_classes x n_classes; none: 1 for wrong classes.
    void set_costs(std::vector<double> costs, std::int32_t n_classes) {
        costs_ = std::move(costs);
        n_costs_ = n_classes;
    }
    bool has_costs_for(std::int32_t n_classes) const {
        return costs_.empty() || n_costs_ >= n_classes;
    }

    double dual() const {
        double linear = 0, quadratic = 0;
        for (const Pattern& pattern : patterns_)
            for (const Entry& e : pattern.entries) {
                const double beta = classes_[e.y].beta[e.position];
                const double target = target_of(pattern.y, e.y);
                linear += target * beta;
                quadratic += beta * (target - classes_[e.y].gradient[e.position]);
            }
        return linear - 0.5 * quadratic;
    }

    // Algorithm 5, lines 6 to 17, over these examples in this order. Between operations, poll() may
    // throw to stop.
    template <class Poll>
    void run(const std::int64_t* examples, const std::int32_t* y, std::int64_t n,
             PatternSource<T>& source, Poll&& poll) {
        for (std::int64_t k = 0; k < n;) {
            poll();
            compact_if_worthwhile(source);
            const Operation s = schedule.pick(random, !live_.empty());
            touched_ = 0;
            const Cost fetched =
                s == kProcessNew ? fetch_ahead(examples + k, n - k, source) : Cost();
            const auto evaluations = counts.evaluations;
            const Stopwatch watch;
            double increase = 0;
            if (s == kProcessNew) {
                increase = process_new(examples[k], y[k], source);
                ++k;
            } else if (s == kProcessOld) {
                increase = process_old(source);
            } else {
                for (int r = 0; r < settings.kOptimizeRepeats && !live_.empty(); ++r)
                    increase += optimize(source);
            }
            const double seconds = watch.seconds() + fetched.seconds;
            const double values = double(counts.evaluations - evaluations) + fetched.evaluations;
            const double counted = double(touched_) + settings.evaluation_cost * values;
            schedule.observe(s, increase,
                             settings.measure_time ? seconds : counted / settings.kEntriesPerUnit);
        }
        rows_.clear_ahead();
    }

    // Drops the slots without a pattern, so that slots are the positions of the patterns.
    void compact(PatternSource<T>& source) {
        if (live_.size() == patterns_.size()) return;
        std::vector<std::int32_t> keep;
        for (std::size_t s = 0; s < patterns_.size(); ++s)
            if (patterns_[s].place >= 0) keep.push_back(std::int32_t(s));
        source.keep(keep);
        rows_.compact(keep);
        for (std::size_t s = 0; s < keep.size(); ++s) {
            if (s != std::size_t(keep[s])) patterns_[s] = std::move(patterns_[keep[s]]);
            live_[patterns_[s].place] = std::int32_t(s);
            slot_of_[patterns_[s].example] = std::int32_t(s);
            for (const Entry& e : patterns_[s].entries)
                classes_[e.y].slot[e.position] = std::int32_t(s);
        }
        patterns_.resize(keep.size());
    }

    // A pattern as it was exported; its kernel row is computed again when it is needed.
    void restore(std::int64_t example, std::int32_t y, double diagonal) {
        add_pattern(example, y, diagonal, Row());
    }
    void restore_entry(std::int32_t slot, std::int32_t y, double beta, double gradient) {
        insert(slot, y, gradient);
        classes_[y].beta.back() = beta;
    }

  private:
    struct Cost {
        double evaluations = 0, seconds = 0;
    };
    class Stopwatch {
      public:
        double seconds() const {
            return std::chrono::duration<double>(Clock::now() - start_).count();
        }

      private:
        using Clock = std::chrono::steady_clock;
        Clock::time_point start_ = Clock::now();
    };

    // --- the operations: each returns the increase of the dual ---

    double process_new(std::int64_t example, std::int32_t y, PatternSource<T>& source) {
        if (is_pattern(example)) return 0;
        ++counts.operations[kProcessNew];
        Row row = rows_.take(example);
        rows_.lengthen(row);
        complete_all(row, -1, example, source);
        compute_gradients(row, y, {});
        const std::int32_t worst = smallest_gradient();
        const double best_gradient = gradients_[y], worst_gradient = gradients_[worst];
        if (!(best_gradient - worst_gradient > settings.tau)) {
            rows_.give_back(example, std::move(row));
            return 0;
        }
        const double diagonal = source.append(example);
        const std::int32_t slot = add_pattern(example, y, diagonal, std::move(row));
        return count(kProcessNew, smo_step(slot, y, best_gradient, worst, worst_gradient, source));
    }

    double process_old(PatternSource<T>& source) {
        ++counts.operations[kProcessOld];
        const std::int32_t slot = live_[random.below(std::int64_t(live_.size()))];
        const Pattern& pattern = patterns_[slot];
        Row& row = rows_.use(slot);
        complete_all(row, slot, pattern.example, source);
        compute_gradients(row, pattern.y, pattern.entries);
        const Entry* up = best_entry(pattern);
        if (up == nullptr) return 0;
        const std::int32_t down = smallest_gradient();
        return count(kProcessOld,
                     smo_step(slot, up->y, gradients_[up->y], down, gradients_[down], source));
    }

    double optimize(PatternSource<T>& source) {
        ++counts.operations[kOptimize];
        const std::int32_t slot = live_[random.below(std::int64_t(live_.size()))];
        const Pattern& pattern = patterns_[slot];
        touched_ += std::int64_t(pattern.entries.size());
        const Entry* up = best_entry(pattern);
        if (up == nullptr) return 0;
        const Entry* down = &pattern.entries.front();
        for (const Entry& e : pattern.entries)
            if (gradient(e) < gradient(*down)) down = &e;
        return count(kOptimize,
                     smo_step(slot, up->y, gradient(*up), down->y, gradient(*down), source));
    }

    double count(Operation s, double increase) {
        counts.steps[s] += increase > 0;
        return increase;
    }

    // Algorithm 1. The signs of line 7 are those of g = delta - S: raising beta lowers g.
    double smo_step(std::int32_t slot, std::int32_t up, double up_gradient, std::int32_t down,
                    double down_gradient, PatternSource<T>& source) {
        const double slope = up_gradient - down_gradient;
        if (!(slope > settings.tau) || up == down) return 0;
        const Pattern& pattern = patterns_[slot];
        const double bound = room(pattern, up), k = pattern.diagonal;
        // No curvature (a row of zeros), or a kernel that is not positive: go to the bound.
        const double lambda = k > 0 ? std::min(slope / (2 * k), bound) : bound;
        if (!(lambda > 0)) return 0;
        Row& row = rows_.use(slot);
        row[slot] = T(k);
        complete(row, slot, pattern.example, classes_[up].slot, source);
        complete(row, slot, pattern.example, classes_[down].slot, source);

        const std::int32_t u = insert(slot, up, up_gradient);
        classes_[up].beta[u] += lambda;
        const std::int32_t d = insert(slot, down, down_gradient);
        classes_[down].beta[d] -= lambda;
        if (lambda == bound) classes_[up].beta[u] = up == pattern.y ? settings.C : 0.0;
        add_to_gradients(classes_[up], row, -lambda);
        add_to_gradients(classes_[down], row, lambda);
        remove_zeros(slot);
        return lambda * slope - lambda * lambda * k;
    }

    // What g is at a score of zero.
    double target_of(std::int32_t y_true, std::int32_t y) const {
        if (costs_.empty()) return y == y_true ? 1.0 : 0.0;
        return 1.0 - costs_[std::size_t(y_true) * n_costs_ + y];
    }

    // --- selections ---

    double gradient(const Entry& e) const { return classes_[e.y].gradient[e.position]; }

    double room(const Pattern& pattern, std::int32_t y) const {
        double beta = 0;
        for (const Entry& e : pattern.entries)
            if (e.y == y) beta = classes_[y].beta[e.position];
        return (y == pattern.y ? settings.C : 0.0) - beta;
    }

    // The largest gradient among the classes whose coefficient may still grow. Without a
    // coefficient there is room only for y_i, and a support pattern has one for y_i.
    const Entry* best_entry(const Pattern& pattern) const {
        const Entry* best = nullptr;
        for (const Entry& e : pattern.entries) {
            const double bound = e.y == pattern.y ? settings.C : 0.0;
            if (classes_[e.y].beta[e.position] > bound - settings.kappa * settings.C) continue;
            if (best == nullptr || gradient(e) > gradient(*best)) best = &e;
        }
        return best;
    }

    std::int32_t smallest_gradient() const {
        return std::int32_t(std::min_element(gradients_.begin(), gradients_.end()) -
                            gradients_.begin());
    }

    // g(y) of every class from a complete row; those of support vectors are known.
    void compute_gradients(const Row& row, std::int32_t y, const std::vector<Entry>& known) {
        ++counts.arg_max;
        gradients_.assign(classes_.size(), std::numeric_limits<double>::quiet_NaN());
        for (const Entry& e : known) gradients_[e.y] = gradient(e);
        for (std::size_t c = 0; c < classes_.size(); ++c) {
            if (!std::isnan(gradients_[c])) continue;
            const ClassList& list = classes_[c];
            const std::size_t n = list.slot.size();
            double sum = 0;
            for (std::size_t e = 0; e < n; ++e) sum += list.beta[e] * double(row[list.slot[e]]);
            touched_ += std::int64_t(n);
            gradients_[c] = target_of(y, std::int32_t(c)) - sum;
        }
    }

    void add_to_gradients(ClassList& list, const Row& row, double factor) {
        const std::size_t n = list.slot.size();
        for (std::size_t e = 0; e < n; ++e) list.gradient[e] += factor * double(row[list.slot[e]]);
        touched_ += std::int64_t(n);
    }

    // --- kernel values ---

    // Rows of the next examples that need one, computed together: a product of two matrices takes
    // a fraction of the time of as many products with a vector. Returns what the first one cost.
    Cost fetch_ahead(const std::int64_t* examples, std::int64_t n, PatternSource<T>& source) {
        if (is_pattern(*examples)) return Cost();
        if (rows_.is_ahead(*examples)) return row_ahead_;
        // Fewer than there are patterns: what becomes one on the way is missing in the rows.
        n = std::min({n, settings.kAhead, rows_.room_ahead(), n_patterns() / 2});
        if (rows_.is_kept(*examples) || n < 2) return Cost();
        const Stopwatch watch;
        std::vector<std::int64_t> next;
        for (std::int64_t k = 0; k < n; ++k)
            if (!is_pattern(examples[k]) && !rows_.is_kept(examples[k]))
                next.push_back(examples[k]);
        std::vector<std::int32_t> slots = live_;
        std::sort(slots.begin(), slots.end());
        values_.resize(next.size() * slots.size());
        source.example_rows(next, slots, values_.data());
        counts.evaluations += std::int64_t(values_.size());
        require_finite();
        for (std::size_t k = 0; k < next.size(); ++k) {
            Row row;
            rows_.lengthen(row);
            const T* values = values_.data() + k * slots.size();
            for (std::size_t e = 0; e < slots.size(); ++e) row[slots[e]] = values[e];
            rows_.set_ahead(next[k], std::move(row));
        }
        row_ahead_ = {double(slots.size()), watch.seconds() / double(next.size())};
        return row_ahead_;
    }

    void complete_all(Row& row, std::int32_t self, std::int64_t example, PatternSource<T>& source) {
        if (self >= 0 && catch_up(row, self)) return;
        missing_.clear();
        for (std::size_t s = 0; s < patterns_.size(); ++s)
            if (patterns_[s].place >= 0) look_up(row, self, std::int32_t(s));
        request(row, self, example, source);
    }

    void complete(Row& row, std::int32_t self, std::int64_t example,
                  const std::vector<std::int32_t>& slots, PatternSource<T>& source) {
        if (catch_up(row, self)) return;
        missing_.clear();
        for (const std::int32_t s : slots) look_up(row, self, s);
        request(row, self, example, source);
    }

    // Whether the row has all values, or finds them in other rows; most rows only lack those of
    // the newest patterns.
    bool catch_up(Row& row, std::int32_t self) {
        std::size_t& known = rows_.known(self);
        for (; known < patterns_.size(); ++known) {
            if (patterns_[known].place < 0 || !std::isnan(row[known])) continue;
            row[known] = value_elsewhere(self, std::int32_t(known));
            if (std::isnan(row[known])) return false;
        }
        return true;
    }

    // The kernel is symmetric: the other pattern's row may have the value.
    T value_elsewhere(std::int32_t self, std::int32_t s) const {
        return s == self ? T(patterns_[s].diagonal) : rows_.peek(s, self);
    }

    void look_up(Row& row, std::int32_t self, std::int32_t s) {
        if (std::isnan(row[s]) && self >= 0) row[s] = value_elsewhere(self, s);
        if (std::isnan(row[s])) missing_.push_back(s);
    }

    void request(Row& row, std::int32_t self, std::int64_t example, PatternSource<T>& source) {
        if (missing_.empty()) return;
        values_.resize(missing_.size());
        if (self >= 0)
            source.pattern_row(self, missing_, values_.data());
        else
            source.example_rows({example}, missing_, values_.data());
        counts.evaluations += std::int64_t(missing_.size());
        require_finite();
        for (std::size_t e = 0; e < missing_.size(); ++e) row[missing_[e]] = values_[e];
    }

    void require_finite() const {
        for (const T value : values_)
            if (!std::isfinite(value)) throw_not_finite();
    }

    // --- support vectors and patterns ---

    bool is_pattern(std::int64_t example) const { return slot_of_.count(example) != 0; }

    std::int32_t add_pattern(std::int64_t example, std::int32_t y, double diagonal, Row row) {
        const auto slot = std::int32_t(patterns_.size());
        patterns_.push_back({example, y, std::int32_t(live_.size()), diagonal, {}});
        live_.push_back(slot);
        slot_of_[example] = slot;
        rows_.add_slot(std::move(row));
        return slot;
    }

    // The position of (slot, y) in the list of class y, where it is put if it is not there.
    std::int32_t insert(std::int32_t slot, std::int32_t y, double gradient) {
        for (const Entry& e : patterns_[slot].entries)
            if (e.y == y) return e.position;
        ClassList& list = classes_[y];
        list.slot.push_back(slot);
        list.beta.push_back(0.0);
        list.gradient.push_back(gradient);
        patterns_[slot].entries.push_back({y, std::int32_t(list.slot.size() - 1)});
        return patterns_[slot].entries.back().position;
    }

    // What is left of a coefficient by rounding counts as zero; that of y_i makes the sum zero.
    void remove_zeros(std::int32_t slot) {
        Pattern& pattern = patterns_[slot];
        double others = 0;
        for (const Entry& e : pattern.entries) {
            double& beta = classes_[e.y].beta[e.position];
            if (e.y != pattern.y && beta > -1e-14 * settings.C) beta = 0;
            if (e.y != pattern.y) others += beta;
        }
        for (std::size_t e = 0; e < pattern.entries.size();) {
            const Entry entry = pattern.entries[e];
            double& beta = classes_[entry.y].beta[entry.position];
            if (entry.y == pattern.y) beta = std::min(-others, settings.C);
            if (beta == 0) {
                pattern.entries.erase(pattern.entries.begin() + std::ptrdiff_t(e));
                erase_from_class(entry);
            } else {
                ++e;
            }
        }
        if (pattern.entries.empty()) remove_pattern(slot);
    }

    void erase_from_class(const Entry& entry) {
        ClassList& list = classes_[entry.y];
        const std::size_t last = list.slot.size() - 1;
        if (std::size_t(entry.position) != last) {
            list.slot[entry.position] = list.slot[last];
            list.beta[entry.position] = list.beta[last];
            list.gradient[entry.position] = list.gradient[last];
            for (Entry& e : patterns_[list.slot[last]].entries)
                if (e.y == entry.y) e.position = entry.position;
        }
        list.slot.pop_back();
        list.beta.pop_back();
        list.gradient.pop_back();
    }

    void remove_pattern(std::int32_t slot) {
        Pattern& pattern = patterns_[slot];
        live_[pattern.place] = live_.back();
        patterns_[live_.back()].place = pattern.place;
        live_.pop_back();
        pattern.place = -1;
        slot_of_.erase(pattern.example);
        rows_.release(slot, pattern.example);
    }

    // Renumbering moves every row, so it waits for an eighth of the slots to be empty.
    void compact_if_worthwhile(PatternSource<T>& source) {
        const std::size_t empty = patterns_.size() - live_.size();
        if (empty > 32 && 8 * empty > patterns_.size()) compact(source);
    }

    KernelRows<T> rows_;
    std::vector<Pattern> patterns_;   // by slot
    std::vector<std::int32_t> live_;  // slots of the support patterns
    std::vector<ClassList> classes_;
    std::unordered_map<std::int64_t, std::int32_t> slot_of_;  // by example
    std::vector<double> gradients_;                           // of one example, by class
    std::vector<double> costs_;
    std::int32_t n_costs_ = 0;
    std::vector<std::int32_t> missing_;
    std::vector<T> values_;
    Cost row_ahead_;            // of one row that was computed ahead
    std::int64_t touched_ = 0;  // gradient entries of the operation at hand
};

}  // namespace pm
