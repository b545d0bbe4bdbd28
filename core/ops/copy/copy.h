// Copies, conversions and whole-tensor writes.
#pragma once
#include "core/tensor/operand.h"

namespace tw {

// Fresh row-major memory with the same values.
Tensor copy(const Tensor& x);
// Writes x, converted, over what `target` of its shape holds, whatever that is part of.
void copy_into(const Tensor& target, const Tensor& x);
// Memory of others as bools, all bytes of which must be 0 or 1: where some are not, a copy
// that has 1 for them.
Tensor with_truth_values(const Tensor& x);
// On another device, where it is not there yet. With `non_blocking` copies from and to pinned
// memory go on when it returns; the engine waits for them where it uses the memory.
Tensor to_device(const Tensor& x, const Device* device, bool non_blocking = false);
// `x` itself where it is row-major already.
Tensor contiguous(const Tensor& x);
// Converted to `dtype`; `x` itself when it has it and `always_copy` is false. Floating to integer
// truncates; anything to bool is x != 0. Raises TypeError from complex to real types.
Tensor astype(const Tensor& x, DType dtype, bool always_copy = false);
// The same for what is only read: what repeats is converted once and repeats still, so that kernels
// may know a gradient that is one number.
Tensor astype_operand(const Tensor& x, DType dtype);
// Overwrites `into` with `value`, broadcast and converted. Raises ValueError for shapes that do not
// broadcast into it and the errors of an in-place change (in_place.h).
void assign(Tensor& into, const Operand& value);

}  // namespace tw
