// The dual blocks of a problem, as Python holds them; every engine that visits examples has them.
#pragma once

#include <string>
#include <vector>

#include "bindings/common.hpp"
#include "bindings/losses.hpp"
#include "sweeps/visitor.hpp"

namespace pm_bind {

// The examples' arrays and dual blocks, held for as long as Python holds the object.
template <class T>
class Blocks : public pm::OneUser {
  public:
    Blocks(const Loss& loss, int n_classes, Vector<const std::int32_t> y, Vector<const double> c,
           Vector<const double> squared_norm, Vector<T> threshold, Vector<double> gap)
        : OneUser("another thread is using this engine: give each thread one of its own"),
          loss_(loss.any),
          visitor_(*loss_),
          dual_(static_cast<std::int64_t>(y.shape(0)), n_classes, visitor_.dense_rows),
          y_(y),
          c_(c),
          squared_norm_(squared_norm),
          threshold_(threshold),
          gap_(gap) {
        loss.require_margins_for(n_classes);
        const auto n = y.shape(0);
        require(c.shape(0) == n && squared_norm.shape(0) == n && threshold.shape(0) == n &&
                    gap.shape(0) == n,
                "per-example arrays differ in length");
        for (std::size_t i = 0; i < n; ++i)
            require(y.data()[i] >= 0 && y.data()[i] < n_classes, "class code out of range");
        examples_ = {y.data(),         c.data(),   squared_norm.data(),
                     threshold.data(), gap.data(), n_classes};
    }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;

    void set_method(const std::string& name, double tol) {
        examples_.method = named_method<T>(*loss_, name);
        examples_.method_tol = tol;
    }
    // From now on every visit writes the block's violation there.
    void track_violation(Vector<double> violation) {
        require(visitor_.has_violation, "this loss has no violation");
        require(violation.shape(0) == std::size_t(dual_.size()),
                "violation must have one entry per row");
        require(dual_.count() == 1, "ranges of classes have no violation");
        violation_ = violation;
        examples_.violation = violation.data();
    }
    // Marks the examples with a class strictly between its bounds: those that a vertex holds are
    // p = 0, and p = c for one class (Crammer-Singer) or for any (the others).
    void dual_free(Vector<bool> free) {
        require(free.shape(0) == std::size_t(dual_.size()), "free must have one entry per row");
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            bool inside = false;
            dual_.for_each_entry(i, [&](const auto& entry) {
                inside |= entry.p > T(0) && !pm::at_bound<T>(double(entry.p), examples_.c[i]);
            });
            free.data()[i] = inside;
        }
    }

    double dual_sum() {
        nb::gil_scoped_release release;
        return pm::dual_sum(*loss_, examples_, dual_);
    }

    // Entries per row, then the entries, rows in order: the dual as CSR arrays; with `zeros` also
    // the entries that are zero and still listed, without them the nonzeros only.
    void dual_counts(Vector<std::int64_t> counts, bool zeros) {
        require(counts.shape(0) == std::size_t(dual_.size()), "counts must have one entry per row");
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            std::int64_t listed = 0;
            if (const T* p = values(i); p != nullptr && !zeros) {
                for (int j = 0; j < examples_.n_classes; ++j) listed += p[j] != T(0);
                counts.data()[i] = listed;
                continue;
            }
            dual_.for_each_entry(i, [&](const auto& entry) { listed += zeros || entry.p != T(0); });
            counts.data()[i] = listed;
        }
    }
    void dual_export(Vector<std::int32_t> classes, Vector<T> values, bool zeros) {
        const std::size_t room = std::min(classes.shape(0), values.shape(0));
        std::size_t at = 0;
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            const T* p = this->values(i);
            if (p != nullptr && !zeros && at + std::size_t(examples_.n_classes) <= room) {
                for (int j = 0; j < examples_.n_classes; ++j) {  // without branches
                    classes.data()[at] = j;
                    values.data()[at] = p[j];
                    at += p[j] != T(0);
                }
                continue;
            }
            dual_.for_each_entry(i, [&](const auto& entry) {
                if (!zeros && entry.p == T(0)) return;
                require(at < room, "arrays too short");
                classes.data()[at] = entry.cls;
                values.data()[at++] = entry.p;
            });
        }
    }
    // Takes over the dual of the same examples, in whichever precision.
    template <class U>
    void dual_copy(const Blocks<U>& from) {
        require(
            from.dual_.size() == dual_.size() && from.examples_.n_classes == examples_.n_classes,
            "the duals differ in shape");
        nb::gil_scoped_release release;
        const auto& lists = from.dual_.whole();
        std::vector<pm::DualEntry<T>> entries;
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            if (dual_.whole().dense() && lists.values(i) != nullptr) {
                T* p = dual_.whole().fill(i);
                std::fill(p + examples_.n_classes, p + dual_.whole().stride(), T(0));
                std::copy_n(lists.values(i), examples_.n_classes, p);
                continue;
            }
            entries.clear();
            from.dual_.for_each_entry(i, [&](const auto& entry) {
                if (entry.p != U(0)) entries.push_back({entry.cls, T(entry.p)});
            });
            dual_.assign(i, entries);
        }
    }
    void dual_import(Vector<const std::int64_t> indptr, Vector<const std::int32_t> classes,
                     Vector<const T> values) {
        require(indptr.shape(0) == std::size_t(dual_.size()) + 1, "indptr must have n + 1 entries");
        std::vector<pm::DualEntry<T>> entries;
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            const auto begin = indptr.data()[i], end = indptr.data()[i + 1];
            require(begin >= 0 && begin <= end && std::size_t(end) <= classes.shape(0) &&
                        std::size_t(end) <= values.shape(0),
                    "indptr points outside the arrays");
            entries.clear();
            for (auto e = begin; e < end; ++e) {
                const auto cls = classes.data()[e];
                require(cls >= 0 && cls < examples_.n_classes, "class code out of range");
                entries.push_back({cls, values.data()[e]});
            }
            dual_.assign(i, entries);
        }
    }

  protected:
    template <class U>
    friend class Blocks;

    void check_order(const Vector<const std::int64_t>& order) const {
        for (std::size_t at = 0; at < order.shape(0); ++at)
            require(order.data()[at] >= 0 && order.data()[at] < dual_.size(),
                    "order points outside the data");
    }

    const pm::LossPointer loss_;
    const pm::Visitor<T> visitor_;
    pm::ClassRanges<T> dual_;
    pm::Examples<T> examples_;

  private:
    const T* values(std::int64_t i) const {
        return dual_.whole().dense() ? dual_.whole().values(i) : nullptr;
    }

    Vector<const std::int32_t> y_;
    Vector<const double> c_, squared_norm_;
    Vector<T> threshold_;
    Vector<double> gap_, violation_;
};

template <class T, class S>
void copy_dual(Blocks<T>& own, Blocks<S>& from) {
    const pm::OneUser::Use one(own), other(from);
    own.dual_copy(from);
}

template <class T>
void bind_blocks(nb::module_& m, const char* name) {
    using namespace nb::literals;
    using B = Blocks<T>;
    nb::class_<B>(m, name)
        .def("set_method", alone(&B::set_method), "name"_a, "tol"_a)
        .def("track_violation", alone(&B::track_violation), "violation"_a.noconvert())
        .def("dual_free", alone(&B::dual_free), "free"_a.noconvert())
        .def("dual_sum", alone(&B::dual_sum))
        .def("dual_counts", alone(&B::dual_counts), "counts"_a.noconvert(), "zeros"_a = false)
        .def("dual_export", alone(&B::dual_export), "classes"_a.noconvert(), "values"_a.noconvert(),
             "zeros"_a = false)
        .def("dual_copy", &copy_dual<T, float>, "other"_a)
        .def("dual_copy", &copy_dual<T, double>, "other"_a)
        .def("dual_import", alone(&B::dual_import), "indptr"_a.noconvert(), "classes"_a.noconvert(),
             "values"_a.noconvert());
}

}  // namespace pm_bind
