// Support patterns with features, and the values of a kernel that is computed from inner products.
//
// Nothing of a stream is kept but the rows of the patterns; the batch at hand is lent.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "kernel_machine/kernel_values.hpp"
#include "larank/pattern_source.hpp"

namespace pm {

// ||x||^2, summed in double.
template <class Row>
double squared_norm(const Row& x) {
    double sums[4] = {0, 0, 0, 0};
    std::int64_t e = 0;
    const auto square = [&](std::int64_t at) { return double(x.value(at)) * double(x.value(at)); };
    for (; e + 4 <= x.count; e += 4)
        for (int k = 0; k < 4; ++k) sums[k] += square(e + k);
    for (; e < x.count; ++e) sums[0] += square(e);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// `Rows` keeps the rows of the patterns, DenseRows<T> or CsrRows<T>.
template <class T, class Rows>
class VectorPatterns final : public PatternSource<T> {
  public:
    using Batch = typename Rows::Batch;

    VectorPatterns(const Kernel& kernel, std::int64_t n_features)
        : kernel_(kernel), rows_(n_features) {}

    std::int64_t size() const { return std::int64_t(norms_.size()); }
    std::int64_t n_evaluations() const { return n_evaluations_; }
    void set_n_evaluations(std::int64_t n) { n_evaluations_ = n; }
    auto row(std::int64_t slot) const { return rows_.row(slot); }

    // The rows of the batch are the examples `first`, `first + 1`, ...
    void lend(const Batch& batch, std::int64_t first) {
        batch_ = batch;
        first_ = first;
        std::visit(
            [&](const auto& X) {
                batch_norms_.resize(X.n);
                for (std::int64_t i = 0; i < X.n; ++i) batch_norms_[i] = T(squared_norm(X.row(i)));
            },
            batch_);
    }
    void give_back() {
        batch_ = Batch();
        batch_norms_ = {};
        whole_ = {};
        rows_.free_scratch();
    }
    // Examples that the batch holds, [first, last).
    std::pair<std::int64_t, std::int64_t> lent() const {
        return {first_, first_ + std::int64_t(batch_norms_.size())};
    }

    void example_rows(const ExampleList& examples, const SlotList& slots, T* out) override {
        std::visit(
            [&](const auto& X) {
                values([&](std::int64_t i) { return X.row(examples[i] - first_); },
                       [&](std::int64_t i) { return batch_norms_[examples[i] - first_]; },
                       std::int64_t(examples.size()), slots, out);
            },
            batch_);
    }

    void pattern_row(std::int32_t slot, const SlotList& slots, T* out) override {
        values([&](std::int64_t) { return rows_.row(slot); },
               [&](std::int64_t) { return norms_[slot]; }, 1, slots, out);
    }

    double append(std::int64_t example) override {
        const T norm = batch_norms_[example - first_];
        const double diagonal = kernel_.diagonal(double(norm));
        if (!std::isfinite(diagonal)) throw_not_finite();
        std::visit([&](const auto& X) { rows_.append(X.row(example - first_)); }, batch_);
        norms_.push_back(norm);
        return diagonal;
    }

    void keep(const SlotList& slots) override {
        rows_.keep(slots);
        for (std::size_t s = 0; s < slots.size(); ++s) norms_[s] = norms_[slots[s]];
        norms_.resize(slots.size());
    }

  private:
    // From this share of the slots on, all values are computed: a matrix needs no list of its rows.
    static constexpr double kMost = 0.75;

    template <class X, class Norm>
    void values(const X& x, const Norm& norm, std::int64_t m, const SlotList& slots, T* out) {
        if (double(slots.size()) < kMost * double(size()))
            return compute(x, norm, m, slots, norms_of(slots), out);
        everyone_.resize(size());
        std::iota(everyone_.begin(), everyone_.end(), 0);
        if (slots == everyone_) return compute(x, norm, m, slots, norms_.data(), out);
        whole_.resize(std::size_t(m) * norms_.size());
        compute(x, norm, m, everyone_, norms_.data(), whole_.data());
        for (std::int64_t i = 0; i < m; ++i)
            for (const std::int32_t slot : slots) *out++ = whole_[i * size() + slot];
    }

    template <class X, class Norm>
    void compute(const X& x, const Norm& norm, std::int64_t m, const SlotList& slots,
                 const T* norms, T* out) {
        const auto count = std::int64_t(slots.size());
        rows_.products(x, m, slots,
                       [&](std::int64_t i, std::int64_t first, std::int64_t n, const T* products) {
                           kernel_.row(products, n, norm(i), norms + first,
                                       out + i * count + first);
                       });
        n_evaluations_ += m * count;
    }

    const T* norms_of(const SlotList& slots) {
        some_norms_.resize(slots.size());
        for (std::size_t e = 0; e < slots.size(); ++e) some_norms_[e] = norms_[slots[e]];
        return some_norms_.data();
    }

    Kernel kernel_;
    Rows rows_;
    std::vector<T> norms_;
    Batch batch_;
    std::vector<T> batch_norms_;
    std::int64_t first_ = 0, n_evaluations_ = 0;
    SlotList everyone_;
    std::vector<T> some_norms_, whole_;
};

}  // namespace pm
