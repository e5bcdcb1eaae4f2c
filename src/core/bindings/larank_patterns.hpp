// The Python face of LaRank's support patterns: rows of features with a built-in kernel, or columns
// of a Gram matrix. A machine takes them as they are and runs without the GIL.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/common.hpp"
#include "larank/csr_rows.hpp"
#include "larank/dense_rows.hpp"
#include "larank/gram_patterns.hpp"
#include "larank/vector_patterns.hpp"

namespace pm_bind {

template <class T>
std::vector<T> copy_of(const Vector<const T>& numbers) {
    return {numbers.data(), numbers.data() + numbers.size()};
}

inline constexpr const char* kBeingTrained = "this LaRankClassifier is being trained";

// --- the patterns ---

template <class T>
class Patterns : public pm::OneUser {
  public:
    Patterns() : OneUser(kBeingTrained) {}
    virtual ~Patterns() = default;
    virtual pm::PatternSource<T>& source() = 0;
    virtual std::int64_t size() = 0;
    virtual std::pair<std::int64_t, std::int64_t> lent() = 0;
    virtual void give_back() = 0;
    virtual std::int64_t n_evaluations() = 0;
    virtual void set_n_evaluations(std::int64_t n) = 0;

    void check_examples(const Vector<const std::int64_t>& examples) {
        const auto [first, last] = lent();
        for (std::size_t i = 0; i < examples.size(); ++i)
            require(examples.data()[i] >= first && examples.data()[i] < last,
                    "an example is not in the batch");
    }
    void check_slots(const Vector<const std::int32_t>& slots) {
        for (std::size_t e = 0; e < slots.size(); ++e)
            require(slots.data()[e] >= 0 && slots.data()[e] < size(), "there is no such slot");
    }

    Matrix2<T> example_rows(Vector<const std::int64_t> examples, Vector<const std::int32_t> slots) {
        check_examples(examples);
        check_slots(slots);
        std::vector<T> rows(examples.size() * slots.size());
        source().example_rows(copy_of(examples), copy_of(slots), rows.data());
        return matrix_of(std::move(rows), examples.size(), slots.size());
    }
    Vector<T> pattern_row(std::int32_t slot, Vector<const std::int32_t> slots) {
        require(slot >= 0 && slot < size(), "there is no such slot");
        check_slots(slots);
        std::vector<T> row(slots.size());
        source().pattern_row(slot, copy_of(slots), row.data());
        return vector_of(std::move(row));
    }
    // Examples become patterns.
    void append(Vector<const std::int64_t> examples) {
        check_examples(examples);
        for (std::size_t i = 0; i < examples.size(); ++i) source().append(examples.data()[i]);
    }
    void keep(Vector<const std::int32_t> slots) {
        check_slots(slots);
        for (std::size_t e = 1; e < slots.size(); ++e)
            require(slots.data()[e - 1] < slots.data()[e], "slots must increase");
        source().keep(copy_of(slots));
    }
};

template <class T, class Store>
class PatternsIn : public Patterns<T> {
  public:
    explicit PatternsIn(Store store) : store_(std::move(store)) {}

    pm::PatternSource<T>& source() override { return store_; }
    std::int64_t size() override { return store_.size(); }
    std::pair<std::int64_t, std::int64_t> lent() override { return store_.lent(); }
    void give_back() override {
        store_.give_back();
        batch_ = nb::none();
    }
    std::int64_t n_evaluations() override { return store_.n_evaluations(); }
    void set_n_evaluations(std::int64_t n) override { store_.set_n_evaluations(n); }

  protected:
    Store store_;
    nb::object batch_;  // what is lent, alive
};

inline pm::Kernel named_kernel(const std::string& name, double gamma, double degree, double coef0) {
    return {pm::Kernel::named(name), gamma, degree, coef0};
}

template <class T>
class DensePatterns : public PatternsIn<T, pm::VectorPatterns<T, pm::DenseRows<T>>> {
    using Base = PatternsIn<T, pm::VectorPatterns<T, pm::DenseRows<T>>>;

  public:
    DensePatterns(const std::string& kernel, double gamma, double degree, double coef0,
                  std::int64_t n_features)
        : Base({named_kernel(kernel, gamma, degree, coef0), n_features}), d_(n_features) {}

    void lend(Matrix2<const T> X, std::int64_t first) {
        require(std::int64_t(X.shape(1)) == d_, "X has the wrong number of columns");
        this->store_.lend(pm::DenseMatrix<T>{X.data(), std::int64_t(X.shape(0)), d_, T(0)}, first);
        this->batch_ = nb::cast(X);
    }
    Matrix2<T> vectors(Vector<const std::int32_t> slots) {
        this->check_slots(slots);
        std::vector<T> values;
        values.reserve(slots.size() * std::size_t(d_));
        for (std::size_t e = 0; e < slots.size(); ++e) {
            const auto x = this->store_.row(slots.data()[e]);
            values.insert(values.end(), x.value_, x.value_ + x.count);
        }
        return matrix_of(std::move(values), slots.size(), std::size_t(d_));
    }

  private:
    std::int64_t d_;
};

template <class T>
class CsrPatterns : public PatternsIn<T, pm::VectorPatterns<T, pm::CsrRows<T>>> {
    using Base = PatternsIn<T, pm::VectorPatterns<T, pm::CsrRows<T>>>;
    using Index = typename pm::CsrRows<T>::Index;

  public:
    CsrPatterns(const std::string& kernel, double gamma, double degree, double coef0,
                std::int64_t n_features)
        : Base({named_kernel(kernel, gamma, degree, coef0), n_features}), d_(n_features) {}

    // The arrays of a matrix that was checked when it came in.
    template <class I>
    void lend(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
              std::int64_t first) {
        require(indptr.size() >= 1 && indices.size() == data.size() && indptr.data()[0] == 0 &&
                    std::size_t(indptr.data()[indptr.size() - 1]) <= data.size(),
                "indptr does not fit the data");
        this->store_.lend(pm::CsrMatrix<T, I>{data.data(), indices.data(), indptr.data(),
                                              std::int64_t(indptr.size()) - 1, d_, T(0)},
                          first);
        this->batch_ = nb::make_tuple(data, indices, indptr);
    }
    std::tuple<Vector<T>, Vector<Index>, Vector<std::int64_t>> vectors(
        Vector<const std::int32_t> slots) {
        this->check_slots(slots);
        std::vector<T> data;
        std::vector<Index> indices;
        std::vector<std::int64_t> indptr = {0};
        for (std::size_t e = 0; e < slots.size(); ++e) {
            const auto x = this->store_.row(slots.data()[e]);
            data.insert(data.end(), x.value_, x.value_ + x.count);
            indices.insert(indices.end(), x.index_, x.index_ + x.count);
            indptr.push_back(std::int64_t(data.size()));
        }
        return {vector_of(std::move(data)), vector_of(std::move(indices)),
                vector_of(std::move(indptr))};
    }

  private:
    std::int64_t d_;
};

template <class T>
class GramPatterns : public PatternsIn<T, pm::GramPatterns<T>> {
  public:
    GramPatterns() : PatternsIn<T, pm::GramPatterns<T>>({}) {}

    void lend(Matrix2<const T> gram) {
        const auto n = std::int64_t(gram.shape(0));
        require(gram.shape(1) == gram.shape(0), "a Gram matrix is square");
        for (const std::int64_t column : this->store_.columns())
            require(column < n, "a pattern is not in the Gram matrix");
        this->store_.lend(gram.data(), n);
        this->batch_ = nb::cast(gram);
    }
    Vector<std::int64_t> columns() { return vector_of(this->store_.columns()); }
    void set_columns(Vector<const std::int64_t> columns) {
        for (std::size_t e = 0; e < columns.size(); ++e)
            require(columns.data()[e] >= 0, "a column is negative");
        this->store_.set_columns(copy_of(columns));
    }
};

template <class T>
void bind_patterns(nb::module_& m, const std::string& type) {
    using namespace nb::literals;
    using P = Patterns<T>;
    nb::class_<P>(m, ("Patterns" + type).c_str())
        .def("give_back", alone(&P::give_back))
        .def("example_rows", alone(&P::example_rows), "examples"_a.noconvert(),
             "slots"_a.noconvert())
        .def("pattern_row", alone(&P::pattern_row), "slot"_a, "slots"_a.noconvert())
        .def("append", alone(&P::append), "examples"_a.noconvert())
        .def("keep", alone(&P::keep), "slots"_a.noconvert())
        .def("__len__", alone(&P::size))
        .def_prop_rw("n_evaluations", alone(&P::n_evaluations), alone(&P::set_n_evaluations));

    using Dense = DensePatterns<T>;
    nb::class_<Dense, P>(m, ("DensePatterns" + type).c_str())
        .def(nb::init<const std::string&, double, double, double, std::int64_t>(), "kernel"_a,
             "gamma"_a, "degree"_a, "coef0"_a, "n_features"_a)
        .def("lend", alone(&Dense::lend), "X"_a.noconvert(), "first"_a)
        .def("vectors", alone(&Dense::vectors), "slots"_a.noconvert());

    using Csr = CsrPatterns<T>;
    nb::class_<Csr, P>(m, ("CsrPatterns" + type).c_str())
        .def(nb::init<const std::string&, double, double, double, std::int64_t>(), "kernel"_a,
             "gamma"_a, "degree"_a, "coef0"_a, "n_features"_a)
        .def("lend", alone(&Csr::template lend<std::int32_t>), "data"_a.noconvert(),
             "indices"_a.noconvert(), "indptr"_a.noconvert(), "first"_a)
        .def("lend", alone(&Csr::template lend<std::int64_t>), "data"_a.noconvert(),
             "indices"_a.noconvert(), "indptr"_a.noconvert(), "first"_a)
        .def("vectors", alone(&Csr::vectors), "slots"_a.noconvert());

    using Gram = GramPatterns<T>;
    nb::class_<Gram, P>(m, ("GramPatterns" + type).c_str())
        .def(nb::init<>())
        .def("lend", alone(&Gram::lend), "gram"_a.noconvert())
        .def("columns", alone(&Gram::columns))
        .def("set_columns", alone(&Gram::set_columns), "columns"_a.noconvert());
}

}  // namespace pm_bind
