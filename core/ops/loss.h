// Losses made of other ops.
#pragma once
#include "core/ops/softmax.h"

namespace tw {

// Squared differences of two tensors of one shape, for each element or reduced. 16-bit numbers are
// squared and added up in float32.
Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction);

}  // namespace tw
