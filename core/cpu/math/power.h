// Powers and the inverse hyperbolic functions: what needs a logarithm of more bits than a number
// has.
#pragma once
#include "core/cpu/math/logarithm.h"

namespace tw::TW_ISA_NAME {
namespace {

// The root of x >= 0 in two parts.
TW_INLINE Pair<double> root(Pair<double> x) {
  const Vec<double> y = sqrt(x.hi), twice = at_least(y + y, Format<double>::smallest_normal);
  return {y, (exact_fma(-y, y, x.hi) + x.lo) / twice};
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
  const Pair<double> z = {square.hi, fma(2 * s.hi, s.lo, square.lo)};
  constexpr double third = 0.6666666666666666, third_lo = 3.700743415417188e-17;
  const Vec<double> p =
      z.hi * polynomial(z.hi, 0.4, 0.2857142857142683, 0.22222222222715565, 0.18181818110620424,
                        0.1538462135289694, 0.13333025478315813, 0.11774608752730249,
                        0.1033340345915391, 0.115824380534889);
  const Pair<double> sum = fast_two_sum<double>(third, p);
  const Vec<double> sum_lo = sum.lo + third_lo;
  const Pair<double> u = two_product(z.hi, sum.hi);
  const Vec<double> u_lo = u.lo + fma(z.hi, sum_lo, z.lo * sum.hi);
  const Pair<double> v = two_product(s.hi, u.hi);
  const Pair<double> y = fast_two_sum(2 * s.hi, v.hi);
  const Vec<double> y_lo = y.lo + fma(s.lo, 2, v.lo + fma(s.hi, u_lo, s.lo * u.hi));
  const Vec<double> n = e + more;
  const Pair<double> head =
      fast_two_sum(ProductTerm<Vec<double>>{n, ExpLimits<double>::ln2_hi}, y.hi);
  return fast_two_sum(head.hi, head.lo + fma(n, ExpLimits<double>::ln2_lo, y_lo));
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
TW_INLINE Vec<double> asinh_by_pair(Vec<double> x) {
  const Vec<double> size = abs(x), y = inverse_hyperbolic(size, 1);
  return copysign(where((size < kCubeless) | !(size < kInfinity), size, y), x);
}
TW_INLINE Vec<double> acosh_by_pair(Vec<double> x) {
  const Vec<double> y = inverse_hyperbolic(at_least(x, 1.0), -1);
  return where(x < 1, kNan, where(x < kInfinity, y, x));
}
TW_INLINE Vec<double> atanh_by_pair(Vec<double> x) {
  const Vec<double> size = abs(x), inside = at_most(size, 1 - 0x1p-53);
  const Pair<double> more = fast_two_sum<double>(1, inside);
  const Pair<double> less = fast_two_sum<double>(1, -inside);
  const Pair<double> ratio = quotient(more, less);
  const Vec<double> y = log_pair(fast_two_sum(ratio.hi, ratio.lo)).sum() * 0.5;
  const Vec<double> outside = where(size > 1, kNan, where(size == 1, kInfinity, y));
  return copysign(where(size < kCubeless, size, outside), x);
}
#ifdef TW_HAS_LANE_TABLES
TW_INLINE Vec<double> binary_exponent(Vec<double> x) {
  return Vec<double>((Vec<double>::Raw)_mm512_maskz_getexp_pd(0xff, (__m512d)x.v));
}
// m in [1, 2) with x = m 2^e; NaN below 0.
TW_INLINE Vec<double> leading_factor(Vec<double> x) {
  return Vec<double>((Vec<double>::Raw)_mm512_maskz_getmant_pd(
      0xff, (__m512d)x.v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan));
}
// x rounded to five bits, and log(2^e m) of such a number's m.
TW_INLINE Vec<double> leading_bits(Vec<double> x) {
  constexpr std::int64_t unit = std::int64_t{1} << 48;
  return bit_cast<double>((bit_cast<std::int64_t>(x) + unit / 2) & -unit);
}
TW_INLINE Pair<double> wide_log(Vec<double> c, Vec<double> e) {
  const Vec<double> index = shifted_down<48>(c);
  return {fma(e, ExpLimits<double>::ln2_hi, look_up(wide::kLogs, index)),
          fma(e, ExpLimits<double>::ln2_lo, look_up(wide::kLogLows, index))};
}
// (atanh(s) / s - 1) / s^2 in z = s^2, up to 1 / 63 and 1 / 10, within 2^-72 and 2^-63 of atanh(s).
TW_INLINE Vec<double> atanh_short_tail(Vec<double> z) {
  return fma(z * z, fma(z, 0.11116524146157306, 0.14285713192529986),
             fma(z, 0.20000000000084203, 0.3333333333333333));
}
TW_INLINE Vec<double> atanh_tail(Vec<double> z) {
  const Vec<double> square = z * z, low = fma(z, 0.2000000000011118, 0.33333333333333276);
  const Vec<double> middle = fma(z, 0.11111132418976552, 0.14285714213924236);
  const Vec<double> high = fma(z, 0.0792713941398941, 0.09087714955085753);
  return fma(square, fma(square, high, middle), low);
}
// log(x) for x.hi >= 1.1.
TW_INLINE Vec<double> wide_log(Pair<double> x) {
  const Vec<double> c = leading_bits(x.hi), s = (x.hi - c + x.lo) / (x.hi + c);
  const Vec<double> z = s * s, twice = s + s;
  const Pair<double> log_c = wide_log(c, binary_exponent(c));
  return log_c.hi + (twice + fma(twice * z, atanh_short_tail(z), log_c.lo));
}

// As in float below: polynomials near 0, roots of sums in two parts.
inline constexpr double kLargeWide = 0x1p500;
TW_INLINE Vec<double> asinh(Vec<double> x) {
  using T = double;
  const Vec<T> size = abs(x);
  const Pair<T> square = two_product(size, size);
  const Vec<T> z = square.hi, z2 = z * z;
  const Vec<T> low = fma(z2, fma(z, 0.030381943950708746, -0.04464285713996927),
                         fma(z, 0.0749999999999915, -0.16666666666666666));
  const Vec<T> high = fma(z2, fma(z, 0.010111689300098009, -0.013879092367003935),
                          fma(z, 0.017350096758141455, -0.022372111581592115));
  const Vec<T> near = fma(size * z, fma(z2 * z2, high, low), size);
  const Pair<T> inside = fast_two_sum(at_least(z, 1), at_most(z, 1));
  const Vec<T> root = sqrt(inside.hi);
  const Vec<T> rest = fma(-root, root, inside.hi) + (inside.lo + square.lo);
  const Pair<T> u = fast_two_sum(root, size);
  const Vec<T> far = wide_log(Pair<T>{u.hi, fma(rest * 0.5, near_reciprocal(root), u.lo)});
  const Vec<T> y = copysign(where(size < 0.15, near, far), x);
  if (!any_not_below(size, kLargeWide)) [[likely]]
    return y;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(size < kLargeWide, y, asinh_by_pair(x)); });
}
TW_INLINE Vec<double> acosh(Vec<double> x) {
  using T = double;
  const Vec<T> m = x - 1, m2 = m * m;
  const Mask<T> close = m < 0x1p-6;
  const Pair<T> square = two_product(x, x);
  const Vec<T> less = square.hi - 1, lost = ((square.hi - less) - 1) + square.lo;
  const Vec<T> inside = where(close, m + m, less), root = sqrt(inside);
  const Vec<T> lacking = fma(-root, root, inside) + where(close, 0, lost);
  const Vec<T> rest = lacking * 0.5 * near_reciprocal(at_least(root, 0x1p-40));
  const Vec<T> high = fma(m, 0.0018986597115042223, -0.005580355491123364);
  const Vec<T> c = fma(m2, fma(m2, -0.0006867584926734524, high),
                       fma(m, 0.018749999994360188, -0.08333333333332704));
  const Pair<T> u = fast_two_sum(x, root);
  const Vec<T> near = root + fma(root * m, c, rest), far = wide_log(Pair<T>{u.hi, u.lo + rest});
  const Vec<T> y = where(close, near, far);
  if (!any_not_below(x, kLargeWide)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(x < kLargeWide, y, acosh_by_pair(x)); });
}
// log(c) / 2 plus atanh of ((1 + x) - c (1 - x)) / ((1 + x) + c (1 - x)), c beside their quotient.
TW_INLINE Vec<double> atanh(Vec<double> x) {
  using T = double;
  const Vec<T> size = abs(x);
  const Pair<T> more = fast_two_sum<T>(1, size), less = fast_two_sum<T>(1, -size);
  const Vec<T> c = where(size < 0.1, 1, leading_bits(more.hi * near_reciprocal(less.hi)));
  const Vec<T> n = fma(-c, less.hi, more.hi) + fma(-c, less.lo, more.lo);
  const Vec<T> s = n / fma(c, less.hi, more.hi), z = s * s;
  const Pair<T> log_c = wide_log(c, binary_exponent(c));
  const Vec<T> low = fma(log_c.lo, 0.5, fma(s * z, atanh_tail(z), s));
  const Vec<T> y = copysign(fma(log_c.hi, 0.5, low), x);
  if (!any_not_below(size, 1)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(size < 1, y, atanh_by_pair(x)); });
}
#else
TW_INLINE Vec<double> asinh(Vec<double> x) { return asinh_by_pair(x); }
TW_INLINE Vec<double> acosh(Vec<double> x) { return acosh_by_pair(x); }
TW_INLINE Vec<double> atanh(Vec<double> x) { return atanh_by_pair(x); }
#endif

// Of float: a polynomial near 0, where the logarithm of a number near 1 would need that number
// exactly, and the logarithm of a sum or quotient in two parts. Beyond kLargeFloat log(2 x).
inline constexpr float kLargeFloat = 0x1p30f;
// log(2 x) for x >= kLargeFloat, infinity and NaN.
TW_INLINE Vec<float> log_of_double(Vec<float> x) {
  return where(x < kInfinity, log_of(x, 0, 1), x);
}
// log(x + sqrt(1 + x^2)); x + x^3 p(x^2) up to 1/4, within 2^-34.
TW_INLINE Vec<float> asinh(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(where(isinf(t), t, copysign(log1p(abs(t) + t * t / (1 + sqrt(t * t + 1))), t))) {
    const Vec<T> size = abs(x);
    const Pair<T> square = two_product(size, size);
    const Vec<T> c = polynomial(square.hi, -0.16666664, 0.07499639, -0.04447358, 0.027164707);
    const Vec<T> near = fma(size * square.hi, c, size);
    const Pair<T> inside = fast_two_sum(at_least(square.hi, 1), at_most(square.hi, 1));
    const Vec<T> root = sqrt(inside.hi);
    const Pair<T> u = fast_two_sum(root, size);
    // What the root lacks is a rest over twice the root.
    const Vec<T> rest = fma(-root, root, inside.hi) + (inside.lo + square.lo), twice = root + root;
    const Vec<T> far = log_of(u.hi, fma(u.lo, twice, rest) * near_reciprocal(twice * u.hi));
    const Vec<T> y = where(size < 0.25f, near, far);
    if (!any_not_below(size, kLargeFloat)) [[likely]]
      return copysign(y, x);
    return out_of_line([=]() TW_LAMBDA_INLINE {
      return copysign(where(size < kLargeFloat, y, log_of_double(size)), x);
    });
  }
}
// log(x + sqrt(x^2 - 1)); up to 1 + 1/32 the root of 2 m times 1 + m p(m) with m = x - 1, 2^-35.
TW_INLINE Vec<float> acosh(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(where(t < 1, kNan, log1p(t - 1 + sqrt((t - 1) * (t + 1))))) {
    const Vec<T> m = x - 1;
    const Mask<T> close = m < 0x1p-5f;
    const Pair<T> square = two_product(x, x);
    const Vec<T> less = square.hi - 1, lost = ((square.hi - less) - 1) + square.lo;
    const Vec<T> inside = where(close, m + m, less), root = sqrt(inside);
    const Vec<T> lacking = fma(-root, root, inside) + where(close, 0, lost);
    const Vec<T> rest = lacking * 0.5f * near_reciprocal(at_least(root, 0x1p-20f));
    const Vec<T> c = polynomial(m, -0.08333332, 0.018747792, -0.005464165);
    const Vec<T> near = root + fma(root * m, c, rest);
    const Pair<T> u = fast_two_sum(x, root);
    const Vec<T> y = where(close, near, log_of(u.hi, (u.lo + rest) * near_reciprocal(u.hi)));
    if (!any_not_below(x, kLargeFloat)) [[likely]]
      return y;
    return out_of_line(
        [=]() TW_LAMBDA_INLINE { return where(x < kLargeFloat, y, log_of_double(x)); });
  }
}
// log((1 + x) / (1 - x)) / 2; x + x^3 p(x^2) up to 1/8, within 2^-33.
TW_INLINE Vec<float> atanh(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(log1p(2 * t / (1 - t)) * 0.5) {
    const Vec<T> size = abs(x), z = size * size;
    const Vec<T> near = fma(size * z, polynomial(z, 0.3333334, 0.19997096, 0.14617103), size);
    const Pair<T> more = fast_two_sum<T>(1, size), less = fast_two_sum<T>(1, -size);
    const Vec<T> u = more.hi / less.hi;
    const Vec<T> rest = fma(-u, less.lo, fma(-u, less.hi, more.hi) + more.lo);
    const Vec<T> far = log_of(u, rest * near_reciprocal(more.hi)) * 0.5f;
    return copysign(where(size < 0.125f, near, log_domain(u, far)), x);
  }
}

// log(x / (1 - x)) = 2 atanh(2 x - 1), where that is up to 1/8 by its series, as above.
TW_INLINE Vec<float> log_odds(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(where(abs(t - 0.5) < 0.25, log1p((t + t - 1) / (1 - t)), log(t / (1 - t)))) {
    const Vec<T> m = x + x - 1, z = m * m;
    const Vec<T> near = fma(m * z, polynomial(z, 0.3333334, 0.19997096, 0.14617103), m);
    const Pair<T> less = fast_two_sum<T>(1, -x);
    const Vec<T> u = x / less.hi;
    const Vec<T> rest = fma(-u, less.lo, fma(-u, less.hi, x));
    const Vec<T> far = log_of(u, rest * near_reciprocal(at_least(x, 0x1p-100f)));
    return where(abs(m) < 0.125f, near + near, log_domain(u, far));
  }
}
TW_INLINE Vec<double> log_odds(Vec<double> x) {
  const Vec<double> near = atanh(x + x - 1);
  return where(abs(x - 0.5) < 0.25, near + near, log(x / (1 - x)));
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
// n / d for d from 1 to 4, within 2^-42.
TW_INLINE Vec<double> near_quotient(Vec<double> n, Vec<double> d) {
#ifdef TW_HAS_MASKED_ACCESS
  const Vec<double> y = (Vec<double>::Raw)_mm512_maskz_rcp14_pd(0xff, (__m512d)d.v);
  const Vec<double> e = fma(-d, y, 1), q = n * y;
  return fma(q, fma(e, e, e), q);
#else
  return n / d;
#endif
}
// ((1 + f) 2^e)^b in double, as exact as float needs: the logarithm to base 2 within 2^-40, 2^r
// for |r| <= 1/2 within 2^-34. |y| <= 1000 for y = b log2((1 + f) 2^e).
template <bool limited>
TW_INLINE Vec<double> float_power(Vec<double> f, Vec<double> e, Vec<double> b) {
  const Vec<double> s = near_quotient(f, f + 2), z = s * s;
  const Vec<double> p = polynomial(z, 2.8853900817774214, 0.9617966948305086, 0.5770777543593899,
                                   0.41222627517976734, 0.31928169199009077, 0.2908691086376101);
  const Vec<double> log = fma(s, p, e);
  const auto sum_of_y = [=](Vec<double> more) TW_LAMBDA_INLINE {
    return limited ? clamp(log * b, -1000.0, 1000.0) + more : fma(log, b, more);
  };
  const Vec<double> shifted = sum_of_y(Format<double>::rounder);
  const Vec<double> r = sum_of_y(Format<double>::rounder - shifted);
  const Vec<double> power = polynomial(
      r, 0.9999999999595482, 0.6931471805459305, 0.24022651213595278, 0.055504109412154126,
      0.009618025602952121, 0.0013333450560412074, 0.0001546973197833081, 1.5310081137407198e-05);
  return bit_cast<double>(bit_cast<std::int64_t>(power) +
                          Bits<double>(bit_cast<std::int64_t>(shifted).v << 52));
}
template <bool limited> TW_INLINE Vec<float> float_power(Vec<float> f, Vec<float> e, Vec<float> b) {
  NarrowLanes parts[kDoubleParts], exponents[kDoubleParts], powers[kDoubleParts];
  split(f.v, parts);
  split(e.v, exponents);
  split(b.v, powers);
  for (int i = 0; i < kDoubleParts; ++i)
    parts[i] = narrowed(
        float_power<limited>(widened(parts[i]), widened(exponents[i]), widened(powers[i])));
  Vec<float> y;
  join(parts, y.v);
  return y;
}
// Out of line what is not positive, infinite or NaN, and exponents that may leave double's range.
TW_INLINE Vec<float> pow_by_double(Vec<float> a, Vec<float> b) {
  const Vec<float> size = abs(a), power = abs(b);
  const auto [f, e] = decompose(size);
  const Mask<float> usual = (a > 0) & (a < kInfinity) & (fma(power, abs(e), power) < 1000.f);
  if (!any(!usual)) [[likely]]
    return float_power<false>(f, e, b);
  return out_of_line([=]() TW_LAMBDA_INLINE {
    const Mask<float> ends = (size == 0) | isinf(size) | isinf(b);
    const Vec<float> end = where(size == 1, 1, where((size > 1) ^ (b < 0), kInfinity, 0));
    const Vec<float> y = where(ends, end, float_power<true>(f, e, b));
    return signed_power(where((a != a) | (b != b), kNan, y), a, b);
  });
}
#ifdef TW_HAS_LANE_TABLES
// y = b log(a) in two parts, for normal a > 0. With a = m 2^e and the table's inverse of m,
// m inverse - 1 is exact: r.
TW_INLINE Pair<float> scaled_log(Vec<float> a, Vec<float> b) {
  using Limits = ExpLimits<float>;
  const Bits<float> offset = bit_cast<std::int32_t>(a) - kPowFirst;
  const Bits<float> exponent = Bits<float>(offset.v >> 23);
  const Vec<float> m = bit_cast<float>(bit_cast<std::int32_t>(a) - Bits<float>(exponent.v << 23));
  const Vec<float> index = bit_cast<float>(Bits<float>(offset.v >> 18));
  const Vec<float> r = fma(m, look_up(kPowInverses, index), -1), square = r * r;
  const Vec<float> e = convert<float>(exponent);
  const Pair<float> head = fast_two_sum(fma(e, Limits::ln2_hi, look_up(kPowLogs, index)), r);
  const Vec<float> tail = fma(e, Limits::ln2_lo, look_up(kPowLogLows, index));
  const Vec<float> c = fma(square, fma(r, 0.20010822f, -0.25005835f), fma(r, 0.3333333f, -0.5f));
  const Vec<float> low = head.lo + fma(square, c, tail), y = b * head.hi;
  return {y, fma(b, low, fma(b, head.hi, -y))};
}
// e^y for |y| < 87.
TW_INLINE Vec<float> exp_of(Pair<float> y) {
  const Vec<float> index = fma(y.sum(), kPowSteps, Format<float>::rounder);
  const Vec<float> n = index - Format<float>::rounder;
  const Vec<float> low = fma(n, -kPowStepLow, y.lo + look_up(kPowRests, index));
  const Vec<float> r = fma(n, -kPowStep, y.hi) + low;
  const Vec<float> g = table_power_rest(r, r);
  const Vec<float> power = table_power(index);
  return fma(power, g, power);
}
// Whether all numbers are such that their power by the two is good: within 1/4 ulp before the last
// rounding, so that a result that is a float32 number is exact.
inline constexpr float kPowMost = 512, kPowMostLog = 87;
TW_INLINE bool are_usual(Vec<float> a, Vec<float> b, Vec<float> y) {
  const __m512i above = _mm512_sub_epi32((__m512i)a.v, _mm512_set1_epi32(0x00800000));
  __mmask16 m = _mm512_cmplt_epu32_mask(above, _mm512_set1_epi32(0x7f000000));
  m = _mm512_mask_cmp_ps_mask(m, (__m512)abs(b).v, _mm512_set1_ps(kPowMost), _CMP_LT_OQ);
  m = _mm512_mask_cmp_ps_mask(m, (__m512)abs(y).v, _mm512_set1_ps(kPowMostLog), _CMP_LT_OQ);
  return m == 0xffff;
}
TW_INLINE Vec<float> pow(Vec<float> a, Vec<float> b) {
  const Vec<float> size = abs(a);
  const Pair<float> log = scaled_log(size, b);
  const Vec<float> y = exp_of(log);
  if (are_usual(a, b, log.hi)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE {
    const Mask<float> usual = (size >= Format<float>::smallest_normal) & (size < kInfinity) &
                              (abs(b) < kPowMost) & (abs(log.hi) < kPowMostLog);
    const Vec<float> z = signed_power(y, a, b);
    return any(!usual) ? where(usual, z, pow_by_double(a, b)) : z;
  });
}
#else
TW_INLINE Vec<float> pow(Vec<float> a, Vec<float> b) { return pow_by_double(a, b); }
#endif
TW_INLINE Vec<double> pow_by_pair(Vec<double> a, Vec<double> b) {
  const Vec<double> size = abs(a);
  const Pair<double> l = log_pair({size, 0});
  const Pair<double> p = two_product(b, log_domain(size, l.hi));
  const auto reduced = reduce_exp(clamp(p.hi, -800.0, 800.0));
  const Vec<double> more = where(abs(p.hi) < 800, fma(b, l.lo, p.lo), 0);
  const Vec<double> y = exp_pair(reduced, more).sum();
  return signed_power(scale(y, reduced.n), a, b);
}
#ifdef TW_HAS_LANE_TABLES
// With a = m 2^e and c the table's point by m: log(a) = e log 2 + log(c) + 2 atanh(s), where
// s = (m - c) / (m + c), in two parts. Out of line what is not positive, infinite or NaN, and
// results beyond e^700.
TW_INLINE Vec<double> pow(Vec<double> a, Vec<double> b) {
  using T = double;
  const Vec<T> m = leading_factor(a), c = leading_bits(m), twice = c + c;
  const Vec<T> n = m - c, inverse = 1 / (n + twice), e = binary_exponent(a) + binary_exponent(c);
  const Pair<T> d = fast_two_sum(twice, n);
  const Vec<T> s = n * inverse, s_low = fma(-s, d.lo, fma(-s, d.hi, n)) * inverse;
  const Pair<T> log_c = wide_log(c, e), log_a = fast_two_sum(log_c.hi, s + s);
  const Vec<T> z = s * s, cube = fma(s * z, atanh_short_tail(z), s_low);
  const Vec<T> low = log_a.lo + fma(cube, 2, log_c.lo);
  const Vec<T> y = b * log_a.hi;
  const WideExp x = wide_exp(Pair<T>{y, fma(b, low, fma(b, log_a.hi, -y))});
  const Vec<T> power = fma(x.t, wide_exp_long_rest(x), x.t);
  if (!any_not_below(abs(y), 700)) [[likely]]
    return power;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(abs(y) < 700, power, pow_by_pair(a, b)); });
}
#else
TW_INLINE Vec<double> pow(Vec<double> a, Vec<double> b) { return pow_by_pair(a, b); }
#endif
// Powers by exponents that many programs have, within 1 ulp: what the first product or quotient
// loses is added again, where both are numbers.
template <Floating T> TW_INLINE Vec<T> plus_lost(Vec<T> y, Vec<T> lost) {
  return where((abs(y) < kInfinity) & (lost == lost), y + lost, y);
}
template <Floating T> TW_INLINE Vec<T> cube(Vec<T> a) {
  const Pair<T> square = two_product(a, a);
  const Vec<T> y = exact_fma(square.hi, a, square.lo * a);  // a zero keeps its sign
  return where(square.hi < kInfinity, y, square.hi * a);
}
template <Floating T> TW_INLINE Vec<T> fourth_power(Vec<T> a) {
  const Pair<T> square = two_product(a, a), y = two_product(square.hi, square.hi);
  return plus_lost(y.hi, exact_fma(square.hi, square.lo + square.lo, y.lo));
}
template <Floating T> TW_INLINE Vec<T> inverse_square(Vec<T> a) {
  const Vec<T> inverse = 1 / a, lack = exact_fma(-a, inverse, (T)1);
  const Pair<T> y = two_product(inverse, inverse);
  return plus_lost(y.hi, exact_fma(y.hi, lack + lack, y.lo));
}
// a^(1 / 2), which of -0 is 0 and of -infinity infinity, for what a root by steps leaves to it.
template <Floating T> TW_INLINE Vec<T> root_power(Vec<T> a) {
  return where(a == -kInfinity, kInfinity, sqrt(a + 0));
}
// a^(halves / 2), where few operations make it.
template <int halves, Floating T> TW_INLINE Vec<T> simple_power(Vec<T> a) {
  if constexpr (halves == 0)
    return (T)1;
  else if constexpr (halves == 2)
    return a;
  else if constexpr (halves == 4)
    return a * a;
  else if constexpr (halves == 6)
    return cube(a);
  else if constexpr (halves == 8)
    return fourth_power(a);
  else if constexpr (halves == -2)
    return 1 / a;
  else if constexpr (halves == -4)
    return inverse_square(a);
  else if constexpr (halves == 1)
    return lone_sqrt(a, [](Vec<T> x) TW_LAMBDA_INLINE { return root_power(x); });
  else if constexpr (halves == -1)
    return where(a == -kInfinity, 0, rsqrt(a + 0));
}
// b a^(b - 1), the derivative of a^b by a: 0 for b = 0 also where a^-1 is infinite.
template <Floating T> TW_INLINE Vec<T> power_slope(Vec<T> a, Vec<T> b) {
  return where(b == 0, 0, b * pow(a, b - 1));
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
