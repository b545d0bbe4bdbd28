// Limits that may be left out.
#pragma once
#include "core/runtime/op.h"

namespace tw {

// Calls the row `clip` with the end of the type's range in place of a missing bound, and of a bound
// that is an integer beyond that end: min=-1 does not limit uint8.
bool rewrite_bounds(const Use& use, Tensor* out);
// Puts such ends in the place of bounds. `x` is a tensor.
void complete_bounds(const Operand& x, Operand& low, Operand& high);

}  // namespace tw
