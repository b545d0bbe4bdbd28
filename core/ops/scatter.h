// Elements by an index for each of them along one axis.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// Whose indices they are, in errors.
enum class AlongUser : std::uint8_t {
  gather,
  take_along_axis,
  scatter,
  scatter_add,
  scatter_reduce,
  index_select,
  index_add,
  index_copy,
  index_fill,
  masked_scatter
};

// Indices in int64. Raises IndexError where they are no integers.
Tensor integer_index(const char* op, const Tensor& index);
// y[i, j, k] = x[i, index[i, j, k], k] for axis 1; no other axis of the index is longer than x's.
// The index is int64, and negative ones count from the end. IndexError for others out of range.
Tensor gather_along(const Tensor& x, const Tensor& index, int axis, AlongUser user);
// x with src, of the shape of the index and the type of x, added where gather_along would read.
Tensor scatter_add_along(const Tensor& x, const Tensor& index, const Tensor& src, int axis,
                         AlongUser user);

}  // namespace tw
