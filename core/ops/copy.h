// Copies, conversions and whole-tensor writes.
#pragma once
#include "core/ops/operand.h"

namespace tw {

// Fresh row-major memory with the same values.
Tensor copy(const Tensor& x);
// `x` itself where it is row-major already.
Tensor contiguous(const Tensor& x);
// `x` itself where the rows or the columns of its last two axes are contiguous or repeated: kernels
// would gather anything else element by element, and panel after panel.
Tensor with_lines(const Tensor& x);
// Converted to `dtype`; `x` itself when it has it and `always_copy` is false. Floating to integer
// truncates; anything to bool is x != 0. Raises TypeError from complex to real types.
Tensor astype(const Tensor& x, DType dtype, bool always_copy = false);
// Overwrites `into` with `value`, broadcast and converted. Raises ValueError for shapes that do not
// broadcast into it and the errors of check_recorded_change where the change is recorded.
void assign(Tensor& into, const Operand& value);

// What every recorded in-place change asks first. Raises RuntimeError for a leaf that requires grad
// and for views, whose base would not learn of the change.
void check_recorded_change(const Tensor& x, const char* op);
// What every other in-place change asks: raises RuntimeError, while recording is on, for a view of
// memory that a graph uses, which would not learn of the change.
void check_unrecorded_change(const Tensor& x, const char* op);
// A new header over the memory of `x` that takes over its hooks and name: in-place ops put it into
// the graph, while nodes that saved the old header keep the old place.
Tensor moved_header(const Tensor& x);

}  // namespace tw
