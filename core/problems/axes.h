// Axes of operands as kernels walk them: neighbouring axes that every operand crosses in even steps
// are one.
#pragma once
#include <cstdint>

#include "core/runtime/choice.h"
#include "core/runtime/op.h"

namespace tw {

// The step of an operand along an axis of a shape that it is broadcast to.
inline std::int64_t step_along(const Meta& x, const Shape& shape, int axis) {
  const int own = axis - (shape.rank() - x.rank());
  return own < 0 || (x.size(own) == 1 && shape[axis] != 1) ? 0 : (*x.strides)[own];
}

// Axes that operands cross, inner ones last. `stride(k, axis)` is where operand k's step lies.
template <class StrideOf> struct OperandAxes {
  int rank, operands;
  std::int64_t* extent;
  StrideOf stride;

  // Whether an axis of n elements behind the last one is one with it.
  bool continues(std::int64_t n, const std::int64_t* steps) const {
    bool is_one = rank > 0;
    for (int k = 0; k < operands && is_one; ++k) is_one = stride(k, rank - 1) == n * steps[k];
    return is_one;
  }
  void push(std::int64_t n, const std::int64_t* steps) {
    if (n == 1) return;
    const bool is_one = continues(n, steps) && uses(Optimization::loop_coalescing);
    const int at = is_one ? rank - 1 : rank++;
    extent[at] = is_one ? extent[at] * n : n;
    for (int k = 0; k < operands; ++k) stride(k, at) = steps[k];
  }
};

// The same of axes that lie in an array, outer ones first: fields hold the extent, and the
// operands' steps. Returns how many are left.
template <auto extent, auto... steps, class Axis> int merge_axes(Axis* axes, int rank) {
  int last = 0;
  for (int i = 1; i < rank; ++i) {
    Axis& outer = axes[last];
    const Axis& inner = axes[i];
    if (((outer.*steps == inner.*extent * inner.*steps) && ...)) {
      const std::int64_t count = outer.*extent * inner.*extent;
      outer = inner;
      outer.*extent = count;
    } else {
      axes[++last] = inner;
    }
  }
  return rank == 0 ? 0 : last + 1;
}

}  // namespace tw
