// Tensors made from nothing but numbers.
#pragma once
#include "core/tensor/operand.h"

namespace tw {

Tensor full(const Shape& shape, const Scalar& value, DType dtype);
Tensor zeros(const Shape& shape, DType dtype);
// start, start + step, ... below (or above, for negative steps) stop; raises ValueError for step 0.
Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, DType dtype);
// `count` evenly spaced numbers, `stop` included where `endpoint`.
Tensor linspace(double start, double stop, std::int64_t count, bool endpoint, DType dtype);
// Ones on diagonal `k` of a rows x columns matrix, else zeros.
Tensor eye(std::int64_t rows, std::int64_t columns, std::int64_t k, DType dtype);
// Copies of the last two axes with everything above (tril) or below (triu) diagonal k set to zero.
Tensor tril(const Tensor& x, std::int64_t k);
Tensor triu(const Tensor& x, std::int64_t k);

}  // namespace tw
