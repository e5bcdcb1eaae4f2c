// The Python face of streams: a class per type of the weights, batches taken without copies.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "bindings/common.hpp"
#include "stream/stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

template <class T>
class StreamEngine {
  public:
    StreamEngine(const std::string& loss, int top_k, std::int64_t d, double bias,
                 std::int64_t capacity, int revisits, std::uint64_t seed)
        : stream_(checked({loss_kind(loss), top_k, d, T(bias), capacity, revisits, seed})) {}

    StreamEngine(const StreamEngine&) = delete;
    StreamEngine& operator=(const StreamEngine&) = delete;

    void add_class(int model) {
        require(model < n_classes(), "no such class");
        stream_.add_class(model);
    }
    int n_classes() const { return static_cast<int>(stream_.born.size()); }
    std::int64_t seen() const { return stream_.seen; }
    std::int64_t kept() const { return stream_.filled; }

    void shares(Vector<T> out) const {
        require(out.shape(0) == stream_.born.size(), "shares must have one entry per class");
        for (int j = 0; j < n_classes(); ++j) out.data()[j] = stream_.share(j);
    }

    template <class I>
    void learn_csr(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
                   Vector<const std::int32_t> y, Vector<const double> c, Vector<const double> norms,
                   Matrix2<T> W, Matrix2<T> U) {
        learn(csr(data, indices, indptr), y, c, norms, W, U);
    }
    void learn_dense(Matrix2<const T> X, Vector<const std::int32_t> y, Vector<const double> c,
                     Vector<const double> norms, Matrix2<T> W, Matrix2<T> U) {
        learn(dense(X), y, c, norms, W, U);
    }
    template <class I>
    void norms_csr(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
                   Vector<double> out) const {
        norms(csr(data, indices, indptr), out);
    }
    void norms_dense(Matrix2<const T> X, Vector<double> out) const { norms(dense(X), out); }
    template <class I>
    void scores_csr(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
                    Matrix2<const T> W, Matrix2<const T> U, Matrix2<T> out) const {
        scores(csr(data, indices, indptr), W, U, out);
    }
    void scores_dense(Matrix2<const T> X, Matrix2<const T> W, Matrix2<const T> U,
                      Matrix2<T> out) const {
        scores(dense(X), W, U, out);
    }

    // Counters, then the lengths of the arrays below: stored values, indices, dual entries.
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint64_t, std::int64_t, std::int64_t,
               std::int64_t>
    counters() const {
        std::int64_t values = 0, indices = 0, entries = 0;
        for (std::int64_t i = 0; i < stream_.filled; ++i) {
            values += std::int64_t(stream_.kept[i].values.size());
            indices += std::int64_t(stream_.kept[i].indices.size());
            entries += stream_.dual.count(i);
        }
        return {stream_.seen, stream_.filled, stream_.oldest, stream_.drawn,
                values,       indices,        entries};
    }

    void export_state(Vector<std::int64_t> born, Vector<std::int64_t> lengths, Vector<T> values,
                      Vector<std::int32_t> indices, Vector<std::int32_t> y, Vector<double> c,
                      Vector<T> threshold, Vector<std::int32_t> classes, Vector<T> p) const {
        std::copy(stream_.born.begin(), stream_.born.end(), born.data());
        std::int64_t v = 0, x = 0, e = 0;
        for (std::int64_t i = 0; i < stream_.filled; ++i) {
            const auto& row = stream_.kept[i];
            lengths.data()[3 * i] = std::int64_t(row.values.size());
            lengths.data()[3 * i + 1] = std::int64_t(row.indices.size());
            lengths.data()[3 * i + 2] = stream_.dual.count(i);
            for (const T value : row.values) values.data()[v++] = value;
            for (const auto index : row.indices) indices.data()[x++] = index;
            for (int k = 0; k < stream_.dual.count(i); ++k, ++e) {
                classes.data()[e] = stream_.dual.row(i)[k].cls;
                p.data()[e] = stream_.dual.row(i)[k].p;
            }
            y.data()[i] = stream_.y[i];
            c.data()[i] = stream_.c[i];
            threshold.data()[i] = stream_.threshold[i];
        }
    }

    void import_state(std::int64_t seen, std::int64_t filled, std::int64_t oldest,
                      std::uint64_t drawn, Vector<const std::int64_t> born,
                      Vector<const std::int64_t> lengths, Vector<const T> values,
                      Vector<const std::int32_t> indices, Vector<const std::int32_t> y,
                      Vector<const double> c, Vector<const T> threshold,
                      Vector<const std::int32_t> classes, Vector<const T> p) {
        require(filled >= 0 && filled <= stream_.set.capacity &&
                    lengths.shape(0) == std::size_t(3 * filled),
                "more examples than the reservoir holds");
        stream_.seen = seen;
        stream_.filled = filled;
        stream_.oldest = oldest;
        stream_.drawn = drawn;
        stream_.born.assign(born.data(), born.data() + born.shape(0));
        std::int64_t v = 0, x = 0, e = 0;
        for (std::int64_t i = 0; i < filled; ++i) {
            const auto* length = lengths.data() + 3 * i;
            require(length[0] >= 0 && length[1] >= 0 && length[2] >= 0 &&
                        std::size_t(v + length[0]) <= values.shape(0) &&
                        std::size_t(x + length[1]) <= indices.shape(0) &&
                        std::size_t(e + length[2]) <= classes.shape(0) &&
                        classes.shape(0) == p.shape(0) &&
                        (length[1] == length[0] || (length[1] == 0 && length[0] == stream_.set.d)),
                    "the lengths do not fit the arrays");
            auto& row = stream_.kept[i];
            row.values.assign(values.data() + v, values.data() + v + length[0]);
            row.indices.assign(indices.data() + x, indices.data() + x + length[1]);
            for (const auto index : row.indices)
                require(index >= 0 && index < stream_.set.d, "an index points outside a row");
            auto* entries = stream_.dual.resize(i, static_cast<int>(length[2]));
            for (std::int64_t k = 0; k < length[2]; ++k) {
                const auto cls = classes.data()[e + k];
                require(cls >= 0 && cls < n_classes(), "class code out of range");
                entries[k] = {cls, p.data()[e + k]};
            }
            require(y.data()[i] >= 0 && y.data()[i] < n_classes(), "class code out of range");
            stream_.y[i] = y.data()[i];
            stream_.c[i] = c.data()[i];
            stream_.threshold[i] = threshold.data()[i];
            stream_.norm[i] = norm_of(row);
            v += length[0];
            x += length[1];
            e += length[2];
        }
    }

  private:
    static pm::StreamSettings<T> checked(pm::StreamSettings<T> set) {
        require(set.d >= 1 && set.d <= std::numeric_limits<std::int32_t>::max(),
                "the number of features must lie in 1..2^31 - 1");
        require(set.capacity >= 0 && set.revisits >= 0, "sizes must not be negative");
        return set;
    }

    template <class I>
    pm::CsrMatrix<T, I> csr(const Vector<const T>& data, const Vector<const I>& indices,
                            const Vector<const I>& indptr) const {
        require(indptr.shape(0) >= 1 && indptr.data()[0] >= 0, "indptr is empty or negative");
        const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
        for (std::int64_t i = 0; i < n; ++i)
            require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
        const auto end = std::size_t(indptr.data()[n]);
        require(end <= data.shape(0) && end <= indices.shape(0), "indptr points past the data");
        for (auto e = std::size_t(indptr.data()[0]); e < end; ++e)
            require(indices.data()[e] >= 0 && std::int64_t(indices.data()[e]) < stream_.set.d,
                    "a column index points outside the matrix");
        return {data.data(), indices.data(), indptr.data(), n, stream_.set.d, stream_.set.bias};
    }
    pm::DenseMatrix<T> dense(const Matrix2<const T>& X) const {
        require(std::int64_t(X.shape(1)) == stream_.set.d, "X has the wrong number of features");
        return {X.data(), std::int64_t(X.shape(0)), stream_.set.d, stream_.set.bias};
    }

    double norm_of(const pm::KeptRow<T>& row) const {
        const pm::DenseMatrix<T> X{row.values.data(), 1, std::int64_t(row.values.size()),
                                   stream_.set.bias};
        return pm::squared_norm(X, 0);
    }

    void check_weights(std::size_t rows, std::size_t columns) const {
        require(rows == std::size_t(stream_.set.d) + (stream_.set.bias != T(0) ? 1 : 0),
                "W has the wrong number of rows");
        require(columns >= stream_.born.size() && columns % pm::kLanes<T> == 0,
                "W has the wrong number of columns");
    }

    template <class Matrix>
    void norms(const Matrix& X, const Vector<double>& out) const {
        require(out.shape(0) == std::size_t(X.n), "out must have one entry per row");
        for (std::int64_t i = 0; i < X.n; ++i) out.data()[i] = pm::squared_norm(X, i);
    }

    // Everything is checked before the first step.
    template <class Matrix>
    void learn(const Matrix& X, const Vector<const std::int32_t>& y, const Vector<const double>& c,
               const Vector<const double>& norms, const Matrix2<T>& W, const Matrix2<T>& U) {
        check_weights(W.shape(0), W.shape(1));
        require(U.shape(0) == 0 || (U.shape(0) == W.shape(0) && U.shape(1) == W.shape(1)),
                "U has the wrong shape");
        require(y.shape(0) == std::size_t(X.n) && c.shape(0) == std::size_t(X.n) &&
                    norms.shape(0) == std::size_t(X.n),
                "y, c and norms must have one entry per row");
        for (std::int64_t i = 0; i < X.n; ++i) {
            if (!(c.data()[i] > 0)) continue;
            require(y.data()[i] >= 0 && y.data()[i] < n_classes(), "class code out of range");
        }
        nb::gil_scoped_release release;
        pm::with_loss(stream_.set.loss, [&](auto tag) {
            stream_.template learn<decltype(tag)>(X, y.data(), c.data(), norms.data(), W.data(),
                                                  U.shape(0) == 0 ? nullptr : U.data(),
                                                  std::int64_t(W.shape(1)));
        });
    }

    template <class Matrix>
    void scores(const Matrix& X, const Matrix2<const T>& W, const Matrix2<const T>& U,
                const Matrix2<T>& out) const {
        check_weights(W.shape(0), W.shape(1));
        require(U.shape(0) == 0 || (U.shape(0) == W.shape(0) && U.shape(1) == W.shape(1)),
                "U has the wrong shape");
        require(out.shape(0) == std::size_t(X.n) && out.shape(1) == stream_.born.size(),
                "out has the wrong shape");
        nb::gil_scoped_release release;
        const auto ld = std::int64_t(W.shape(1));
        std::vector<T> s(ld + pm::kLanes<T>), u(ld + pm::kLanes<T>);
        const T* averaged = U.shape(0) == 0 ? nullptr : U.data();
        for (std::int64_t i = 0; i < X.n; ++i) {
            stream_.scores(X, i, W.data(), averaged, ld, s, u);
            std::copy_n(s.data(), stream_.born.size(), out.data() + i * out.shape(1));
        }
    }

    pm::Stream<T> stream_;
};

template <class T, class I>
void bind_csr(nb::class_<StreamEngine<T>>& stream) {
    using S = StreamEngine<T>;
    stream
        .def("norms", &S::template norms_csr<I>, "data"_a.noconvert(), "indices"_a.noconvert(),
             "indptr"_a.noconvert(), "out"_a.noconvert())
        .def("learn", &S::template learn_csr<I>, "data"_a.noconvert(), "indices"_a.noconvert(),
             "indptr"_a.noconvert(), "y"_a.noconvert(), "c"_a.noconvert(), "norms"_a.noconvert(),
             "W"_a.noconvert(), "U"_a.noconvert())
        .def("scores", &S::template scores_csr<I>, "data"_a.noconvert(), "indices"_a.noconvert(),
             "indptr"_a.noconvert(), "W"_a.noconvert(), "U"_a.noconvert(), "out"_a.noconvert());
}

template <class T>
void bind(nb::module_& m, const char* name) {
    using S = StreamEngine<T>;
    nb::class_<S> stream(m, name);
    stream
        .def(nb::init<const std::string&, int, std::int64_t, double, std::int64_t, int,
                      std::uint64_t>(),
             "loss"_a, "top_k"_a, "d"_a, "bias"_a, "capacity"_a, "revisits"_a, "seed"_a)
        .def("add_class", &S::add_class, "model"_a,
             "A class that appears now; or, with model >= 0, one like that class so far.")
        .def_prop_ro("n_classes", &S::n_classes)
        .def_prop_ro("seen", &S::seen)
        .def_prop_ro("kept", &S::kept)
        .def("shares", &S::shares, "out"_a.noconvert())
        .def("counters", &S::counters)
        .def("export_state", &S::export_state)
        .def("import_state", &S::import_state)
        .def("norms", &S::norms_dense, "X"_a.noconvert(), "out"_a.noconvert(),
             "||x||^2 of the rows, with the constant feature.")
        .def("learn", &S::learn_dense, "X"_a.noconvert(), "y"_a.noconvert(), "c"_a.noconvert(),
             "norms"_a.noconvert(), "W"_a.noconvert(), "U"_a.noconvert(),
             "One step per row, in order; U (for averages) may have no rows.")
        .def("scores", &S::scores_dense, "X"_a.noconvert(), "W"_a.noconvert(), "U"_a.noconvert(),
             "out"_a.noconvert(), "Scores of the rows; of the averaged weights if U has rows.");
    bind_csr<T, std::int32_t>(stream);
    bind_csr<T, std::int64_t>(stream);
}

}  // namespace

void bind_stream(nb::module_& m) {
    bind<float>(m, "StreamF32");
    bind<double>(m, "StreamF64");
}
