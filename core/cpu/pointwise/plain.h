// What definitions have in common: numbers through a formula.
#pragma once
#include <cstdint>

#include "core/cpu/copy/plain.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/pointwise/pointwise.h"

namespace tw {

// A formula of one operand, of some numbers in place, and of one.
inline void apply_plainly(PointwiseOp op, std::int64_t n, double* x) {
  const int step = 1;
  const void* const in[] = {x};
  pointwise_value(op, ComputeType::f64, scalar_kernels())(n, x, in, &step, Traffic::in_l1);
}
inline double plain_value(PointwiseOp op, double x) {
  apply_plainly(op, 1, &x);
  return x;
}

// Of two operands.
inline double plain_value(PointwiseOp op, double a, double b) {
  double y;
  const int steps[] = {1, 1};
  const void* const in[] = {&a, &b};
  pointwise_value(op, ComputeType::f64, scalar_kernels())(1, &y, in, steps, Traffic::in_l1);
  return y;
}

}  // namespace tw
