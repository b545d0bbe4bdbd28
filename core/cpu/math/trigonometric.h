// Sine, cosine, tangent and their inverses. Errors are stated as in exponential.h.
#pragma once
#include "core/cpu/math/basic.h"

namespace tw::TW_ISA_NAME {
namespace {

inline constexpr double kTwoOverPi = 0.6366197723675814;
inline constexpr double kHalfPi = 1.5707963267948966, kPi = 3.141592653589793;
inline constexpr float kHalfPiLowFloat = -4.37113883e-8f;  // pi/2 - float(pi/2)

// x = quadrant pi/2 + r. The quadrant's low two bits are right, |r| <= 0.8.
template <Floating T> struct Angle {
  Bits<T> quadrant;
  Vec<T> r;
};
// Cody and Waite's reduction with pi/2 in parts of 33 bits, which a quadrant below 2^20 multiplies
// without rounding. Without fused multiply-add, floats are reduced in double by two parts.
template <Floating T> inline constexpr T kReducible = sizeof(T) == 4 ? 0x1p17 : 0x1p20;
inline constexpr double kHalfPi1 = 0x1.921fb544p0, kHalfPi2 = 0x1.0b4611a6p-34,
                        kHalfPi3 = 0x1.3198a2e037073p-69, kHalfPiRest = 0x1.0b4611a626331p-34;
inline constexpr float kHalfPiA = 0x1.921fb6p0f, kHalfPiB = -0x1.777a5cp-25f,
                       kHalfPiC = -0x1.ee59dap-50f;

TW_INLINE Angle<float> reduce_angle(Vec<float> x) {
  const Vec<float> shifted = x * kTwoOverPi + Format<float>::rounder;
  const Vec<float> n = shifted - Format<float>::rounder;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  // Relies on -ffp-contract=fast: a fused product needs no short parts.
  const Vec<float> r = ((x - n * kHalfPiA) - n * kHalfPiB) - n * kHalfPiC;
#else
  const Vec<float> r = through_double(x, n, [](Vec<double> t, Vec<double> m) TW_LAMBDA_INLINE {
    return (t - m * kHalfPi1) - m * kHalfPiRest;
  });
#endif
  return {bit_cast<std::int32_t>(shifted), r};
}
TW_INLINE Angle<double> reduce_angle(Vec<double> x) {
  const Vec<double> shifted = x * kTwoOverPi + Format<double>::rounder;
  const Vec<double> n = shifted - Format<double>::rounder;
  const Vec<double> r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
  return {bit_cast<std::int64_t>(shifted), r};
}

// For |r| <= 0.8; polynomials good to 2^-27.7 and 2^-32 of the result, 2^-57 and 2^-63 in double.
TW_INLINE Vec<float> sin_reduced(Vec<float> r) {
  const Vec<float> z = r * r;
  return polynomial(z, -0.166666538, 0.00833209511, -0.0001950554) * z * r + r;
}
TW_INLINE Vec<float> cos_reduced(Vec<float> r) {
  const Vec<float> z = r * r;
  return polynomial(z, 0.0416666418, -0.00138871302, 2.44120856e-05) * (z * z) + (1 - z * 0.5f);
}
TW_INLINE Vec<double> sin_reduced(Vec<double> r) {
  const Vec<double> z = r * r;
  return polynomial(z, -0.16666666666666666, 0.00833333333333305, -0.0001984126984098033,
                    2.7557319086656483e-06, -2.505207496396944e-08, 1.6054905808078692e-10,
                    -7.422265376697687e-13) *
             z * r +
         r;
}
TW_INLINE Vec<double> cos_reduced(Vec<double> r) {
  const Vec<double> z = r * r, half = z * 0.5, head = 1 - half;
  const Vec<double> p =
      polynomial(z, 0.041666666666666574, -0.0013888888888869768, 2.480158728677984e-05,
                 -2.7557313576473926e-07, 2.087561844037236e-09, -1.1354251666373761e-11);
  return head + (((1 - head) - half) + p * (z * z));
}

// sin(x + turns pi/2), turns 0 or 1.
template <Floating T> TW_INLINE Vec<T> sin_turned(Vec<T> x, IntLike<T> turns) {
  const Angle<T> angle = reduce_angle(x);
  const Bits<T> q = angle.quadrant + turns;
  const Vec<T> s = sin_reduced(angle.r), c = cos_reduced(angle.r);
  const Mask<T> odd = {(q & 1).v != 0};
  const Bits<T> flip = Bits<T>(q.v << (8 * (int)sizeof(T) - 2)) & sign_bit<T>();
  return bit_cast<T>(bit_cast<IntLike<T>>(where(odd, c, s)) ^ flip);
}
template <Floating T> TW_INLINE Mask<T> irreducible(Vec<T> x) { return !(abs(x) <= kReducible<T>); }

// 1.6, 1.4 ulp.
template <Floating T> TW_INLINE Vec<T> sin(Vec<T> x) {
  const Vec<T> y = where(abs(x) < Format<T>::smallest_normal, x, sin_turned(x, 0));
  if (!any(irreducible(x))) [[likely]]
    return y;
  return replace_lanes(y, irreducible(x), x, [](T t) { return (T)__builtin_sin(t); });
}
// 1.6, 1.7 ulp.
template <Floating T> TW_INLINE Vec<T> cos(Vec<T> x) {
  const Vec<T> y = sin_turned(x, 1);
  if (!any(irreducible(x))) [[likely]]
    return y;
  return replace_lanes(y, irreducible(x), x, [](T t) { return (T)__builtin_cos(t); });
}
// In double throughout: a quotient of two rounded floats would be off by 3 ulp.
// 0.6 ulp.
TW_INLINE Vec<float> tan(Vec<float> x) {
  const Vec<float> quotient = through_double(x, [](Vec<double> t) TW_LAMBDA_INLINE {
    const Angle<double> angle = reduce_angle(t);
    const Vec<double> z = angle.r * angle.r;
    const Vec<double> s =
        polynomial(z, -0.166666538, 0.00833209511, -0.0001950554) * z * angle.r + angle.r;
    const Vec<double> c =
        polynomial(z, 0.0416666418, -0.00138871302, 2.44120856e-05) * (z * z) + (1 - z * 0.5);
    const Mask<double> odd = {(angle.quadrant & 1).v != 0};
    return where(odd, -c, s) / where(odd, s, c);
  });
  const Vec<float> y = where(abs(x) < Format<float>::smallest_normal, x, quotient);
  if (!any(irreducible(x))) [[likely]]
    return y;
  return replace_lanes(y, irreducible(x), x, [](float t) { return (float)__builtin_tan(t); });
}

// atan for 0 <= t <= 1.
TW_INLINE Vec<float> atan_unit(Vec<float> t) {
  const Vec<float> z = t * t;
  return polynomial(z, -0.333332986, 0.199985296, -0.142640159, 0.109508783, -0.0839928538,
                    0.0578806438, -0.0310957152, 0.0108676478, -0.00178249436) *
             z * t +
         t;
}
// 1.5 ulp.
TW_INLINE Vec<float> atan(Vec<float> x) {
  const Vec<float> size = abs(x);
  const Mask<float> large = size > 1;
  const Vec<float> y = atan_unit(where(large, 1 / size, size));
  return copysign(where(large, kHalfPi - (y - kHalfPiLowFloat), y), x);
}
// 1.5 ulp.
TW_INLINE Vec<float> atan2(Vec<float> y, Vec<float> x) {
  const Vec<float> p = abs(x), q = abs(y), low = minimum(p, q), high = maximum(p, q);
  const Vec<float> slope = where(low == high, where(high == 0, 0, 1), low / high);
  const Vec<float> octant = atan_unit(slope);
  const Vec<float> quadrant = where(q > p, kHalfPi - (octant - kHalfPiLowFloat), octant);
  const Vec<float> half = where(signbit(x), kPi - (quadrant - 2 * kHalfPiLowFloat), quadrant);
  return copysign(where((x == x) & (y == y), half, kNan), y);
}

// asin(t) - t for 0 <= t <= 1/2, z = t^2.
TW_INLINE Vec<float> asin_tail(Vec<float> t, Vec<float> z) {
  const Vec<float> p =
      polynomial(z, 0.166667551, 0.0749518126, 0.0454862677, 0.0240952801, 0.0423183516);
  return p * z * t;
}
// Beyond 1/2, asin(x) = pi/2 - 2 asin(t) with t = sqrt((1 - x) / 2). pi/2 - 2 t comes first, as it
// is exact up to asin(x) = 1. 2.1 ulp.
TW_INLINE Vec<float> asin(Vec<float> x) {
  const Vec<float> size = abs(x), rest = (1 - size) * 0.5f;
  const Mask<float> large = size > 0.5f;
  const Vec<float> t = where(large, sqrt(rest), size);
  const Vec<float> tail = asin_tail(t, where(large, rest, size * size));
  const Vec<float> outer = (kHalfPi - 2 * t) - (2 * tail - kHalfPiLowFloat);
  return copysign(where(large, outer, t + tail), x);
}
// 1.2 ulp.
TW_INLINE Vec<float> acos(Vec<float> x) {
  const Vec<float> size = abs(x), rest = (1 - size) * 0.5f;
  const Mask<float> large = size > 0.5f;
  const Vec<float> t = where(large, sqrt(rest), size);
  const Vec<float> y = t + asin_tail(t, where(large, rest, size * size));
  const Vec<float> outer = where(x < 0, kPi - (2 * y - 2 * kHalfPiLowFloat), 2 * y);
  return where(large, outer, kHalfPi - (copysign(y, x) - kHalfPiLowFloat));
}

#define TW_LIBM(name)                                                       \
  TW_INLINE Vec<double> name(Vec<double> x) {                               \
    return call_each_lane(x, [](double t) { return __builtin_##name(t); }); \
  }
TW_LIBM(tan)
TW_LIBM(asin)
TW_LIBM(acos)
TW_LIBM(atan)
#undef TW_LIBM
TW_INLINE Vec<double> atan2(Vec<double> y, Vec<double> x) {
  return call_each_lane(y, x, [](double s, double t) { return __builtin_atan2(s, t); });
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
