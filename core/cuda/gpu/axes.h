// Operands of several axes as kernels walk them: neighbouring axes that every operand crosses in
// even steps are one.
#pragma once
#include <cstdint>

#include "core/cuda/prelude/parameters.h"
#include "core/runtime/op.h"

namespace tw::cuda {

// Operands' strides over the axes of a shape, in elements, 0 where they repeat.
template <int n> class Axes {
 public:
  Extents extents;
  Strides strides[n];

  explicit Axes(int operands) : operands_(operands) {}

  // Inner axes last. False where there are more than kernels take.
  bool push(std::int64_t size, const std::int64_t* steps) {
    if (size == 1) return true;
    int at = extents.rank - 1;
    bool merges = at >= 0;
    for (int k = 0; k < operands_ && merges; ++k) merges = strides[k].stride[at] == size * steps[k];
    if (!merges && ++at == kMaxAxes) return false;
    extents.extent[at] = merges ? extents.extent[at] * size : size;
    for (int k = 0; k < operands_; ++k) strides[k].stride[at] = steps[k];
    extents.rank = at + 1;
    return true;
  }
  // Whether all elements of all operands lie one after another.
  bool is_one_run() const {
    if (extents.rank > 1) return false;
    for (int k = 0; k < operands_ && extents.rank == 1; ++k)
      if (strides[k].stride[0] != 1) return false;
    return true;
  }
  // At least one axis.
  void finish() {
    if (extents.rank) return;
    extents.rank = 1;
    extents.extent[0] = 1;
    for (int k = 0; k < operands_; ++k) strides[k].stride[0] = 1;
  }

 private:
  int operands_;
};

// The step of an operand along an axis of a shape that it is broadcast to.
inline std::int64_t step_along(const Meta& x, const Shape& shape, int axis) {
  const int own = axis - (shape.rank() - x.rank());
  return own < 0 || (x.size(own) == 1 && shape[axis] != 1) ? 0 : (*x.strides)[own];
}

}  // namespace tw::cuda
