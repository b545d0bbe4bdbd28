// How the axes of strided memory lie, and whether that leaves gaps.
#pragma once
#include <cstdlib>

#include "core/base/shape.h"

namespace tw {

// The axes from the widest stride to the narrowest, those of one stride as they are.
struct AxisOrder {
  int at[kMaxRank];
  explicit AxisOrder(DimsView strides) {
    const auto step = [&](int axis) { return std::abs(strides[static_cast<std::size_t>(axis)]); };
    for (int i = 0; i < static_cast<int>(strides.size()); ++i) {
      int place = i;
      for (; place > 0 && step(at[place - 1]) < step(i); --place) at[place] = at[place - 1];
      at[place] = i;
    }
  }
};

// Whether these are the strides of row-major memory with its axes in some order: no gaps, and no
// element twice.
inline bool is_dense(const Shape& shape, const Strides& strides) {
  const AxisOrder order(strides);
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int axis = order.at[i];
    if (shape[axis] == 1) continue;
    if (strides[axis] != step) return false;
    step *= shape[axis];
  }
  return true;
}

}  // namespace tw
