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

// Strides of memory without gaps whose axes lie in the order of these; none where that is the
// row-major order, or where these may show an element twice.
inline Strides dense_along(const Shape& shape, const Strides& strides) {
  const AxisOrder order(strides);
  const int rank = shape.rank();
  Strides dense = Strides::of_rank(rank);
  std::int64_t step = 1, reach = 0;
  int before = rank;  // the axis inside this one
  bool row_major = true;
  for (int i = rank - 1; i >= 0; --i) {
    const int axis = order.at[i];
    dense[axis] = step;
    if (shape[axis] == 1) continue;
    const std::int64_t own = std::abs(strides[axis]);
    if (own <= reach) return {};
    row_major &= axis < before;
    before = axis;
    step *= shape[axis];
    reach += (shape[axis] - 1) * own;
  }
  return row_major ? Strides() : dense;
}

// Whether the axes may be taken in this order from the widest stride to the narrowest.
inline bool lies_along(const AxisOrder& order, const Shape& shape, const Strides& strides) {
  int before = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = order.at[i];
    if (shape[axis] == 1) continue;
    if (before >= 0 && std::abs(strides[before]) < std::abs(strides[axis])) return false;
    before = axis;
  }
  return true;
}

}  // namespace tw
