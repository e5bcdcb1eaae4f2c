// The code of every loss, compiled: what visitor.hpp promises. Included by the two files beside
// this one that instantiate it, one per precision.
#pragma once

#include <type_traits>
#include <vector>

#include "losses/table.hpp"
#include "sweeps/share.hpp"
#include "sweeps/visit_dense.hpp"
#include "sweeps/visitor.hpp"

namespace pm {

// Whether the loss at a multiple of the scores follows from the margins, where these are 1 at zero.
template <class Loss>
inline constexpr bool has_value_at_multiple =
    Loss::flat &&
    requires(const Loss& loss, const double* h) { loss.value_at_multiple(h, 0, 1.0); };

// One look at the scores of example i, which become margins.
template <class Loss, class T>
Share share_of(const Loss& loss, double* s, int padded, const Examples<T>& ex,
               const ClassRanges<T>& dual, std::int64_t i, const AtMultiples& also,
               ShareScratch& w) {
    Share share;
    if (ex.c[i] == 0) return share;
    const bool by_margins = loss.unit_margins() && has_value_at_multiple<Loss>;
    if (!by_margins)
        for (int f = 0; f < also.count; ++f) {
            double* multiple = w.multiple.data();
            for (int j = 0; j < padded; ++j) multiple[j] = also.factors[f] * s[j];
            margins_from_scores(loss, multiple, ex.n_classes, padded, ex.y[i]);
            also.sums[f] += ex.c[i] * loss.value(multiple, padded, w.block);
        }
    margins_from_scores(loss, s, ex.n_classes, padded, ex.y[i]);
    share.value = ex.c[i] * loss.value(s, padded, w.block);
    if constexpr (has_value_at_multiple<Loss>)
        if (by_margins)
            for (int f = 0; f < also.count; ++f)
                also.sums[f] += ex.c[i] * loss.value_at_multiple(s, padded, also.factors[f]);
    if (ex.squared_norm[i] == 0) return share;
    double p_dot_h = 0, conjugate = 0;
    if constexpr (has_dense_rows<Loss>) {
        share.gap = share.value;  // where p is zero
        double* p = w.block.b.data();
        if (!dual.in_double(i, padded, p)) return share;
        p_dot_h = block_sums(p, s, padded).p_dot_h;
        conjugate = loss.conjugate_of_all(p, padded, ex.c[i]);
    }
    dual.for_each_part(i, [&](const auto* row, int count, int first) {
        p_dot_h += inner_product(row, count, s + first, [row](int e) { return row[e].cls; });
        conjugate += loss.conjugate(row, count, ex.c[i]);
    });
    share.gap = gap_share(share.value, p_dot_h, conjugate);
    return share;
}

template <class Loss, class T>
double dual_sum_of(const Loss& loss, const Examples<T>& ex, const ClassRanges<T>& dual) {
    double total = 0;
    const int padded = round_up_lanes<double>(ex.n_classes);
    std::vector<double> p(has_dense_rows<Loss> ? padded : 0);
    for (std::int64_t i = 0; i < dual.size(); ++i) {
        dual.prefetch_after(i);
        if constexpr (has_dense_rows<Loss>) {
            static_assert(Loss::no_margins);
            if (dual.in_double(i, padded, p.data()))
                total -= loss.conjugate_of_all(p.data(), padded, ex.c[i]);
        }
        dual.for_each_part(i, [&](const auto* row, int count, int) {
            total += dual_share(loss, ex.y[i], ex.c[i], row, count);
        });
    }
    return total;
}

template <class T>
Visitor<T>::Visitor(const AnyLoss& any) {
    std::visit(
        [this]<class Loss>(const Loss& loss) {
            coupled = Loss::coupled;
            dense_rows = has_dense_rows<Loss>;
            has_violation = Loss::has_violation;
            loss_ = &loss;
            full_ = [](const void* l, VisitScratch<T>& w, int padded, Examples<T>& ex,
                       DualRows<T>& dual, std::int64_t i, double scale, VisitTotals& totals) {
                return visit_full(*static_cast<const Loss*>(l), w, padded, ex, dual, i, scale,
                                  totals);
            };
            listed_ = [](const void* l, VisitScratch<T>& w, Examples<T>& ex, DualRows<T>& dual,
                         std::int64_t i, double scale, VisitTotals& totals) {
                if constexpr (has_dense_rows<Loss>)
                    return false;  // there are no lists
                else
                    return visit_listed_classes(*static_cast<const Loss*>(l), w, ex, dual, i, scale,
                                                totals);
            };
            share_ = [](const void* l, double* s, int padded, const Examples<T>& ex,
                        const ClassRanges<T>& dual, std::int64_t i, const AtMultiples& also,
                        ShareScratch& w) {
                return share_of(*static_cast<const Loss*>(l), s, padded, ex, dual, i, also, w);
            };
            solve_ = [](const void* l, const T* b, int padded, double c, double A, T guess,
                        Block<T>& block) {
                return static_cast<const Loss*>(l)->solve(b, padded, c, A, guess, block);
            };
            value_ = [](const void* l, const T* h, int padded, Block<T>& block) {
                return static_cast<const Loss*>(l)->value(h, padded, block);
            };
            margins_ = [](const void* l, T* s, int n_classes, int padded, int y) {
                margins_from_scores(*static_cast<const Loss*>(l), s, n_classes, padded, y);
            };
        },
        any);
}

template <class T>
double dual_sum(const AnyLoss& any, const Examples<T>& ex, const ClassRanges<T>& dual) {
    return std::visit([&](const auto& loss) { return dual_sum_of(loss, ex, dual); }, any);
}

}  // namespace pm
