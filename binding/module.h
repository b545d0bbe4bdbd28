// The parts of the extension module.
#pragma once
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace tw::binding {

void bind_pointwise(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_split(nb::module_& module);
void bind_tensor_methods(nb::module_& module);
void bind_tensor_spellings(nb::module_& module);
void bind_spellings(nb::module_& module);
void bind_autograd(nb::module_& module);
void bind_capture(nb::module_& module);
void bind_external_kernels(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_optimizations(nb::module_& module);
void bind_runtime(nb::module_& module);
void create_module_call(nb::module_& module);
void bind_module_state(nb::module_& module);
void bind_events(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_ledger(nb::module_& module);
void bind_transfer(nb::module_& module);
void bind_scheduler(nb::module_& module);
void bind_gradient_memory(nb::module_& module);
void bind_cycles(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_cuda(nb::module_& module);
void bind_gpu_rates(nb::module_& module);
void bind_gpu_streams(nb::module_& module);
void bind_gpu_comparison(nb::module_& module);

}  // namespace tw::binding
