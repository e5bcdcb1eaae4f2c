// A loss as sweeps, streams and certificates see it: the parts of its code that run per example,
// behind functions.
//
// So the code of a loss is compiled once per precision (loss_code.hpp), and not again for every
// kind of sweep and of rows. It costs an indirect call per example.
#pragma once

#include <cstdint>

#include "losses/any_loss.hpp"
#include "sweeps/class_ranges.hpp"
#include "sweeps/examples.hpp"

namespace pm {

// What a look at one example's scores finds, for a certificate.
struct Share {
    double value = 0;  // c loss
    double gap = 0;    // zero for rows without features
};

// Multiples of the scores, and the sums of c_i loss_i there.
struct AtMultiples {
    const double* factors;
    int count;
    double* sums;
};

// Buffers of looks at scores; one per thread.
struct ShareScratch {
    explicit ShareScratch(int padded) : block(padded), multiple(padded) {}
    Block<double> block;
    std::vector<double> multiple;
};

template <class T>
class Visitor {
  public:
    // Of a loss that outlives it.
    explicit Visitor(const AnyLoss& loss);

    bool coupled, dense_rows, has_violation;

    // As visit_all_classes, or visit_dense where that suits the loss.
    PM_INLINE bool full(VisitScratch<T>& w, int padded, Examples<T>& ex, DualRows<T>& dual,
                        std::int64_t i, double scale, VisitTotals& totals) const {
        return full_(loss_, w, padded, ex, dual, i, scale, totals);
    }
    // As visit_listed_classes.
    PM_INLINE bool listed(VisitScratch<T>& w, Examples<T>& ex, DualRows<T>& dual, std::int64_t i,
                          double scale, VisitTotals& totals) const {
        return listed_(loss_, w, ex, dual, i, scale, totals);
    }
    // Of example i, whose scores s become margins; adds to the sums.
    PM_INLINE Share share(double* s, int padded, const Examples<T>& ex, const ClassRanges<T>& dual,
                          std::int64_t i, const AtMultiples& also, ShareScratch& w) const {
        return share_(loss_, s, padded, ex, dual, i, also, w);
    }

    // The restricted problem and the value, as the loss offers them (losses/loss.hpp).
    T solve(const T* b, int padded, double c, double A, T guess, Block<T>& block) const {
        return solve_(loss_, b, padded, c, A, guess, block);
    }
    double value(const T* h, int padded, Block<T>& block) const {
        return value_(loss_, h, padded, block);
    }
    // Scores become margins, as in visit.hpp.
    void margins(T* s, int n_classes, int padded, int y) const {
        margins_(loss_, s, n_classes, padded, y);
    }

  private:
    const void* loss_;
    bool (*full_)(const void*, VisitScratch<T>&, int, Examples<T>&, DualRows<T>&, std::int64_t,
                  double, VisitTotals&);
    bool (*listed_)(const void*, VisitScratch<T>&, Examples<T>&, DualRows<T>&, std::int64_t, double,
                    VisitTotals&);
    Share (*share_)(const void*, double*, int, const Examples<T>&, const ClassRanges<T>&,
                    std::int64_t, const AtMultiples&, ShareScratch&);
    T (*solve_)(const void*, const T*, int, double, double, T, Block<T>&);
    double (*value_)(const void*, const T*, int, Block<T>&);
    void (*margins_)(const void*, T*, int, int, int);
};

// The dual value without -1/2 ||V||^2.
template <class T>
double dual_sum(const AnyLoss& loss, const Examples<T>& ex, const ClassRanges<T>& dual);

}  // namespace pm
