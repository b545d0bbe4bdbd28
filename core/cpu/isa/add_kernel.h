// Entries of the registry for ops that have one kernel on this device.
#pragma once
#include "core/runtime/registry.h"

namespace tw {

// Named as the only kernels of this device are, unless it says another name.
template <class Problem>
Lowering& add_kernel(const char* op, const char* help, const OneKernel& one) {
  return add_one_kernel<Problem>(KernelSet::cpu, op, help, one);
}

}  // namespace tw
