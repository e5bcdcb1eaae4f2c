// The Python face of streams: a class per type of the weights, batches of rows in any layout.
//
// A stream is learned from by one thread at a time, and looked at by any number of others: every
// method is one step, before or after those of other threads. Whoever waits does so without the
// GIL.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <vector>

#include "bindings/losses.hpp"
#include "bindings/rows.hpp"
#include "stream/stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

// All that there is to know of a stream but its settings, at one moment.
template <class T>
struct Snapshot {
    std::int64_t seen, filled, oldest;
    std::uint64_t drawn;
    std::vector<T> W, U;  // the columns of classes
    std::vector<std::int64_t> born, lengths;
    std::vector<T> values;
    std::vector<std::int32_t> indices, y;
    std::vector<double> c;
    std::vector<T> threshold;
    std::vector<std::int32_t> classes;
    std::vector<T> p;
};

template <class T>
class StreamEngine {
  public:
    StreamEngine(const Loss& loss, std::int64_t d, double bias, std::int64_t capacity, int revisits,
                 std::uint64_t seed, Matrix2<T> W, Matrix2<T> U)
        : stream_(checked({loss.any, d, T(bias), capacity, revisits, seed})) {
        set_weights(W, U);
    }

    StreamEngine(const StreamEngine&) = delete;
    StreamEngine& operator=(const StreamEngine&) = delete;

    // These arrays take the place of W and U; U (for averages) may have no rows.
    void set_weights(Matrix2<T> W, Matrix2<T> U) {
        const nb::gil_scoped_release release;
        const std::unique_lock alone(turn_);
        check_weights(W.shape(0), W.shape(1), U.shape(0), U.shape(1));
        weights_ = {W.data(), U.shape(0) == 0 ? nullptr : U.data(), std::int64_t(W.shape(1))};
        std::swap(W_, W);  // what they were is let go of by the caller, with the GIL
        std::swap(U_, U);
    }
    Matrix2<T> W() const {
        return looked_at([&] { return W_; });
    }
    Matrix2<T> U() const {
        return looked_at([&] { return U_; });
    }

    // A class that appears now; or, with model >= 0, one like that class so far. The weights must
    // have a column for it.
    void add_class(int model) {
        const nb::gil_scoped_release release;
        const std::unique_lock alone(turn_);
        const auto fresh = width();
        require(model < fresh, "no such class");
        require(fresh < weights_.ld, "the weights have no column for another class");
        for (T* weights : {weights_.W, weights_.U}) {
            if (weights == nullptr || model < 0) continue;
            for (std::int64_t f = 0; f < n_rows(); ++f)
                weights[f * weights_.ld + fresh] = weights[f * weights_.ld + model];
        }
        stream_.add_class(model);
    }
    // The loss for all steps from now on: margins of classes that appeared.
    void set_loss(const Loss& loss) {
        const nb::gil_scoped_release release;
        const std::unique_lock alone(turn_);
        stream_.set.loss = loss.any;
    }
    int n_classes() const {
        return looked_at([&] { return width(); });
    }
    std::int64_t seen() const {
        return looked_at([&] { return stream_.seen; });
    }
    std::int64_t kept() const {
        return looked_at([&] { return stream_.filled; });
    }

    // One step for each of the rows first, first + 1, ...; everything is checked before the first.
    void learn(const Rows<T>& rows, std::int64_t first, Vector<const std::int32_t> y,
               Vector<const double> c, Vector<const double> norms) {
        const auto n = std::int64_t(y.shape(0));
        check_rows(rows, first, n);
        require(c.shape(0) == std::size_t(n) && norms.shape(0) == std::size_t(n),
                "y, c and norms must have one entry per row");
        const auto matrix = rows.matrix(double(stream_.set.bias));
        const nb::gil_scoped_release release;
        const std::unique_lock alone(turn_);
        require(pm::has_margins_for(*stream_.set.loss, width()),
                "there are more classes than margins");
        for (std::int64_t i = 0; i < n; ++i) {
            if (!(c.data()[i] > 0)) continue;
            require(y.data()[i] >= 0 && y.data()[i] < width(), "class code out of range");
        }
        std::visit(
            [&](const auto& X) {
                stream_.learn(pm::part_of(X, first, n), y.data(), c.data(), norms.data(),
                              weights_.W, weights_.U, weights_.ld);
            },
            matrix);
    }

    Matrix2<T> scores(const Rows<T>& rows) const {
        check_rows(rows, 0, rows.n());
        const auto matrix = rows.matrix(double(stream_.set.bias));
        const auto n = std::size_t(rows.n());
        std::size_t classes = 0;
        auto out = looked_at([&] {
            classes = std::size_t(width());
            const auto ld = weights_.ld;
            std::vector<T> s(ld + pm::kLanes<T>), u(ld + pm::kLanes<T>), all(n * classes);
            std::visit(
                [&](const auto& X) {
                    for (std::int64_t i = 0; i < X.n; ++i) {
                        stream_.scores(X, i, weights_.W, weights_.U, ld, s, u);
                        std::copy_n(s.data(), classes, all.data() + std::size_t(i) * classes);
                    }
                },
                matrix);
            return all;
        });
        return matrix_of(std::move(out), n, classes);
    }

    // The model, (features and constant feature, classes).
    Matrix2<T> model() const {
        std::size_t classes = 0;
        auto out = looked_at([&] {
            classes = std::size_t(width());
            auto W = columns_of(weights_.W);
            if (weights_.U == nullptr) return W;
            std::vector<T> shares(classes);
            for (std::size_t j = 0; j < classes; ++j) shares[j] = stream_.share(int(j));
            for (std::int64_t f = 0; f < n_rows(); ++f)
                for (std::size_t j = 0; j < classes; ++j)
                    W[std::size_t(f) * classes + j] -= weights_.U[f * weights_.ld + j] * shares[j];
            return W;
        });
        return matrix_of(std::move(out), std::size_t(n_rows()), classes);
    }

    // Four counters, then arrays, in the order in which import_state takes them; W and U last.
    nb::tuple export_state() const {
        auto now = looked_at([&] { return snapshot(); });
        const auto rows = std::size_t(n_rows()), classes = now.born.size();
        const auto u_rows = now.U.empty() ? std::size_t(0) : rows;
        return nb::make_tuple(now.seen, now.filled, now.oldest, now.drawn,
                              vector_of(std::move(now.born)), vector_of(std::move(now.lengths)),
                              vector_of(std::move(now.values)), vector_of(std::move(now.indices)),
                              vector_of(std::move(now.y)), vector_of(std::move(now.c)),
                              vector_of(std::move(now.threshold)),
                              vector_of(std::move(now.classes)), vector_of(std::move(now.p)),
                              matrix_of(std::move(now.W), rows, classes),
                              matrix_of(std::move(now.U), u_rows, classes));
    }

    // The state of another stream, apart from its weights.
    void import_state(std::int64_t seen, std::int64_t filled, std::int64_t oldest,
                      std::uint64_t drawn, Vector<const std::int64_t> born,
                      Vector<const std::int64_t> lengths, Vector<const T> values,
                      Vector<const std::int32_t> indices, Vector<const std::int32_t> y,
                      Vector<const double> c, Vector<const T> threshold,
                      Vector<const std::int32_t> classes, Vector<const T> p) {
        const nb::gil_scoped_release release;
        const std::unique_lock alone(turn_);
        require(std::int64_t(born.shape(0)) <= weights_.ld, "W has the wrong number of columns");
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
                require(cls >= 0 && cls < width(), "class code out of range");
                entries[k] = {cls, p.data()[e + k]};
            }
            require(y.data()[i] >= 0 && y.data()[i] < width(), "class code out of range");
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
        require(rows == std::size_t(n_rows()), "W has the wrong number of rows");
        require(columns >= stream_.born.size() && columns % pm::kLanes<T> == 0,
                "W has the wrong number of columns");
        require(u_rows == 0 || (u_rows == rows && u_columns == columns), "U has the wrong shape");
    }

    // Features, and the constant one if there is one.
    std::int64_t n_rows() const { return stream_.set.d + (stream_.set.bias != T(0) ? 1 : 0); }

    // What `look` finds, while nobody changes anything.
    template <class Look>
    auto looked_at(const Look& look) const {
        const nb::gil_scoped_release release;
        const std::shared_lock among_readers(turn_);
        return look();
    }

    // For who has a turn:

    int width() const { return static_cast<int>(stream_.born.size()); }

    std::vector<T> columns_of(const T* weights) const {
        const auto classes = stream_.born.size();
        std::vector<T> out(weights == nullptr ? 0 : std::size_t(n_rows()) * classes);
        for (std::size_t f = 0; f * classes < out.size(); ++f)
            std::copy_n(weights + f * std::size_t(weights_.ld), classes, out.data() + f * classes);
        return out;
    }

    Snapshot<T> snapshot() const {
        Snapshot<T> now;
        now.seen = stream_.seen;
        now.filled = stream_.filled;
        now.oldest = stream_.oldest;
        now.drawn = stream_.drawn;
        now.W = columns_of(weights_.W);
        now.U = columns_of(weights_.U);
        now.born = stream_.born;
        for (std::int64_t i = 0; i < stream_.filled; ++i) {
            const auto& row = stream_.kept[i];
            const int count = stream_.dual.count(i);
            for (const std::size_t length :
                 {row.values.size(), row.indices.size(), std::size_t(count)})
                now.lengths.push_back(std::int64_t(length));
            now.values.insert(now.values.end(), row.values.begin(), row.values.end());
            now.indices.insert(now.indices.end(), row.indices.begin(), row.indices.end());
            for (int k = 0; k < count; ++k) {
                now.classes.push_back(stream_.dual.row(i)[k].cls);
                now.p.push_back(stream_.dual.row(i)[k].p);
            }
        }
        now.y.assign(stream_.y.begin(), stream_.y.begin() + stream_.filled);
        now.c.assign(stream_.c.begin(), stream_.c.begin() + stream_.filled);
        now.threshold.assign(stream_.threshold.begin(), stream_.threshold.begin() + stream_.filled);
        return now;
    }

    struct Weights {
        T* W = nullptr;
        T* U = nullptr;
        std::int64_t ld = 0;
    };

    pm::Stream<T> stream_;
    Weights weights_;  // of W_ and U_, which are for Python and need the GIL
    Matrix2<T> W_, U_;
    mutable pm::ReadersOrWriter turn_;
};

template <class T>
void bind(nb::module_& m, const char* name) {
    using S = StreamEngine<T>;
    nb::class_<S> stream(m, name);
    stream
        .def(nb::init<const Loss&, std::int64_t, double, std::int64_t, int, std::uint64_t,
                      Matrix2<T>, Matrix2<T>>(),
             "loss"_a, nb::kw_only(), "n_features"_a, "intercept_scaling"_a, "capacity"_a,
             "revisits"_a, "seed"_a, "W"_a.noconvert(), "U"_a.noconvert())
        .def("set_weights", &S::set_weights, "W"_a.noconvert(), "U"_a.noconvert(),
             "Take the place of W and U, from now on; U (for averages) may have no rows.")
        .def_prop_ro("W", &S::W)
        .def_prop_ro("U", &S::U)
        .def("add_class", &S::add_class, "model"_a,
             "A class that appears now; or, with model >= 0, one like that class so far.")
        .def("set_loss", &S::set_loss, "loss"_a)
        .def_prop_ro("n_classes", &S::n_classes)
        .def_prop_ro("seen", &S::seen)
        .def_prop_ro("kept", &S::kept)
        .def("model", &S::model, "The weights, or their averages: a column per class.")
        .def("export_state", &S::export_state)
        .def("import_state", &S::import_state)
        .def("learn", &S::learn, "rows"_a, "first"_a, "y"_a.noconvert(), "c"_a.noconvert(),
             "norms"_a.noconvert(), "One step per row, in order.")
        .def("scores", &S::scores, "rows"_a,
             "Scores of the rows, a column per class; of the averaged weights if U has rows.");
}

}  // namespace

void bind_stream(nb::module_& m) {
    bind<float>(m, "StreamF32");
    bind<double>(m, "StreamF64");
}
