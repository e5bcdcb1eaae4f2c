// The Python face of LaRank's machine.
//
// It runs without the GIL on the patterns of bind_larank_patterns.hpp. Those of a kernel that is a
// Python function are kept by a Python object with the methods of pm::PatternSource:
// example_rows(examples, slots) returns a matrix of the machine's type, pattern_row(slot, slots) a
// vector, append(example) k(x, x), keep(slots) nothing.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>

#include "bindings/larank_patterns.hpp"
#include "larank/machine.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace pm_bind;

namespace {

// Patterns that a Python object keeps.
template <class T>
class PythonSource final : public pm::PatternSource<T> {
  public:
    explicit PythonSource(const nb::object& patterns)
        : example_rows_(patterns.attr("example_rows")),
          pattern_row_(patterns.attr("pattern_row")),
          append_(patterns.attr("append")),
          keep_(patterns.attr("keep")) {}

    void example_rows(const pm::ExampleList& examples, const pm::SlotList& slots, T* out) override {
        const auto rows = nb::cast<Matrix2<const T>>(example_rows_(view(examples), view(slots)));
        require(rows.shape(0) == examples.size() && rows.shape(1) == slots.size(),
                "kernel rows have the wrong shape");
        std::copy_n(rows.data(), rows.size(), out);
    }
    void pattern_row(std::int32_t slot, const pm::SlotList& slots, T* out) override {
        const auto row = nb::cast<Vector<const T>>(pattern_row_(slot, view(slots)));
        require(row.shape(0) == slots.size(), "a kernel row has the wrong length");
        std::copy_n(row.data(), row.size(), out);
    }
    double append(std::int64_t example) override { return nb::cast<double>(append_(example)); }
    void keep(const pm::SlotList& slots) override { keep_(view(slots)); }

  private:
    // For the duration of the call only: Python copies what it keeps.
    template <class I>
    static nb::object view(const std::vector<I>& numbers) {
        return nb::cast(Vector<const I>(numbers.data(), {numbers.size()}, nb::handle()),
                        nb::rv_policy::reference);
    }

    nb::object example_rows_, pattern_row_, append_, keep_;
};

// --- the machine ---

void check_signals() {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Lets Ctrl-C through, without taking the GIL for every operation.
class SometimesCheckSignals {
  public:
    void operator()() {
        const auto now = Clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::milliseconds(50);
        const nb::gil_scoped_acquire gil;
        check_signals();
    }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point next_ = Clock::now();
};

template <class T>
class Machine : public pm::OneUser {
  public:
    Machine(double C, double eta, bool measure_time, bool process_old, bool optimize,
            double cache_megabytes, std::uint64_t seed)
        : OneUser(kBeingTrained),
          larank_(settings(C, measure_time), std::size_t(cache_megabytes * 1e6), seed) {
        larank_.schedule.eta = eta;
        larank_.schedule.enabled = {true, process_old, optimize};
    }

    void run(const nb::object& patterns, Vector<const std::int64_t> examples,
             Vector<const std::int32_t> y, std::int32_t n_classes, double tau, double kappa,
             double evaluation_cost, bool keep_rows) {
        require(examples.shape(0) == y.shape(0), "one class per example expected");
        for (std::size_t i = 0; i < y.shape(0); ++i)
            require(y.data()[i] >= 0 && y.data()[i] < n_classes, "a class is out of range");
        require(larank_.has_costs_for(n_classes), "there are more classes than costs");
        require_whole();
        larank_.settings.tau = tau;
        larank_.settings.kappa = kappa;
        larank_.settings.evaluation_cost = evaluation_cost;
        larank_.rows().set_keep_others(keep_rows);
        larank_.set_n_classes(n_classes);
        const auto n = std::int64_t(y.shape(0));
        if (nb::isinstance<Patterns<T>>(patterns)) {
            auto& store = nb::cast<Patterns<T>&>(patterns);
            const pm::OneUser::Use use(store);
            check_own(store);
            store.check_examples(examples);
            const nb::gil_scoped_release release;
            changing([&] {
                larank_.run(examples.data(), y.data(), n, store.source(), SometimesCheckSignals());
            });
        } else {
            PythonSource<T> source(patterns);
            changing([&] { larank_.run(examples.data(), y.data(), n, source, check_signals); });
        }
    }

    void compact(const nb::object& patterns) {
        require_whole();
        if (nb::isinstance<Patterns<T>>(patterns)) {
            auto& store = nb::cast<Patterns<T>&>(patterns);
            const pm::OneUser::Use use(store);
            check_own(store);
            changing([&] { larank_.compact(store.source()); });
        } else {
            PythonSource<T> source(patterns);
            changing([&] { larank_.compact(source); });
        }
    }

    // By class codes; a matrix without rows stands for none.
    void set_costs(Matrix2<const double> costs) {
        require(costs.shape(0) == costs.shape(1), "costs must be a square matrix");
        larank_.set_costs({costs.data(), costs.data() + costs.size()},
                          std::int32_t(costs.shape(0)));
    }

    std::int64_t n_patterns() {
        require_whole();
        return larank_.n_patterns();
    }
    double dual() {
        require_whole();
        require(larank_.has_costs_for(std::int32_t(larank_.classes().size())),
                "there are more classes than costs");
        return larank_.dual();
    }
    void clear_cache() { larank_.rows().clear(); }
    std::size_t cache_bytes() { return larank_.rows().bytes(); }

    std::int64_t n_support_vectors() {
        require_whole();
        std::int64_t total = 0;
        for (const auto& list : larank_.classes()) total += std::int64_t(list.slot.size());
        return total;
    }

    // By pattern: slot, example, class, k(x, x); by support vector: pattern, class, beta, gradient.
    void export_state(Vector<std::int32_t> slots, Vector<std::int64_t> examples,
                      Vector<std::int32_t> y, Vector<double> diagonal,
                      Vector<std::int32_t> patterns, Vector<std::int32_t> classes,
                      Vector<double> beta, Vector<double> gradient) {
        check_state(examples.shape(0), y, diagonal, patterns.shape(0), classes, beta, gradient);
        require(std::int64_t(examples.shape(0)) == n_patterns(), "one entry per pattern expected");
        require(slots.shape(0) == examples.shape(0), "one slot per pattern expected");
        require(std::int64_t(patterns.shape(0)) == n_support_vectors(), "one per support vector");
        std::size_t p = 0, v = 0;
        for (std::size_t s = 0; s < larank_.patterns().size(); ++s) {
            const auto& pattern = larank_.patterns()[s];
            if (pattern.place < 0) continue;
            for (const auto& e : pattern.entries) {
                patterns.data()[v] = std::int32_t(p);
                classes.data()[v] = e.y;
                beta.data()[v] = larank_.classes()[e.y].beta[e.position];
                gradient.data()[v++] = larank_.classes()[e.y].gradient[e.position];
            }
            slots.data()[p] = std::int32_t(s);
            examples.data()[p] = pattern.example;
            y.data()[p] = pattern.y;
            diagonal.data()[p++] = pattern.diagonal;
        }
    }

    // What export_state gave after compact, into a new machine.
    void import_state(std::int32_t n_classes, Vector<const std::int64_t> examples,
                      Vector<const std::int32_t> y, Vector<const double> diagonal,
                      Vector<const std::int32_t> patterns, Vector<const std::int32_t> classes,
                      Vector<const double> beta, Vector<const double> gradient) {
        require(larank_.patterns().empty(), "the machine is not new");
        check_state(examples.shape(0), y, diagonal, patterns.shape(0), classes, beta, gradient);
        larank_.set_n_classes(n_classes);
        const std::size_t n = examples.shape(0);
        for (std::size_t s = 0; s < n; ++s)
            larank_.restore(examples.data()[s], y.data()[s], diagonal.data()[s]);
        for (std::size_t v = 0; v < patterns.shape(0); ++v) {
            const auto slot = patterns.data()[v], c = classes.data()[v];
            require(slot >= 0 && std::size_t(slot) < n && c >= 0 && c < n_classes, "out of range");
            larank_.restore_entry(slot, c, beta.data()[v], gradient.data()[v]);
        }
    }

    // Operations and steps of ProcessNew, ProcessOld, Optimize; kernel evaluations; arg max.
    std::array<std::int64_t, 8> counts() {
        const auto& c = larank_.counts;
        return {c.operations[0], c.operations[1], c.operations[2], c.steps[0],
                c.steps[1],      c.steps[2],      c.evaluations,   c.arg_max};
    }
    void set_counts(const std::array<std::int64_t, 8>& counts) {
        auto& c = larank_.counts;
        std::copy_n(counts.begin(), 3, c.operations.begin());
        std::copy_n(counts.begin() + 3, 3, c.steps.begin());
        c.evaluations = counts[6];
        c.arg_max = counts[7];
    }
    std::array<double, 3> rates() { return larank_.schedule.rate; }
    void set_rates(const std::array<double, 3>& rates) { larank_.schedule.rate = rates; }
    std::uint64_t random_state() { return larank_.random.state(); }
    void set_random_state(std::uint64_t state) { larank_.random.set_state(state); }

  private:
    // A step that is refused memory may leave any of its parts undone.
    template <class F>
    void changing(F&& step) {
        try {
            step();
        } catch (const std::bad_alloc&) {
            whole_ = false;
            throw;
        }
    }
    void require_whole() const {
        if (!whole_)
            throw std::runtime_error(
                "this LaRankClassifier was refused memory in the midst of a step and is not whole: "
                "call fit, or begin anew from what was saved");
    }

    static pm::LaRankSettings settings(double C, bool measure_time) {
        pm::LaRankSettings s;
        s.C = C;
        s.measure_time = measure_time;
        return s;
    }

    void check_own(Patterns<T>& store) const {
        require(store.size() == std::int64_t(larank_.patterns().size()),
                "the patterns are not those of this machine");
    }

    template <class I, class D>
    static void check_state(std::size_t n_patterns, const Vector<I>& y, const Vector<D>& diagonal,
                            std::size_t n_vectors, const Vector<I>& classes, const Vector<D>& beta,
                            const Vector<D>& gradient) {
        require(y.shape(0) == n_patterns && diagonal.shape(0) == n_patterns,
                "patterns differ in number");
        require(classes.shape(0) == n_vectors && beta.shape(0) == n_vectors &&
                    gradient.shape(0) == n_vectors,
                "support vectors differ in number");
    }

    pm::LaRank<T> larank_;
    bool whole_ = true;
};

template <class T>
void bind_machine(nb::module_& m, const std::string& type) {
    using M = Machine<T>;
    nb::class_<M>(m, ("LaRank" + type).c_str())
        .def(nb::init<double, double, bool, bool, bool, double, std::uint64_t>(), "C"_a, "eta"_a,
             "measure_time"_a, "process_old"_a, "optimize"_a, "cache_megabytes"_a, "seed"_a)
        .def("run", alone(&M::run), "patterns"_a, "examples"_a.noconvert(), "y"_a.noconvert(),
             "n_classes"_a, "tau"_a, "kappa"_a, "evaluation_cost"_a, "keep_rows"_a,
             "Process the examples once, in this order, with the schedule's other operations "
             "between them.")
        .def("set_costs", alone(&M::set_costs), "costs"_a.noconvert())
        .def("clear_cache", alone(&M::clear_cache))
        .def("compact", alone(&M::compact), "patterns"_a)
        .def("export_state", alone(&M::export_state), "slots"_a.noconvert(),
             "examples"_a.noconvert(), "y"_a.noconvert(), "diagonal"_a.noconvert(),
             "patterns"_a.noconvert(), "classes"_a.noconvert(), "beta"_a.noconvert(),
             "gradient"_a.noconvert())
        .def("import_state", alone(&M::import_state), "n_classes"_a, "examples"_a.noconvert(),
             "y"_a.noconvert(), "diagonal"_a.noconvert(), "patterns"_a.noconvert(),
             "classes"_a.noconvert(), "beta"_a.noconvert(), "gradient"_a.noconvert())
        .def_prop_ro("n_patterns", alone(&M::n_patterns))
        .def_prop_ro("n_support_vectors", alone(&M::n_support_vectors))
        .def_prop_ro("dual", alone(&M::dual))
        .def_prop_ro("cache_bytes", alone(&M::cache_bytes))
        .def_prop_rw("counts", alone(&M::counts), alone(&M::set_counts))
        .def_prop_rw("rates", alone(&M::rates), alone(&M::set_rates))
        .def_prop_rw("random_state", alone(&M::random_state), alone(&M::set_random_state));
}

}  // namespace

void bind_larank(nb::module_& m) {
    bind_patterns<float>(m, "F32");
    bind_patterns<double>(m, "F64");
    bind_machine<float>(m, "F32");
    bind_machine<double>(m, "F64");
}
