// Elements by an index for each of them along one axis.
#pragma once
#include "core/base/scalar.h"
#include "core/problems/index_errors.h"
#include "core/tensor/tensor.h"

namespace tw {

// Indices in int64. Raises IndexError where they are no integers.
Tensor integer_index(const char* op, const Tensor& index);
// y[i, j, k] = x[i, index[i, j, k], k] for axis 1; no other axis of the index is longer than x's.
// The index is int64, and negative ones count from the end. IndexError for others out of range.
Tensor gather_along(const Tensor& x, const Tensor& index, int axis, AlongUser user);
// x with src, of the shape of the index and the type of x, added where gather_along would read.
Tensor scatter_add_along(const Tensor& x, const Tensor& index, const Tensor& src, int axis,
                         AlongUser user);
// The same with src written there, of several at one place the last; `distinct`: there are none.
Tensor scatter_along(const Tensor& x, const Tensor& index, const Tensor& src, int axis,
                     AlongUser user, bool distinct);
// Raises TypeError where src, which the op calls `name`, is of another type than x.
void check_same_type(const char* op, const char* name, const Tensor& src, const Tensor& x);
// A number in the type of x, which must be able to hold it.
Tensor number_like(const Tensor& x, const Scalar& value);

}  // namespace tw
