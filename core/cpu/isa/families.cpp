#include "core/cpu/isa/families.h"

namespace tw {

void register_cpu_kernels() {
  [[maybe_unused]] static const bool once = [] {
#define TW_KERNELS(name) register_##name##_kernels();
#include "core/cpu/isa/families.inc"
    register_matmul_lowerings();
    return true;
  }();
}

}  // namespace tw
