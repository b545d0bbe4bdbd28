// clip with one bound or none: the same formula and gradient as with two.
#include "core/ops/clip.h"

#include <limits>

#include "core/ops/copy.h"
#include "core/ops/pointwise.h"

namespace tw {

namespace {

using Bound = std::optional<Operand>;

// The type that the row computes in.
DType clipped_dtype(const Tensor& x, const Bound& low, const Bound& high) {
  DType type = x.dtype();
  for (const Bound* bound : {&low, &high})
    if (*bound && (*bound)->is_tensor()) type = promote(type, (*bound)->tensor.dtype());
  for (const Bound* bound : {&low, &high})
    if (*bound && !(*bound)->is_tensor()) type = weak_promote(type, (*bound)->scalar);
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

Operand bound_or_end(const Bound& bound, DType type, bool highest) {
  const Scalar end = end_of_range(type, highest);
  if (!bound) return end;
  return !bound->is_tensor() && is_beyond(bound->scalar, type, end, highest) ? end : *bound;
}

}  // namespace

Tensor clip_between(const Tensor& x, const Bound& low, const Bound& high) {
  if (!low && !high) return copy(x);
  const DType type = clipped_dtype(x, low, high);
  return clip(x, bound_or_end(low, type, false), bound_or_end(high, type, true));
}

}  // namespace tw
