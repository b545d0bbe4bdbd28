// Inverse sine, cosine and tangent.
#pragma once
#include "core/cpu/math/exponential.h"
#include "core/cpu/math/pieces_float32.h"
#include "core/cpu/math/tables_float64.h"

namespace tw::TW_ISA_NAME {
namespace {

// pi/4 = hi + lo, where k hi is exact for whole k up to 4.
template <Floating T> struct QuarterPi;
template <> struct QuarterPi<float> {
  static constexpr float hi = 0x1.921fbp-1f, lo = 0x1.5110b4p-23f;
};
template <> struct QuarterPi<double> {
  static constexpr double hi = 0x1.921fb54442d18p-1, lo = 0x1.1a62633145c07p-55;
};
// k pi/4 + m t, where |m t| <= k pi/4 or k = 0; `rest` is what else belongs to t.
template <Floating T> TW_INLINE Vec<T> from_quarter(Vec<T> k, Vec<T> m, Vec<T> t, Vec<T> rest) {
  const Pair<T> head = fast_two_sum(k * QuarterPi<T>::hi, ProductTerm<Vec<T>>{m, t});
  return head.hi + (head.lo + fma(m, rest, k * QuarterPi<T>::lo));
}

// (atan(t) - t) / t^3 in z = t^2, |t| <= tan(pi/8); 2^-30.3, 2^-63.8 of the angle.
TW_INLINE Vec<float> atan_tail(Vec<float> z) {
  return polynomial(z, -0.33333313, 0.1999839, -0.1424224, 0.105854906, -0.060593873);
}
TW_INLINE Vec<double> atan_tail(Vec<double> z) {
  return polynomial(z, -0.33333333333333326, 0.19999999999997253, -0.14285714285347012,
                    0.11111111086069289, -0.0909090807972935, 0.07692281482648008,
                    -0.06666210075735127, 0.05876875339915717, -0.052175505568571076,
                    0.04500379208929406, -0.03340660253184952, 0.01513143098055628);
}
// The angle of the point (high, low), or (low, high) where steep, turned to the other side where
// left; high > 0, 0 <= low <= high, and their quotient and products are normal or 0. Beyond
// tan(pi/8) it is pi/4 more than that of (low - high, low + high).
template <Floating T>
TW_INLINE Vec<T> angle_of(Vec<T> low, Vec<T> high, Mask<T> steep, Mask<T> left) {
  const Mask<T> far = low > high * (T)0.41421356;
  const Pair<T> less = fast_two_sum(-high, low), more = fast_two_sum(high, low);
  const Pair<T> t = quotient<T>({where(far, less.hi, low), where(far, less.lo, 0)},
                                {where(far, more.hi, high), where(far, more.lo, 0)});
  const Vec<T> z = t.hi * t.hi, rest = fma(atan_tail(z) * z, t.hi, fma(-t.lo, z, t.lo));
  Vec<T> k = where(far, 1, 0), m = 1;
  k = where(steep, 2 - k, k), m = where(steep, -m, m);
  k = where(left, 4 - k, k), m = where(left, -m, m);
  return from_quarter(k, m, t.hi, rest);
}

// Beyond 2^60 the angle is pi/2.
template <Floating T> TW_INLINE Vec<T> atan(Vec<T> x) {
  TW_WIDEN(atan) {
    const Vec<T> size = at_most(abs(x), 0x1p60);
    const Mask<T> left = {typename Mask<T>::Raw{}};
    const Vec<T> y = angle_of(at_most(size, 1), at_least(size, 1), size > 1, left);
    return copysign(where(size < kUnchanged<T>, size, y), x);
  }
}

#ifdef TW_HAS_LANE_TABLES
// The angle of a table's point p / q plus that of (q x - p) / (q + p x).
TW_INLINE Vec<double> atan(Vec<double> x) {
  using T = double;
  const Vec<T> size = at_most(abs(x), 0x1p60), share = size * near_reciprocal(size + 1);
  const Vec<T> index = shifted_down<48>(at_least(fma(share, 16.99, 15), 16));
  const Vec<T> p = look_up(wide::kAtanNumerators, index);
  const Vec<T> q = look_up(wide::kAtanDenominators, index);
  const Vec<T> t = fma(q, size, -p) / fma(p, size, q), z = t * t, square = z * z;
  const Vec<T> first = fma(z, 0.19999999999988455, -0.33333333333333326);
  const Vec<T> second = fma(z, 0.11111109754903963, -0.14285714279912268);
  const Vec<T> third = fma(z, 0.07680898460840017, -0.09090741024263492);
  const Vec<T> tail =
      fma(square, fma(square, fma(square, -0.06264173637884994, third), second), first);
  const Vec<T> rest = fma(t * z, tail, look_up(wide::kAtanValueLows, index));
  return copysign(look_up(wide::kAtanValues, index) + (t + rest), x);
}

// Beyond 1, pi/2 less the angle of 1 / |x|, whose rounding is made good.
TW_INLINE Vec<float> atan(Vec<float> x) {
  const Vec<float> size = at_most(abs(x), 0x1p60f);
  const Mask<float> steep = size > 1;
  const Vec<float> n = where(steep, 1, size), d = where(steep, size, 1);
  const Vec<float> ratio = n / d, lost = fma(-ratio, d, n);
  constexpr float rounder = Format<float>::rounder;  // its low bits are those of a whole number
  const Vec<float> index = fma(ratio, kAtanSteps, where(steep, rounder + 16, rounder));
  const Vec<float> t = fma(lost, where(steep, ratio, 0), ratio - look_up(kAtanPoints, index));
  Vec<float> p = fma(look_up(kAtanPieces[2], index), t, look_up(kAtanPieces[1], index));
  p = fma(fma(p, t, look_up(kAtanPieces[0], index)), t, look_up(kAtanSlopes, index));
  const Vec<float> value = where(size < 0.5f / kAtanSteps, size, look_up(kAtanValues, index));
  return copysign(fma(where(steep, -t, t), p, value), x);
}
#endif

TW_INLINE Vec<double> atan2(Vec<double> y, Vec<double> x) {
  using T = double;
  const Vec<T> p = abs(x), q = abs(y), high = where(p > q, p, q);
  // Products and remainders of the quotient must neither overflow nor lose bits.
  const Vec<T> s = where(high > 0x1p1000, 0x1p-100, where(high < 0x1p-800, 0x1p200, 1));
  const Mask<T> infinite = isinf(p) & isinf(q), zero = high == 0;
  const Vec<T> size_x = where(infinite | zero, 1, where(isinf(p), 1, where(isinf(q), 0, p * s)));
  const Vec<T> size_y = where(infinite, 1, where(zero | isinf(p), 0, where(isinf(q), 1, q * s)));
  const Mask<T> steep = size_y > size_x;
  const Vec<T> angle =
      angle_of(where(steep, size_x, size_y), where(steep, size_y, size_x), steep, signbit(x));
  return copysign(where((x == x) & (y == y), angle, kNan), y);
}
// Beyond 2^60, below 2^-60, for two zeros and NaN in double, where nothing overflows. Numbers
// without sign are in the order of their bits, NaN above all.
TW_INLINE Vec<float> atan2(Vec<float> y, Vec<float> x) {
  using Unsigned = Vec<std::uint32_t>;
  const Unsigned p = bit_cast<std::uint32_t>(abs(x)), q = bit_cast<std::uint32_t>(abs(y));
  const Unsigned high = larger(p, q), low = smaller(p, q);
  const Unsigned most = bit_cast<std::uint32_t>(Vec<float>(0x1p60f));
  const Unsigned least = bit_cast<std::uint32_t>(Vec<float>(0x1p-60f));
  const auto wide = [=]() TW_LAMBDA_INLINE {
    return through_double(
        y, x, [](Vec<double> s, Vec<double> t) TW_LAMBDA_INLINE { return atan2(s, t); });
  };
  if constexpr (kWidened<float>) return wide();
  const Mask<float> rare = {((high - least).v > (most - least).v) | ((low - 1).v < least.v)};
  const Vec<float> size =
      angle_of(bit_cast<float>(low), bit_cast<float>(high), {(q.v > p.v)}, signbit(x));
  const Vec<float> angle = bit_cast<float>(bit_cast<std::int32_t>(size) |
                                           (bit_cast<std::int32_t>(y) & sign_bit<float>()));
  if (!any(rare)) [[likely]]
    return angle;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(rare, wide(), angle); });
}

// (asin(t) - t) / t^3 in z = t^2, |t| <= 1/2; 2^-27.6, 2^-59.7 of asin.
TW_INLINE Vec<float> asin_tail(Vec<float> z) {
  return polynomial(z, 0.16666754, 0.07495277, 0.045471452, 0.024178796, 0.0421625);
}
TW_INLINE Vec<double> asin_tail(Vec<double> z) {
  return polynomial(z, 0.1666666666666676, 0.07499999999971095, 0.044642857174224136,
                    0.03038194272950777, 0.022372214318213676, 0.017351624732641444,
                    0.013980662389073067, 0.011400238094136402, 0.01077270078341017,
                    0.0037352343200085705, 0.021636856974466507, -0.020898809490814328,
                    0.03256583927490458);
}
// Beyond 1/2, asin(x) = pi/2 - 2 asin(t) with t = sqrt((1 - x) / 2), whose rounding is made good.
template <Floating T> struct HalfAngle {
  Mask<T> large;
  Vec<T> t, rest;  // asin(t) - t
};
template <Floating T> TW_INLINE HalfAngle<T> half_angle(Vec<T> size) {
  const Mask<T> large = size > (T)0.5;
  const Vec<T> z = where(large, (1 - size) * (T)0.5, size * size);
  const Vec<T> root = sqrt(z), t = where(large, root, size);
  const Vec<T> lost = exact_fma(-root, root, z) / at_least(root + root, Format<T>::smallest_normal);
  return {large, t, fma(asin_tail(z) * z, t, where(large, lost, 0))};
}
template <Floating T> TW_INLINE Vec<T> asin(Vec<T> x) {
  TW_WIDEN(asin) {
    const Vec<T> size = abs(x);
    const auto [large, t, rest] = half_angle(size);
    const Vec<T> y = from_quarter<T>(where(large, 2, 0), where(large, -2, 1), t, rest);
    return copysign(where(size < kUnchanged<T>, size, y), x);
  }
}
template <Floating T> TW_INLINE Vec<T> acos(Vec<T> x) {
  TW_WIDEN(acos) {
    const auto [large, t, rest] = half_angle(abs(x));
    const Mask<T> below = x < 0;
    const Vec<T> k = where(large, where(below, 4, 0), 2), sign = where(below ^ large, 1, -1);
    return from_quarter(k, where(large, -2 * where(below, 1, -1), sign), t, rest);
  }
}

#ifdef TW_HAS_MASKED_ACCESS
// 2 sqrt(half_rest) for half_rest = (1 - size) / 2, almost rounded, and what it lacks as a product,
// rest half; all times `sign`, 1 or -1. Of size 1 it is 0. By R. E. Goldschmidt's step for the root
// and half its inverse from 14 bits, which is all of float32, and for float64 one with the exact
// rest: the instruction that rounds a root exactly takes 24 cycles, and then a division what it
// lacks.
template <Floating T> struct Root {
  Vec<T> root, rest, half;
};
template <int sign, Floating T> TW_INLINE Root<T> twice_root(Vec<T> size, Vec<T> half_rest) {
  const Vec<T> square = fma(size, (T)-2, (T)2), first = near_rsqrt_or_0(half_rest);
  const Vec<T> rough = (sign > 0 ? 1 - size : size - 1) * first;
  const Vec<T> quarter = first * (T)(0.25 * sign), lack = fma(-quarter, rough, (T)0.5);
  const Vec<T> near = fma(rough, lack, rough), half = fma(quarter, lack, quarter);
  const Vec<T> root = sizeof(T) == 8 ? fma(fma(-near, near, square), half, near) : near;
  return {root, fma(-root, root, square), half};
}
// m (asin(t) - t) of m t for |t| <= 1/2, z = t^2, within 2^-55.8 and 2^-27.6 of asin.
TW_INLINE Vec<double> asin_rest(Vec<double> t, Vec<double> z) {
  const Vec<double> p = by_pairs<double>(
      z, z * z, 0.166666666666654, 0.07500000000336571, 0.04464285682975012, 0.0303819590540379,
      0.022371760376735165, 0.017359666747580316, 0.013885626655740555, 0.012166596838996945,
      0.006539320472985381, 0.01949742366139942, -0.016176511462402874, 0.031880152648479196);
  return p * (t * z);
}
TW_INLINE Vec<float> asin_rest(Vec<float> t, Vec<float> z) { return asin_tail(z) * (t * z); }
// c + t + rest, with |c| >= |t| or c = 0.
template <Floating T> TW_INLINE Vec<T> turned(Vec<T> c, Vec<T> c_lo, Vec<T> t, Vec<T> rest) {
  const Vec<T> y = c + t, lost = t + (c - y);
  return y + (lost + (rest + c_lo));
}
template <Floating T> TW_INLINE Vec<T> asin_by_root(Vec<T> x) {
  constexpr T hi = 2 * QuarterPi<T>::hi, lo = 2 * QuarterPi<T>::lo;
  const Vec<T> size = abs(x);
  const Mask<T> large = size > (T)0.5;
  const Vec<T> half_rest = fma(size, (T)-0.5, (T)0.5), z = where(large, half_rest, size * size);
  const auto [root, root_rest, half] = twice_root<-1>(size, half_rest);
  const Vec<T> t = where(large, root, size), rest = asin_rest(t, z);
  const Vec<T> y = turned<T>(where(large, hi, 0), where(large, lo, 0), t,
                             where(large, fma(root_rest, half, rest), rest));
  return with_sign(y, x);
}
template <Floating T> TW_INLINE Vec<T> acos_by_root(Vec<T> x) {
  constexpr T hi = 2 * QuarterPi<T>::hi, lo = 2 * QuarterPi<T>::lo;
  const Vec<T> size = abs(x);
  const Mask<T> large = size > (T)0.5, below = x < 0;
  const Vec<T> half_rest = fma(size, (T)-0.5, (T)0.5), z = where(large, half_rest, size * size);
  const auto [root, root_rest, half] = twice_root<1>(size, half_rest);
  const Vec<T> t = where(large, with_sign(root, x), -x), rest = asin_rest(t, z);
  return turned<T>(where(large, where(below, 2 * hi, 0), hi),
                   where(large, where(below, 2 * lo, 0), lo), t,
                   where(large, fma(root_rest, with_sign(half, x), rest), rest));
}
TW_INLINE Vec<double> asin(Vec<double> x) { return asin_by_root(x); }
TW_INLINE Vec<float> asin(Vec<float> x) { return asin_by_root(x); }
TW_INLINE Vec<double> acos(Vec<double> x) { return acos_by_root(x); }
TW_INLINE Vec<float> acos(Vec<float> x) { return acos_by_root(x); }
#endif

}  // namespace
}  // namespace tw::TW_ISA_NAME
