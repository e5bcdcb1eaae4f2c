// The Python face of the kernel machine's compiled part.
#include <nanobind/stl/tuple.h>

#include "bindings/blocks.hpp"
#include "kernel_machine/kernel_values.hpp"
#include "kernel_machine/row_sums.hpp"
#include "kernel_machine/working_set.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

class KernelBlocks : public Blocks<double> {
  public:
    using Blocks<double>::Blocks;

    // Updates the blocks of `set`; S is brought up to date and change added to. Returns the gap
    // found by the first pass, the change of the dual's sum and the number of moves.
    template <class T>
    std::tuple<double, double, std::int64_t> solve_set(
        Vector<const std::int64_t> set, Matrix2<const T> G, Matrix2<T> S, Matrix2<double> change,
        int passes, double stop, double enough, int full_every, double idle,
        std::int64_t neighbours, int neighbour_passes, double neighbour_stop, std::uint64_t seed) {
        require(full_every >= 1 && neighbours >= 1, "a policy of no visits");
        check_order(set);
        const auto m = set.shape(0);
        const auto classes = std::size_t(examples_.n_classes);
        require(G.shape(0) == m && G.shape(1) >= m, "G has the wrong shape");
        require(S.shape(0) == classes && S.shape(1) == m, "S has the wrong shape");
        require(change.shape(0) == classes && change.shape(1) == m, "change has the wrong shape");
        nb::gil_scoped_release release;
        const pm::WorkingSet<T> working{set.data(), std::int64_t(m),
                                        G.data(),   std::int64_t(G.shape(1)),
                                        S.data(),   change.data()};
        const pm::WorkingSetPolicy policy{{passes, stop, enough},
                                          full_every,
                                          idle,
                                          neighbours,
                                          {neighbour_passes, neighbour_stop, 0.0}};
        const double bytes = double(m * classes) * sizeof(double);
        const auto totals = pm::making("the buffers of a working set", bytes, [&] {
            return std::visit(
                [&](const auto& loss) {
                    return pm::solve_working_set(loss, examples_, dual_.whole(), working, policy,
                                                 pm::SmallRandom(seed));
                },
                loss_);
        });
        return {totals.gap, totals.dual, totals.moved};
    }

    double evaluate(Matrix2<const double> F, Vector<const std::int64_t> rows, Vector<double> loss,
                    Vector<double> gap) {
        check_order(rows);
        require(F.shape(0) == rows.shape(0) && F.shape(1) == std::size_t(examples_.n_classes),
                "F has the wrong shape");
        require(loss.shape(0) == rows.shape(0) && gap.shape(0) == rows.shape(0),
                "loss and gap must have one entry per row");
        nb::gil_scoped_release release;
        return std::visit(
            [&](const auto& one) {
                return pm::evaluate_scores(one, F.data(), rows.data(), std::int64_t(rows.shape(0)),
                                           examples_, dual_.whole(), loss.data(), gap.data());
            },
            loss_);
    }
};

template <class T>
void rbf_from_products(Matrix2<T> K, Vector<const T> a, Vector<const T> b, double gamma) {
    require(a.shape(0) == K.shape(0) && b.shape(0) == K.shape(1), "one norm per row and column");
    nb::gil_scoped_release release;
    pm::rbf_from_products(K.data(), std::int64_t(K.shape(0)), std::int64_t(K.shape(1)), a.data(),
                          b.data(), T(gamma));
}

template <class T>
void add_product(Matrix2<const T> K, Matrix2<const T> coef, Matrix2<double> out) {
    require(
        coef.shape(0) == K.shape(0) && out.shape(1) == coef.shape(1) && out.shape(0) <= K.shape(1),
        "the shapes of K, coef and out do not fit");
    nb::gil_scoped_release release;
    pm::add_product(K.data(), std::int64_t(K.shape(0)), std::int64_t(K.shape(1)),
                    std::int64_t(out.shape(0)), coef.data(), std::int64_t(coef.shape(1)),
                    out.data());
}

}  // namespace

void bind_kernel_machine(nb::module_& m) {
    m.def("rbf_from_products", &rbf_from_products<float>, "K"_a.noconvert(), "a"_a.noconvert(),
          "b"_a.noconvert(), "gamma"_a, "exp(-gamma (a_i + b_j - 2 K_ij)), in place.");
    m.def("rbf_from_products", &rbf_from_products<double>, "K"_a.noconvert(), "a"_a.noconvert(),
          "b"_a.noconvert(), "gamma"_a);
    m.def("add_product", &add_product<float>, "K"_a.noconvert(), "coef"_a.noconvert(),
          "out"_a.noconvert(), "out += K[:, :len(out)].T @ coef, for a coef of many zeros.");
    m.def("add_product", &add_product<double>, "K"_a.noconvert(), "coef"_a.noconvert(),
          "out"_a.noconvert());
    nb::class_<KernelBlocks, Blocks<double>>(m, "KernelBlocks")
        .def(nb::init<const Loss&, int, Vector<const std::int32_t>, Vector<const double>,
                      Vector<const double>, Vector<double>, Vector<double>>(),
             "loss"_a, "n_classes"_a, "y"_a.noconvert(), "c"_a.noconvert(),
             "squared_norms"_a.noconvert(), "threshold"_a.noconvert(), "gap"_a.noconvert())
        .def("solve_set", alone(&KernelBlocks::solve_set<float>), "set"_a.noconvert(),
             "G"_a.noconvert(), "S"_a.noconvert(), "change"_a.noconvert(), nb::kw_only(),
             "passes"_a, "stop"_a, "enough"_a, "full_every"_a, "idle"_a, "neighbours"_a,
             "neighbour_passes"_a, "neighbour_stop"_a, "seed"_a)
        .def("solve_set", alone(&KernelBlocks::solve_set<double>), "set"_a.noconvert(),
             "G"_a.noconvert(), "S"_a.noconvert(), "change"_a.noconvert(), nb::kw_only(),
             "passes"_a, "stop"_a, "enough"_a, "full_every"_a, "idle"_a, "neighbours"_a,
             "neighbour_passes"_a, "neighbour_stop"_a, "seed"_a)
        .def("evaluate", alone(&KernelBlocks::evaluate), "F"_a.noconvert(), "rows"_a.noconvert(),
             "loss"_a.noconvert(), "gap"_a.noconvert());
}
