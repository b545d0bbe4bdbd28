// Steps of optimizers over many parameters in one call, with the formulas of torch.optim.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

enum class UpdateOp {
#define TW_UPDATE(name, ...) name,
#include "core/ops/updates.inc"
#undef TW_UPDATE
};
#define TW_UPDATE(...) +1
inline constexpr int kUpdateOps =
#include "core/ops/updates.inc"
    ;
#undef TW_UPDATE

// One parameter: n contiguous elements of each array, which do not overlap. States have the
// elements of state_type().
struct ParameterSlice {
  DType dtype;  // of the parameter and its gradient, any floating one
  std::int64_t n;
  void* param = nullptr;
  const void* grad = nullptr;  // null for changes
  void* states[3] = {};
};

inline constexpr int kMaxFactors = 10;

struct UpdateTable {
  using Loop = void (*)(const double* factors, const ParameterSlice& slice);
  Loop float32[kUpdateOps], float64[kUpdateOps];
};

}  // namespace tw
