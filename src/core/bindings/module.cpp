// The Python face of the kernels: flat functions and two small classes, arrays taken without
// copies, the GIL released around everything that loops over examples.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "base/cpu.hpp"
#include "bindings/common.hpp"
#include "losses/losses.hpp"
#include "restricted/methods.hpp"
#include "sweeps/extrapolate.hpp"
#include "sweeps/objective.hpp"
#include "sweeps/sweep_blocked.hpp"
#include "sweeps/sweep_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

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

// The engine of a linear problem.
template <class T>
class Engine : public Blocks<T> {
  public:
    using Blocks<T>::Blocks;

    virtual std::tuple<double, double, double, std::int64_t, std::int64_t> sweep(
        Matrix2<T> W, Vector<const std::int64_t> order, const std::string& mode, double scale,
        int threads) = 0;
    virtual void evaluate(Matrix2<const T> W, int threads, Vector<double> loss,
                          Vector<double> gap) = 0;
    virtual void rebuild(Matrix2<double> V, int first, int last) = 0;

  protected:
    void check_weights(std::size_t rows, std::size_t columns, std::int64_t features,
                       bool bias) const {
        require(rows == std::size_t(features) + (bias ? 1 : 0), "W has the wrong number of rows");
        require(columns >= std::size_t(this->examples_.n_classes) && columns % pm::kLanes<T> == 0,
                "W has the wrong number of columns");
    }
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
    nb::class_<E, Blocks<T>>(m, name)
        .def("sweep", &E::sweep, "W"_a.noconvert(), "order"_a.noconvert(), "mode"_a, "scale"_a,
             "threads"_a,
             "One sweep over order. Returns (gap seen, loss seen, change of sum p, examples moved, "
             "dual entries of those visited).")
        .def("evaluate", &E::evaluate, "W"_a.noconvert(), "threads"_a, "loss"_a.noconvert(),
             "gap"_a.noconvert(), "Loss and share of the gap of every example at W.")
        .def("rebuild", &E::rebuild, "V"_a.noconvert(), "first"_a, "last"_a,
             "Adds sum_i x_i a_i^T for the classes first..last to V.");
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
void bind_kernel_machine(nb::module_& m);
void bind_svmlight(nb::module_& m);
void bind_stream(nb::module_& m);

NB_MODULE(POLYMARGIN_MODULE, m) {
    bind_larank(m);
    bind_projections(m);
    bind_svmlight(m);
    bind_blocks<float>(m, "BlocksF32");
    bind_blocks<double>(m, "BlocksF64");
    bind_kernel_machine(m);
    bind_stream(m);
    bind<float>(m, "EngineF32");
    bind<double>(m, "EngineF64");
    m.attr("vector_bytes") = pm::kVectorBytes;
    m.def("restricted_methods", &restricted_methods, "loss"_a);
    m.def("best_instruction_set", &pm::best_instruction_set);
}
