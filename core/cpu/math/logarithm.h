// Logarithms and what is made of them: inverse hyperbolic functions and pow.
// Errors are stated as in exponential.h.
#pragma once
#include "core/cpu/math/exponential.h"

namespace tw::TW_ISA_NAME {
namespace {

// x = (1 + f) 2^e with 1 + f in [0.75, 1.5), so that f is exact and e = 0 around 1.
template <Floating T> struct Exponent {
  Vec<T> f, e;
};
template <Floating T> TW_INLINE Exponent<T> decompose(Vec<T> x) {
#ifdef TW_HAS_MASKED_ACCESS
  using Raw = typename Vec<T>::Raw;
  Vec<T> m, e;
  if constexpr (std::is_same_v<T, float>) {
    m = (Raw)_mm512_maskz_getmant_ps(0xffff, (__m512)x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    e = (Raw)_mm512_maskz_getexp_ps(0xffff, (__m512)x.v);
  } else {
    m = (Raw)_mm512_maskz_getmant_pd(0xff, (__m512d)x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    e = (Raw)_mm512_maskz_getexp_pd(0xff, (__m512d)x.v);
  }
  return {m - 1, where(m < 1, e + 1, e)};
#else
  // Denormals are scaled by 2^mantissa_bits first. The exponent is read as a whole number below
  // 2^mantissa_bits, by placing it in the mantissa of that power of two: no conversion is needed.
  constexpr int shift = Format<T>::mantissa_bits;
  using U = std::make_unsigned_t<IntLike<T> >;
  using UnsignedBits = Vec<U>;
  constexpr T power = (T)((U)1 << shift);
  const Mask<T> denormal = x < Format<T>::smallest_normal;
  const UnsignedBits bits = bit_cast<U>(where(denormal, x * power, x));
  const UnsignedBits lowest = bit_cast<U>(Vec<T>(0.75)), one = bit_cast<U>(Vec<T>(1));
  const UnsignedBits above = bits - lowest + one;  // exponent field: bias + e
  const UnsignedBits field = UnsignedBits(above.v >> shift);
  const UnsignedBits fraction = above & ((U)((U)1 << shift) - 1);
  const Vec<T> e = bit_cast<T>(field | bit_cast<U>(Vec<T>(power))) - (power + Format<T>::bias);
  return {bit_cast<T>(fraction + lowest) - 1, where(denormal, e - shift, e)};
#endif
}

// log(1 + f) - f for f in [-0.25, 0.5]. float: f^3 p(f) - f^2 / 2, polynomial good to 2^-27.7.
TW_INLINE Vec<float> log_tail(Vec<float> f) {
  const Vec<float> p =
      polynomial(f, 0.333333403, -0.250001639, 0.199996054, -0.166552976, 0.142762423, -0.127277792,
                 0.117006332, -0.0911612511, 0.037672475);
  const Vec<float> z = f * f;
  return z * (f * p) - z * 0.5f;
}
// double: 2 atanh(s) with s = f / (2 + f), arranged as in FreeBSD's e_log.c; polynomial 2^-62.
TW_INLINE Vec<double> log_tail(Vec<double> f) {
  const Vec<double> s = f / (f + 2), z = s * s, half_square = f * f * 0.5;
  const Vec<double> p =
      polynomial(z, 0.666666666666666, 0.4000000000005668, 0.2857142855582561, 0.222222242970303,
                 0.18181665827318672, 0.15391113973671552, 0.131735583816222, 0.13843358666765113);
  return s * (z * p + half_square) - half_square;
}

// The result for x > 0, or what belongs at 0, below, at infinity and for NaN.
template <Floating T> TW_INLINE Vec<T> log_domain(Vec<T> x, Vec<T> y) {
  const Vec<T> outside = where(x == 0, -kInfinity, where(x < 0, kNan, x));
  return where((x > 0) & (x < kInfinity), y, outside);
}

// 0.9, 0.8 ulp.
template <Floating T> TW_INLINE Vec<T> log(Vec<T> x) {
  const auto [f, e] = decompose(x);
  const Vec<T> y = (log_tail(f) + e * ExpLimits<T>::ln2_lo + f) + e * ExpLimits<T>::ln2_hi;
  return log_domain(x, y);
}
// log2(1 + f) as (1 + c) log(1 + f), c = log2 e - 1. f + e is exact for e = 0 and -1, where the
// other parts may cancel. Powers of two give whole numbers. 1.6, 1.3 ulp.
template <Floating T> TW_INLINE Vec<T> log2(Vec<T> x) {
  const auto [f, e] = decompose(x);
  constexpr double c = kLog2e - 1;
  const Vec<T> tail = log_tail(f);
  return log_domain(x, (tail * c + f * c + tail) + (f + e));
}
// 1.9 ulp; with fused multiply-add 1.1. Powers of ten give whole numbers.
TW_INLINE Vec<float> log10(Vec<float> x) {
  const auto [f, e] = decompose(x);
  // log10 2 and log10 e in two parts, the first so short that e times it is exact.
  constexpr float two_hi = 0x1.344p-2f, two_lo = 0x1.3509f8p-18f;
  constexpr float e_hi = 0x1.bcb7b2p-2f, e_lo = -0x1.5b235ep-27f;
  const Vec<float> tail = log_tail(f);
  return log_domain(x, (((e * two_lo + f * e_lo) + tail * e_hi) + f * e_hi) + e * two_hi);
}
TW_INLINE Vec<double> log10(Vec<double> x) {
  return call_each_lane(x, [](double t) { return __builtin_log10(t); });
}
// log(u) + c / u, where u = 1 + x rounded and c is what rounding lost. 1.0, 0.8 ulp.
template <Floating T> TW_INLINE Vec<T> log1p(Vec<T> x) {
  const Vec<T> u = x + 1, lost = x - (u - 1);
  const auto [f, e] = decompose(u);
  const Vec<T> low = log_tail(f) + (e * ExpLimits<T>::ln2_lo + lost / u);
  const Vec<T> y = log_domain(u, (low + f) + e * ExpLimits<T>::ln2_hi);
  return where(abs(x) < Format<T>::smallest_normal, x, y);
}

// Below this two terms of the series do: the next is 2^-41 of the result. The three functions after
// it are within 0.51 ulp.
inline constexpr float kNearZero = 0x1p-10f;

TW_INLINE Vec<float> asinh(Vec<float> x) {
  const Vec<float> y = through_double(
      abs(x), [](Vec<double> t) TW_LAMBDA_INLINE { return log(t + sqrt(t * t + 1)); });
  const Vec<float> size = abs(x);
  return copysign(where(size < kNearZero, size - size * size * size * (1 / 6.0), y), x);
}
TW_INLINE Vec<float> acosh(Vec<float> x) {
  return through_double(x, [](Vec<double> t) TW_LAMBDA_INLINE {
    return where(t < 1, kNan, log(t + sqrt(t * t - 1)));
  });
}
TW_INLINE Vec<float> atanh(Vec<float> x) {
  const Vec<float> y = through_double(
      x, [](Vec<double> t) TW_LAMBDA_INLINE { return log((1 + t) / (1 - t)) * 0.5; });
  return where(abs(x) < kNearZero, x + x * x * x * (1 / 3.0), y);
}
#define TW_LIBM(name)                                                       \
  TW_INLINE Vec<double> name(Vec<double> x) {                               \
    return call_each_lane(x, [](double t) { return __builtin_##name(t); }); \
  }
TW_LIBM(asinh)
TW_LIBM(acosh)
TW_LIBM(atanh)
#undef TW_LIBM

// Signs and exceptional values as in C99's annex F; the magnitude is e^(b log|a|) in double.
// 0.51 ulp.
TW_INLINE Vec<float> pow(Vec<float> a, Vec<float> b) {
  const Vec<float> size = abs(a), whole = trunc(b), half = b * 0.5f;
  const Vec<float> y = through_double(
      size, b, [](Vec<double> p, Vec<double> q) TW_LAMBDA_INLINE { return exp(q * log(p)); });
  const Mask<float> is_whole = whole == b, odd = is_whole & (trunc(half) != half);
  const Vec<float> signed_y = where(signbit(a) & odd, -y, y);
  const Mask<float> undefined = (a < 0) & (a > -kInfinity) & (b == b) & !is_whole;
  const Mask<float> one = (b == 0) | (a == 1) | ((a == -1) & isinf(b));
  return where(one, 1, where(undefined, kNan, signed_y));
}
TW_INLINE Vec<double> pow(Vec<double> a, Vec<double> b) {
  return call_each_lane(a, b, [](double p, double q) { return __builtin_pow(p, q); });
}
// b a^(b - 1), the derivative of a^b by a: 0 for b = 0 also where a^-1 is infinite.
template <Floating T> TW_INLINE Vec<T> power_slope(Vec<T> a, Vec<T> b) {
  return where(b == 0, 0, b * pow(a, b - 1));
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
