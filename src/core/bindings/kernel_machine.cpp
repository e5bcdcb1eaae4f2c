// The Python face of the kernel machine's compiled part.
#include <nanobind/stl/tuple.h>

#include "bindings/blocks.hpp"
#include "kernel_machine/gram_tiles.hpp"
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
            return pm::solve_working_set(visitor_, examples_, dual_.whole(), working, policy,
                                         pm::SmallRandom(seed));
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
        return pm::evaluate_scores(visitor_, F.data(), rows.data(), std::int64_t(rows.shape(0)),
                                   examples_, dual_, loss.data(), gap.data());
    }
};

template <class T>
void values_from_products(const pm::Kernel& kernel, Matrix2<T> K, Vector<const T> a_norms,
                          Vector<const T> b_norms) {
    require(a_norms.shape(0) == K.shape(0) && b_norms.shape(0) == K.shape(1),
            "one norm per row and column");
    nb::gil_scoped_release release;
    pm::values_from_products(kernel, K.data(), std::int64_t(K.shape(0)), std::int64_t(K.shape(1)),
                             a_norms.data(), b_norms.data());
}

void check_places(const Vector<const std::int64_t>& places, std::size_t rows) {
    for (std::size_t at = 0; at < places.shape(0); ++at)
        require(places.data()[at] >= 0 && std::size_t(places.data()[at]) < rows,
                "the number of a row is out of range");
}

template <class T>
pm::PickedRows<T> picked(const Matrix2<const T>& X, const Vector<const T>& norms,
                         const Vector<const std::int64_t>& rows) {
    require(norms.shape(0) == X.shape(0), "one norm per row");
    check_places(rows, X.shape(0));
    return {X.data(), std::int64_t(X.shape(1)), norms.data(), rows.data(),
            std::int64_t(rows.shape(0))};
}

constexpr const char* kTiles = "the tiles of a Gram matrix";

template <class T>
void kernel_values(const pm::Kernel& kernel, Matrix2<const T> A, Vector<const T> a_norms,
                   Vector<const std::int64_t> rows, Matrix2<const T> B, Vector<const T> b_norms,
                   Vector<const std::int64_t> columns, Matrix2<T> out,
                   Vector<const std::int64_t> places, std::int64_t first) {
    require(A.shape(1) == B.shape(1), "rows of different lengths");
    require(places.shape(0) == rows.shape(0), "one place per row");
    require(first >= 0 && std::size_t(first) + columns.shape(0) <= out.shape(1),
            "out has too few columns");
    check_places(places, out.shape(0));
    const auto a = picked(A, a_norms, rows), b = picked(B, b_norms, columns);
    nb::gil_scoped_release release;
    if (a.count == 0 || b.count == 0) return;
    pm::making(kTiles, pm::GramTiles<T>::bytes(), [&] {
        const auto ld = std::int64_t(out.shape(1));
        pm::GramTiles<T>(kernel, a, b).values([&](std::int64_t i) {
            return out.data() + places.data()[i] * ld + first;
        });
    });
}

template <class T>
void add_kernel_sums(const pm::Kernel& kernel, Matrix2<const T> A, Vector<const T> a_norms,
                     Vector<const std::int64_t> rows, Matrix2<const T> coef, Matrix2<const T> B,
                     Vector<const T> b_norms, Vector<const std::int64_t> columns,
                     Matrix2<double> out, Vector<const std::int64_t> places) {
    require(A.shape(1) == B.shape(1), "rows of different lengths");
    require(coef.shape(0) == rows.shape(0) && coef.shape(1) == out.shape(1),
            "the shapes of coef and out do not fit");
    require(places.shape(0) == columns.shape(0), "one place per column");
    check_places(places, out.shape(0));
    const auto a = picked(A, a_norms, rows), b = picked(B, b_norms, columns);
    nb::gil_scoped_release release;
    if (a.count == 0 || b.count == 0) return;
    pm::making(kTiles, pm::GramTiles<T>::bytes(), [&] {
        const auto n_sums = std::int64_t(out.shape(1));
        pm::GramTiles<T>(kernel, a, b).add_sums(coef.data(), int(n_sums), [&](std::int64_t j) {
            return out.data() + places.data()[j] * n_sums;
        });
    });
}

template <class T>
void add_product(Matrix2<const T> K, Matrix2<const T> coef, Matrix2<double> out,
                 std::int64_t first) {
    require(coef.shape(0) == K.shape(0) && out.shape(1) == coef.shape(1) && first >= 0 &&
                std::size_t(first) + out.shape(0) <= K.shape(1),
            "the shapes of K, coef and out do not fit");
    nb::gil_scoped_release release;
    pm::add_product(K.data() + first, std::int64_t(K.shape(0)), std::int64_t(K.shape(1)),
                    std::int64_t(out.shape(0)), coef.data(), std::int64_t(coef.shape(1)),
                    out.data());
}

}  // namespace

void bind_kernel_machine(nb::module_& m) {
    nb::class_<pm::Kernel>(m, "Kernel", "A kernel that is computed from inner products.")
        .def(
            "__init__",
            [](pm::Kernel* self, const std::string& name, double gamma, double degree,
               double coef0) {
                new (self) pm::Kernel{pm::Kernel::named(name), gamma, degree, coef0};
            },
            "name"_a, nb::kw_only(), "gamma"_a, "degree"_a, "coef0"_a);
    const auto of_dtype = [&]<class T>(T) {
        m.def("add_product", &add_product<T>, "K"_a.noconvert(), "coef"_a.noconvert(),
              "out"_a.noconvert(), "first"_a = 0, "out += K[:, first:first + len(out)].T @ coef.");
        m.def("values_from_products", &values_from_products<T>, "kernel"_a, "K"_a.noconvert(),
              "a_norms"_a.noconvert(), "b_norms"_a.noconvert(),
              "Kernel values from inner products K, in place.");
        m.def("kernel_values", &kernel_values<T>, "kernel"_a, "A"_a.noconvert(),
              "a_norms"_a.noconvert(), "rows"_a.noconvert(), "B"_a.noconvert(),
              "b_norms"_a.noconvert(), "columns"_a.noconvert(), nb::kw_only(), "out"_a.noconvert(),
              "places"_a.noconvert(), "first"_a, "out[places, first:] = k(A[rows], B[columns]).");
        m.def("add_kernel_sums", &add_kernel_sums<T>, "kernel"_a, "A"_a.noconvert(),
              "a_norms"_a.noconvert(), "rows"_a.noconvert(), "coef"_a.noconvert(),
              "B"_a.noconvert(), "b_norms"_a.noconvert(), "columns"_a.noconvert(), nb::kw_only(),
              "out"_a.noconvert(), "places"_a.noconvert(),
              "out[places] += k(B[columns], A[rows]) coef.");
    };
    of_dtype(float());
    of_dtype(double());
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
