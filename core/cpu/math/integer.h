// Whole numbers: division with Python's rounding, powers and shifts. Overflow wraps, nothing traps.
#pragma once
#include "core/cpu/math/basic.h"

namespace tw::TW_ISA_NAME {
namespace {

template <Integer T> struct WholeDivision {
  T quotient, remainder;
};
// A zero divisor gives 0 and 0. Done in unsigned arithmetic: the lowest number over -1 wraps.
template <Integer T> TW_INLINE WholeDivision<T> whole_division(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b == 0) return {0, 0};
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return {(T)(0 - (U)a), 0};
  }
  const T q = (T)(a / b), r = (T)(a % b);
  if (r != 0 && (r < 0) != (b < 0)) return {(T)(q - 1), (T)(r + b)};
  return {q, r};
}
template <Integer T> TW_INLINE Vec<T> floor_divide(Vec<T> a, Same<T> b) {
  return call_each_lane(a, b, [](T p, T q) { return whole_division(p, q).quotient; });
}
template <Integer T> TW_INLINE Vec<T> remainder(Vec<T> a, Same<T> b) {
  return call_each_lane(a, b, [](T p, T q) { return whole_division(p, q).remainder; });
}

template <Integer T> using Unsigned = Vec<std::make_unsigned_t<T>>;
template <Integer T> TW_INLINE Unsigned<T> as_unsigned(Vec<T> x) {
  return bit_cast<std::make_unsigned_t<T>>(x);
}

// By squaring, modulo 2^bits. A negative exponent gives the reciprocal's whole part: 0, 1 or -1.
template <Integer T> TW_INLINE Vec<T> pow(Vec<T> base, Same<T> exponent) {
  Unsigned<T> y = 1, square = as_unsigned(base);
  const Mask<T> negative = exponent < 0;
  Unsigned<T> left = as_unsigned(where(negative, 0, exponent));
  while (any(left != 0)) {
    y = where((left & 1) != 0, y * square, y);
    square = square * square;
    left = Unsigned<T>(left.v >> 1);
  }
  const Vec<T> power = bit_cast<T>(y);
  if constexpr (!std::is_signed_v<T>) return power;
  const Vec<T> parity = where((exponent & 1) != 0, -1, 1);
  return where(negative, where(base == 1, 1, where(base == -1, parity, 0)), power);
}

// Counts outside the type's width, negative ones included, shift every bit out.
template <Integer T> TW_INLINE Vec<T> bitwise_left_shift(Vec<T> x, Same<T> count) {
  constexpr int width = 8 * (int)sizeof(T);
  const Mask<T> inside = (count >= 0) & (count < width);
  const Unsigned<T> by = as_unsigned(where(inside, count, 0));
  return where(inside, bit_cast<T>(Unsigned<T>(as_unsigned(x).v << by.v)), 0);
}
template <Integer T> TW_INLINE Vec<T> bitwise_right_shift(Vec<T> x, Same<T> count) {
  constexpr int width = 8 * (int)sizeof(T);
  const Mask<T> inside = (count >= 0) & (count < width);
  return Vec<T>(x.v >> where(inside, count, width - 1).v) & where(inside | (x < 0), -1, 0);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
