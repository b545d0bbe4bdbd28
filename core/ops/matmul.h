// Matrix products.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// NumPy's rules: 1-D operands are vectors, leading axes of N-D ones are broadcast batches.
// Raises ValueError for inner sizes that differ, 0-d operands and batches that do not broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);
// x @ weight.T + bias for x (..., in), weight (out, in), bias (out,) or empty.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace tw
