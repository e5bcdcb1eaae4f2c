// The Python face of the losses: their table, and the restricted problem on its own.
#include "bindings/losses.hpp"

#include <nanobind/stl/vector.h>

#include <vector>

#include "losses/table.hpp"
#include "sweeps/visitor.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace pm_bind {

static std::shared_ptr<const pm::MarginTable> table_of(Matrix2<const double> margins) {
    const auto n = margins.shape(0);
    if (n == 0) return nullptr;
    require(margins.shape(1) == n, "margins must be a square matrix");
    return std::make_shared<const pm::MarginTable>(margins.data(), static_cast<int>(n));
}

Loss::Loss(const std::string& name, int top_k, double smoothing, Matrix2<const double> margins)
    : any(pm::make_loss(name, {top_k, smoothing, table_of(margins)})) {}

}  // namespace pm_bind

namespace {

std::vector<std::string> loss_names() {
    std::vector<std::string> names;
    pm::for_each_loss([&]<class L>(std::type_identity<L>) {
        if (!pm::is_smoothed<L>) names.emplace_back(L::name);
    });
    return names;
}

// Rows of B: the restricted problem of each, from what P holds, into P.
template <class T>
void solve_restricted(const Loss& any, const std::string& method, double tol, Matrix2<const T> B,
                      Vector<const double> c, Vector<const T> guess, Matrix2<T> P) {
    const std::int64_t rows = B.shape(0);
    const int m = static_cast<int>(B.shape(1));
    require(P.shape(0) == B.shape(0) && P.shape(1) == B.shape(1), "B and P differ in shape");
    require(c.shape(0) == B.shape(0) && guess.shape(0) == B.shape(0),
            "c and guess must have one entry per row of B");
    require(m >= 1, "B has no columns");
    const auto solve = named_method<T>(*any.any, method);
    nb::gil_scoped_release release;
    const int padded = pm::round_up_lanes<T>(m);
    std::vector<T> b(padded), p(padded);
    pm::Block<T> block(padded);
    pm::MethodWork<T> work;
    const auto loss = pm::limited_to(*any.any, m);
    const pm::Visitor<T> visitor(*loss);
    for (std::int64_t i = 0; i < rows; ++i) {
        T* row = P.data() + i * m;
        const double bound = c.data()[i];
        const T hint = guess.data()[i];
        std::copy_n(B.data() + i * m, m, b.data());
        std::fill(b.begin() + m, b.end(), -pm::kInfinity<T>);
        std::copy_n(row, m, p.data());
        if (solve == nullptr) {
            visitor.solve(b.data(), padded, bound, 1.0, hint, block);
        } else {
            const double cap = std::visit([&](const auto& l) { return l.cap(bound); }, *loss);
            solve({b.data(), p.data(), padded, bound, cap, tol, hint}, block, work);
        }
        std::fill_n(row, m, T(0));
        for (int e = 0; e < block.count; ++e) row[block.classes[e]] = block.p[e];
    }
}

// The values of a loss: at scores, where y is given, else at rows of margins.
void loss_values(const Loss& any, Matrix2<const double> rows, Vector<const std::int32_t> y,
                 Vector<double> out) {
    const int width = static_cast<int>(rows.shape(1));
    const bool scores = y.shape(0) > 0;
    require(out.shape(0) == rows.shape(0) && (!scores || y.shape(0) == rows.shape(0)),
            "arrays differ in length");
    for (std::size_t i = 0; i < y.shape(0); ++i)
        require(y.data()[i] >= 0 && y.data()[i] < width, "class code out of range");
    const int padded = pm::round_up_lanes<double>(width);
    std::vector<double> h(padded, -pm::kInfinity<double>);
    pm::Block<double> work(padded);
    nb::gil_scoped_release release;
    const pm::Visitor<double> visitor(*any.any);
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
        std::copy_n(rows.data() + i * width, width, h.data());
        if (scores) visitor.margins(h.data(), width, padded, y.data()[i]);
        out.data()[i] = visitor.value(h.data(), padded, work);
    }
}

template <class T>
void bind(nb::module_& m) {
    m.def("solve_restricted", &solve_restricted<T>, "loss"_a, "method"_a, "tol"_a,
          "B"_a.noconvert(), "c"_a.noconvert(), "guess"_a.noconvert(), "P"_a.noconvert());
}

}  // namespace

void bind_losses(nb::module_& m) {
    nb::class_<Loss>(m, "Loss", "A loss with its parameters.")
        .def(nb::init<const std::string&, int, double, Matrix2<const double>>(), "name"_a,
             "top_k"_a, "smoothing"_a, "margins"_a.noconvert())
        .def_prop_ro("name", [](const Loss& loss) { return pm::name_of(*loss.any); })
        .def_prop_ro("coupled",
                     [](const Loss& loss) {
                         return std::visit([](const auto& l) { return l.coupled; }, *loss.any);
                     })
        .def_prop_ro("flat",
                     [](const Loss& loss) {
                         return std::visit([](const auto& l) { return l.flat; }, *loss.any);
                     })
        .def_prop_ro("has_violation",
                     [](const Loss& loss) {
                         return std::visit([](const auto& l) { return l.has_violation; },
                                           *loss.any);
                     })
        .def_prop_ro(
            "methods", [](const Loss& loss) { return pm::method_names(*loss.any); },
            "Of the restricted problem, the default first.")
        .def(
            "at_zero",
            [](const Loss& loss, int n_classes) {
                return std::visit([&](const auto& l) { return l.at_zero(n_classes); }, *loss.any);
            },
            "n_classes"_a, "The loss of an example whose scores are all zero.");
    m.def("loss_names", &loss_names);
    m.def("loss_values", &loss_values, "loss"_a, "rows"_a.noconvert(), "y"_a.noconvert(),
          "out"_a.noconvert(),
          "Of rows of scores with class codes y, or of margins if y is empty.");
    bind<float>(m);
    bind<double>(m);
}
