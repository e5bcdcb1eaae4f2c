// The Python face of the data.
#include "bindings/rows.hpp"

#include <algorithm>
#include <memory>
#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;

namespace pm_bind {

template <class T>
Rows<T>::Rows(Matrix2<const T> X) : squared_norms(X.shape(0)), holder_(X) {
    const pm::DenseMatrix<T> matrix{X.data(), std::int64_t(X.shape(0)), std::int64_t(X.shape(1)),
                                    T(0)};
    nb::gil_scoped_release release;
    for (std::int64_t i = 0; i < matrix.n; ++i) squared_norms[i] = pm::squared_norm(matrix, i);
    matrix_ = matrix;
}

template <class T>
template <class I>
Rows<T>::Rows(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
              std::int64_t d) {
    require(indptr.shape(0) >= 1, "indptr is empty");
    require(d >= 0, "the number of features is negative");
    const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
    require(indptr.data()[0] == 0, "indptr must start at 0");
    for (std::int64_t i = 0; i < n; ++i)
        require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
    const auto nnz = std::size_t(indptr.data()[n]);
    require(nnz <= data.shape(0) && nnz <= indices.shape(0), "indptr points past the data");
    const pm::CsrMatrix<T, I> matrix{data.data(), indices.data(), indptr.data(), n, d, T(0)};
    squared_norms.resize(std::size_t(n));
    holder_ = std::make_tuple(data, indices, indptr);
    nb::gil_scoped_release release;
    auto scan = pm::scan_csr(matrix, squared_norms.data());
    if (!scan.in_range) throw std::invalid_argument("a column index points outside the matrix");
    canonical = scan.rising;
    occurs_ = std::move(scan.occurs);
    matrix_ = matrix;
}

template <class T>
std::int64_t Rows<T>::n_used() const {
    if (std::holds_alternative<pm::DenseMatrix<T>>(matrix_)) return d();
    return std::count(occurs_.begin(), occurs_.end(), char(1));
}

template <class T>
Rows<T> Rows<T>::without_unused(Vector<std::int64_t> used) const {
    require(std::int64_t(used.shape(0)) == n_used(), "used must have one entry per feature");
    return std::visit(
        [&](auto X) {
            if constexpr (std::is_same_v<decltype(X), pm::DenseMatrix<T>>) {
                throw std::invalid_argument("dense rows have all features");
                return Rows();
            } else {
                using I = std::decay_t<decltype(*X.indices)>;
                const auto nnz = std::size_t(X.indptr[X.n]);
                auto indices = std::make_shared<std::vector<I>>(nnz);
                std::vector<I> position(std::size_t(X.d));
                I next = 0;
                for (std::int64_t f = 0; f < X.d; ++f) {
                    if (!occurs_[std::size_t(f)]) continue;
                    used.data()[next] = f;
                    position[std::size_t(f)] = next++;
                }
                for (std::size_t e = 0; e < nnz; ++e)
                    (*indices)[e] = position[std::size_t(X.indices[e])];
                Rows other;
                X.indices = indices->data();
                X.d = next;
                other.matrix_ = X;
                other.squared_norms = squared_norms;
                other.canonical = canonical;
                other.occurs_.assign(std::size_t(next), 1);
                other.holder_ = std::make_pair(indices, holder_);
                return other;
            }
        },
        matrix_);
}

template <class T>
Rows<float> Rows<T>::with_values(Vector<const float> values) const {
    return std::visit(
        [&](const auto& X) {
            Rows<float> other;
            if constexpr (std::is_same_v<std::decay_t<decltype(X)>, pm::DenseMatrix<T>>) {
                throw std::invalid_argument("dense rows have no entries of their own");
            } else {
                using I = std::decay_t<decltype(*X.indices)>;
                require(values.shape(0) >= std::size_t(X.indptr[X.n]),
                        "a value per entry expected");
                other.matrix_ =
                    pm::CsrMatrix<float, I>{values.data(), X.indices, X.indptr, X.n, X.d, 0.0f};
                other.squared_norms = squared_norms;
                other.canonical = canonical;
                other.occurs_ = occurs_;
                other.holder_ = std::make_tuple(values, holder_);
            }
            return other;
        },
        matrix_);
}

namespace {

template <class T>
void bind(nb::module_& m, const char* name) {
    using R = Rows<T>;
    nb::class_<R>(m, name, "Rows of data that every engine may trust.")
        .def_prop_ro("n", &R::n)
        .def_prop_ro("d", &R::d)
        .def_ro("canonical", &R::canonical)
        .def_prop_ro("n_used", &R::n_used, "Features that occur.")
        .def(
            "squared_norms",
            [](R& rows, Vector<double> out) {
                require(out.shape(0) == rows.squared_norms.size(), "out has the wrong length");
                std::copy(rows.squared_norms.begin(), rows.squared_norms.end(), out.data());
            },
            "out"_a.noconvert())
        .def("without_unused", &R::without_unused, "used"_a.noconvert())
        .def("with_values", &R::with_values, "values"_a.noconvert(),
             "CSR: the same entries with these values.");
    m.def(
        "dense_rows",
        [](Matrix2<const T> X, bool looked_at) { return looked_at ? R::looked_at(X) : R(X); },
        "X"_a.noconvert(), "looked_at"_a = false);
    const auto csr = [&]<class I>(I) {
        m.def(
            "csr_rows",
            [](Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
               std::int64_t d, bool looked_at) {
                return looked_at ? R::looked_at(data, indices, indptr, d)
                                 : R(data, indices, indptr, d);
            },
            "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_features"_a,
            "looked_at"_a = false, "looked_at: every part of them has been looked at before.");
    };
    csr(std::int32_t());
    csr(std::int64_t());
}

}  // namespace

template class Rows<float>;
template class Rows<double>;

}  // namespace pm_bind

void bind_rows(nb::module_& m) {
    pm_bind::bind<float>(m, "RowsF32");
    pm_bind::bind<double>(m, "RowsF64");
}
