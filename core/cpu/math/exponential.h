// exp and what is made of it: exp2, expm1 and the logistic function.
// The bounds of all errors are in core/problems/accuracy.inc.
#pragma once
#include "core/cpu/math/basic.h"
#include "core/cpu/math/pieces_float32.h"
#include "core/cpu/math/double_word.h"
#include "core/cpu/math/tables_float64.h"

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
template <class T> inline constexpr T kLn2Rest = 0;  // ln 2 - (T)kLn2
template <> inline constexpr float kLn2Rest<float> = -0x1.05c610p-29f;
template <> inline constexpr double kLn2Rest<double> = 0x1.abc9e3b39803fp-56;
template <Floating T> TW_INLINE Vec<T> clamp(Vec<T> x, T lowest, T highest) {
  return at_least(at_most(x, highest), lowest);
}
// The nearest whole number, |x| < 2^(mantissa bits - 1).
template <Floating T> TW_INLINE Vec<T> nearest(Vec<T> x) {
  return (x + Format<T>::rounder) - Format<T>::rounder;
}
// The bits of 2^n from those of n + rounder + bias, as its exponent is then the low ones.
template <Floating T> TW_INLINE Bits<T> power_bits(Vec<T> shifted) {
  return Bits<T>(bit_cast<IntLike<T>>(shifted).v << Format<T>::mantissa_bits);
}
// 2^n for whole n from the smallest normal exponent to the largest.
template <Floating T> TW_INLINE Vec<T> two_to(Vec<T> n) {
  return bit_cast<T>(power_bits(n + (Format<T>::rounder + Format<T>::bias)));
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
  const Vec<T> half = fma(n, (T)0.5, Format<T>::rounder) - Format<T>::rounder;
  return x * two_to(half) * two_to(n - half);
#endif
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; leaves e^r - 1 a relative error of 2^-31 and 2^-62.
TW_INLINE Vec<float> exp_tail(Vec<float> r) {
  return polynomial(r, 0.5, 0.16666667, 0.041666478, 0.008333192, 0.0013933697, 0.00019958471);
}
TW_INLINE Vec<double> exp_tail(Vec<double> r) {
  return long_polynomial(r, 0.5, 0.16666666666666677, 0.04166666666666668, 0.008333333333321445,
                         0.0013888888888877447, 0.00019841269886554226, 2.4801587340607243e-05,
                         2.755724380751889e-06, 2.75572592197061e-07, 2.5109169541356204e-08,
                         2.091949499659684e-09);
}
// Shorter ones, which leave e^r a relative error of 2^-28 and 2^-56.
TW_INLINE Vec<float> exp_short_tail(Vec<float> r) {
  return polynomial(r, 0.49999997, 0.166665152, 0.0416673198, 0.00836925767, 0.00138817774);
}
TW_INLINE Vec<double> exp_short_tail(Vec<double> r) {
  return by_pairs<double>(r, r * r, 0.5000000000000013, 0.16666666666666546, 0.041666666666512836,
                          0.008333333333404086, 0.001388888894790924, 0.0001984126970937905,
                          2.4801488869051047e-05, 2.755740046262936e-06, 2.763170163108362e-07,
                          2.5060087358851158e-08);
}

// x = n ln 2 + r + low.
template <Floating T> struct ReducedExp {
  Vec<T> n, r, low;
};
// With n + more + rounder in place of n: the low bits are those of the whole number n + more.
template <Floating T> TW_INLINE ReducedExp<T> reduce_exp_shifted(Vec<T> x, T more) {
  const T rounder = Format<T>::rounder + more;
  const Vec<T> shifted = fma(x, kLog2e, rounder), n = shifted - rounder;
  const Vec<T> near = fma(n, -ExpLimits<T>::ln2_hi, x), r = fma(n, -ExpLimits<T>::ln2_lo, near);
  return {shifted, r, fma(n, -ExpLimits<T>::ln2_lo, near - r)};
}
template <Floating T> TW_INLINE ReducedExp<T> reduce_exp(Vec<T> x) {
  const auto [shifted, r, low] = reduce_exp_shifted<T>(x, 0);
  return {shifted - Format<T>::rounder, r, low};
}
// e^(r + low) - 1 - r.
template <Floating T> TW_INLINE Vec<T> exp_rest(const ReducedExp<T>& x) {
  return fma(fma(exp_tail(x.r), x.r, x.low), x.r, x.low);
}
template <Floating T> TW_INLINE Vec<T> exp_reduced(const ReducedExp<T>& x) {
  if constexpr (kFused) return fma(fma(exp_short_tail(x.r), x.r, 1), x.r, 1);
  return (exp_rest(x) + x.r) + 1;
}
// e^(r + low + more), where `more` may be many ulp of r.
template <Floating T> TW_INLINE Pair<T> exp_pair(const ReducedExp<T>& x, Same<T> more = 0) {
  const Pair<T> t = fast_two_sum(x.r, exp_rest(x)), head = fast_two_sum<T>(1, t.hi);
  return {head.hi, fma(head.hi, more, head.lo + t.lo)};
}

template <Floating T> TW_INLINE Vec<T> exp(Vec<T> x) {
  TW_WIDEN(exp) {
    const auto reduced = reduce_exp(clamp(x, ExpLimits<T>::lowest, ExpLimits<T>::highest));
    return scale(exp_reduced(reduced), reduced.n);
  }
}
template <Floating T> TW_INLINE Vec<T> exp2(Vec<T> x) {
  TW_WIDEN(exp2) {
    constexpr T limit = Format<T>::bias + 2, ln2 = (T)kLn2;
    const Vec<T> inside = clamp<T>(x, -limit - Format<T>::mantissa_bits, limit);
    const Vec<T> n = nearest(inside), f = inside - n, r = f * ln2;
    const ReducedExp<T> reduced = {n, r, fma(f, kLn2Rest<T>, exact_fma(f, ln2, -r))};
    return scale(sizeof(T) == 4 ? exp_reduced(reduced) : (exp_rest(reduced) + r) + 1, n);
  }
}
#ifdef TW_HAS_MASKED_ACCESS
// x - n for the whole number n nearest to x, and 0 for infinities.
TW_INLINE Vec<double> fraction(Vec<double> x) {
  return Vec<double>((Vec<double>::Raw)_mm512_maskz_reduce_pd(0xff, (__m512d)x.v, 0));
}
// x to `limit` on both sides, in one instruction; of NaN it makes the limit.
TW_INLINE Vec<double> within(Vec<double> x, double limit) {
  return Vec<double>(
      (Vec<double>::Raw)_mm512_maskz_range_pd(0xff, (__m512d)x.v, _mm512_set1_pd(limit), 2));
}
// The instruction that scales has 0, infinity and NaN at the ends, so that x needs no limits; where
// r is none, they keep it from making the result one of another sign.
TW_INLINE Vec<double> exp(Vec<double> x) {
  using Limits = ExpLimits<double>;
  const Vec<double> n = fma(x, kLog2e, Format<double>::rounder) - Format<double>::rounder;
  const Vec<double> r = within(fma(n, -Limits::ln2_lo, fma(n, -Limits::ln2_hi, x)), 1);
  return scale(fma(fma(exp_short_tail(r), r, 1), r, 1), n);
}
// 2^f = 1 + f p(f) for |f| <= 1/2, within 2^-57.3.
TW_INLINE Vec<double> exp2(Vec<double> x) {
  const Vec<double> f = fraction(x);
  const Vec<double> p = by_pairs<double>(
      f, f * f, 0.24022650695910133, 0.055504108664822256, 0.009618129107593482,
      0.001333355814638268, 0.00015403530457798738, 1.5252733803515011e-05, 1.3215434978831274e-06,
      1.0178087584512348e-07, 7.073830649377912e-09, 4.449838733880283e-10);
  return scale(fma(fma(p, f, kLn2), f, 1), x - f);
}
#endif
// e^x - 1 as 2 (s (e^r - 1) + (s - 1/2)) with s = 2^(n - 1), finite as long as the result is.
template <Floating T> TW_INLINE Pair<T> half_expm1_pair(Vec<T> x) {
  const T lowest = -Format<T>::mantissa_bits - 2;  // e^lowest is below half an ulp of -1
  const auto reduced =
      reduce_exp_shifted<T>(clamp<T>(x, lowest, ExpLimits<T>::highest), Format<T>::bias - 1);
  const Vec<T> s = bit_cast<T>(power_bits(reduced.n)), less = s - (T)0.5;
  const Pair<T> head = fast_two_sum(less, ProductTerm<Vec<T>>{s, reduced.r});
  const Vec<T> lost = head.lo + ((s - less) - (T)0.5);
  return {head.hi, fma(s, exp_rest(reduced), lost)};
}
template <Floating T> TW_INLINE Vec<T> expm1(Vec<T> x) {
  TW_WIDEN(expm1) { return where(abs(x) < kUnchanged<T>, x, half_expm1_pair(x).sum() * 2); }
}
#ifdef TW_HAS_LANE_TABLES
// 2^(k / 32), where k stands in the low bits of `index`.
TW_INLINE Vec<float> table_power(Vec<float> index) {
  return bit_cast<float>(bit_cast<std::int32_t>(look_up(kPowBits, index)) +
                         Bits<float>(bit_cast<std::int32_t>(index).v << 18));
}
// e^r - 1 - r + more for |r| <= 1 / 90.
TW_INLINE Vec<float> table_power_rest(Vec<float> r, Vec<float> more) {
  return fma(r * r, fma(r, 0.16666757f, 0.5000043f), more);
}
// x = k ln 2 / 32 + r + low, r exact for |k| < 2, and t = e^(k ln 2 / 32): (t - 1) + t r in two
// parts, and t (e^r - 1 - r + low). Down to -16 and up to 16, where t - 1 loses something below 1
// alone.
inline constexpr float kExpm1Most = 16;
TW_INLINE Vec<float> expm1(Vec<float> x) {
  using T = float;
  const Vec<T> index = fma(x, kPowSteps, Format<T>::rounder), minus_k = Format<T>::rounder - index;
  const Vec<T> r = fma(minus_k, kPowStep, x);
  const Vec<T> low = fma(minus_k, kPowStepLow, look_up(kPowRests, index));
  const Vec<T> t = table_power(index), less = t - 1, head = fma(t, r, less);
  const Vec<T> lost = fma(t, r, less - head) + (t - (less + 1));
  const Vec<T> y = copysign(head + fma(t, table_power_rest(r + low, low), lost), x);
  if (!any_not_below(abs(x), kExpm1Most)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(abs(x) < kExpm1Most, y, expm1<T>(x)); });
}
#endif

// A whole number n as itself and as the bits of n + rounder, whose low ones added to an exponent
// multiply by 2^n.
template <Floating T> struct Power {
  Vec<T> n;
  Bits<T> bits;
};
template <Floating T> TW_INLINE Power<T> power_of(Vec<T> shifted) {
  return {shifted - Format<T>::rounder, bit_cast<IntLike<T>>(shifted)};
}
// The whole number nearest to x, or to x times a factor.
template <Floating T> TW_INLINE Power<T> nearest_power(Vec<T> x) {
  return power_of(x + Format<T>::rounder);
}
template <Floating T> TW_INLINE Power<T> nearest_power(Vec<T> x, double factor) {
  return power_of(fma(x, factor, Format<T>::rounder));
}
// x 2^n, x and the result normal. Unsigned, as lanes that do not count may wrap.
TW_INLINE Vec<float> add_exponent(Vec<float> x, Bits<float> bits) {
  const auto more = bit_cast<std::uint32_t>(bits);
  return bit_cast<float>(bit_cast<std::uint32_t>(x) + Vec<std::uint32_t>(more.v << 23));
}
TW_INLINE Vec<double> add_exponent(Vec<double> x, Bits<double> bits) {
  const auto more = bit_cast<std::uint64_t>(bits);
  return bit_cast<double>(bit_cast<std::uint64_t>(x) + Vec<std::uint64_t>(more.v << 52));
}

// e^-|x| = 2^n p, also where x times it is a denormal, and 1 + 2^n p.
template <Floating T> struct Logistic {
  Pair<T> p, sum;
  Vec<T> n;
};
template <Floating T> TW_INLINE Logistic<T> logistic(Pair<T> x) {
  const auto reduced = reduce_exp(at_least(minus_abs(x.hi), ExpLimits<T>::lowest - 16));
  const Pair<T> p = exp_pair(reduced, where(x.hi < 0, x.lo, -x.lo));
  const Vec<T> s = two_to(at_least(reduced.n, 1 - Format<T>::bias));
  const Pair<T> sum = fast_two_sum(Vec<T>(1), ProductTerm<Vec<T>>{p.hi, s});
  return {p, {sum.hi, fma(p.lo, s, sum.lo)}, reduced.n};
}
TW_INLINE Vec<double> sigmoid_by_pair(Vec<double> x) {
  const Logistic<double> parts = logistic<double>({x, 0});
  const Mask<double> below = x < 0;
  const Pair<double> numerator = {where(below, parts.p.hi, 1), where(below, parts.p.lo, 0)};
  return scale(ratio(numerator, parts.sum), where(below, parts.n, 0));
}
#ifdef TW_HAS_LANE_TABLES
// e^x = t (1 + g): x = k ln 2 / 16 + r, t = 2^(k / 16). k stands in the low bits of `index`.
struct WideExp {
  Vec<double> index, t, r;
};
inline constexpr double kPowerSteps = 23.083120654223414;  // 16 / ln 2
inline constexpr double kPowerStep = 0x1.62e42fefa0000p-5, kPowerStepLow = 0x1.cf79abc9e3b3ap-44;
TW_INLINE Vec<double> wide_power(Vec<double> index) {
  const Bits<double> k = Bits<double>(bit_cast<std::int64_t>(index).v << 48);
  return bit_cast<double>(look_up(wide::kPowerBits, index) + k);
}
// Where e^x is a normal number.
TW_INLINE WideExp wide_exp(Vec<double> x) {
  const Vec<double> index = fma(x, kPowerSteps, Format<double>::rounder);
  const Vec<double> k = index - Format<double>::rounder;
  return {index, wide_power(index), fma(k, -kPowerStepLow, fma(k, -kPowerStep, x))};
}
TW_INLINE WideExp wide_exp(Pair<double> x) {
  const Vec<double> index = fma(x.sum(), kPowerSteps, Format<double>::rounder);
  const Vec<double> k = index - Format<double>::rounder;
  return {index, wide_power(index), fma(k, -kPowerStep, x.hi) + fma(k, -kPowerStepLow, x.lo)};
}
// Of minus_low - x, x >= 0 and the other at most half an ulp of it.
TW_INLINE WideExp wide_exp_of_negative(Vec<double> x, Vec<double> minus_low) {
  const Vec<double> index = fma(x, -kPowerSteps, Format<double>::rounder);
  const Vec<double> k = Format<double>::rounder - index;
  return {index, wide_power(index), fma(k, kPowerStep, -x) + fma(k, kPowerStepLow, minus_low)};
}
// e^r - 1 and what t lost in rounding, within 2^-56 and 2^-65 of e^r.
TW_INLINE Vec<double> wide_exp_rest(const WideExp& x) {
  const Vec<double> r = x.r, square = r * r;
  const Vec<double> low = fma(r, 0.16666666664364316, 0.5000000000000004);
  const Vec<double> high = fma(r, 0.008333473254431545, 0.041666666660737456);
  const Vec<double> p = fma(square, fma(square, 0.0013889110389919497, high), low);
  return r + fma(square, p, look_up(wide::kPowerRests, x.index));
}
TW_INLINE Vec<double> wide_exp_long_rest(const WideExp& x) {
  const Vec<double> r = x.r, square = r * r;
  const Vec<double> low = fma(r, 0.1666666666666667, 0.5000000000000003);
  const Vec<double> middle = fma(r, 0.008333333332693276, 0.041666666661521676);
  const Vec<double> high = fma(r, 0.00019841513295359883, 0.0013889098234159988);
  const Vec<double> p = fma(square, fma(square, high, middle), low);
  return r + fma(square, p, look_up(wide::kPowerRests, x.index));
}
// The logistic function as n / d: e / (1 + e) below 0, 1 / (1 + e) above, e = e^-|x| down to
// 2^-952. d leaves out what e lacks, a quarter ulp of the result at most.
struct WideLogistic {
  Pair<double> n, d;
};
inline constexpr double kWideLogisticFrom = -660;  // for -|x|; below it, any number
TW_INLINE WideLogistic wide_logistic(Vec<double> x) {
  const WideExp p = wide_exp(minus_abs(x));
  const Vec<double> g = wide_exp_rest(p), e = fma(p.t, g, p.t), low = fma(p.t, g, p.t - e);
  const Mask<double> below = x < 0;
  return {{where(below, e, 1), where(below, low, 0)}, fast_two_sum<double>(1, e)};
}
TW_INLINE Vec<double> sigmoid(Vec<double> x) {
  const WideLogistic share = wide_logistic(x);
  const Vec<double> y = ratio(share.n, share.d);
  const Vec<double> v = minus_abs(x);
  if (!any_below(v, kWideLogisticFrom)) [[likely]]
    return y;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(v < kWideLogisticFrom, sigmoid_by_pair(x), y); });
}
#else
// 1 + e^-x = d + lost for x >= -700, where e^-x = s - s r + s r^2 v, s = 2^n; `lost` is what
// rounding d and its first terms lost. Beyond 38 x is as good as infinite.
struct WideDivisor {
  Vec<double> d, lost;
};
inline constexpr double kWideDivisorFrom = -700;
TW_INLINE WideDivisor wide_divisor(Vec<double> x) {
  using Limits = ExpLimits<double>;
  const Vec<double> limited = at_most(x, 38.0);
  const Power<double> power = nearest_power(limited, -kLog2e);
  const Vec<double> r = fma(power.n, Limits::ln2_lo, fma(power.n, Limits::ln2_hi, limited));
  const Vec<double> square = r * r, minus_s = add_exponent(-1.0, power.bits);
  const Vec<double> minus_v = by_pairs<double>(
      r, square, -0.5000000000000013, 0.16666666666666685, -0.04166666666651156,
      0.008333333333315457, -0.0013888888947870212, 0.00019841269900380362, -2.4801489167782542e-05,
      2.755723095733864e-06, -2.7631528000598027e-07, 2.511269902052088e-08);
  const Vec<double> head = fma(minus_s, r, 1 - minus_s), share = minus_s * square;
  const Vec<double> d = fma(share, minus_v, head);
  return {d, fma(share, minus_v, head - d) + fma(minus_s, r, 1 - (minus_s + head))};
}
TW_INLINE Vec<double> sigmoid(Vec<double> x) {
  if constexpr (!kFused) return sigmoid_by_pair(x);
  const auto [d, lost] = wide_divisor(x);
  const Vec<double> q = 1 / d, y = fma(-fma(q, lost, fma(q, d, -1)), q, q);
  if (!any_below(x, kWideDivisorFrom)) [[likely]]
    return y;
  return out_of_line(  // below it e^x is as near
      [=]() TW_LAMBDA_INLINE { return where(x < kWideDivisorFrom, exp(x), y); });
}
#endif

// What follows is for float, as fast as it can be.
// x 2^max(n, -125) for x from 1/2 to 2.
TW_INLINE Vec<float> scale_bounded(Vec<float> x, Bits<float> bits) {
  const Bits<float> lowest = bit_cast<std::int32_t>(Vec<float>(Format<float>::rounder - 125));
  return add_exponent(x, at_least(bits, lowest));
}
// x 2^n for n <= 0, where denormal results are rare; 2^-20 < |x| < 2^7, or n = 0.
TW_INLINE Vec<float> scale_down(Vec<float> x, Power<float> power) {
#ifdef TW_HAS_MASKED_ACCESS
  return scale(x, power.n);
#else
  if (!any(!(power.n >= -105))) [[likely]]
    return add_exponent(x, power.bits);
  return out_of_line([=]() TW_LAMBDA_INLINE { return scale(x, power.n); });
#endif
}

// e^(n ln 2 + r) = (1 + w r) 2^n; p = 1 + w r rounded.
struct FloatExp {
  Vec<float> w, r, p;
  Power<float> power;
};
TW_INLINE FloatExp float_exp(Power<float> power, Vec<float> r) {
  const Vec<float> w = fma(exp_short_tail(r), r, 1);
  return {w, r, fma(w, r, 1), power};
}
TW_INLINE FloatExp float_exp(Vec<float> v) {
  using Limits = ExpLimits<float>;
  const Power<float> power = nearest_power(v, kLog2e);
  return float_exp(power, fma(power.n, -Limits::ln2_lo, fma(power.n, -Limits::ln2_hi, v)));
}
#ifndef TW_HAS_MASKED_ACCESS
// Without an instruction that scales, where neither x nor the result is far from the normal range.
TW_INLINE Vec<float> exp(Vec<float> x) {
  using T = float;
  TW_WIDEN(exp) {
    const FloatExp e = float_exp(x);
    const Vec<T> y = add_exponent(e.p, e.power.bits);
    if (!any_larger(x, 87)) [[likely]]
      return y;
    return out_of_line([=]() TW_LAMBDA_INLINE { return where(abs(x) <= 87, y, exp<T>(x)); });
  }
}
// x = n + f: e^(f ln 2), the product's second part in the last term alone.
TW_INLINE Vec<float> exp2(Vec<float> x) {
  using T = float;
  TW_WIDEN(exp2) {
    const Power<float> power = nearest_power(x);
    const Vec<T> f = x - power.n, r = f * kLn2, w = fma(exp_short_tail(r), r, 1);
    const Vec<T> y = add_exponent(fma(w, fma(f, kLn2Rest<T>, r), 1), power.bits);
    if (!any_larger(x, 125)) [[likely]]
      return y;
    return out_of_line([=]() TW_LAMBDA_INLINE { return where(abs(x) <= 125, y, exp2<T>(x)); });
  }
}
#endif
// Of v + more, where `more` may be a few ulp of v.
TW_INLINE FloatExp float_exp(Vec<float> v, Vec<float> more) {
  using Limits = ExpLimits<float>;
  const Power<float> power = nearest_power(v, kLog2e);
  return float_exp(power, fma(power.n, -Limits::ln2_hi, v) + fma(power.n, -Limits::ln2_lo, more));
}
// The logistic function of v <= 0 as (y + rest) 2^n, where rest is below 2^-13 y: p / (1 + e) with
// e = 2^n p = e^v, and what the remainder of the division says that it lacks.
struct FloatLogistic {
  Vec<float> y, rest;
  Power<float> power;
};
TW_INLINE FloatLogistic float_logistic(const FloatExp& x) {
  const auto [w, r, p, power] = x;
  const Vec<float> e = scale_bounded(p, power.bits), inverse = near_reciprocal(e + 1);
  const Vec<float> y = p * inverse;
  const Vec<float> rest = fma(-y, e, p - y) + fma(w, r, 1 - p);  // p - y is exact
  return {y, rest * inverse, power};
}
#ifdef TW_HAS_LANE_TABLES
TW_INLINE Vec<float> sigmoid_by_exp(Vec<float> x) {
  const Vec<float> v = at_least(minus_abs(x), ExpLimits<float>::lowest);
  const FloatLogistic s = float_logistic(float_exp(v));
  const Vec<float> y = scale_down(s.y + s.rest, s.power);
  return where(x < 0, y, 1 - y);
}
// The nearest whole number to steps |v| in the low bits, v <= 0.
TW_INLINE Vec<float> logistic_index(Vec<float> v, float steps) {
  return fma(v, -steps, Format<float>::rounder);
}
#else
// 1 + e^-x = d + lost, x from -87 on, where e^-x = 2^n - 2^n r w and 1 + 2^n is not rounded. Beyond
// 17.5 x is as good as infinite.
struct LogisticDivisor {
  Vec<float> d, lost;
};
TW_INLINE LogisticDivisor logistic_divisor(Vec<float> x) {
  using Limits = ExpLimits<float>;
  const Vec<float> limited = at_most(x, 17.5f);
  const Power<float> power = nearest_power(limited, -kLog2e);
  const Vec<float> r = fma(power.n, Limits::ln2_lo, fma(power.n, Limits::ln2_hi, limited));
  const Vec<float> w =
      polynomial(r, 1, -0.49999997, 0.166665152, -0.0416673198, 0.00836925767, -0.00138817774);
  const Vec<float> s = add_exponent(-1, power.bits), product = s * r;
  const Vec<float> d = fma(product, w, 1 - s);
  return {d, fma(product, w, 1 - (s + d))};
}
#endif
TW_INLINE Vec<float> sigmoid(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(1 / (1 + exp(-t))) {
#ifdef TW_HAS_LANE_TABLES
    const Vec<T> v = minus_abs(x), index = logistic_index(v, kSigmoidSteps);
    const Vec<T> below =
        by_pieces(v - look_up(kSigmoidPoints, index), index, kSigmoidValues, kSigmoidPieces);
    const Vec<T> y = where(x < 0, below, 1 - below);
    if (!any_below(v, kLogisticFrom)) [[likely]]
      return y;
    return out_of_line(
        [=]() TW_LAMBDA_INLINE { return where(v < kLogisticFrom, sigmoid_by_exp(x), y); });
#else
    constexpr T lowest = -86;  // below it e^x is as near
    const auto [d, lost] = logistic_divisor(x);
    const Vec<T> q = 1 / d, y = fma(-fma(q, lost, fma(q, d, -1)), q, q);
    if (!any_below(x, lowest)) [[likely]]
      return y;
    return out_of_line([=]() TW_LAMBDA_INLINE { return where(x < lowest, exp(x), y); });
#endif
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
