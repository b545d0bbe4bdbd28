// Hyperbolic functions.
#pragma once
#include "core/cpu/math/exponential.h"
#include "core/cpu/math/pieces_float32.h"
#include "core/cpu/math/pieces_float64.h"

namespace tw::TW_ISA_NAME {
namespace {

// tanh(|x|) = (e^2|x| - 1) / (e^2|x| + 1), both over 2^n. Beyond 10 and 20 it is 1.
template <Floating T> TW_INLINE Pair<T> tanh_pair(Vec<T> x) {
  const auto reduced = reduce_exp(at_most(abs(x), sizeof(T) == 4 ? 10 : 20) * 2);
  const Vec<T> u = two_to(-reduced.n);
  const Pair<T> t = fast_two_sum(reduced.r, exp_rest(reduced));
  const Pair<T> less = fast_two_sum<T>(1, -u), more = fast_two_sum<T>(1, u);
  const Pair<T> n = fast_two_sum(less.hi, t.hi), d = fast_two_sum(more.hi, t.hi);
  return quotient<T>({n.hi, n.lo + (less.lo + t.lo)}, {d.hi, d.lo + (more.lo + t.lo)});
}
#ifdef TW_HAS_LANE_TABLES
TW_INLINE Vec<double> tanh(Vec<double> x) {
  const Vec<double> size = at_most(abs(x), 18.9), place = fma(size, 0.79, 1);
  const Vec<double> index = shifted_down<50>(place);
  const Vec<double> value = where(place < 1.25, size, look_up(wide::kTanhValues, index));
  const Vec<double> t = size - look_up(wide::kTanhPoints, index);
  const Vec<double> y = wide::by_pieces(t, index, value, wide::kTanhPieces);
  return copysign(where(abs(x) > 19.061547465398496, 1, y), x);  // 55 log(2) / 2: as near to 1
}
TW_INLINE Vec<float> tanh(Vec<float> x) {
  const Vec<float> size = at_most(abs(x), 10), place = size + 1, index = shifted_down<21>(place);
  const Vec<float> t = size - look_up(kTanhPoints, index);
  const Vec<float> p = pieces_slope(t, index, kTanhPieces);
  return copysign(fma(t, p, where(place < 1.25f, size, look_up(kTanhValues, index))), x);
}
#else
// One division for two ranges: from 0.96 on 1 - 2 / (1 + e^2|x|), with e^2|x| = 2^n (1 + f w) in
// the sum unrounded; below it 7 |x| / 8 and a quotient of polynomials times |x|, which is an eighth
// of the result at most.
TW_INLINE Vec<double> tanh(Vec<double> x) {
  if constexpr (!kFused) return copysign(tanh_pair(x).sum(), x);
  const Vec<double> size = abs(x), z = size * size, limited = at_most(size, 20.0);
  const Power<double> power = nearest_power(limited, 2 * kLog2e);
  const Vec<double> f = fma(limited, 2 * kLog2e, -power.n), s = add_exponent(1.0, power.bits);
  const Vec<double> w = long_polynomial(
      f, 0.6931471805599453, 0.24022650695910122, 0.05550410866482276, 0.009618129107596858,
      0.0013333558146212518, 0.00015403530454342662, 1.5252733990468957e-05, 1.321543643713284e-06,
      1.0178004365135661e-07, 7.07361248233622e-09, 4.4628258853333406e-10);
  const Vec<double> far = fma(s * f, w, s + 1);
  const Vec<double> p =
      long_polynomial(z, 491.7909316837828, -1083.1427014418634, -72.16705718265206,
                      -0.8316692403382415, -6.772312052051337e-05);
  const Vec<double> q =
      long_polynomial(z, 3934.3274534702623, 1826.39826438579, 96.44296386598198, 1.0);
  const Mask<double> near = size < 0.96;
  const Vec<double> rest = where(near, p * size, -2) / where(near, q, far);
  return with_sign(fma(where(near, size, 1), where(near, Vec<double>(0.875), 1), rest), x);
}
// In float 1 - 2 / (1 + e^2|x|) is exact enough from 1 on, with e^2|x| = 2^n (1 + f w) in the sum
// unrounded; an odd polynomial reaches so far.
TW_INLINE Vec<float> tanh(Vec<float> x) {
  using T = float;
  TW_WIDEN(tanh) {
    const Vec<T> size = abs(x), z = size * size, limited = at_most(size, 9.5f);
    const Vec<T> p = polynomial(z, -0.33333293, 0.13332292, -0.053876553, 0.021477256, -0.007932272,
                                0.0022913073, -0.00035558434);
    const Power<T> power = nearest_power(limited, 2 * kLog2e);
    const Vec<T> f = fma(limited, 2 * kLog2e, -power.n), s = add_exponent(1, power.bits);
    const Vec<T> w =
        polynomial(f, 0.6931472, 0.2402265, 0.05550358, 0.009618077, 0.0013391643, 0.00015456358);
    const Vec<T> far = 1 - 2 / fma(s * f, w, s + 1);
    return with_sign(where(size < 1, fma(p * z, size, size), far), x);
  }
}
#endif

// (cosh(r) - 1) / r^2 and (sinh(r) - r) / r^3 in z = r^2, |r| <= ln 2 / 2.
TW_INLINE Vec<float> cosh_tail(Vec<float> z) {
  return polynomial(z, 0.5, 0.041666456, 0.0013935765);
}
TW_INLINE Vec<double> cosh_tail(Vec<double> z) {
  return polynomial(z, 0.5, 0.041666666666666685, 0.0013888888888873312, 2.480158734909387e-05,
                    2.7557251951722543e-07, 2.0921718252410412e-09);
}
TW_INLINE Vec<float> sinh_tail(Vec<float> z) {
  return polynomial(z, 0.16666667, 0.008333192, 0.00019958471);
}
TW_INLINE Vec<double> sinh_tail(Vec<double> z) {
  return polynomial(z, 0.16666666666666666, 0.008333333333334214, 0.0001984126983833089,
                    2.7557323685998165e-06, 2.5048944519867226e-08, 1.6919423287994507e-10);
}

// With |x| = n ln 2 + r + low, a = cosh(n ln 2) / 2 and b = sinh(n ln 2) / 2, which 2^n and 2^-n
// give: cosh(x) / 2 = a cosh(r) + b sinh(r) and sinh(x) / 2 = b cosh(r) + a sinh(r).
template <Floating T> struct HyperbolicSum {
  Pair<T> a, b;
  Vec<T> r, cosh_rest, sinh_rest;  // cosh(r) - 1, sinh(r) - r + low
};
template <Floating T> TW_INLINE HyperbolicSum<T> hyperbolic_sum(Vec<T> size) {
  // Powers of two by their bits; where the one below would leave the normal range it is 0.
  constexpr T lowered = Format<T>::bias - 2;
  constexpr auto both = (IntLike<T>)(2 * lowered) << Format<T>::mantissa_bits;
  const auto [shifted, r, low] =
      reduce_exp_shifted<T>(at_most(size, ExpLimits<T>::highest + (T)0.5), lowered);
  const Bits<T> up_bits = power_bits(shifted), down_bits = both - up_bits;
  const Vec<T> z = r * r, up = bit_cast<T>(up_bits);
  const Vec<T> down = bit_cast<T>(at_least(down_bits, 0)), less = up - down;
  return {fast_two_sum(up, down),
          {less, (up - less) - down},
          r,
          z * cosh_tail(z),
          fma(r * z, sinh_tail(z), low)};
}
// The larger summand is last, so that of the others' roundings a half at most counts.
template <Floating T> TW_INLINE Vec<T> cosh(Vec<T> x) {
  TW_WIDEN(cosh) {
    const auto [a, b, r, c, s] = hyperbolic_sum(abs(x));
    return (a.hi + exact_fma(b.hi, r, fma(b.hi, s, fma(a.hi, c, a.lo)))) * 2;
  }
}
template <Floating T> TW_INLINE Vec<T> sinh(Vec<T> x) {
  TW_WIDEN(sinh) {
    const auto [a, b, r, c, s] = hyperbolic_sum(abs(x));
    const Vec<T> low = fma(a.hi, s, fma(b.hi, c, fma(a.lo, r, b.lo)));
    const Vec<T> y = (b.hi + exact_fma(a.hi, r, low)) * 2;
    return with_sign(where(abs(x) < kUnchanged<T>, x, y), x);
  }
}
#ifdef TW_HAS_LANE_TABLES
// |x| = k log(2) / 32 + r + low, and half of 2^(k / 32) and of its inverse: their sum is the
// multiple's cosh, their difference its sinh. Up to 86.
struct HyperbolicPowers {
  Vec<float> index, minus_k, r, up, down;
};
inline constexpr float kHyperbolicMost = 86;
TW_INLINE HyperbolicPowers hyperbolic_powers(Vec<float> size) {
  constexpr float halved = Format<float>::rounder - 32;
  const Vec<float> index = fma(size, kPowSteps, halved), minus_k = halved - index;
  const Bits<float> power = Bits<float>(bit_cast<std::int32_t>(index).v << 18);
  return {index, minus_k, fma(minus_k, kPowStep, size),
          bit_cast<float>(bit_cast<std::int32_t>(look_up(kPowBits, index)) + power),
          bit_cast<float>(bit_cast<std::int32_t>(look_up(kPowDownBits, index)) - power)};
}
// |r| is at most 1 / 90: cosh(r) = 1 + r^2 / 2 and sinh(r) = r + r^3 / 6. What `down` and its
// product lack is left out, at most 0.32 ulp.
TW_INLINE Vec<float> cosh(Vec<float> x) {
  using T = float;
  const Vec<T> size = abs(x);
  const auto [index, minus_k, r, up, down] = hyperbolic_powers(size);
  const Vec<T> a = up + down, b = up - down, lost = (up - a) + down, z = r * r;
  const Vec<T> low = fma(minus_k, kPowStepLow, look_up(kPowRests, index));
  const Vec<T> s = fma(r * z, 1.0f / 6, low) + r;
  const Vec<T> y = a + fma(b, s, fma(a * z, 0.5f, lost));
  if (!any_not_below(size, kHyperbolicMost)) [[likely]]
    return y;
  return out_of_line([=]()
                         TW_LAMBDA_INLINE { return where(size < kHyperbolicMost, y, cosh<T>(x)); });
}
// head = b + a r, what its parts lack, and a (r^3 / 6 + low) + b r^2 / 2 = r^2 (head / 6 + b / 3) +
// a low.
TW_INLINE Vec<float> sinh(Vec<float> x) {
  using T = float;
  const Vec<T> size = abs(x);
  const auto [index, minus_k, r, up, down] = hyperbolic_powers(size);
  const Vec<T> a = up + down, b = up - down, head = fma(a, r, b), z = r * r;
  const Vec<T> lacks = fma(-down, look_up(kPowDownRests, index), (up - b) - down);
  const Vec<T> lost = fma(a, r, b - head) + fma(up, look_up(kPowRests, index), lacks);
  const Vec<T> rest =
      fma(z, fma(head, 1.0f / 6, b * (1.0f / 3)), fma(a, minus_k * kPowStepLow, lost));
  const Vec<T> y = with_sign(head + rest, x);
  if (!any_not_below(size, kHyperbolicMost)) [[likely]]
    return y;
  return out_of_line([=]()
                         TW_LAMBDA_INLINE { return where(size < kHyperbolicMost, y, sinh<T>(x)); });
}
#endif

}  // namespace
}  // namespace tw::TW_ISA_NAME
