// Entries of the registry for ops that have one kernel on this device.
#pragma once
#include <type_traits>

#include "core/runtime/registry.h"

namespace tw {

// Kernel and lowering live as long as the process.
template <class Problem>
Lowering& add_kernel(const char* op, const char* help, const char* (*refuses)(const Call&),
                     void (*set_up)(const Call&, void*), void (*bind)(void*, void* const*),
                     double (*cost_ns)(const void*), void (*run)(const void*),
                     std::uint32_t contiguous = 0, const char* name = "vector") {
  static_assert(sizeof(Problem) <= kMaxProblemBytes);
  static_assert(std::is_trivially_copyable_v<Problem>);
  register_kernel(new Kernel{op, name, "cpu", Precision::ieee, help, nullptr, cost_ns, run});
  auto* lowering = new Lowering{op, sizeof(Problem), refuses, set_up, bind};
  lowering->contiguous = contiguous;
  register_lowering(lowering);
  return *lowering;
}

}  // namespace tw
