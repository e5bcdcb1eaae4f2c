// Support patterns of a given Gram matrix: a pattern is a column.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "larank/pattern_source.hpp"

namespace pm {

template <class T>
class GramPatterns final : public PatternSource<T> {
  public:
    std::int64_t size() const { return std::int64_t(columns_.size()); }
    std::int64_t n_evaluations() const { return n_evaluations_; }
    void set_n_evaluations(std::int64_t n) { n_evaluations_ = n; }
    const ExampleList& columns() const { return columns_; }
    void set_columns(ExampleList columns) { columns_ = std::move(columns); }

    // A matrix of n rows and columns, the examples 0..n-1.
    void lend(const T* gram, std::int64_t n) { gram_ = gram, n_ = n; }
    void give_back() { lend(nullptr, 0); }
    std::pair<std::int64_t, std::int64_t> lent() const { return {0, n_}; }

    void example_rows(const ExampleList& examples, const SlotList& slots, T* out) override {
        for (const std::int64_t example : examples)
            for (const std::int32_t slot : slots) *out++ = gram_[example * n_ + columns_[slot]];
        n_evaluations_ += std::int64_t(examples.size() * slots.size());
    }
    void pattern_row(std::int32_t slot, const SlotList& slots, T* out) override {
        example_rows({columns_[slot]}, slots, out);
    }
    double append(std::int64_t example) override {
        columns_.push_back(example);
        return double(gram_[example * n_ + example]);
    }
    void keep(const SlotList& slots) override {
        for (std::size_t s = 0; s < slots.size(); ++s) columns_[s] = columns_[slots[s]];
        columns_.resize(slots.size());
    }

  private:
    ExampleList columns_;
    const T* gram_ = nullptr;
    std::int64_t n_ = 0, n_evaluations_ = 0;
};

}  // namespace pm
