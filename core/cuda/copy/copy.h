// Copies of strided tensors: what other families copy first is one, too.
#pragma once
#include <cstring>
#include <string>

#include "core/cuda/copy/copy_parameters.h"
#include "core/cuda/gpu/axes.h"
#include "core/runtime/op.h"

namespace tw::cuda {

struct CopyProblem {
  Copy parameter;
  DType from, to;
  bool apart, is_number;
};

void set_up_between(CopyProblem& p, DType from, DType to, const Shape& shape,
                    const std::int64_t* x_steps, const std::int64_t* y_steps);
// From input `which`, which broadcasts to the result.
template <int which> void set_up_copy(const Call& call, void* problem) {
  const Meta &x = call.in[which], &y = call.out[0];
  std::int64_t x_steps[kMaxRank], y_steps[kMaxRank];
  for (int axis = 0; axis < y.rank(); ++axis) {
    y_steps[axis] = (*y.strides)[axis];
    x_steps[axis] = x.number ? y_steps[axis] : step_along(x, *y.shape, axis);
  }
  CopyProblem& p = *new (problem) CopyProblem;
  set_up_between(p, x.dtype, y.dtype, *y.shape, x_steps, y_steps);
  p.is_number = x.number;
}
template <int which, int inputs> void bind_copy(void* problem, void* const* at) {
  CopyProblem& p = *static_cast<CopyProblem*>(problem);
  p.parameter.x = p.is_number ? nullptr : at[which];
  p.parameter.y = at[inputs];
  if (p.is_number) std::memcpy(p.parameter.number, at[which], size_of(p.from));
}

void run_copy(const void* problem);

// Elements of one type move as bytes: the type of so many.
inline std::string bytes_name(std::size_t size) {
  return size == 16 ? "bytes16" : "uint" + std::to_string(8 * size) + "_t";
}
}  // namespace tw::cuda
