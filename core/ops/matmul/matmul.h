// Matrix products.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// NumPy's rules: 1-D operands are vectors, leading axes of N-D ones are broadcast batches.
// Raises ValueError for inner sizes that differ, 0-d operands and batches that do not broadcast.
Tensor matmul(const Tensor& a, const Tensor& b);
// Of two vectors, the first conjugated.
Tensor vdot(const Tensor& x1, const Tensor& x2);
// x @ weight.T + bias for x (..., in), weight (out, in), bias (out,) or empty, then relu where
// asked for. For matrices of float32 or float64, one kernel does all of it.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool with_relu = false);
// beta * x + alpha * a @ b in the memory of x, which has the product's shape and the matrices'
// type. Raises ValueError for shapes that do not fit, TypeError for what is no floating type.
void addmm_in_place(Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha);
// x @ b in the memory of x, whose shape and type the product has.
void matmul_in_place(Tensor& x, const Tensor& b);

}  // namespace tw
