// Other shapes and strides over the same memory. No copies, except where reshape cannot avoid one.
#pragma once
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

namespace tw {

// One axis of a slice: `count` elements from `start`, `step` apart (negative steps run backwards).
struct Range {
  std::int64_t start, step, count;
};

// A header over the memory of x in the family of its views; strides and offset in elements. Takes
// no place in the graph. Seen as another type it has no family: its recorded changes are refused.
Tensor view_of(const Tensor& x, const Shape& shape, const Strides& strides,
               std::int64_t offset_elements = 0);
Tensor view_as(const Tensor& x, DType dtype, const Shape& shape, const Strides& strides);
// One extent may be -1: what remains. A view where strides allow, else a copy (or ValueError where
// `copy_allowed` is false).
Tensor reshape(const Tensor& x, const Shape& shape, bool copy_allowed = true);
// A view of a fresh result that nobody else holds, as a tensor of its own.
Tensor owned(Tensor view);
// Whether reshape would be a view.
bool can_view_as(const Tensor& x, const Shape& shape);
Tensor permute_dims(const Tensor& x, const std::vector<std::int64_t>& axes);
Tensor swap_axes(const Tensor& x, int a, int b);
// Repeats axes of extent 1 and adds leading axes, with stride 0.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
// x itself where it has the shape: for what is only read.
Tensor broadcast_operand(const Tensor& x, const Shape& shape);
// With extent 1 along axes that repeat: what broadcast_to would make x of. Takes no place in the
// graph.
Tensor without_repeats(const Tensor& x);
Tensor expand_dims(const Tensor& x, std::int64_t axis);
// Drops the given axes, which must have extent 1.
Tensor squeeze(const Tensor& x, const std::vector<std::int64_t>& axes);
// One range for each axis; `dropped`: bits of axes, of one element each, that the result lacks.
Tensor slice(const Tensor& x, std::span<const Range> ranges, std::uint32_t dropped = 0);

// The same bits as elements of another type (core/ops/shape/view_dtype.cpp).
Tensor view_dtype(const Tensor& x, DType dtype);

// Windows of some elements along an axis, as a view: axis counts them, a new last one their places.
Tensor windows_along(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);

}  // namespace tw
