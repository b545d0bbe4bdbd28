// Softmax and its logarithm.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// exp(x) / sum(exp(x)) along an axis, shifted so that nothing overflows.
Tensor softmax(const Tensor& x, std::int64_t axis);
Tensor log_softmax(const Tensor& x, std::int64_t axis);

}  // namespace tw
