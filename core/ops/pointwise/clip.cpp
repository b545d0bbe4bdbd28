// Bounds of clip that are missing, or that the type does not hold.
#include "core/ops/pointwise/clip.h"

#include <bit>
#include <limits>

#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"

namespace tw {

namespace {

// The type that the row computes in.
DType clipped_dtype(const Tensor& x, const Operand& low, const Operand& high) {
  DType type = x.dtype();
  for (const Operand* bound : {&low, &high})
    if (bound->is_tensor()) type = promote(type, bound->tensor.dtype());
  for (const Operand* bound : {&low, &high})
    if (!bound->is_tensor() && !bound->absent()) type = weak_promote(type, bound->scalar);
  return type;
}

Scalar end_of_range(DType type, bool highest) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!is_integer(type)) return highest ? kInfinity : -kInfinity;
  const int bits = 8 * static_cast<int>(size_of(type)) - is_signed_int(type);
  const auto top = ~std::uint64_t{0} >> (64 - bits);
  if (highest) return Scalar::of_uint64(top);
  return is_signed_int(type) ? Scalar(-static_cast<std::int64_t>(top) - 1) : Scalar(0);
}

// Whether an integer lies outside the type's range, on the side of `end`.
bool is_beyond(const Scalar& value, DType type, const Scalar& end, bool highest) {
  if (!is_integer(type)) return false;
  if (highest ? value.re > end.re : value.re < end.re) return true;
  const bool fits = value.reach == Scalar::Reach::int64 ||
                    (value.reach == Scalar::Reach::uint64 && type == DType::uint64);
  return !fits && (value.re > 0) == highest;
}

Operand bound_or_end(const Operand& bound, DType type, bool highest) {
  const Scalar end = end_of_range(type, highest);
  if (bound.absent()) return end;
  return !bound.is_tensor() && is_beyond(bound.scalar, type, end, highest) ? end : bound;
}

bool is_same(const Operand& a, const Operand& b) {
  const Scalar &x = a.scalar, &y = b.scalar;
  return a.tensor.is(b.tensor) && x.kind == y.kind && x.reach == y.reach && x.i == y.i &&
         std::bit_cast<std::int64_t>(x.re) == std::bit_cast<std::int64_t>(y.re);
}

}  // namespace

void complete_bounds(const Operand& x, Operand& low, Operand& high) {
  const DType type = clipped_dtype(x.tensor, low, high);
  low = bound_or_end(low, type, false);
  high = bound_or_end(high, type, true);
}

bool rewrite_bounds(const Use& use, Tensor* out) {
  const Operand &x = use.in[0], &low = use.in[1], &high = use.in[2];
  if (low.absent() && high.absent()) {
    out[0] = copy(x.tensor);
    return true;
  }
  if (!x.is_tensor()) return false;
  Operand bounds[] = {low, high};
  complete_bounds(x, bounds[0], bounds[1]);
  if (is_same(bounds[0], low) && is_same(bounds[1], high)) return false;
  out[0] = clip(x, bounds[0], bounds[1]);
  return true;
}

}  // namespace tw
