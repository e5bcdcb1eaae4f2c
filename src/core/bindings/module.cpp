// The compiled module: one function per subject.
#include "base/cpu.hpp"
#include "base/memory.hpp"
#include "base/simd.hpp"
#include "bindings/common.hpp"

namespace nb = nanobind;

namespace {

// Memory that was refused where nobody said what for: buffers and lists.
void translate(const std::exception_ptr& error, void*) {
    try {
        std::rethrow_exception(error);
    } catch (const pm::OutOfMemory& refused) {
        PyErr_SetString(PyExc_MemoryError, refused.what());
    } catch (const std::bad_alloc&) {
        PyErr_SetString(PyExc_MemoryError,
                        "There is no memory for a buffer of the compiled part of polymargin.");
    }
}

}  // namespace

void bind_kernel_machine(nb::module_& m);
void bind_larank(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_projections(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_schedule(nb::module_& m);
void bind_stream(nb::module_& m);
void bind_svmlight(nb::module_& m);

NB_MODULE(POLYMARGIN_MODULE, m) {
    nb::register_exception_translator(translate);
    // Python does not take every object apart at its end, as those of threads that still run: what
    // nanobind calls a leak then is none, and nobody who uses the package could do anything about
    // it.
    nb::set_leak_warnings(false);
#ifdef POLYMARGIN_FAIL_ALLOCATIONS
    m.def("allocations", [] { return pm::Allocations::made.load(); });
    m.def("refuse_allocation", [](long long after) { pm::Allocations::left = after; });
#endif
    bind_losses(m);
    bind_rows(m);
    bind_schedule(m);
    bind_linear(m);
    bind_kernel_machine(m);
    bind_larank(m);
    bind_stream(m);
    bind_projections(m);
    bind_svmlight(m);
    m.attr("vector_bytes") = pm::kVectorBytes;
    m.def("best_instruction_set", &pm::best_instruction_set);
}
