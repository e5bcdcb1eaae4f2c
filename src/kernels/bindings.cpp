// The Python face of the kernels: flat functions and two small classes, arrays taken without
// copies, the GIL released around everything that loops over examples.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "cpu.hpp"
#include "extrapolate.hpp"
#include "losses.hpp"
#include "objective.hpp"
#include "restricted/methods.hpp"
#include "sweep_blocked.hpp"
#include "sweep_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, class... Shape>
using Array = nb::ndarray<T, nb::numpy, nb::c_contig, nb::device::cpu, Shape...>;
template <class T>
using Vector = Array<T, nb::ndim<1>>;
template <class T>
using Matrix2 = Array<T, nb::ndim<2>>;

pm::LossKind loss_kind(const std::string& name) {
    if (name == "crammer_singer") return pm::LossKind::crammer_singer;
    if (name == "weston_watkins") return pm::LossKind::weston_watkins;
    if (name == "top_k_alpha") return pm::LossKind::top_k_alpha;
    if (name == "top_k_beta") return pm::LossKind::top_k_beta;
    if (name == "one_vs_rest") return pm::LossKind::one_vs_rest;
    throw std::invalid_argument("unknown loss: " + name);
}

void require(bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
}

template <class T>
pm::Method<T> named_method(pm::LossKind loss, const std::string& name) {
    pm::Method<T> method = nullptr;
    require(pm::find_method(loss, name, method), "no such method for this loss");
    return method;
}

std::vector<std::string> restricted_methods(const std::string& loss) {
    std::vector<std::string> names;
    for (const auto& entry : pm::kMethods<double>)
        if (entry.loss == loss_kind(loss)) names.emplace_back(entry.name);
    return names;
}

// Rows of B: the restricted problem of each, from what P holds, into P.
template <class T>
void solve_restricted(const std::string& loss, int top_k, const std::string& method, double tol,
                      Matrix2<const T> B, Vector<const double> c, Vector<const T> guess,
                      Matrix2<T> P) {
    const std::int64_t rows = B.shape(0);
    const int m = static_cast<int>(B.shape(1));
    require(P.shape(0) == B.shape(0) && P.shape(1) == B.shape(1), "B and P differ in shape");
    require(c.shape(0) == B.shape(0) && guess.shape(0) == B.shape(0),
            "c and guess must have one entry per row of B");
    const auto kind = loss_kind(loss);
    const auto solve = named_method<T>(kind, method);
    const bool top = kind == pm::LossKind::top_k_alpha || kind == pm::LossKind::top_k_beta;
    require(m >= 1 && (!top || (top_k >= 1 && top_k <= m)), "top_k must lie in 1..classes - 1");
    nb::gil_scoped_release release;
    const int padded = pm::round_up_lanes<T>(m);
    std::vector<T> b(padded), p(padded);
    pm::Block<T> block(padded);
    pm::MethodWork<T> work;
    pm::with_loss(kind, [&](auto tag) {
        using Loss = decltype(tag);
        for (std::int64_t i = 0; i < rows; ++i) {
            T* row = P.data() + i * m;
            const double bound = c.data()[i];
            const T hint = guess.data()[i];
            std::copy_n(B.data() + i * m, m, b.data());
            std::fill(b.begin() + m, b.end(), -pm::kInfinity<T>);
            std::copy_n(row, m, p.data());
            if (solve == nullptr)
                Loss::template solve<T>(b.data(), padded, bound, top_k, hint, block);
            else
                solve({b.data(), p.data(), padded, bound, top_k, tol, hint}, block, work);
            std::fill_n(row, m, T(0));
            for (int e = 0; e < block.count; ++e) row[block.classes[e]] = block.p[e];
        }
    });
}

template <class T>
std::tuple<double, double, double> extrapolate(Matrix2<T> W, Matrix2<T> Y, Matrix2<T> previous,
                                               Matrix2<T> mean, double kappa, double beta,
                                               double blend) {
    const auto size = static_cast<std::int64_t>(W.size());
    require(Y.size() == W.size() && previous.size() == W.size() && mean.size() == W.size(),
            "arrays differ in size");
    require(size % pm::kLanes<T> == 0, "W has the wrong number of columns");
    nb::gil_scoped_release release;
    const auto norms =
        pm::extrapolate(W.data(), Y.data(), previous.data(), mean.data(), size, kappa, beta, blend);
    return {norms.w, norms.v, norms.both};
}

// One problem's arrays, held for as long as Python holds the engine.
template <class T>
class Engine {
  public:
    Engine(const std::string& loss, int top_k, int n_classes, Vector<const std::int32_t> y,
           Vector<const double> c, Vector<const double> squared_norm, Vector<T> threshold,
           Vector<double> gap)
        : kind_(loss_kind(loss)),
          dual_(static_cast<std::int64_t>(y.shape(0))),
          y_(y),
          c_(c),
          squared_norm_(squared_norm),
          threshold_(threshold),
          gap_(gap) {
        const auto n = y.shape(0);
        require(c.shape(0) == n && squared_norm.shape(0) == n && threshold.shape(0) == n &&
                    gap.shape(0) == n,
                "per-example arrays differ in length");
        for (std::size_t i = 0; i < n; ++i)
            require(y.data()[i] >= 0 && y.data()[i] < n_classes, "class code out of range");
        examples_ = {y.data(),  c.data(), squared_norm.data(), threshold.data(), gap.data(),
                     n_classes, top_k};
    }
    virtual ~Engine() = default;

    virtual std::tuple<double, double, double, std::int64_t, std::int64_t> sweep(
        Matrix2<T> W, Vector<const std::int64_t> order, const std::string& mode, double scale,
        int threads) = 0;
    virtual void evaluate(Matrix2<const T> W, int threads, Vector<double> loss,
                          Vector<double> gap) = 0;
    virtual void rebuild(Matrix2<double> V, int first, int last) = 0;

    void set_method(const std::string& name, double tol) {
        examples_.method = named_method<T>(kind_, name);
        examples_.method_tol = tol;
    }
    // From now on every visit writes the block's violation there.
    void track_violation(Vector<double> violation) {
        require(kind_ != pm::LossKind::top_k_alpha && kind_ != pm::LossKind::top_k_beta,
                "top-k losses have no violation");
        require(violation.shape(0) == std::size_t(dual_.size()),
                "violation must have one entry per row");
        violation_ = violation;
        examples_.violation = violation.data();
    }
    // Marks the examples with a class strictly between its bounds: those that a vertex holds are
    // p = 0, and p = c for one class (Crammer-Singer) or for any (the others).
    void dual_free(Vector<bool> free) const {
        require(free.shape(0) == std::size_t(dual_.size()), "free must have one entry per row");
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            const auto* row = dual_.row(i);
            bool inside = false;
            for (int e = 0; e < dual_.count(i); ++e)
                inside |= row[e].p > T(0) && !pm::at_bound<T>(double(row[e].p), examples_.c[i]);
            free.data()[i] = inside;
        }
    }

    double dual_sum() const {
        nb::gil_scoped_release release;
        return pm::dual_sum(dual_);
    }

    // Nonzeros per row, then the entries, rows in order: the dual as CSR arrays.
    void dual_counts(Vector<std::int64_t> counts) const {
        require(counts.shape(0) == std::size_t(dual_.size()), "counts must have one entry per row");
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            const auto* row = dual_.row(i);
            std::int64_t nonzero = 0;
            for (int e = 0; e < dual_.count(i); ++e) nonzero += row[e].p != T(0);
            counts.data()[i] = nonzero;
        }
    }
    void dual_export(Vector<std::int32_t> classes, Vector<T> values) const {
        std::size_t at = 0;
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            const auto* row = dual_.row(i);
            for (int e = 0; e < dual_.count(i); ++e) {
                if (row[e].p == T(0)) continue;
                require(at < classes.shape(0) && at < values.shape(0), "arrays too short");
                classes.data()[at] = row[e].cls;
                values.data()[at++] = row[e].p;
            }
        }
    }
    void dual_import(Vector<const std::int64_t> indptr, Vector<const std::int32_t> classes,
                     Vector<const T> values) {
        require(indptr.shape(0) == std::size_t(dual_.size()) + 1, "indptr must have n + 1 entries");
        for (std::int64_t i = 0; i < dual_.size(); ++i) {
            const auto begin = indptr.data()[i], end = indptr.data()[i + 1];
            require(begin >= 0 && begin <= end && std::size_t(end) <= classes.shape(0) &&
                        std::size_t(end) <= values.shape(0),
                    "indptr points outside the arrays");
            auto* row = dual_.resize(i, static_cast<int>(end - begin));
            for (auto e = begin; e < end; ++e) {
                const auto cls = classes.data()[e];
                require(cls >= 0 && cls < examples_.n_classes, "class code out of range");
                row[e - begin] = {cls, values.data()[e]};
            }
        }
    }

  protected:
    void check_weights(std::size_t rows, std::size_t columns, std::int64_t features,
                       bool bias) const {
        require(rows == std::size_t(features) + (bias ? 1 : 0), "W has the wrong number of rows");
        require(columns >= std::size_t(examples_.n_classes) && columns % pm::kLanes<T> == 0,
                "W has the wrong number of columns");
    }
    void check_order(const Vector<const std::int64_t>& order) const {
        for (std::size_t at = 0; at < order.shape(0); ++at)
            require(order.data()[at] >= 0 && order.data()[at] < dual_.size(),
                    "order points outside the data");
    }

    pm::LossKind kind_;
    pm::DualRows<T> dual_;
    pm::Examples<T> examples_;

  private:
    Vector<const std::int32_t> y_;
    Vector<const double> c_, squared_norm_;
    Vector<T> threshold_;
    Vector<double> gap_, violation_;
};

// The engine over one kind of matrix; Holder keeps that matrix's arrays alive.
template <class Matrix, class Holder>
class MatrixEngine : public Engine<typename Matrix::Scalar> {
    using T = typename Matrix::Scalar;
    using Base = Engine<T>;

  public:
    template <class... Args>
    MatrixEngine(Matrix X, Holder holder, Args&&... args)
        : Base(std::forward<Args>(args)...), X_(X), holder_(std::move(holder)) {
        require(X.n == this->dual_.size(), "X and y differ in length");
    }

    std::tuple<double, double, double, std::int64_t, std::int64_t> sweep(
        Matrix2<T> W, Vector<const std::int64_t> order, const std::string& mode, double scale,
        int threads) override {
        this->check_weights(W.shape(0), W.shape(1), X_.d, X_.bias != T(0));
        this->check_order(order);
        constexpr bool dense = std::is_same_v<Matrix, pm::DenseMatrix<T>>;
        require(mode == "rows" || mode == "listed" || (dense && mode == "blocked"),
                "sweep mode must be rows, listed or, for dense data, blocked");
        nb::gil_scoped_release release;
        const auto ld = static_cast<std::int64_t>(W.shape(1));
        const auto count = static_cast<std::int64_t>(order.shape(0));
        const auto totals = pm::with_loss(this->kind_, [&](auto tag) {
            using Loss = decltype(tag);
            auto& ex = this->examples_;
            auto& dual = this->dual_;
            if (mode == "listed")
                return pm::sweep_listed_classes<Loss>(X_, ex, dual, W.data(), ld, order.data(),
                                                      count, scale);
            if constexpr (std::is_same_v<Matrix, pm::DenseMatrix<T>>)
                if (mode == "blocked")
                    return pm::sweep_blocked<Loss>(X_, ex, dual, W.data(), ld, order.data(), count,
                                                   scale, threads);
            return pm::sweep_all_classes<Loss>(X_, ex, dual, W.data(), ld, order.data(), count,
                                               scale);
        });
        return {totals.gap, totals.loss, totals.dual, totals.moved, totals.entries};
    }

    void evaluate(Matrix2<const T> W, int threads, Vector<double> loss,
                  Vector<double> gap) override {
        this->check_weights(W.shape(0), W.shape(1), X_.d, X_.bias != T(0));
        require(loss.shape(0) == std::size_t(X_.n) && gap.shape(0) == std::size_t(X_.n),
                "loss and gap must have one entry per row");
        nb::gil_scoped_release release;
        const auto ld = static_cast<std::int64_t>(W.shape(1));
        pm::with_loss(this->kind_, [&](auto tag) {
            pm::evaluate_examples<decltype(tag)>(X_, W.data(), ld, this->examples_, this->dual_,
                                                 threads, loss.data(), gap.data());
        });
    }

    void rebuild(Matrix2<double> V, int first, int last) override {
        require(V.shape(0) == std::size_t(X_.d) + (X_.bias != T(0) ? 1 : 0) && first >= 0 &&
                    first <= last && last <= this->examples_.n_classes &&
                    V.shape(1) == std::size_t(last - first),
                "V has the wrong shape");
        nb::gil_scoped_release release;
        pm::rebuild_weights(X_, this->examples_, this->kind_ != pm::LossKind::one_vs_rest,
                            this->dual_, first, last, V.data());
    }

  private:
    Matrix X_;
    Holder holder_;
};

template <class T, class I>
Engine<T>* make_csr_engine(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr,
                           std::int64_t d, double bias, const std::string& loss, int top_k,
                           int n_classes, Vector<const std::int32_t> y, Vector<const double> c,
                           Vector<const double> squared_norm, Vector<T> threshold,
                           Vector<double> gap) {
    require(indptr.shape(0) >= 1, "indptr is empty");
    const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
    require(indptr.data()[0] == 0, "indptr must start at 0");
    for (std::int64_t i = 0; i < n; ++i)
        require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
    const auto nnz = std::size_t(indptr.data()[n]);
    require(nnz <= data.shape(0) && nnz <= indices.shape(0), "indptr points past the data");
    for (std::size_t e = 0; e < nnz; ++e)
        require(indices.data()[e] >= 0 && std::int64_t(indices.data()[e]) < d,
                "a column index points outside the matrix");
    pm::CsrMatrix<T, I> X{data.data(), indices.data(), indptr.data(), n, d, T(bias)};
    auto holder = std::make_tuple(data, indices, indptr);
    return new MatrixEngine<pm::CsrMatrix<T, I>, decltype(holder)>(
        X, holder, loss, top_k, n_classes, y, c, squared_norm, threshold, gap);
}

template <class T>
Engine<T>* make_dense_engine(Matrix2<const T> data, double bias, const std::string& loss, int top_k,
                             int n_classes, Vector<const std::int32_t> y, Vector<const double> c,
                             Vector<const double> squared_norm, Vector<T> threshold,
                             Vector<double> gap) {
    pm::DenseMatrix<T> X{data.data(), std::int64_t(data.shape(0)), std::int64_t(data.shape(1)),
                         T(bias)};
    return new MatrixEngine<pm::DenseMatrix<T>, Matrix2<const T>>(
        X, data, loss, top_k, n_classes, y, c, squared_norm, threshold, gap);
}

template <class T>
void bind(nb::module_& m, const char* name) {
    using E = Engine<T>;
    nb::class_<E>(m, name)
        .def("sweep", &E::sweep, "W"_a.noconvert(), "order"_a.noconvert(), "mode"_a, "scale"_a,
             "threads"_a,
             "One sweep over order. Returns (gap seen, loss seen, change of sum p, examples moved, "
             "dual entries of those visited).")
        .def("evaluate", &E::evaluate, "W"_a.noconvert(), "threads"_a, "loss"_a.noconvert(),
             "gap"_a.noconvert(), "Loss and share of the gap of every example at W.")
        .def("rebuild", &E::rebuild, "V"_a.noconvert(), "first"_a, "last"_a,
             "Adds sum_i x_i a_i^T for the classes first..last to V.")
        .def("set_method", &E::set_method, "name"_a, "tol"_a)
        .def("track_violation", &E::track_violation, "violation"_a.noconvert())
        .def("dual_free", &E::dual_free, "free"_a.noconvert())
        .def("dual_sum", &E::dual_sum)
        .def("dual_counts", &E::dual_counts, "counts"_a.noconvert())
        .def("dual_export", &E::dual_export, "classes"_a.noconvert(), "values"_a.noconvert())
        .def("dual_import", &E::dual_import, "indptr"_a.noconvert(), "classes"_a.noconvert(),
             "values"_a.noconvert());
    m.def("solve_restricted", &solve_restricted<T>, "loss"_a, "top_k"_a, "method"_a, "tol"_a,
          "B"_a.noconvert(), "c"_a.noconvert(), "guess"_a.noconvert(), "P"_a.noconvert());
    m.def("extrapolate", &extrapolate<T>, "W"_a.noconvert(), "Y"_a.noconvert(),
          "previous"_a.noconvert(), "mean"_a.noconvert(), "kappa"_a, "beta"_a, "blend"_a,
          "The outer step; returns ||W||^2, ||V||^2 and W.V before it.");
    m.def("csr_engine", &make_csr_engine<T, std::int32_t>, nb::rv_policy::take_ownership);
    m.def("csr_engine", &make_csr_engine<T, std::int64_t>, nb::rv_policy::take_ownership);
    m.def("dense_engine", &make_dense_engine<T>, nb::rv_policy::take_ownership);
}

}  // namespace

void bind_larank(nb::module_& m);
void bind_projections(nb::module_& m);

NB_MODULE(POLYMARGIN_MODULE, m) {
    bind_larank(m);
    bind_projections(m);
    bind<float>(m, "EngineF32");
    bind<double>(m, "EngineF64");
    m.attr("vector_bytes") = pm::kVectorBytes;
    m.def("restricted_methods", &restricted_methods, "loss"_a);
    m.def("best_instruction_set", &pm::best_instruction_set);
}
