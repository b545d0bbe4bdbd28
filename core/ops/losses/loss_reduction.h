// What losses share: how they are reduced, and the type that they are computed in.
#pragma once
#include "core/runtime/op.h"
#include "core/tensor/operand.h"

namespace tw {

// As signatures list them.
enum class Reduction : std::uint8_t { mean, sum, none };

// The operands of a loss in the type that it is computed in: float32 for 16-bit ones, whose type
// the result has. Raises TypeError where they are not floating-point.
class LossInputs {
 public:
  explicit LossInputs(const Use& use);
  Tensor operator[](int i) const;
  bool has(int i) const { return use_.in[i].is_tensor(); }
  Tensor reduced(const Tensor& losses, Attribute reduction) const;
  Tensor in_own_type(const Tensor& loss) const;

 private:
  const Use& use_;
  DType type_;
};

// Negative log-likelihood of class indices `targets` (n,) under logits (n, classes). Rows whose
// target is `ignore_index` count for nothing. Raises IndexError for targets out of range.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction,
                     std::int64_t ignore_index);

}  // namespace tw
