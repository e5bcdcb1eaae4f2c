// The Python face of the projections: rows of V into rows of P, the GIL released.
//
// Each function returns the first row with an entry that is not finite, or -1; what precedes that
// row has been written. Everything else is checked by polymargin.projections.
#include <string>

#include "bindings/common.hpp"
#include "losses/loss.hpp"
#include "restricted/greedy.hpp"
#include "restricted/knapsack.hpp"
#include "restricted/simplex_bisection.hpp"
#include "restricted/simplex_condat.hpp"
#include "restricted/simplex_newton.hpp"
#include "restricted/simplex_pivot.hpp"
#include "restricted/simplex_sort.hpp"
#include "restricted/top_k_projection.hpp"
#include "restricted/walrus.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

template <class T>
void check_shapes(const Matrix2<const T>& V, const Vector<const double>& z, const Matrix2<T>& P) {
    require(P.shape(0) == V.shape(0) && P.shape(1) == V.shape(1), "V and P differ in shape");
    require(z.shape(0) == V.shape(0), "one parameter per row expected");
    require(V.shape(1) >= 1, "V has no columns");
}

// f(i, v, p, scan) for every row, until one is not finite.
template <class T, class F>
std::int64_t for_each_row(const Matrix2<const T>& V, const Matrix2<T>& P, F&& f) {
    nb::gil_scoped_release release;
    const auto rows = std::int64_t(V.shape(0)), n = std::int64_t(V.shape(1));
    for (std::int64_t i = 0; i < rows; ++i) {
        const T* v = V.data() + i * n;
        const auto scan = pm::scan_row(v, n);
        if (!scan.finite) return i;
        f(i, v, P.data() + i * n, scan);
    }
    return -1;
}

template <class F>
decltype(auto) with_simplex_method(const std::string& name, F&& f) {
    if (name == "sort") return f(pm::SimplexSort{});
    if (name == "pivot") return f(pm::SimplexPivot{});
    if (name == "bisection") return f(pm::SimplexBisection{});
    if (name == "condat") return f(pm::SimplexCondat{});
    if (name == "newton") return f(pm::SimplexNewton{});
    throw std::invalid_argument("unknown method: " + name);
}

// tau, one per row: read as Newton's guesses (NaN: none), overwritten with the thresholds found.
template <class T>
std::int64_t project_simplex(const std::string& method, Matrix2<const T> V, Vector<const double> z,
                             double tol, std::uint64_t seed, Vector<double> tau, Matrix2<T> P) {
    check_shapes(V, z, P);
    require(tau.shape(0) == V.shape(0), "tau must have one entry per row");
    pm::SimplexWork<T> work;
    work.tol = tol;
    if (seed != 0) work.random = seed;
    return with_simplex_method(method, [&](auto tag) {
        using Method = decltype(tag);
        return for_each_row(V, P, [&](std::int64_t i, const T* v, T* p, auto scan) {
            work.guess = tau.data()[i];
            tau.data()[i] = pm::project_simplex<Method>(v, std::int64_t(V.shape(1)), z.data()[i],
                                                        scan.max, p, work);
        });
    });
}

template <class T>
std::int64_t project_l1_ball(Matrix2<const T> V, Vector<const double> z, Matrix2<T> P) {
    check_shapes(V, z, P);
    const auto n = std::int64_t(V.shape(1));
    pm::SimplexWork<T> work;
    std::vector<T> magnitude(n);
    return for_each_row(V, P, [&](std::int64_t i, const T* v, T* p, auto) {
        double total = 0;
        for (std::int64_t j = 0; j < n; ++j) magnitude[j] = std::abs(v[j]);
        total = pm::excess_above(magnitude.data(), n, 0.0, 0.0).sum;
        if (total <= z.data()[i]) {
            std::copy_n(v, n, p);
            return;
        }
        pm::project_simplex<pm::SimplexNewton>(magnitude.data(), n, z.data()[i],
                                               pm::largest(magnitude.data(), n), p, work);
        for (std::int64_t j = 0; j < n; ++j) p[j] = std::copysign(p[j], v[j]);
    });
}

// upper: (1, 1), (1, n) or (rows, n)
template <class T>
std::int64_t project_capped_simplex(Matrix2<const T> V, Matrix2<const T> upper,
                                    Vector<const double> z, bool equality, Matrix2<T> P) {
    check_shapes(V, z, P);
    const auto n = std::int64_t(V.shape(1));
    const bool per_row = upper.shape(0) > 1, per_entry = upper.shape(1) > 1;
    require(!per_row || upper.shape(0) == V.shape(0), "upper has the wrong number of rows");
    require(upper.shape(0) >= 1 && std::int64_t(upper.shape(1)) == (per_entry || per_row ? n : 1),
            "upper has the wrong number of columns");
    pm::KnapsackWork work;
    work.resize(n);
    double upper_sum = 0;
    return for_each_row(V, P, [&](std::int64_t i, const T* v, T* p, auto) {
        std::copy_n(v, n, work.v.data());
        if (i == 0 || per_row) {
            const T* u = upper.data() + (per_row ? i * n : 0);
            upper_sum = 0;
            for (std::int64_t j = 0; j < n; ++j)
                upper_sum += work.u[j] = double(u[per_entry || per_row ? j : 0]);
        }
        pm::project_capped_simplex(n, z.data()[i], upper_sum, equality, p, work);
    });
}

template <class T>
std::int64_t project_top_k(Matrix2<const T> V, int k, Vector<const double> r, double bias,
                           Matrix2<T> P) {
    check_shapes(V, r, P);
    const auto n = static_cast<int>(V.shape(1));
    require(k >= 1 && k <= n, "k must lie in 1..n");
    pm::TopKWork work(n);
    return for_each_row(V, P, [&](std::int64_t i, const T* v, T* p, auto) {
        pm::project_top_k(v, n, k, r.data()[i], bias, p, work);
    });
}

// max_steps and the violations that are left (out, relative to the largest |v|): greedy only.
template <class T>
std::int64_t solve_weston_watkins(const std::string& method, Matrix2<const T> V,
                                  Vector<const double> C, double tol, std::int64_t max_steps,
                                  Vector<double> violation, Matrix2<T> P) {
    check_shapes(V, C, P);
    require(violation.shape(0) == V.shape(0), "violation must have one entry per row");
    require(method == "newton" || method == "walrus" || method == "greedy", "unknown method");
    const auto n = static_cast<int>(V.shape(1));
    const int padded = pm::round_up_lanes<double>(n);
    std::vector<double> b(padded, -pm::kInfinity<double>), p(n), work;
    pm::Block<double> block(padded);
    return for_each_row(V, P, [&](std::int64_t i, const T* v, T* out, auto) {
        const double c = double(T(C.data()[i]));
        std::copy_n(v, n, b.data());
        std::fill(p.begin(), p.end(), 0.0);
        if (method == "walrus") {
            const double t = pm::walrus_threshold(b.data(), n, c, work);
            for (int j = 0; j < n; ++j) p[j] = std::clamp(b[j] - t, 0.0, c);
        } else if (method == "greedy") {
            double scale = 0;
            for (int j = 0; j < n; ++j) scale = std::max(scale, std::abs(b[j]));
            const double left = pm::greedy_solve(b.data(), n, c, p.data(), tol * scale, max_steps);
            violation.data()[i] = scale > 0 ? left / scale : 0.0;
        } else {
            pm::solve_by_threshold<true>(b.data(), padded, c, pm::kInfinity<double>, 0.0, block);
            for (int e = 0; e < block.count; ++e) p[block.classes[e]] = block.p[e];
        }
        std::copy_n(p.data(), n, out);
    });
}

template <class T>
void bind(nb::module_& m) {
    m.def("project_simplex", &project_simplex<T>, "method"_a, "V"_a.noconvert(), "z"_a.noconvert(),
          "tol"_a, "seed"_a, "tau"_a.noconvert(), "P"_a.noconvert());
    m.def("project_l1_ball", &project_l1_ball<T>, "V"_a.noconvert(), "z"_a.noconvert(),
          "P"_a.noconvert());
    m.def("project_capped_simplex", &project_capped_simplex<T>, "V"_a.noconvert(),
          "upper"_a.noconvert(), "z"_a.noconvert(), "equality"_a, "P"_a.noconvert());
    m.def("project_top_k", &project_top_k<T>, "V"_a.noconvert(), "k"_a, "r"_a.noconvert(), "bias"_a,
          "P"_a.noconvert());
    m.def("solve_weston_watkins", &solve_weston_watkins<T>, "method"_a, "V"_a.noconvert(),
          "C"_a.noconvert(), "tol"_a, "max_steps"_a, "violation"_a.noconvert(), "P"_a.noconvert());
}

}  // namespace

void bind_projections(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}
