// Tensors made from nothing but numbers.
#pragma once
#include "core/tensor/operand.h"

namespace tw {

Tensor full(const Shape& shape, const Scalar& value, DType dtype);
Tensor zeros(const Shape& shape, DType dtype);
// start, start + step, ... below (or above, for negative steps) stop; raises ValueError for step 0.
Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, DType dtype);

}  // namespace tw
