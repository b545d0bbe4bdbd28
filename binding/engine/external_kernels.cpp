// Kernels from outside.
#include "binding/module.h"
#include "core/problems/external_kernels.h"

namespace tw::binding {

using namespace nb::literals;

void bind_external_kernels(nb::module_& m) {
  m.def("_kernel_abi", [] { return TW_KERNEL_ABI; });
  m.def(
      "_add_external_kernels",
      [](std::uintptr_t library) {
        add_external_kernels(*reinterpret_cast<const tw_kernels*>(library));
      },
      "library"_a, "Registers what a library's `tilewright_kernels()` gave, by its address.");
}

}  // namespace tw::binding
