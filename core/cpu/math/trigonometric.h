// Sine, cosine and tangent.
#pragma once
#include "core/cpu/math/basic.h"
#include "core/cpu/math/tables_float32.h"
#include "core/cpu/math/double_word.h"
#include "core/cpu/math/tables_float64.h"

namespace tw::TW_ISA_NAME {
namespace {

inline constexpr double kTwoOverPi = 0.6366197723675814, kHalfPi = 1.5707963267948966;

// x = quadrant pi/2 + r + low. The quadrant's low two bits are right, |r| <= 0.8.
template <Floating T> struct Angle {
  Bits<T> quadrant;
  Vec<T> r, low;
};
// Cody and Waite's reduction. float takes pi/2 in parts of 24 bits by fused multiply-add, whose
// first difference is exact as its last bit is 2^-23 at least; double in parts of 33 bits, which a
// quadrant below 2^20 multiplies without rounding; from 2^18 on the third part has too few bits for
// numbers that lie very near a multiple (413441.447: cos erred by 1.06 ulp, tan by 2.2).
template <Floating T> inline constexpr T kReducible = 0x1p17;
inline constexpr double kHalfPi1 = 0x1.921fb544p0, kHalfPi2 = 0x1.0b4611a6p-34,
                        kHalfPi3 = 0x1.3198a2e037073p-69;
inline constexpr float kHalfPiA = 0x1.921fb6p0f, kHalfPiB = -0x1.777a5cp-25f,
                       kHalfPiC = -0x1.ee59dap-50f;

TW_INLINE Angle<float> reduce_angle(Vec<float> x) {
  const Vec<float> shifted = fma(x, kTwoOverPi, Format<float>::rounder);
  const Vec<float> n = shifted - Format<float>::rounder;
  const Vec<float> near = fma(n, -kHalfPiA, x), r = near - n * kHalfPiB;
  // near - r is exact; the fused product finds what the rounded one lost.
  return {bit_cast<std::int32_t>(shifted), r, fma(n, -kHalfPiC, fma(n, -kHalfPiB, near - r))};
}
TW_INLINE Angle<double> reduce_angle(Vec<double> x) {
  const Vec<double> shifted = fma(x, kTwoOverPi, Format<double>::rounder);
  const Vec<double> n = shifted - Format<double>::rounder;
  const Vec<double> near = fma(n, -kHalfPi1, x), middle = n * kHalfPi2, r = near - middle;
  const Pair<double> sum = fast_two_sum(r, fma(n, -kHalfPi3, (near - r) - middle));
  return {bit_cast<std::int64_t>(shifted), sum.hi, sum.lo};
}

// sin(r) = r + r z p(z) and cos(r) = 1 - z / 2 + z^2 q(z), z = r^2, for |r| <= 0.8; good to 2^-27.7
// and 2^-32 of the result, 2^-57 and 2^-63 in double.
TW_INLINE Vec<float> sin_tail(Vec<float> z) {
  return polynomial(z, -0.166666538, 0.00833209511, -0.0001950554);
}
TW_INLINE Vec<float> cos_tail(Vec<float> z) {
  return polynomial(z, 0.0416666418, -0.00138871302, 2.44120856e-05);
}
TW_INLINE Vec<double> sin_tail(Vec<double> z) {
  return polynomial(z, -0.16666666666666666, 0.00833333333333305, -0.0001984126984098033,
                    2.7557319086656483e-06, -2.505207496396944e-08, 1.6054905808078692e-10,
                    -7.422265376697687e-13);
}
TW_INLINE Vec<double> cos_tail(Vec<double> z) {
  return polynomial(z, 0.041666666666666574, -0.0013888888888869768, 2.480158728677984e-05,
                    -2.7557313576473926e-07, 2.087561844037236e-09, -1.1354251666373761e-11);
}
// Sine and cosine of r + low, |lo| below a fifth of |hi|.
template <Floating T> struct SineCosine {
  Pair<T> sine, cosine;
};
template <Floating T> TW_INLINE SineCosine<T> sine_cosine(const Angle<T>& angle) {
  const auto [quadrant, r, low] = angle;
  const Vec<T> z = r * r, head = fma(z, (T)-0.5, 1);
  const Vec<T> sine_rest = fma(sin_tail(z) * z, r, low * head);
  const Vec<T> lost = fma(-r, low, fma(z, (T)-0.5, 1 - head));
  return {{r, sine_rest}, {head, fma(cos_tail(z), z * z, lost)}};
}

// sin(x + turns pi/2), turns 0 or 1.
template <Floating T> TW_INLINE Vec<T> sin_turned(Vec<T> x, IntLike<T> turns) {
  const Angle<T> angle = reduce_angle(x);
  const Bits<T> q = angle.quadrant + turns;
  const auto [s, c] = sine_cosine(angle);
  const Mask<T> odd = {(q & 1).v != 0};
  const Bits<T> flip = Bits<T>(q.v << (8 * (int)sizeof(T) - 2)) & sign_bit<T>();
  const Vec<T> y = where(odd, c.hi, s.hi) + where(odd, c.lo, s.lo);
  return bit_cast<T>(bit_cast<IntLike<T>>(y) ^ flip);
}
template <Floating T> TW_INLINE Mask<T> irreducible(Vec<T> x) { return !(abs(x) <= kReducible<T>); }

template <Floating T> TW_INLINE Vec<T> sin(Vec<T> x) {
  TW_WIDEN(sin) {
    const Vec<T> y = where(abs(x) < Format<T>::smallest_normal, x, sin_turned(x, 0));
    if (!any_not_below(abs(x), kReducible<T>)) [[likely]]
      return y;
    return replace_lanes(y, irreducible(x), x, [](T t) { return (T)__builtin_sin(t); });
  }
}
template <Floating T> TW_INLINE Vec<T> cos(Vec<T> x) {
  TW_WIDEN(cos) {
    const Vec<T> y = sin_turned(x, 1);
    if (!any_not_below(abs(x), kReducible<T>)) [[likely]]
      return y;
    return replace_lanes(y, irreducible(x), x, [](T t) { return (T)__builtin_cos(t); });
  }
}
template <Floating T> TW_INLINE Vec<T> tan_by_quotient(Vec<T> x) {
  TW_WIDEN(tan_by_quotient) {
    const Angle<T> angle = reduce_angle(x);
    const auto parts = sine_cosine(angle);
    const Vec<T> square_lo = two_product(angle.r, angle.r).lo;
    const Pair<T> s = fast_two_sum(parts.sine.hi, parts.sine.lo);
    const Pair<T> c = fast_two_sum(parts.cosine.hi, fma(square_lo, (T)-0.5, parts.cosine.lo));
    const Mask<T> odd = {(angle.quadrant & 1).v != 0};
    const Vec<T> slope = ratio<T>({where(odd, -c.hi, s.hi), where(odd, -c.lo, s.lo)},
                                  {where(odd, s.hi, c.hi), where(odd, s.lo, c.lo)});
    const Vec<T> y = where(abs(x) < kUnchanged<T>, x, slope);
    if (!any_not_below(abs(x), kReducible<T>)) [[likely]]
      return y;
    return replace_lanes(y, irreducible(x), x, [](T t) { return (T)__builtin_tan(t); });
  }
}
template <Floating T> TW_INLINE Vec<T> tan(Vec<T> x) { return tan_by_quotient(x); }
#ifdef TW_HAS_LANE_TABLES
// x = k pi / 16 + r - minus_low. k + more stands in the low bits of `index`.
template <Floating T> struct Sixteenths {
  Vec<T> index, r, minus_low;
};
// pi / 2 in three parts, the first of 23 bits, so that its multiples are taken from x without
// error.
TW_INLINE Sixteenths<float> reduce_sixteenths(Vec<float> x) {
  constexpr float half_pi_1 = 0x1.921fb4p0f, half_pi_2 = 0x1.4442d2p-24f;
  constexpr float half_pi_3 = -0x1.ee59dap-50f, rounder = Format<float>::rounder;
  const Vec<float> index = fma(x, 5.0929582f, rounder), k = index - rounder;
  const Vec<float> near = fma(k, -half_pi_1 / 8, x), r = near - k * (half_pi_2 / 8);
  // near - r is exact; the fused product finds what the rounded one lost.
  return {index, r, fma(k, half_pi_3 / 8, fma(k, half_pi_2 / 8, r - near))};
}
TW_INLINE Sixteenths<double> reduce_sixteenths(Vec<double> x, double more) {
  const double rounder = Format<double>::rounder + more;
  const Vec<double> index = fma(x, 5.092958178940651, rounder), k = index - rounder;
  const Vec<double> near = fma(k, -kHalfPi1 / 8, x), middle = k * (kHalfPi2 / 8);
  const Vec<double> r = near - middle;
  return {index, r, fma(k, kHalfPi3 / 8, middle - (near - r))};
}
// With S and C the sine and cosine of the multiple of pi / 16, S + C r, and what that loses and C
// (sin(r) - r) + S (cos(r) - 1) add. A zero has the sign of S + C r, as what is taken off is +0.
TW_INLINE Vec<double> wide_sine(const Sixteenths<double>& x) {
  using T = double;
  const auto& [index, r, minus_low] = x;
  const Vec<T> s = look_up(wide::kSines, index), c = look_up(wide::kCosines, index);
  const Vec<T> z = r * r;
  Vec<T> of_r = fma(z, -2.7551679116713812e-06, 0.0001984126941388732);
  of_r = fma(z, fma(z, of_r, -0.008333333333321204), 0.16666666666666666);
  Vec<T> of_1 = fma(z, -2.479510448765871e-05, 0.0013888888363240905);
  of_1 = fma(z, fma(z, of_1, -0.041666666666498764), 0.49999999999999983);
  const Vec<T> y = fma(c, r, s), lost = fma(-c, r, y - s);
  const Vec<T> less =
      fma(c, fma(r * z, of_r, minus_low), fma(s, z * of_1, -look_up(wide::kSineLows, index)));
  const Bits<T> flip = Bits<T>(bit_cast<std::int64_t>(index).v << 59) & sign_bit<T>();
  return bit_cast<T>(bit_cast<std::int64_t>(y - (lost + less)) ^ flip);
}
TW_INLINE Vec<double> sin(Vec<double> x) {
  const Vec<double> y = wide_sine(reduce_sixteenths(x, 0));
  if (!any_not_below(abs(x), kReducible<double>)) [[likely]]
    return y;
  return replace_lanes(y, irreducible(x), x, [](double t) { return __builtin_sin(t); });
}
TW_INLINE Vec<double> cos(Vec<double> x) {
  const Vec<double> y = wide_sine(reduce_sixteenths(x, 8));
  if (!any_not_below(abs(x), kReducible<double>)) [[likely]]
    return y;
  return replace_lanes(y, irreducible(x), x, [](double t) { return __builtin_cos(t); });
}
// x = k pi / 16 + r, tan(k pi / 16) = p / q and t = tan(r): (p + q t) / (q - p t). Where k = 0, p
// is -0.0, so that a zero keeps its sign.
TW_INLINE Vec<double> tan(Vec<double> x) {
  using T = double;
  const auto [index, r, minus_low] = reduce_sixteenths(x, 0);
  const Vec<T> z = r * r;
  Vec<T> tail = fma(z, 0.008966485171560618, 0.02186838905022815);
  tail = fma(z, fma(z, tail, 0.0539682592835421), 0.13333333332209735);
  tail = fma(z, tail, 0.3333333333333411);
  const Pair<T> t = fast_two_sum(r, fma(r * z, tail, -minus_low));
  const Vec<T> p = look_up(wide::kTanNumerators, index), q = look_up(wide::kTanDenominators, index);
  const Vec<T> n = fma(q, t.hi, p), n_low = fma(q, t.lo, fma(q, t.hi, p - n));
  const Vec<T> d = fma(-p, t.hi, q), d_low = fma(-p, t.lo, fma(-p, t.hi, q - d));
  const Vec<T> y = near_ratio({n, n_low}, {d, d_low});
  if (!any_not_below(abs(x), kReducible<double>)) [[likely]]
    return y;
  return replace_lanes(y, irreducible(x), x, [](double t) { return __builtin_tan(t); });
}
// The same in float. Beyond 2^13 an index may be one off.
inline constexpr float kTanReducible = 0x1p13f;
TW_INLINE Vec<float> tan(Vec<float> x) {
  using T = float;
  const auto [index, r, minus_low] = reduce_sixteenths(x);
  const Vec<T> z = r * r, tail = fma(z, 0.13406348f, 0.33333114f);
  const Pair<T> t = fast_two_sum(r, fma(r * z, tail, -minus_low));
  const Vec<T> p = look_up(kTanNumerators, index), q = look_up(kTanDenominators, index);
  const Vec<T> n = fma(q, t.hi, p), n_low = fma(q, t.lo, fma(q, t.hi, p - n));
  const Vec<T> d = fma(-p, t.hi, q), d_low = fma(-p, t.lo, fma(-p, t.hi, q - d));
  const Vec<T> inverse = near_reciprocal(d), near = n * inverse;
  // Less the remainder, so that -0.0 keeps its sign.
  const Vec<T> y = fma(-(fma(near, d, -n) + fma(near, d_low, -n_low)), inverse, near);
  const Vec<T> size = abs(x);
  if (!any_not_below(size, kTanReducible)) [[likely]]
    return y;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(size < kTanReducible, y, tan_by_quotient(x)); });
}
#endif

}  // namespace
}  // namespace tw::TW_ISA_NAME
