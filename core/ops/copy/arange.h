// Magnitudes whose powers leave the range of their type, and the scales that bring them back.
#pragma once
#include "core/ops/reduce/reduce.h"

namespace tw {

// Sums of powers, and lengths, that have lost nothing to overflow and underflow on the way.
struct SafeRange {
  double least, most;
};
SafeRange range_of_sums(DType dtype);
// Of two lengths, each of which has it, the product is in range.
SafeRange range_of_lengths(DType dtype);

// Whether one of some numbers is outside, NaN among them. In a recording, which a replay repeats on
// others, one may be; devices, which would be waited for, are not asked.
bool any_outside(const Tensor& sizes, SafeRange range);
// Factors for what has the magnitude `top`: 1 where the first result is inside, and else a power of
// two that brings it near 1. They have no gradient.
Tensor scale_of(const Tensor& result, SafeRange range, const Tensor& top);

// (Sum of size ** p) ** (1 / p), size at least 0, whatever the range of the powers. 0 has no slope
// to a power below 1, and neither has a root: taken as 0.
Tensor power_norm(const Tensor& size, double p, const Axes& axes, bool keepdims);

}  // namespace tw
