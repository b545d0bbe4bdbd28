// Softmax and what is computed from it.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// exp(x) / sum(exp(x)) along an axis, shifted so that nothing overflows.
Tensor softmax(const Tensor& x, std::int64_t axis);
Tensor log_softmax(const Tensor& x, std::int64_t axis);

// As signatures list them.
enum class Reduction : std::uint8_t { mean, sum, none };
// Negative log-likelihood of class indices `targets` (n,) under logits (n, classes). Rows whose
// target is `ignore_index` count for nothing. Raises IndexError for targets out of range.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction,
                     std::int64_t ignore_index);

}  // namespace tw
