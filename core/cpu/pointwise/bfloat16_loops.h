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
  for_each_stored<kGradientInputs<Row, input>, exact>(
      n, dx, inputs, step, traffic,
      [](const Vec<float>(&in)[kGradientInputs<Row, input>])
          TW_LAMBDA_INLINE { return slope<Row, input>(in); });
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

// The function of a row that costs little beside copies of its operands; else null.
template <class Row, int N> constexpr PointwiseFn stored_function() {
  constexpr const formula::Graph& graph = GraphsOf<Row>::value;
  if constexpr ((Row::kinds & kind::f) == 0 || !formula::is_light(graph))
    return nullptr;
  else if constexpr (std::is_same_v<Row, sqrt_row>)
    return stored_kernel<StoredSqrt, N, false>;
  else if constexpr (formula::is_of_bits(graph))
    return bits_kernel<Row, N>;
  else
    return stored_kernel<Row, N, formula::is_exact_in_bfloat16(graph)>;
}
template <class Row, int input> constexpr PointwiseFn stored_gradient_function() {
  constexpr const formula::Graph& graph = GraphsOf<Row>::gradient[input];
  if constexpr ((Row::kinds & kind::f) != 0 && form_of(graph) == GradientForm::formula &&
                formula::is_light(graph))
    return stored_gradient<Row, input, formula::is_exact_in_bfloat16(graph)>;
  else
    return nullptr;
}

constexpr PointwiseBFloat16Table make_bfloat16_table() {
  PointwiseBFloat16Table table = {{
#define TW_UNARY(name, ...) stored_function<name##_row, 1>(),
#define TW_BINARY(name, ...) stored_function<name##_row, 2>(),
#define TW_TERNARY(name, ...) stored_function<name##_row, 3>(),
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
                                  },
                                  {
#define TW_GRADIENT(name, input) stored_gradient_function<name##_row, input>()
#define TW_UNARY(name, ...) {TW_GRADIENT(name, 0)},
#define TW_BINARY(name, ...) {TW_GRADIENT(name, 0), TW_GRADIENT(name, 1)},
#define TW_TERNARY(name, ...) {TW_GRADIENT(name, 0), TW_GRADIENT(name, 1), TW_GRADIENT(name, 2)},
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
#undef TW_GRADIENT
                                  },
                                  {}};
  add_simple_powers(table, std::make_integer_sequence<int, kSimplePowerCount>());
  return table;
}

}  // namespace

extern const PointwiseBFloat16Table pointwise_bfloat16_table;
constexpr PointwiseBFloat16Table pointwise_bfloat16_table = make_bfloat16_table();

}  // namespace tw::TW_ISA_NAME
