// The Python face of the linear engine: sweeps over rows, the weights taken without copies, the GIL
// released around everything that loops over examples.
#include <nanobind/stl/tuple.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/blocks.hpp"
#include "bindings/rows.hpp"
#include "sweeps/extrapolate.hpp"
#include "sweeps/objective.hpp"
#include "sweeps/rebuild.hpp"
#include "sweeps/spread.hpp"
#include "sweeps/sweep_blocked.hpp"
#include "sweeps/sweep_by_class.hpp"
#include "sweeps/sweep_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

template <class T>
std::tuple<double, double, double> extrapolate(Matrix2<T> W, Matrix2<T> Y, Matrix2<T> previous,
                                               Matrix2<T> mean, double kappa, double beta,
                                               double blend, pm::Team& team) {
    const auto size = static_cast<std::int64_t>(W.size());
    require(Y.size() == W.size() && previous.size() == W.size() && mean.size() == W.size(),
            "arrays differ in size");
    require(size % pm::kLanes<T> == 0, "W has the wrong number of columns");
    nb::gil_scoped_release release;
    const auto norms = pm::extrapolate(W.data(), Y.data(), previous.data(), mean.data(), size,
                                       kappa, beta, blend, team);
    return {norms.w, norms.v, norms.both};
}

template <class T>
std::tuple<double, double, double> extrapolate_alone(Matrix2<T> W, Matrix2<T> Y,
                                                     Matrix2<T> previous, Matrix2<T> mean,
                                                     double kappa, double beta, double blend) {
    pm::Team nobody_else(1);
    return extrapolate<T>(W, Y, previous, mean, kappa, beta, blend, nobody_else);
}

template <class T>
class LinearEngine : public Blocks<T> {
  public:
    LinearEngine(const Loss& loss, const Rows<T>& rows, nb::object keep_rows,
                 double intercept_scaling, int n_classes, Vector<const std::int32_t> y,
                 Vector<const double> c, Vector<const double> squared_norms, Vector<T> threshold,
                 Vector<double> gap)
        : Blocks<T>(loss, n_classes, y, c, squared_norms, threshold, gap),
          keep_rows_(std::move(keep_rows)),
          X_(rows.matrix(intercept_scaling)),
          n_weights_(std::size_t(rows.d()) + (intercept_scaling != 0 ? 1 : 0)) {
        require(rows.n() == this->dual_.size(), "X and y differ in length");
        require(rows.canonical, "CSR rows must be sorted and without duplicates");
    }

    // The rows of these examples are those to look at from now on; of everyone, if there are none.
    void hold(const Rows<T>& rows, nb::object keep_rows, Vector<const std::int64_t> examples) {
        require(std::size_t(rows.d()) == std::visit([](auto& X) { return std::size_t(X.d); }, X_),
                "the rows have the wrong number of features");
        const bool everyone = examples.shape(0) == 0;
        require(rows.n() == (everyone ? this->dual_.size() : std::int64_t(examples.shape(0))),
                "a row must have one example");
        require(rows.canonical, "CSR rows must be sorted and without duplicates");
        const double bias = std::visit([](auto& X) { return double(X.bias); }, X_);
        X_ = rows.matrix(bias);
        if (!everyone) {
            require(rows.n() <= std::numeric_limits<std::int32_t>::max(), "too many rows at once");
            this->check_order(examples);
            const auto n = std::size_t(this->dual_.size());
            pm::making("the places of the rows in memory", double(n) * sizeof(std::int32_t),
                       [&] { place_.resize(n); });
            for (std::int64_t r = 0; r < rows.n(); ++r)
                place_[std::size_t(examples.data()[r])] = std::int32_t(r);
            std::visit([&](auto& X) { X.held = {examples.data(), place_.data()}; }, X_);
        }
        keep_rows_ = std::move(keep_rows);
        examples_held_ = examples;
    }

    // Classes that do not depend on each other are cut into so many ranges, each one thread's.
    void cut_classes(int ranges) {
        require(!this->visitor_.coupled, "the classes of this loss depend on each other");
        require(ranges >= 1 && (ranges == 1 || this->examples_.violation == nullptr),
                "ranges of classes have no violation");
        nb::gil_scoped_release release;
        this->dual_.cut(ranges, this->examples_.y);
    }

    std::tuple<double, double, double, std::int64_t, std::int64_t> sweep(
        Matrix2<T> W, Vector<const std::int64_t> order, const std::string& mode, double scale,
        double constant, int threads) {
        require(constant > 0 && constant <= 1, "the constant feature moves by a part of its value");
        check_weights(W.shape(0), W.shape(1));
        this->check_order(order);
        check_held(order);
        const bool dense = std::holds_alternative<pm::DenseMatrix<T>>(X_);
        require(mode == "rows" || mode == "listed" ||
                    (dense && (mode == "blocked" || mode == "by_class")),
                "sweep mode must be rows, listed or, for dense data, blocked or by_class");
        nb::gil_scoped_release release;
        const auto ld = static_cast<std::int64_t>(W.shape(1));
        const auto count = static_cast<std::int64_t>(order.shape(0));
        const double bytes = double(W.size()) * sizeof(T);  // a copy of W at most
        const auto totals = pm::making("the buffers of a sweep", bytes, [&] {
            pm::Team& team = team_.of(threads);
            return std::visit(
                [&](auto X) {
                    auto all = this->examples_;
                    all.held_back = (1 - constant) * double(X.bias) * double(X.bias);
                    X.bias_step = T(constant * double(X.bias));
                    constexpr bool is_dense =
                        std::is_same_v<std::decay_t<decltype(X)>, pm::DenseMatrix<T>>;
                    const auto& visitor = this->visitor_;
                    const bool listed = mode == "listed" && !visitor.dense_rows;
                    if constexpr (is_dense)
                        if (mode == "blocked")
                            return pm::sweep_blocked(visitor, X, all, this->dual_, W.data(), ld,
                                                     order.data(), count, scale, team);
                    return pm::sweep_ranges(
                        this->dual_, all, ld, order.data(), count, team,
                        [&](auto& dual, const auto& ex, std::int64_t first, std::int64_t width) {
                            T* columns = W.data() + first;
                            if constexpr (is_dense) {
                                if (mode == "by_class")
                                    return pm::sweep_all_by_class(visitor, X, ex, dual, columns, ld,
                                                                  width, order.data(), count,
                                                                  scale);
                                if (listed && count >= ex.n_classes)  // worth a copy of W
                                    return pm::sweep_listed_by_class(visitor, X, ex, dual, columns,
                                                                     ld, width, order.data(), count,
                                                                     scale);
                            }
                            if (listed)
                                return pm::sweep_listed_classes(visitor, X, ex, dual, columns, ld,
                                                                width, order.data(), count, scale);
                            return pm::sweep_all_classes(visitor, X, ex, dual, columns, ld, width,
                                                         order.data(), count, scale);
                        });
                },
                X_);
        });
        return {totals.gap, totals.loss, totals.dual, totals.moved, totals.entries};
    }

    void evaluate(Matrix2<const T> W, int threads, Vector<double> loss, Vector<double> gap,
                  Vector<const double> factors, Vector<double> sums) {
        check_weights(W.shape(0), W.shape(1));
        require(sums.shape(0) == factors.shape(0), "a sum per factor expected");
        const auto n = std::size_t(this->dual_.size());
        require(loss.shape(0) == n && gap.shape(0) == n,
                "loss and gap must have one entry per row");
        nb::gil_scoped_release release;
        const auto ld = static_cast<std::int64_t>(W.shape(1));
        const auto count = factors.shape(0);
        const double bytes = double(n) / pm::kRowsSummed * double(count + 1) * sizeof(double);
        pm::making("the sums of a certificate", bytes, [&] {
            std::visit(
                [&](const auto& X) {
                    std::vector<double> parts((X.n / pm::kRowsSummed + 1) * count, 0.0);
                    pm::evaluate_examples(this->visitor_, X, W.data(), ld, this->examples_,
                                          this->dual_, team_.of(threads), loss.data(), gap.data(),
                                          {factors.data(), static_cast<int>(count), parts.data()});
                    for (std::size_t at = 0; at < parts.size(); ++at)
                        sums.data()[at % count] += parts[at];
                },
                X_);
        });
    }

    std::tuple<double, double, double> extrapolate_weights(Matrix2<T> W, Matrix2<T> Y,
                                                           Matrix2<T> previous, Matrix2<T> mean,
                                                           double kappa, double beta, double blend,
                                                           int threads) {
        return extrapolate<T>(W, Y, previous, mean, kappa, beta, blend, team_.of(threads));
    }

    void rebuild(Matrix2<double> V, int first, int last, int threads) {
        require(V.shape(0) == n_weights_ && first >= 0 && first <= last &&
                    last <= this->examples_.n_classes && V.shape(1) >= std::size_t(last - first),
                "V has the wrong shape");
        nb::gil_scoped_release release;
        pm::making("the weights of the dual", double(V.size()) * sizeof(double), [&] {
            std::visit(
                [&](const auto& X) {
                    const auto part = [&](int begin, int end) {
                        pm::rebuild_weights(X, this->examples_, this->visitor_.coupled, this->dual_,
                                            begin, end, V.data() + (begin - first),
                                            std::int64_t(V.shape(1)));
                    };
                    // products of matrices would be cut into others, with other roundings
                    if (std::is_same_v<std::decay_t<decltype(X)>, pm::DenseMatrix<T>>)
                        return part(first, last);
                    team_.of(threads).ranges(
                        last - first, 1, [&](int, std::int64_t begin, std::int64_t end) {
                            part(first + static_cast<int>(begin), first + static_cast<int>(end));
                        });
                },
                X_);
        });
    }

    void spread_weights(Matrix2<T> V) {
        check_weights(V.shape(0), V.shape(1));
        nb::gil_scoped_release release;
        std::visit(
            [&](const auto& X) {
                pm::spread_weights(X, this->examples_, V.data(), std::int64_t(V.shape(1)));
            },
            X_);
    }

    void spread_dual(double share) {
        require(this->dual_.whole().dense(), "the dual of this loss has lists");
        require(share >= 0 && share * this->examples_.n_classes <= 1, "the share is too large");
        nb::gil_scoped_release release;
        pm::spread_dual(this->examples_, this->dual_.whole(), share);
    }

  private:
    void check_weights(std::size_t rows, std::size_t columns) const {
        require(rows == n_weights_, "W has the wrong number of rows");
        require(columns >= std::size_t(this->examples_.n_classes) && columns % pm::kLanes<T> == 0,
                "W has the wrong number of columns");
    }

    void check_held(const Vector<const std::int64_t>& order) const {
        std::visit(
            [&](const auto& X) {
                for (std::size_t at = 0; at < order.shape(0); ++at) {
                    const auto i = order.data()[at], r = X.held.row_of(i);
                    require(r < X.n && X.held.example_at(r) == i, "order has an example not held");
                }
            },
            X_);
    }

    nb::object keep_rows_;
    Vector<const std::int64_t> examples_held_;
    std::vector<std::int32_t> place_;  // of the examples among the rows held; of others, anything
    pm::AnyMatrix<T> X_;
    std::size_t n_weights_;
    pm::TeamOfProcess team_;
};

template <class T>
double squared_norm(Matrix2<const T> W) {
    nb::gil_scoped_release release;
    return pm::sum_of_squares(W.data(), static_cast<std::int64_t>(W.size()));
}

template <class T>
void bind(nb::module_& m, const char* blocks, const char* name) {
    using E = LinearEngine<T>;
    bind_blocks<T>(m, blocks);
    nb::class_<E, Blocks<T>>(m, name)
        .def(
            "hold",
            [](E& engine, nb::handle_t<Rows<T>> rows, Vector<const std::int64_t> examples) {
                const pm::OneUser::Use use(engine);
                engine.hold(nb::cast<Rows<T>&>(rows), nb::borrow(rows), examples);
            },
            "rows"_a, "examples"_a.noconvert(),
            "From now on, look at these rows, of these examples; without examples, of everyone.")
        .def("cut_classes", alone(&E::cut_classes), "ranges"_a,
             "Cut the classes, which must not be coupled, into ranges, each one thread's.")
        .def("sweep", alone(&E::sweep), "W"_a.noconvert(), "order"_a.noconvert(), "mode"_a,
             "scale"_a, "constant"_a, "threads"_a,
             "One sweep over order; the constant feature moves by this part of its value. Returns "
             "(gap seen, loss seen, change of the dual's sum, "
             "examples "
             "moved, dual entries of those visited).")
        .def("evaluate", alone(&E::evaluate), "W"_a.noconvert(), "threads"_a, "loss"_a.noconvert(),
             "gap"_a.noconvert(), "factors"_a.noconvert(), "sums"_a.noconvert(),
             "Loss and share of the gap of every example at W; adds to `sums` the losses at these "
             "multiples of W.")
        .def("extrapolate", alone(&E::extrapolate_weights), "W"_a.noconvert(), "Y"_a.noconvert(),
             "previous"_a.noconvert(), "mean"_a.noconvert(), "kappa"_a, "beta"_a, "blend"_a,
             "threads"_a, "The outer step on several threads.")
        .def("rebuild", alone(&E::rebuild), "V"_a.noconvert(), "first"_a, "last"_a, "threads"_a,
             "Adds sum_i x_i a_i^T for the classes first..last to the first columns of V.")
        .def("spread_weights", alone(&E::spread_weights), "V"_a.noconvert(),
             "Makes V, which is zero, that of p_ij = c_i for all wrong classes.")
        .def("spread_dual", alone(&E::spread_dual), "share"_a,
             "Sets p_ij = share * c_i for all wrong classes, of losses with a dense dual.");
    m.def(
        "linear_engine",
        [](nb::handle_t<Rows<T>> rows, const Loss& loss, double intercept_scaling, int n_classes,
           Vector<const std::int32_t> y, Vector<const double> c, Vector<const double> squared_norms,
           Vector<T> threshold, Vector<double> gap) {
            return new E(loss, nb::cast<Rows<T>&>(rows), nb::borrow(rows), intercept_scaling,
                         n_classes, y, c, squared_norms, threshold, gap);
        },
        nb::rv_policy::take_ownership, "rows"_a, "loss"_a, nb::kw_only(), "intercept_scaling"_a,
        "n_classes"_a, "y"_a.noconvert(), "c"_a.noconvert(), "squared_norms"_a.noconvert(),
        "threshold"_a.noconvert(), "gap"_a.noconvert());
    m.def("squared_norm", &squared_norm<T>, "W"_a.noconvert(),
          "The sum of squares, accumulated in double.");
    m.def("extrapolate", &extrapolate_alone<T>, "W"_a.noconvert(), "Y"_a.noconvert(),
          "previous"_a.noconvert(), "mean"_a.noconvert(), "kappa"_a, "beta"_a, "blend"_a,
          "The outer step; returns ||W||^2, ||V||^2 and W.V before it.");
}

}  // namespace

void bind_linear(nb::module_& m) {
    bind<float>(m, "BlocksF32", "LinearEngineF32");
    bind<double>(m, "BlocksF64", "LinearEngineF64");
}
