// The parts of the extension module.
#pragma once
#include "binding/casters.h"
#include "binding/interchange.h"
#include "binding/tensor_type.h"

namespace tw::binding {

void bind_pointwise(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_split(nb::module_& module);
void bind_tensor_methods(nb::module_& module);
void bind_tensor_spellings(nb::module_& module);
void bind_autograd(nb::module_& module);
void bind_capture(nb::module_& module);
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

// A measured number, or None where there is none.
inline nb::object or_none(double value) {
  return value > 0 ? nb::object(nb::float_(value)) : nb::none();
}

// Attaches a nanobind function to the Tensor type as a method.
template <class F, class... Extra> void method(const char* name, F&& f, const Extra&... extra) {
  nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  nb::cpp_function(std::forward<F>(f), nb::name(name), nb::scope(type), nb::is_method(), extra...);
}
// A read-only property, and one that can be set.
template <class Get> void property(const char* name, Get&& get, const char* doc) {
  nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  const nb::object getter =
      nb::cpp_function(std::forward<Get>(get), nb::is_method(), nb::scope(type), nb::is_getter());
  nb::setattr(type, name,
              nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(getter, nb::none(),
                                                                        nb::none(), doc));
}
template <class Get, class Set>
void property(const char* name, Get&& get, Set&& set, const char* doc) {
  nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  const nb::object getter =
      nb::cpp_function(std::forward<Get>(get), nb::is_method(), nb::scope(type), nb::is_getter());
  const nb::object setter =
      nb::cpp_function(std::forward<Set>(set), nb::is_method(), nb::scope(type));
  nb::setattr(
      type, name,
      nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(getter, setter, nb::none(), doc));
}

}  // namespace tw::binding
