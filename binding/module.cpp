// The extension module: types first, then every part's functions.
#include "binding/module.h"

#include "binding/tensor/casters.h"
#include "binding/calls/function.h"
#include "binding/tensor/interchange.h"
#include "binding/tensor/tensor_type.h"
#include "core/cpu/isa/families.h"
#include "core/cuda/gpu/families.h"
#include "core/runtime/interruption.h"
#include "core/runtime/launch.h"

namespace tw::binding {

namespace {

void* release_lock() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
void acquire_lock(void* state) { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }

// CPython runs them on the main thread alone; on others this does nothing.
void handle_signals() {
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() < 0) throw nb::python_error();
}

}  // namespace

}  // namespace tw::binding

NB_MODULE(_core, m) {
  using namespace tw::binding;
  nb::set_leak_warnings(false);  // the Tensor type and its methods live as long as the process
  tw::frontend_lock = {release_lock, acquire_lock};
  tw::run_signal_handlers = handle_signals;
  tw::register_cpu_kernels();
  tw::register_cuda();
  create_error_types(m);
  create_tensor_type(m);
  create_dtypes(m);
  create_pair_type(m);
  create_module_call(m);
  bind_interchange(m);
  bind_dlpack(m);
  bind_pointwise(m);
  bind_ops(m);
  bind_split(m);
  bind_tensor_methods(m);
  bind_tensor_spellings(m);
  bind_spellings(m);
  bind_autograd(m);
  bind_capture(m);
  bind_module_state(m);
  bind_memory(m);
  bind_external_kernels(m);
  bind_machine(m);
  bind_optimizations(m);
  bind_runtime(m);
  bind_events(m);
  bind_transfer(m);
  bind_scheduler(m);
  bind_gradient_memory(m);
  bind_cycles(m);
  bind_graph(m);
  bind_cuda(m);
  bind_gpu_rates(m);
  bind_gpu_streams(m);
  bind_gpu_comparison(m);
  create_function_types();
  present_functions(m);
}
