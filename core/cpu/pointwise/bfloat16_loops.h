// Pointwise rows and their gradients over bfloat16 as it lies in memory, without copies of operands
// and result: float32 in the registers, or bits where the formula asks for no more. Only formulas
// that cost little beside those copies.
#pragma once
#include "core/cpu/simd/bfloat16.h"
#include "core/cpu/pointwise/pointwise_loops.h"

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

// Applies f, of vectors of float32, to bfloat16.
template <int N, bool exact, class F>
TW_INLINE void for_each_stored(std::int64_t n, void* y, const void* const* inputs, const int* step,
                               Traffic traffic, F f) {
  for_each_vector<Stored16, N>(n, y, inputs, step, traffic,
                               [f](const Vec<Stored16>(&in)[N]) TW_LAMBDA_INLINE {
                                 Vec<float> even[N], odd[N];
                                 for (int k = 0; k < N; ++k) {
                                   const FloatPair pair = floats_of_bfloat16(in[k]);
                                   even[k] = pair.even;
                                   odd[k] = pair.odd;
                                 }
                                 return as_stored<exact>(f(even), f(odd));
                               });
}
template <class Row, int N, bool exact> void stored_kernel(std::int64_t n, void* y,
                                                           const void* const* inputs,
                                                           const int* step, Traffic traffic) {
  for_each_stored<N, exact>(n, y, inputs, step, traffic,
                            [](const Vec<float>(&in)[N])
                                TW_LAMBDA_INLINE { return Row::value(in); });
}
template <class Row, int input, bool exact> void stored_gradient(std::int64_t n, void* dx,
                                                                 const void* const* inputs,
                                                                 const int* step, Traffic traffic) {
  constexpr Reads reads = reads_of(Row::gradients[input]);
  constexpr int N = 1 + reads.count();
  for_each_stored<N, exact>(n, dx, inputs, step, traffic,
                            [](const Vec<float>(&in)[N])
                                TW_LAMBDA_INLINE { return slope<Row, input, reads>(in); });
}

// Numbers whose bits alone decide: twice as many in a vector, and no two halves to put together.
struct StoredBits {
  using Bits = Vec<Stored16>;
  static constexpr Stored16 kSize = 0x7fff, kInfinite = 0x7f80;
  Bits bits;
  TW_INLINE Bits size() const { return bits & kSize; }
  TW_INLINE Bits sign() const { return bits & (Stored16)~kSize; }
  friend TW_INLINE StoredBits operator-(StoredBits x) { return {x.bits ^ (Stored16)~kSize}; }
  // Of plain numbers, formulas compare with 0 alone.
  friend TW_INLINE Mask<Stored16> operator==(StoredBits x, int) { return x.size() == 0; }
  friend TW_INLINE Mask<Stored16> operator!=(StoredBits x, int) { return x.size() != 0; }
  // Zeros of both signs are equal, and a NaN not to itself.
  friend TW_INLINE Mask<Stored16> operator==(StoredBits a, StoredBits b) {
    const Mask<Stored16> alike = (a.bits == b.bits) & (a.size() <= kInfinite);
    return alike | (((a.bits | b.bits) & kSize) == 0);
  }
  friend TW_INLINE Mask<Stored16> operator!=(StoredBits a, StoredBits b) { return !(a == b); }
  // Of numbers without a sign, as formulas compare sizes.
  friend TW_INLINE Mask<Stored16> operator<=(StoredBits a, StoredBits b) {
    return (a.bits <= b.bits) & (a.bits <= kInfinite);
  }
};
TW_INLINE StoredBits where(Mask<Stored16> c, StoredBits a, StoredBits b) {
  return {where(c, a.bits, b.bits)};
}
TW_INLINE StoredBits abs(StoredBits x) { return {x.size()}; }
TW_INLINE StoredBits copysign(StoredBits x, StoredBits sign) { return {x.size() | sign.sign()}; }
TW_INLINE Mask<Stored16> isnan(StoredBits x) { return x.size() > StoredBits::kInfinite; }
TW_INLINE Mask<Stored16> isinf(StoredBits x) { return x.size() == StoredBits::kInfinite; }
TW_INLINE Mask<Stored16> isfinite(StoredBits x) { return x.size() < StoredBits::kInfinite; }
TW_INLINE Mask<Stored16> signbit(StoredBits x) { return x.bits < 0; }
// The float32 beside a number rounds to the number again; beside 0 to 0 with the sign of b. Of NaN
// the first is given back.
TW_INLINE StoredBits nextafter(StoredBits a, StoredBits b) {
  const Vec<Stored16> moved = where(a == 0, b.sign(), a.bits);
  return {where(isnan(b) & !isnan(a), b.bits, moved)};
}

template <class Row, int N> void bits_kernel(std::int64_t n, void* y, const void* const* inputs,
                                             const int* step, Traffic traffic) {
  for_each_vector<Stored16, N>(n, y, inputs, step, traffic,
                               [](const Vec<Stored16>(&in)[N]) TW_LAMBDA_INLINE {
                                 StoredBits x[N];
                                 for (int k = 0; k < N; ++k) x[k] = {in[k]};
                                 const auto y = Row::value(x);
                                 if constexpr (std::is_same_v<decltype(y), const StoredBits>)
                                   return y.bits;
                                 else
                                   return y;
                               });
}

struct StoredSqrt {
  static TW_INLINE Vec<float> value(const Vec<float> (&in)[1]) {
    return near_sqrt(in[0], [](Vec<float> x) TW_LAMBDA_INLINE { return sqrt(x); });
  }
};
template <int which> struct StoredPower {
  static TW_INLINE Vec<float> value(const Vec<float> (&in)[1]) {
    if constexpr (kHalves<which> == 1)
      return near_sqrt(in[0], [](Vec<float> x) TW_LAMBDA_INLINE { return root_power(x); });
    else
      return simple_power<kHalves<which>>(in[0]);
  }
};
template <int... which> constexpr void add_simple_powers(PointwiseBFloat16Table& table,
                                                         std::integer_sequence<int, which...>) {
  ((table.simple_power[which] = stored_kernel<StoredPower<which>, 1, false>), ...);
}

constexpr PointwiseBFloat16Table make_bfloat16_table() {
  PointwiseBFloat16Table table = {};
  add_simple_powers(table, std::make_integer_sequence<int, kSimplePowerCount>());
  table.value[(int)PointwiseOp::sqrt] = stored_kernel<StoredSqrt, 1, false>;
#define TW_STORED(name, inputs, exact) \
  table.value[(int)PointwiseOp::name] = stored_kernel<name##_row, inputs, exact>;
#define TW_EXACT(name, inputs) TW_STORED(name, inputs, true)
#define TW_ROUNDED(name, inputs) TW_STORED(name, inputs, false)
#define TW_BITS(name, inputs) table.value[(int)PointwiseOp::name] = bits_kernel<name##_row, inputs>;
  TW_BITS(negative, 1)
  TW_BITS(positive, 1)
  TW_BITS(abs, 1)
  TW_BITS(isnan, 1)
  TW_BITS(isinf, 1)
  TW_BITS(isfinite, 1)
  TW_BITS(signbit, 1)
  TW_BITS(logical_not, 1)
  TW_BITS(copysign, 2)
  TW_BITS(finite_or, 3)
  TW_BITS(nextafter, 2)
  TW_BITS(logical_and, 2)
  TW_BITS(logical_or, 2)
  TW_BITS(logical_xor, 2)
  TW_BITS(equal, 2)
  TW_BITS(not_equal, 2)
  TW_EXACT(sign, 1)
  TW_EXACT(relu, 1)
  TW_EXACT(relu6, 1)
  TW_EXACT(floor, 1)
  TW_EXACT(ceil, 1)
  TW_EXACT(trunc, 1)
  TW_EXACT(round, 1)
  TW_ROUNDED(square, 1)
  TW_ROUNDED(rsqrt, 1)
  TW_ROUNDED(reciprocal, 1)
  TW_ROUNDED(hardsigmoid, 1)
  TW_ROUNDED(hardswish, 1)
  TW_ROUNDED(softsign, 1)
  TW_EXACT(maximum, 2)
  TW_EXACT(minimum, 2)
  TW_EXACT(hardshrink, 2)
  TW_EXACT(less, 2)
  TW_EXACT(less_equal, 2)
  TW_EXACT(greater, 2)
  TW_EXACT(greater_equal, 2)
  TW_ROUNDED(add, 2)
  TW_ROUNDED(subtract, 2)
  TW_ROUNDED(multiply, 2)
  TW_ROUNDED(divide, 2)
  TW_ROUNDED(leaky_relu, 2)
  TW_ROUNDED(square_distance, 2)
  TW_ROUNDED(huber_distance, 2)
  TW_EXACT(where, 3)
  TW_EXACT(clip, 3)
  TW_EXACT(hardtanh, 3)
  TW_EXACT(threshold, 3)
  TW_ROUNDED(lerp, 3)
  TW_ROUNDED(multiply_add, 3)
#define TW_SLOPE(name, input, exact) \
  table.gradient[(int)PointwiseOp::name][input] = stored_gradient<name##_row, input, exact>;
#define TW_EXACT_SLOPE(name, input) TW_SLOPE(name, input, true)
#define TW_ROUNDED_SLOPE(name, input) TW_SLOPE(name, input, false)
  TW_EXACT_SLOPE(negative, 0)
  TW_EXACT_SLOPE(abs, 0)
  TW_EXACT_SLOPE(relu, 0)
  TW_EXACT_SLOPE(relu6, 0)
  TW_EXACT_SLOPE(subtract, 1)
  TW_EXACT_SLOPE(copysign, 0)
  TW_EXACT_SLOPE(hardshrink, 0)
  TW_EXACT_SLOPE(softshrink, 0)
  TW_EXACT_SLOPE(clip, 0)
  TW_EXACT_SLOPE(clip, 1)
  TW_EXACT_SLOPE(clip, 2)
  TW_EXACT_SLOPE(hardtanh, 0)
  TW_EXACT_SLOPE(threshold, 0)
  TW_EXACT_SLOPE(where, 1)
  TW_EXACT_SLOPE(where, 2)
  TW_ROUNDED_SLOPE(square, 0)
  TW_ROUNDED_SLOPE(sqrt, 0)
  TW_ROUNDED_SLOPE(rsqrt, 0)
  TW_ROUNDED_SLOPE(reciprocal, 0)
  TW_ROUNDED_SLOPE(exp, 0)
  TW_ROUNDED_SLOPE(log, 0)
  TW_ROUNDED_SLOPE(log2, 0)
  TW_ROUNDED_SLOPE(log10, 0)
  TW_ROUNDED_SLOPE(log1p, 0)
  TW_ROUNDED_SLOPE(tan, 0)
  TW_ROUNDED_SLOPE(atan, 0)
  TW_ROUNDED_SLOPE(tanh, 0)
  TW_ROUNDED_SLOPE(sigmoid, 0)
  TW_ROUNDED_SLOPE(hardsigmoid, 0)
  TW_ROUNDED_SLOPE(hardswish, 0)
  TW_ROUNDED_SLOPE(softsign, 0)
  TW_ROUNDED_SLOPE(multiply, 0)
  TW_ROUNDED_SLOPE(multiply, 1)
  TW_ROUNDED_SLOPE(divide, 0)
  TW_ROUNDED_SLOPE(divide, 1)
  TW_ROUNDED_SLOPE(maximum, 0)
  TW_ROUNDED_SLOPE(maximum, 1)
  TW_ROUNDED_SLOPE(minimum, 0)
  TW_ROUNDED_SLOPE(minimum, 1)
  TW_ROUNDED_SLOPE(leaky_relu, 0)
  TW_ROUNDED_SLOPE(leaky_relu, 1)
  TW_ROUNDED_SLOPE(huber_distance, 0)
  TW_ROUNDED_SLOPE(huber_distance, 1)
  TW_ROUNDED_SLOPE(square_distance, 0)
  TW_ROUNDED_SLOPE(square_distance, 1)
  TW_ROUNDED_SLOPE(lerp, 0)
  TW_ROUNDED_SLOPE(lerp, 1)
  TW_ROUNDED_SLOPE(lerp, 2)
  TW_ROUNDED_SLOPE(multiply_add, 0)
  TW_ROUNDED_SLOPE(multiply_add, 1)
#undef TW_SLOPE
#undef TW_EXACT_SLOPE
#undef TW_ROUNDED_SLOPE
#undef TW_BITS
#undef TW_STORED
#undef TW_EXACT
#undef TW_ROUNDED
  return table;
}

}  // namespace

extern const PointwiseBFloat16Table pointwise_bfloat16_table;
constexpr PointwiseBFloat16Table pointwise_bfloat16_table = make_bfloat16_table();

}  // namespace tw::TW_ISA_NAME
