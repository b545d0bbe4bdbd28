// What an op accepts where users may write a tensor or a plain number.
#pragma once
#include <utility>

#include "core/base/scalar.h"
#include "core/tensor/tensor.h"

namespace tw {

class Operand {
 public:
  Operand() : scalar(Scalar::none()) {}
  Operand(const Tensor& x) : tensor(x) { scalar.reach = Scalar::Reach::none; }
  Operand(Tensor&& x) : tensor(std::move(x)) { scalar.reach = Scalar::Reach::none; }
  Operand(const Scalar& value) : scalar(value) {}
  Operand(int value) : scalar(value) {}
  Operand(double value) : scalar(value) {}
  bool absent() const { return !tensor && scalar.absent(); }
  bool is_tensor() const { return static_cast<bool>(tensor); }
  // One that was left out.
  static Operand none() { return Scalar::none(); }
  Tensor tensor;
  Scalar scalar;
};

}  // namespace tw
