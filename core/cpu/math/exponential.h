// exp and what is made of it: exp2, expm1, the logistic and hyperbolic functions, erf.
// Figures such as '1.2, 1.1 ulp' are the largest errors found in float (every 1009th bit pattern
// and denser samples) and in double (against mpmath), over scalar, avx2 and avx512.
#pragma once
#include "core/cpu/math/basic.h"

namespace tw::TW_ISA_NAME {
namespace {

template <Floating T> struct ExpLimits;  // beyond these arguments the result is 0 or infinite
template <> struct ExpLimits<float> {
  static constexpr float lowest = -104, highest = 89;
  // ln 2 = hi + lo; hi has so few bits that every exponent times hi is exact.
  static constexpr float ln2_hi = 0x1.62e4p-1f, ln2_lo = 0x1.7f7d1cp-20f;
};
template <> struct ExpLimits<double> {
  static constexpr double lowest = -746, highest = 710;
  static constexpr double ln2_hi = 0x1.62e42fefa38p-1, ln2_lo = 0x1.ef35793c7673p-45;
};
inline constexpr double kLog2e = 1.4426950408889634, kLn2 = 0.6931471805599453;

// Both keep NaN, as one instruction each.
template <Floating T> TW_INLINE Vec<T> at_most(Vec<T> x, T highest) {
  const Vec<T> limit = highest;
  return x.v > limit.v ? limit.v : x.v;
}
template <Floating T> TW_INLINE Vec<T> at_least(Vec<T> x, T lowest) {
  const Vec<T> limit = lowest;
  return x.v < limit.v ? limit.v : x.v;
}
template <Floating T> TW_INLINE Vec<T> clamp(Vec<T> x, T lowest, T highest) {
  return at_least(at_most(x, highest), lowest);
}
// The nearest whole number, |x| < 2^(mantissa bits - 1).
template <Floating T> TW_INLINE Vec<T> nearest(Vec<T> x) {
  return (x + Format<T>::rounder) - Format<T>::rounder;
}
// 2^n for whole n from the smallest normal exponent to the largest.
template <Floating T> TW_INLINE Vec<T> two_to(Vec<T> n) {
  const Vec<T> biased = n + (Format<T>::rounder + Format<T>::bias);
  return bit_cast<T>(Bits<T>(bit_cast<IntLike<T>>(biased).v << Format<T>::mantissa_bits));
}
// x 2^n, rounded once where the result is denormal. |n| up to twice the largest exponent.
template <Floating T> TW_INLINE Vec<T> scale(Vec<T> x, Vec<T> n) {
#ifdef TW_HAS_MASKED_ACCESS
  if constexpr (std::is_same_v<T, float>) {
    return Vec<T>((typename Vec<T>::Raw)_mm512_maskz_scalef_ps(0xffff, (__m512)x.v, (__m512)n.v));
  } else {
    return Vec<T>((typename Vec<T>::Raw)_mm512_maskz_scalef_pd(0xff, (__m512d)x.v, (__m512d)n.v));
  }
#else
  const Vec<T> half = nearest(n * 0.5);
  return x * two_to(half) * two_to(n - half);
#endif
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; leaves e^r a relative error of 2^-28 and 2^-56.
TW_INLINE Vec<float> exp_tail(Vec<float> r) {
  return polynomial(r, 0.49999997, 0.166665152, 0.0416673198, 0.00836925767, 0.00138817774);
}
TW_INLINE Vec<double> exp_tail(Vec<double> r) {
  return polynomial(r, 0.5000000000000013, 0.16666666666666546, 0.041666666666512836,
                    0.008333333333404086, 0.001388888894790924, 0.0001984126970937905,
                    2.4801488869051047e-05, 2.755740046262936e-06, 2.763170163108362e-07,
                    2.5060087358851158e-08);
}
template <Floating T> TW_INLINE Vec<T> exp_reduced(Vec<T> r) {
  return (exp_tail(r) * r + 1) * r + 1;
}
template <Floating T> TW_INLINE Vec<T> expm1_reduced(Vec<T> r) { return r * r * exp_tail(r) + r; }

// x = n ln 2 + r.
template <Floating T> struct ReducedExp {
  Vec<T> n, r;
};
template <Floating T> TW_INLINE ReducedExp<T> reduce_exp(Vec<T> x) {
  const Vec<T> n = nearest(x * kLog2e);
  return {n, (x - n * ExpLimits<T>::ln2_hi) - n * ExpLimits<T>::ln2_lo};
}

// 1.2, 1.1 ulp; with fused multiply-add 0.9, 0.8.
template <Floating T> TW_INLINE Vec<T> exp(Vec<T> x) {
  const auto [n, r] = reduce_exp(clamp(x, ExpLimits<T>::lowest, ExpLimits<T>::highest));
  return scale(exp_reduced(r), n);
}
// e^x / 2 for x >= 0, which does not overflow where cosh and sinh do not.
template <Floating T> TW_INLINE Vec<T> half_exp(Vec<T> x) {
  const auto [n, r] = reduce_exp(at_most<T>(x, ExpLimits<T>::highest + 1));
  return exp_reduced(r) * two_to(n - 2) * 2;
}
// 1.2, 1.1 ulp.
template <Floating T> TW_INLINE Vec<T> exp2(Vec<T> x) {
  constexpr T limit = Format<T>::bias + 2;
  const Vec<T> inside = clamp<T>(x, -limit - Format<T>::mantissa_bits, limit);
  const Vec<T> n = nearest(inside);
  return scale(exp_reduced((inside - n) * kLn2), n);
}
// 2 (s (e^r - 1) + (s - 1/2)) with s = 2^(n - 1), finite as long as the result is.
// 1.6, 2.0 ulp.
template <Floating T> TW_INLINE Vec<T> expm1(Vec<T> x) {
  const T lowest = -Format<T>::mantissa_bits;  // e^lowest is below half an ulp of -1
  const auto [n, r] = reduce_exp(clamp<T>(x, lowest, ExpLimits<T>::highest));
  const Vec<T> s = two_to(n - 1);
  const Vec<T> y = (s * expm1_reduced(r) + (s - 0.5)) * 2;
  return where(abs(x) < Format<T>::smallest_normal, x, y);
}

// 2.3, 2.0 ulp.
template <Floating T> TW_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> e = exp(-abs(x));
  return where(x < 0, e, 1) / (e + 1);
}

// 1 / x for 1 <= x < 2^100, within 1 ulp.
TW_INLINE Vec<float> reciprocal(Vec<float> x) {
#ifdef TW_HAS_MASKED_ACCESS
  const Vec<float> y = Vec<float>((Vec<float>::Raw)_mm512_maskz_rcp14_ps(0xffff, (__m512)x.v));
  return y * (1 - x * y) + y;  // Newton's step squares the error of 2^-14
#else
  return 1 / x;
#endif
}
// 1.4 ulp.
TW_INLINE Vec<float> tanh(Vec<float> x) {
  const Vec<float> size = abs(x), z = size * size;
  const Vec<float> small =
      polynomial(z, -0.333332986, 0.133319363, -0.0537847169, 0.0207986254, -0.00589796621) * z *
          size +
      size;
  // Beyond 10 the result is 1.
  const auto [n, r] = reduce_exp(at_most(size, 10.f) * 2);
  const Vec<float> large = 1 - 2 * reciprocal(exp_reduced(r) * two_to(n) + 1);
  return copysign(where(size < 0.6f, small, large), x);
}
// Through t = e^2|x| - 1: t / (t + 2), or 1 - 2 / (t + 2) where that is near 1; it is 1 beyond 20.
// 1.8 ulp.
TW_INLINE Vec<double> tanh(Vec<double> x) {
  const Vec<double> size = abs(x), t = expm1(at_most(size, 20.0) * 2);
  const Mask<double> small = size < 0.5;
  const Vec<double> q = where(small, t, 2) / (t + 2);
  return copysign(where(small, q, 1 - q), x);
}

// tanh(log(1 + e^x)) = p / (p + 2) with p = e^x (e^x + 2); 1 beyond 20.
template <Floating T> TW_INLINE Vec<T> tanh_softplus(Vec<T> x) {
  const Vec<T> e = exp(at_most<T>(x, 20)), p = e * (e + 2);
  return p / (p + 2);
}

// 1.6 ulp.
TW_INLINE Vec<float> sinh(Vec<float> x) {
  const Vec<float> size = abs(x), z = size * size, half = half_exp(size);
  const Vec<float> small =
      polynomial(z, 0.166666672, 0.00833331048, 0.000198428956, 2.78221319e-06) * z * size + size;
  return copysign(where(size < 1, small, half - 0.25f / half), x);
}
// 1.6, 1.4 ulp.
template <Floating T> TW_INLINE Vec<T> cosh(Vec<T> x) {
  const Vec<T> half = half_exp(abs(x));
  return half + 0.25 / half;
}
// (t + t / (t + 1)) / 2 with t = e^|x| - 1; beyond 40, e^|x| / 2. 2.1 ulp.
TW_INLINE Vec<double> sinh(Vec<double> x) {
  const Vec<double> size = abs(x), t = expm1(at_most(size, 40.0));
  return copysign(where(size > 40, half_exp(size), (t + t / (t + 1)) * 0.5), x);
}

// Near 0 an odd polynomial; beyond, 1 - e^-(t + t q(t)) with q fitted to -log(1 - erf(t)) / t - 1.
// 1.1 ulp.
TW_INLINE Vec<float> erf(Vec<float> x) {
  const Vec<float> size = abs(x), z = size * size, t = at_most(size, 4.f);
  const Vec<float> small = polynomial(z, 0.128379166, -0.376126289, 0.112836257, -0.0268557314,
                                      0.00519240508, -0.000804976968, 7.99664995e-05) *
                               size +
                           size;
  const Vec<float> q = polynomial(t, 0.128519952, 0.635699391, 0.105286792, -0.0229059681,
                                  0.00321994815, -0.000214590706);
  const auto [n, r] = reduce_exp(-(t * q + t));
  const Vec<float> large = 1 - exp_reduced(r) * two_to(n);
  return copysign(where(size < 0.92f, small, large), x);
}
TW_INLINE Vec<double> erf(Vec<double> x) {
  return call_each_lane(x, [](double t) { return __builtin_erf(t); });
}

// e^(-x^2 / 2) over the root of 2 pi.
template <Floating T> TW_INLINE Vec<T> bell(Vec<T> x) {
  const auto [n, r] = reduce_exp(at_least<T>(x * x * -0.5, ExpLimits<T>::lowest));
  return scale(exp_reduced(r), n);
}
template <Floating T> TW_INLINE Vec<T> normal_density(Vec<T> x) {
  return bell(x) * 0.3989422804014327;
}
// The share of a normal distribution below x: of its tail beyond |x| e^(-x^2 / 2) is taken out, and
// the rest fitted in t = 1 / (1 + 0.35 |x|) within 2^-25. Of a tail 6 ulp, and x^2 / 2 for the
// rounded square.
TW_INLINE Vec<float> normal_share(Vec<float> x) {
  const Vec<float> t = reciprocal(at_most(abs(x), 1e4f) * 0.35f + 1);
  const Vec<float> tail =
      polynomial(t, 0.139621332, 0.139862999, 0.119824916, 0.105538607, -0.0231804661, 0.159274593,
                 -0.255800486, 0.14401269, -0.0291542169) *
      t * bell(x);
  return where(x < 0, tail, 1 - tail);
}
TW_INLINE Vec<double> normal_share(Vec<double> x) {
  return call_each_lane(x, [](double t) { return 0.5 * __builtin_erfc(t * -0.7071067811865476); });
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
