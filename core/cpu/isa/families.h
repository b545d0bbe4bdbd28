// What each kernel family puts into the registry.
#pragma once

namespace tw {

#define TW_KERNELS(name) void register_##name##_kernels();
#include "core/cpu/isa/families.inc"
// The ops whose calls the ladder of matrix products solves: apart from it, as the BLAS has no ops.
void register_matmul_lowerings();

// All of them, once: a frontend calls this before ops run.
void register_cpu_kernels();

}  // namespace tw
