// Steps of optimizers over many parameters in one call, with the formulas of torch.optim.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/problems/update_rows.h"
#include "core/runtime/op.h"

namespace tw {

// One parameter: n contiguous elements of each array, which do not overlap. States have the
// elements of state_type().
struct ParameterSlice {
  DType dtype;  // of the parameter and its gradient, any floating one
  std::int64_t n;
  void* param = nullptr;
  const void* grad = nullptr;  // null for changes
  void* states[3] = {};
};

// What the kernels run on; the slices of the parameters lie behind it.
struct UpdateProblem {
  int row, count;
  DType types[2] = {};  // of step and lr; a change has the latter alone
  const void* numbers[2] = {};
  int attributes = 0;
  Attribute attribute[8] = {};
  ParameterSlice* slices() { return reinterpret_cast<ParameterSlice*>(this + 1); }
  const ParameterSlice* slices() const { return reinterpret_cast<const ParameterSlice*>(this + 1); }
};

struct UpdateTable {
  using Loop = void (*)(const double* factors, const ParameterSlice& slice);
  Loop float32[kUpdateOps], float64[kUpdateOps];
};

}  // namespace tw
