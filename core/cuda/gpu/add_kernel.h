// Entries of the registry for the kernels of this device.
#pragma once
#include <algorithm>
#include <string>

#include "core/cuda/gpu/gpu.h"
#include "core/runtime/registry.h"

namespace tw::cuda {

// Named "blocks", unless it says another name. Problems are built where kernels are chosen: their
// costs are bytes over the memory's rate, and a launch.
template <class Problem>
Lowering& add_kernel(const char* op, const char* help, const OneKernel& one) {
  return add_one_kernel<Problem>(KernelSet::cuda, op, help, one);
}

// The name of a type in kernels.
const char* type_name(DType dtype);
// What is computed in: half precision in float, whole numbers in 32 or 64 bits, bool in bytes.
DType compute_dtype(DType dtype);
// What tensor cores multiply of a type: TW_KIND.
inline std::string tensor_core_kind(DType dtype) {
  return std::to_string(dtype == DType::float32   ? TW_KIND_TF32
                        : dtype == DType::float16 ? TW_KIND_HALF
                                                  : TW_KIND_BFLOAT16);
}

// Null for the types that kernels without half precision take.
inline const char* refuses_narrow(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}
// The same of all operands of a call.
inline const char* refuses_narrow(const Call& call) {
  for (int i = 0; i < call.inputs; ++i)
    if (!call.in[i].absent && refuses_narrow(call.in[i].dtype)) return kTooNarrow;
  return nullptr;
}

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Enough blocks of kBlockThreads for n items, but no more than a few for each multiprocessor:
// kernels walk the rest in a loop.
inline Grid grid_for(std::int64_t n, int blocks_each = 16) {
  const std::int64_t most = std::int64_t{Gpu::current().facts.multiprocessors} * blocks_each;
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::int64_t>(divide_up(n, kBlockThreads), 1, std::max<std::int64_t>(most, 1)));
  return {.blocks = {blocks, 1, 1}};
}

// Memory of the pool for the length of a call: what is given back serves later work of the stream.
class Room {
 public:
  explicit Room(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)), at_(Gpu::current().pool.allocate(bytes_)) {}
  ~Room() { Gpu::current().pool.release(at_, bytes_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  void* at() const { return at_; }

 private:
  const std::size_t bytes_;
  void* const at_;
};

inline std::string define(const char* name, const std::string& value) {
  return "#define " + std::string(name) + " " + value + "\n";
}

}  // namespace tw::cuda
