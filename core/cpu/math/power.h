// Powers and the inverse hyperbolic functions: what needs a logarithm of more bits than a number
// has.
#pragma once
#include "core/cpu/math/logarithm.h"

namespace tw::TW_ISA_NAME {
namespace {

// The root of x >= 0 in two parts.
TW_INLINE Pair<double> root(Pair<double> x) {
  const Vec<double> y = sqrt(x.hi), twice = at_least(y + y, Format<double>::smallest_normal);
  return {y, (fma(-y, y, x.hi) + x.lo) / twice};
}

// log(x) + more ln 2 for normal or denormal x > 0, within 2^-63: with x = (1 + f) 2^e,
// 2 atanh(s) = 2 s + s z (2 / 3 + z p(z)), s = f / (2 + f), z = s^2.
TW_INLINE Pair<double> log_pair(Pair<double> x, Vec<double> more = 0) {
  const auto [f, e] = decompose(x.hi);
  // x.lo counts only up to 2^54; beyond, its scale would not be a normal number.
  const Vec<double> low = x.lo * two_to(-clamp(e, -1000.0, 1000.0));
  const Pair<double> d = fast_two_sum<double>(2, f),
                     s = quotient<double>({f, low}, {d.hi, d.lo + low});
  const Pair<double> square = two_product(s.hi, s.hi);
  const Pair<double> z = {square.hi, square.lo + 2 * s.hi * s.lo};
  constexpr double third = 0.6666666666666666, third_lo = 3.700743415417188e-17;
  const Vec<double> p =
      z.hi * polynomial(z.hi, 0.4, 0.2857142857142683, 0.22222222222715565, 0.18181818110620424,
                        0.1538462135289694, 0.13333025478315813, 0.11774608752730249,
                        0.1033340345915391, 0.115824380534889);
  const Pair<double> sum = fast_two_sum<double>(third, rounded(p));
  const Vec<double> sum_lo = sum.lo + third_lo;
  const Pair<double> u = two_product(z.hi, sum.hi);
  const Vec<double> u_lo = u.lo + (z.hi * sum_lo + z.lo * sum.hi);
  const Pair<double> v = two_product(s.hi, u.hi);
  const Pair<double> y = fast_two_sum(2 * s.hi, v.hi);
  const Vec<double> y_lo = y.lo + (v.lo + (s.hi * u_lo + s.lo * u.hi) + 2 * s.lo);
  const Vec<double> n = e + more;
  const Pair<double> head = fast_two_sum(n * ExpLimits<double>::ln2_hi, y.hi);
  return fast_two_sum(head.hi, head.lo + (y_lo + n * ExpLimits<double>::ln2_lo));
}

// In float, double logarithms do; below kNearZero two terms of the series: the next is 2^-41 of the
// result.
inline constexpr float kNearZero = 0x1p-10f;
TW_INLINE Vec<float> asinh(Vec<float> x) {
  const Vec<float> size = abs(x);
  const Vec<float> y =
      through_double(size, [](Vec<double> t) TW_LAMBDA_INLINE { return log(t + sqrt(t * t + 1)); });
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

// log(t + sqrt(t^2 +- 1)). Beyond kLarge it is log(2 t).
inline constexpr double kLarge = 0x1p30;
TW_INLINE Vec<double> inverse_hyperbolic(Vec<double> t, double one) {
  const Mask<double> large = t > kLarge;
  const Pair<double> square = two_product(at_most(t, kLarge), at_most(t, kLarge));
  const Pair<double> inside = two_sum<double>(square.hi, one);
  const Pair<double> r = root({inside.hi, inside.lo + square.lo});
  const Pair<double> u = two_sum(t, r.hi);
  const Pair<double> y =
      log_pair({where(large, t, u.hi), where(large, 0, u.lo + r.lo)}, where(large, 1, 0));
  return y.sum();
}
// Where a term of x^3 / 3 does not count beside x.
inline constexpr double kCubeless = 0x1p-27;
TW_INLINE Vec<double> asinh(Vec<double> x) {
  const Vec<double> size = abs(x), y = inverse_hyperbolic(size, 1);
  return copysign(where((size < kCubeless) | !(size < kInfinity), size, y), x);
}
TW_INLINE Vec<double> acosh(Vec<double> x) {
  const Vec<double> y = inverse_hyperbolic(at_least(x, 1.0), -1);
  return where(x < 1, kNan, where(x < kInfinity, y, x));
}
TW_INLINE Vec<double> atanh(Vec<double> x) {
  const Vec<double> size = abs(x), inside = at_most(size, 1 - 0x1p-53);
  const Pair<double> more = fast_two_sum<double>(1, inside);
  const Pair<double> less = fast_two_sum<double>(1, -inside);
  const Pair<double> ratio = quotient(more, less);
  const Vec<double> y = log_pair(fast_two_sum(ratio.hi, ratio.lo)).sum() * 0.5;
  const Vec<double> outside = where(size > 1, kNan, where(size == 1, kInfinity, y));
  return copysign(where(size < kCubeless, size, outside), x);
}

// Signs and exceptional values as in C99's annex F; the magnitude is e^(b log|a|).
template <Floating T> TW_INLINE Vec<T> signed_power(Vec<T> y, Vec<T> a, Vec<T> b) {
  const Vec<T> whole = trunc(b), half = b * (T)0.5;
  const Mask<T> is_whole = whole == b, odd = is_whole & (trunc(half) != half);
  const Vec<T> signed_y = where(signbit(a) & odd, -y, y);
  const Mask<T> undefined = (a < 0) & (a > -kInfinity) & (b == b) & !is_whole;
  const Mask<T> one = (b == 0) | (a == 1) | ((a == -1) & isinf(b));
  return where(one, 1, where(undefined, kNan, signed_y));
}
TW_INLINE Vec<float> pow(Vec<float> a, Vec<float> b) {
  const Vec<float> y = through_double(
      abs(a), b, [](Vec<double> p, Vec<double> q) TW_LAMBDA_INLINE { return exp(q * log(p)); });
  return signed_power(y, a, b);
}
TW_INLINE Vec<double> pow(Vec<double> a, Vec<double> b) {
  const Vec<double> size = abs(a);
  const Pair<double> l = log_pair({size, 0});
  const Pair<double> p = two_product(b, log_domain(size, l.hi));
  const auto reduced = reduce_exp(clamp(p.hi, -800.0, 800.0));
  const Vec<double> more = where(abs(p.hi) < 800, p.lo + b * l.lo, 0);
  const Vec<double> y = exp_pair(reduced, more).sum();
  return signed_power(scale(y, reduced.n), a, b);
}
// b a^(b - 1), the derivative of a^b by a: 0 for b = 0 also where a^-1 is infinite.
template <Floating T> TW_INLINE Vec<T> power_slope(Vec<T> a, Vec<T> b) {
  return where(b == 0, 0, b * pow(a, b - 1));
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
