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
template <Integer T> using Unsigned = Vec<std::make_unsigned_t<T>>;
template <Integer T> TW_INLINE Unsigned<T> as_unsigned(Vec<T> x) {
  return bit_cast<std::make_unsigned_t<T>>(x);
}

// Quotients of 32 bits are exact in float64: one that is no whole number is further away from the
// nearest than the rounding reaches (1 / |b| against 2^-53 |a| / |b|).
template <class T> inline constexpr bool kDividesInDouble =
    std::is_same_v<T, std::int32_t> && (kLanes<T> > 1);
// Where b is neither 0 nor -1, whose quotient may be out of range.
TW_INLINE Vec<std::int32_t> floored_quotient(Vec<std::int32_t> a, Vec<std::int32_t> b) {
  constexpr int L = kLanes<double>;
  typedef std::int32_t Part __attribute__((vector_size(L * 4)));
  using Doubles = typename Vec<double>::Raw;
  constexpr int parts = kLanes<std::int32_t> / L;
  Part p[parts], q[parts];
  __builtin_memcpy(p, &a, sizeof p);
  __builtin_memcpy(q, &b, sizeof q);
#pragma GCC unroll 2
  for (int i = 0; i < parts; ++i) {
    const Vec<double> quotient(__builtin_convertvector(p[i], Doubles) /
                               __builtin_convertvector(q[i], Doubles));
    p[i] = __builtin_convertvector(floor(quotient).v, Part);
  }
  __builtin_memcpy(&a, p, sizeof p);
  return a;
}
template <Integer T> TW_INLINE Mask<T> is_0_or_minus_1(Vec<T> b) { return (b == 0) | (b == (T)-1); }
template <Integer T> TW_INLINE Vec<T> floor_divide(Vec<T> a, Same<T> b) {
  if constexpr (kDividesInDouble<T>) {
    const Mask<T> special = is_0_or_minus_1(b);
    const Vec<T> minus_a = bit_cast<T>(Unsigned<T>(0) - as_unsigned(a));
    return where(special, minus_a & b, floored_quotient(a, where(special, 1, b)));
  } else {
    return call_each_lane(a, b, [](T p, T q) { return whole_division(p, q).quotient; });
  }
}
template <Integer T> TW_INLINE Vec<T> remainder(Vec<T> a, Same<T> b) {
  if constexpr (kDividesInDouble<T>) {
    const Mask<T> special = is_0_or_minus_1(b);
    const Vec<T> divisor = where(special, 1, b);
    const Unsigned<T> multiple = as_unsigned(floored_quotient(a, divisor)) * as_unsigned(divisor);
    return where(special, 0, bit_cast<T>(as_unsigned(a) - multiple));
  } else {
    return call_each_lane(a, b, [](T p, T q) { return whole_division(p, q).remainder; });
  }
}

// y square where that bit of the exponent is set, else y.
template <Integer U> TW_INLINE Vec<U> multiplied_where(Vec<U> y, Vec<U> square, Vec<U> bits) {
#ifdef __AVX512F__
  if constexpr (sizeof(U) == 4 && kLanes<U> == 16)
    return Vec<U>((typename Vec<U>::Raw)_mm512_mask_mullo_epi32(
        (__m512i)y.v, _mm512_test_epi32_mask((__m512i)bits.v, (__m512i)bits.v), (__m512i)y.v,
        (__m512i)square.v));
#endif
  return where(bits != 0, y * square, y);
}
template <Integer U> TW_INLINE bool any_bits(Vec<U> x) {
#ifdef __AVX512F__  // whose test takes any bits: no lanes of all bits or none need be made first
  return any(Mask<U>{(typename Mask<U>::Raw)x.v});
#else
  return any(x != 0);
#endif
}
// By squaring, modulo 2^bits; with one exponent for all lanes, as a row shares, without the
// products for bits that it lacks.
template <Integer U> TW_INLINE Vec<U> power_of_all(Vec<U> square, U left) {
  Vec<U> y = left & 1 ? square : Vec<U>(1);
  while (left >>= 1) {
    square = square * square;
    if (left & 1) y = y * square;
  }
  return y;
}
// Three bits of the exponents at a time; `bits` becomes how many were looked at.
template <Integer U> TW_INLINE Vec<U> power_by_squares(Vec<U> square, Vec<U> left, int& bits) {
  Vec<U> y = where((left & 1) != 0, square, 1);
  left = Vec<U>(left.v >> 1);
  bits = 1;
  do {
#pragma GCC unroll 3
    for (int bit = 0; bit < 3; ++bit) {
      square = square * square;
      y = multiplied_where(y, square, left & (U)(1 << bit));
    }
    left = Vec<U>(left.v >> 3);
    bits += 3;
  } while (any_bits(left));
  return y;
}
// Exponents below 64 as three digits of two bits, the highest first: eight products, where bit by
// bit takes twelve. Of gain where products are one instruction and choices are by the sign.
#if defined(__AVX2__) && !defined(__AVX512F__)
template <class T> inline constexpr bool kPowerByDigits = sizeof(T) == 2 || sizeof(T) == 4;
#else
template <class T> inline constexpr bool kPowerByDigits = false;
#endif
template <Integer T> TW_INLINE Vec<T> power_by_digits(Vec<T> base, Vec<T> exponent) {
  using S = std::make_signed_t<T>;
  const Vec<S> first = bit_cast<S>(base), one = 1;
  const auto product = [](Vec<S> a, Vec<S> b) TW_LAMBDA_INLINE {
    return bit_cast<S>(as_unsigned(a) * as_unsigned(b));
  };
  const Vec<S> second = product(first, first), third = product(second, first);
  const auto chosen = [=](int digit) TW_LAMBDA_INLINE {  // base to that digit
    const int up = 8 * (int)sizeof(T) - 1 - 2 * digit;
    const auto bits = as_unsigned(exponent).v;
    const Mask<S> low = bit_cast<S>(Unsigned<S>(bits << up)) < 0;
    const Mask<S> high = bit_cast<S>(Unsigned<S>(bits << (up - 1))) < 0;
    return where(high, where(low, third, second), where(low, first, one));
  };
  Vec<S> y = chosen(2);
#pragma GCC unroll 2
  for (int digit = 1; digit >= 0; --digit) {
    y = product(y, y);
    y = product(product(y, y), chosen(digit));
  }
  return bit_cast<T>(y);
}
// A negative exponent gives the reciprocal's whole part: 0, 1 or -1.
template <Integer T> TW_INLINE Vec<T> pow(Vec<T> base, Same<T> exponent) {
  const T first = exponent[0];
  const bool one = first >= 0 && !any_bits(as_unsigned(exponent ^ Vec<T>(first)));
  if constexpr (kPowerByDigits<T>) {
    if (!(one && first < 4) && !any_bits(as_unsigned(exponent & (T)~63)))
      return power_by_digits(base, exponent);
  }
  if (one) return bit_cast<T>(power_of_all(as_unsigned(base), (std::make_unsigned_t<T>)first));
  int bits;
  const Vec<T> power =
      bit_cast<T>(power_by_squares(as_unsigned(base), as_unsigned(exponent), bits));
  if constexpr (std::is_signed_v<T>) {
    if (bits >= 8 * (int)sizeof(T)) [[unlikely]] {  // as many as only negative ones have
      const Mask<T> negative = exponent < 0;
      const Vec<T> parity = where((exponent & 1) != 0, -1, 1);
      return where(negative, where(base == 1, 1, where(base == -1, parity, 0)), power);
    }
  }
  return power;
}

// Counts outside the type's width, negative ones included, shift every bit out: so do the
// instructions of x86 that take a count for each lane.
#if defined(__AVX512F__)
#define TW_SHIFTED(name) return Vec<T>((Raw)_mm512_##name((__m512i)x.v, (__m512i)count.v))
#elif defined(__AVX2__)
#define TW_SHIFTED(name) return Vec<T>((Raw)_mm256_##name((__m256i)x.v, (__m256i)count.v))
#endif
template <Integer T> TW_INLINE Vec<T> bitwise_left_shift(Vec<T> x, Same<T> count) {
#ifdef TW_SHIFTED
  using Raw = typename Vec<T>::Raw;
  if constexpr (sizeof(T) == 4) TW_SHIFTED(sllv_epi32);
  if constexpr (sizeof(T) == 8) TW_SHIFTED(sllv_epi64);
#endif
  constexpr int width = 8 * (int)sizeof(T);
  const Mask<T> inside = (count >= 0) & (count < width);
  const Unsigned<T> by = as_unsigned(where(inside, count, 0));
  return where(inside, bit_cast<T>(Unsigned<T>(as_unsigned(x).v << by.v)), 0);
}
template <Integer T> TW_INLINE Vec<T> bitwise_right_shift(Vec<T> x, Same<T> count) {
#ifdef TW_SHIFTED
  using Raw = typename Vec<T>::Raw;
  if constexpr (sizeof(T) == 4 && std::is_signed_v<T>) TW_SHIFTED(srav_epi32);
  if constexpr (sizeof(T) == 4 && !std::is_signed_v<T>) TW_SHIFTED(srlv_epi32);
  if constexpr (sizeof(T) == 8 && !std::is_signed_v<T>) TW_SHIFTED(srlv_epi64);
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 8 && std::is_signed_v<T>) TW_SHIFTED(srav_epi64);
#endif
#endif
  constexpr int width = 8 * (int)sizeof(T);
  const Mask<T> inside = (count >= 0) & (count < width);
  return Vec<T>(x.v >> where(inside, count, width - 1).v) & where(inside | (x < 0), -1, 0);
}
#undef TW_SHIFTED

}  // namespace
}  // namespace tw::TW_ISA_NAME
