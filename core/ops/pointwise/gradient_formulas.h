// The gradient formulas of pointwise.inc over tensors, for gradients of gradients.
#pragma once
#include "core/problems/pointwise_rows.h"
#include "core/tensor/tensor.h"

namespace tw {

// The gradient of an input of a row. Values: a, b, c and the result; empty where the formula does
// not read them.
Tensor gradient_formula(PointwiseOp op, int input, const Tensor& g,
                        const Tensor (&values)[kMaxRowInputs + 1]);

}  // namespace tw
