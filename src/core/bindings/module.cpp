// The compiled module: one function per subject.
#include "base/cpu.hpp"
#include "base/simd.hpp"
#include "bindings/common.hpp"

namespace nb = nanobind;

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
