// The Python face of streams: a class per type of the weights, batches of rows in any layout.
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "bindings/losses.hpp"
#include "bindings/rows.hpp"
#include "stream/stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

template <class T>
class StreamEngine {
  public:
    StreamEngine(const Loss& loss, std::int64_t d, double bias, std::int64_t capacity, int revisits,
                 std::uint64_t seed)
        : stream_(checked({loss.any, d, T(bias), capacity, revisits, seed})) {}

    StreamEngine(const StreamEngine&) = delete;
    StreamEngine& operator=(const StreamEngine&) = delete;

    void add_class(int model) {
        require(model < n_classes(), "no such class");
        stream_.add_class(model);
    }
    // The loss for all steps from now on: margins of classes that appeared.
    void set_loss(const Loss& loss) { stream_.set.loss = loss.any; }
    int n_classes() const { return static_cast<int>(stream_.born.size()); }
    std::int64_t seen() const { return stream_.seen; }
    std::int64_t kept() const { return stream_.filled; }

    void shares(Vector<T> out) const {
        require(out.shape(0) == stream_.born.size(), "shares must have one entry per class");
        for (int j = 0; j < n_classes(); ++j) out.data()[j] = stream_.share(j);
    }

    // One step for each of the rows first, first + 1, ...; everything is checked before the first.
    void learn(const Rows<T>& rows, std::int64_t first, Vector<const std::int32_t> y,
               Vector<const double> c, Vector<const double> norms, Matrix2<T> W, Matrix2<T> U) {
        const auto n = std::int64_t(y.shape(0));
        check_rows(rows, first, n);
        check_weights(W.shape(0), W.shape(1), U.shape(0), U.shape(1));
        require(c.shape(0) == std::size_t(n) && norms.shape(0) == std::size_t(n),
                "y, c and norms must have one entry per row");
        require(std::visit([&](const auto& l) { return pm::has_margins_for(l, n_classes()); },
                           stream_.set.loss),
                "there are more classes than margins");
        for (std::int64_t i = 0; i < n; ++i) {
            if (!(c.data()[i] > 0)) continue;
            require(y.data()[i] >= 0 && y.data()[i] < n_classes(), "class code out of range");
        }
        const auto matrix = rows.matrix(double(stream_.set.bias));
        nb::gil_scoped_release release;
        std::visit(
            [&](const auto& loss, const auto& X) {
                stream_.learn(loss, pm::part_of(X, first, n), y.data(), c.data(), norms.data(),
                              W.data(), U.shape(0) == 0 ? nullptr : U.data(),
                              std::int64_t(W.shape(1)));
            },
            stream_.set.loss, matrix);
    }

    void scores(const Rows<T>& rows, Matrix2<const T> W, Matrix2<const T> U, Matrix2<T> out) const {
        check_rows(rows, 0, rows.n());
        check_weights(W.shape(0), W.shape(1), U.shape(0), U.shape(1));
        require(out.shape(0) == std::size_t(rows.n()) && out.shape(1) == stream_.born.size(),
                "out has the wrong shape");
        const auto matrix = rows.matrix(double(stream_.set.bias));
        nb::gil_scoped_release release;
        const auto ld = std::int64_t(W.shape(1));
        std::vector<T> s(ld + pm::kLanes<T>), u(ld + pm::kLanes<T>);
        const T* averaged = U.shape(0) == 0 ? nullptr : U.data();
        std::visit(
            [&](const auto& X) {
                for (std::int64_t i = 0; i < X.n; ++i) {
                    stream_.scores(X, i, W.data(), averaged, ld, s, u);
                    std::copy_n(s.data(), stream_.born.size(), out.data() + i * out.shape(1));
                }
            },
            matrix);
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

    void check_rows(const Rows<T>& rows, std::int64_t first, std::int64_t n) const {
        require(rows.d() == stream_.set.d, "X has the wrong number of features");
        require(rows.canonical, "CSR rows must be sorted and without duplicates");
        require(first >= 0 && n >= 0 && first <= rows.n() - n, "there are not so many rows");
    }

    double norm_of(const pm::KeptRow<T>& row) const {
        return pm::sum_of_squares(row.values.data(), std::int64_t(row.values.size())) +
               double(stream_.set.bias) * double(stream_.set.bias);
    }

    void check_weights(std::size_t rows, std::size_t columns, std::size_t u_rows,
                       std::size_t u_columns) const {
        require(rows == std::size_t(stream_.set.d) + (stream_.set.bias != T(0) ? 1 : 0),
                "W has the wrong number of rows");
        require(columns >= stream_.born.size() && columns % pm::kLanes<T> == 0,
                "W has the wrong number of columns");
        require(u_rows == 0 || (u_rows == rows && u_columns == columns), "U has the wrong shape");
    }

    pm::Stream<T> stream_;
};

template <class T>
void bind(nb::module_& m, const char* name) {
    using S = StreamEngine<T>;
    nb::class_<S> stream(m, name);
    stream
        .def(nb::init<const Loss&, std::int64_t, double, std::int64_t, int, std::uint64_t>(),
             "loss"_a, nb::kw_only(), "n_features"_a, "intercept_scaling"_a, "capacity"_a,
             "revisits"_a, "seed"_a)
        .def("add_class", &S::add_class, "model"_a,
             "A class that appears now; or, with model >= 0, one like that class so far.")
        .def("set_loss", &S::set_loss, "loss"_a)
        .def_prop_ro("n_classes", &S::n_classes)
        .def_prop_ro("seen", &S::seen)
        .def_prop_ro("kept", &S::kept)
        .def("shares", &S::shares, "out"_a.noconvert())
        .def("counters", &S::counters)
        .def("export_state", &S::export_state)
        .def("import_state", &S::import_state)
        .def("learn", &S::learn, "rows"_a, "first"_a, "y"_a.noconvert(), "c"_a.noconvert(),
             "norms"_a.noconvert(), "W"_a.noconvert(), "U"_a.noconvert(),
             "One step per row, in order; U (for averages) may have no rows.")
        .def("scores", &S::scores, "rows"_a, "W"_a.noconvert(), "U"_a.noconvert(),
             "out"_a.noconvert(), "Scores of the rows; of the averaged weights if U has rows.");
}

}  // namespace

void bind_stream(nb::module_& m) {
    bind<float>(m, "StreamF32");
    bind<double>(m, "StreamF64");
}
