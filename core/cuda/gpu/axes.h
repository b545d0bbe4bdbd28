// The axes that a kernel is given.
#pragma once
#include <cstdint>

#include "core/cuda/prelude/parameters.h"
#include "core/problems/axes.h"

namespace tw::cuda {

// Operands' strides over the axes of a shape, in elements, 0 where they repeat.
template <int n> class Axes {
 public:
  Extents extents;
  Strides strides[n];

  explicit Axes(int operands) : operands_(operands) {}

  // Inner axes last. False where there are more than kernels take.
  bool push(std::int64_t size, const std::int64_t* steps) {
    OperandAxes axes{extents.rank, operands_, extents.extent,
                     [this](int k, int axis) -> std::int64_t& { return strides[k].stride[axis]; }};
    if (size != 1 && axes.rank == kMaxAxes && !axes.continues(size, steps)) return false;
    axes.push(size, steps);
    extents.rank = axes.rank;
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

}  // namespace tw::cuda
