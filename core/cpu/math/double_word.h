// Numbers as unevaluated sums hi + lo of two, for what one rounding would spoil (T. J. Dekker,
// 1971; Joldes, Muller and Popescu, 2017). hi alone is the number within a few ulp.
#pragma once
#include "core/cpu/math/polynomials.h"

namespace tw::TW_ISA_NAME {
namespace {

template <Floating T> struct Pair {
  Vec<T> hi, lo;
  TW_INLINE Vec<T> sum() const { return hi + lo; }
};

// a + b exactly, for |a| >= |b| or a = 0.
template <Floating T> TW_INLINE Pair<T> fast_two_sum(Vec<T> a, Vec<T> b) {
  const Vec<T> s = a + b;
  return {s, b - (s - a)};
}
// The same of c and a b, whose product is exact: the smaller summand, and the larger (or 0).
template <Floating T> TW_INLINE Pair<T> fast_two_sum(Vec<T> c, ProductTerm<Vec<T>> smaller) {
  const Vec<T> s = c + smaller;
  return {s, fma(smaller.a, smaller.b, c - s)};
}
template <Floating T> TW_INLINE Pair<T> fast_two_sum(ProductTerm<Vec<T>> larger, Vec<T> c) {
  const Vec<T> s = c + larger;
  return {s, c + fma(larger.a, larger.b, -s)};
}
template <Floating T> TW_INLINE Pair<T> two_sum(Vec<T> a, Vec<T> b) {
  const Vec<T> s = a + b, of_b = s - a;
  return {s, (a - (s - of_b)) + (b - of_b)};
}
// a b exactly, where lo does not underflow.
template <Floating T> TW_INLINE Pair<T> two_product(Vec<T> a, Vec<T> b) {
  const Vec<T> p = a * b;
  return {p, exact_fma(a, b, -p)};
}
// n / d. The quotient is computed in any case, and its remainder says what it lacks.
template <Floating T> TW_INLINE Pair<T> quotient(Pair<T> n, Pair<T> d) {
  const Vec<T> inverse = 1 / d.hi, q = n.hi * inverse;
  return {q, (exact_fma(-q, d.hi, n.hi) + fma(q, -d.lo, n.lo)) * inverse};
}

// The sum of a quotient's two parts. The remainder makes good what 14 bits of 1 / d leave.
template <Floating T> TW_INLINE Vec<T> ratio(Pair<T> n, Pair<T> d) {
#ifdef TW_HAS_MASKED_ACCESS
  if constexpr (std::is_same_v<T, float>) {
    const Vec<T> y = Vec<T>((typename Vec<T>::Raw)_mm512_maskz_rcp14_ps(0xffff, (__m512)d.hi.v));
    const Vec<T> q = n.hi * y;
    return fma(fma(-q, d.hi, n.hi) + fma(q, -d.lo, n.lo), y, q);
  } else {
    const Vec<T> inverse = 1 / d.hi, q = n.hi * inverse;
    // Less the remainder, so that -0.0 keeps its sign.
    return fma(-(fma(q, d.hi, -n.hi) + fma(q, d.lo, -n.lo)), inverse, q);
  }
#endif
  const Vec<T> inverse = 1 / d.hi, q = n.hi * inverse;
  return fma(exact_fma(-q, d.hi, n.hi) + fma(q, -d.lo, n.lo), inverse, q);
}
// 1 / x for 1 <= x < 2^100 (float64: normal x with a normal inverse), within 2^-14 at least.
TW_INLINE Vec<float> near_reciprocal(Vec<float> x) {
#ifdef TW_HAS_MASKED_ACCESS
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_rcp14_ps(0xffff, (__m512)x.v));
#else
  return 1 / x;
#endif
}
// The same within 2^-11.
TW_INLINE Vec<float> rough_reciprocal(Vec<float> x) {
#if defined(__AVX2__) && !defined(TW_HAS_MASKED_ACCESS)
  return Vec<float>((Vec<float>::Raw)_mm256_rcp_ps((__m256)x.v));
#else
  return near_reciprocal(x);
#endif
}
#ifdef TW_HAS_MASKED_ACCESS
TW_INLINE Vec<double> near_reciprocal(Vec<double> x) {
  return Vec<double>((Vec<double>::Raw)_mm512_maskz_rcp14_pd(0xff, (__m512d)x.v));
}
// The sum of a quotient's two parts within 2^-56 more than its rounding: by 28 bits of 1 / d, which
// come sooner than a division's, and the remainder. -0.0 keeps its sign.
TW_INLINE Vec<double> near_ratio(Pair<double> n, Pair<double> d) {
  const Vec<double> rough = near_reciprocal(d.hi), lack = fma(-rough, d.hi, 1);
  const Vec<double> inverse = fma(rough, lack, rough), q = n.hi * inverse;
  return fma(-(fma(q, d.hi, -n.hi) + fma(q, d.lo, -n.lo)), inverse, q);
}
#endif

}  // namespace
}  // namespace tw::TW_ISA_NAME
