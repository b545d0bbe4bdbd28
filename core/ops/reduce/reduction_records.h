// What the records of reductions share, defined in reduce.cpp. Bit i of `axes`: axis i is reduced.
#pragma once
#include <cstdint>

#include "core/ops/reduce/reduce.h"
#include "core/runtime/op.h"

namespace tw {

Shape kept_shape(const Shape& shape, std::uint32_t axes, bool keepdims);
// Elements that go into one result.
std::int64_t count_of(const Shape& shape, std::uint32_t axes);
Axes list_of(std::uint32_t axes);

void check_floating(DType dtype, const char* op, bool or_complex = true);
void check_ordered(DType dtype, const char* op);

// A result of the first operand's shape and type.
void infer_like_first(Call& call, Result* results);
// An operation for each element of the first operand, which is read.
Estimate estimate_reduction(const Call& call);

// The axes are the first attribute.
Tensor reduced_by(const OpRecord& op, const Tensor& x, const Axes& axes, AttributeList& attributes);

}  // namespace tw
