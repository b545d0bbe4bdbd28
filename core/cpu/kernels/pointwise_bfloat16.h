// Pointwise rows over bfloat16 as it lies in memory: float32 in the registers, without copies of
// operands and result. Only rows whose formula costs little beside those.
#pragma once
#include "core/cpu/kernels/bfloat16_lanes.h"
#include "core/cpu/kernels/pointwise.h"

namespace tw::TW_ISA_NAME {
namespace {

// `exact`: bfloat16 holds what the formula makes of its numbers, so nothing is to be rounded.
template <bool exact> TW_INLINE Vec<Stored16> as_stored(Vec<float> even, Vec<float> odd) {
  if constexpr (exact)
    return from_upper_halves((Bits32)even.v, (Bits32)odd.v);
  else
    return from_upper_halves(rounded_to_bfloat16(even), rounded_to_bfloat16(odd));
}
template <bool> TW_INLINE Mask<Stored16> as_stored(Mask<float> even, Mask<float> odd) {
  // All bits are set or none: any half will do.
  return {from_upper_halves((Bits32)even.v, (Bits32)odd.v).v};
}

template <class Row, int N, bool exact> void stored_kernel(std::int64_t n, void* y,
                                                           const void* const* inputs,
                                                           const int* step, bool stream) {
  for_each_vector<Stored16, N>(n, y, inputs, step, stream,
                               [](const Vec<Stored16>(&in)[N]) TW_LAMBDA_INLINE {
                                 Vec<float> even[N], odd[N];
                                 for (int k = 0; k < N; ++k) {
                                   const FloatPair pair = floats_of_bfloat16(in[k]);
                                   even[k] = pair.even;
                                   odd[k] = pair.odd;
                                 }
                                 return as_stored<exact>(Row::value(even), Row::value(odd));
                               });
}

constexpr PointwiseBFloat16Table make_bfloat16_table() {
  PointwiseBFloat16Table table = {};
#define TW_STORED(name, inputs, exact) \
  table.value[(int)PointwiseOp::name] = stored_kernel<name##_row, inputs, exact>;
#define TW_EXACT(name, inputs) TW_STORED(name, inputs, true)
#define TW_ROUNDED(name, inputs) TW_STORED(name, inputs, false)
  TW_EXACT(negative, 1)
  TW_EXACT(positive, 1)
  TW_EXACT(abs, 1)
  TW_EXACT(sign, 1)
  TW_EXACT(relu, 1)
  TW_EXACT(relu6, 1)
  TW_EXACT(floor, 1)
  TW_EXACT(ceil, 1)
  TW_EXACT(trunc, 1)
  TW_EXACT(round, 1)
  TW_EXACT(isnan, 1)
  TW_EXACT(isinf, 1)
  TW_EXACT(isfinite, 1)
  TW_EXACT(signbit, 1)
  TW_EXACT(logical_not, 1)
  TW_ROUNDED(square, 1)
  TW_ROUNDED(sqrt, 1)
  TW_ROUNDED(reciprocal, 1)
  TW_ROUNDED(hardsigmoid, 1)
  TW_ROUNDED(hardswish, 1)
  TW_ROUNDED(softsign, 1)
  TW_EXACT(maximum, 2)
  TW_EXACT(minimum, 2)
  TW_EXACT(copysign, 2)
  TW_EXACT(hardshrink, 2)
  TW_EXACT(equal, 2)
  TW_EXACT(not_equal, 2)
  TW_EXACT(less, 2)
  TW_EXACT(less_equal, 2)
  TW_EXACT(greater, 2)
  TW_EXACT(greater_equal, 2)
  TW_EXACT(logical_and, 2)
  TW_EXACT(logical_or, 2)
  TW_EXACT(logical_xor, 2)
  TW_ROUNDED(add, 2)
  TW_ROUNDED(subtract, 2)
  TW_ROUNDED(multiply, 2)
  TW_ROUNDED(divide, 2)
  TW_ROUNDED(nextafter, 2)
  TW_ROUNDED(leaky_relu, 2)
  TW_ROUNDED(square_distance, 2)
  TW_ROUNDED(huber_distance, 2)
  TW_EXACT(where, 3)
  TW_EXACT(clip, 3)
  TW_EXACT(hardtanh, 3)
  TW_EXACT(threshold, 3)
  TW_ROUNDED(lerp, 3)
  TW_ROUNDED(multiply_add, 3)
#undef TW_STORED
#undef TW_EXACT
#undef TW_ROUNDED
  return table;
}

}  // namespace

extern const PointwiseBFloat16Table pointwise_bfloat16_table;
constexpr PointwiseBFloat16Table pointwise_bfloat16_table = make_bfloat16_table();

}  // namespace tw::TW_ISA_NAME
