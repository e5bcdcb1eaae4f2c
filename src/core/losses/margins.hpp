// The margins that a loss demands: Delta(y, j) of each wrong class j, where y is the true one.
//
// One table serves float and double; its rows are padded, so that margins are added as vectors.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

namespace pm {

class MarginTable {
  public:
    // From Delta, n_classes x n_classes, row by row.
    MarginTable(const double* delta, int n_classes)
        : n_classes_(n_classes),
          stride_((n_classes + kPadding - 1) / kPadding * kPadding),
          doubles_(std::size_t(n_classes) * stride_),
          floats_(doubles_.size()) {
        for (int y = 0; y < n_classes; ++y)
            for (int j = 0; j < n_classes; ++j) {
                const double value = delta[std::int64_t(y) * n_classes + j];
                if (!(std::isfinite(value) && value >= 0))
                    throw std::invalid_argument("margins must be finite and not negative");
                doubles_[std::size_t(y) * stride_ + j] = value;
                floats_[std::size_t(y) * stride_ + j] = float(value);
            }
    }

    int n_classes() const { return n_classes_; }
    int stride() const { return stride_; }
    double at(int y, int j) const { return doubles_[std::size_t(y) * stride_ + j]; }
    const double* row(int y, double) const { return doubles_.data() + std::size_t(y) * stride_; }
    const float* row(int y, float) const { return floats_.data() + std::size_t(y) * stride_; }

  private:
    static constexpr int kPadding = 16;  // the widest vector has so many floats
    int n_classes_, stride_;
    std::vector<double> doubles_;
    std::vector<float> floats_;
};

// Margins of 1, known at compile time.
struct UnitMargins {
    static constexpr bool unit_margins() { return true; }
    double margin(int, int) const { return 1; }
};

// Margins of 1 while there is no table.
struct ClassMargins {
    std::shared_ptr<const MarginTable> table;
    bool unit_margins() const { return table == nullptr; }
    double margin(int y, int j) const { return table == nullptr ? 1 : table->at(y, j); }
};

template <class Loss>
inline constexpr bool takes_margins = requires(const Loss& loss) { loss.table; };

}  // namespace pm
