// Activations of neural networks whose simple formulas would round too often.
#pragma once
#include "core/cpu/math/error_function.h"
#include "core/cpu/math/hyperbolic.h"
#include "core/cpu/math/logarithm.h"

namespace tw::TW_ISA_NAME {
namespace {

// x sigmoid(u): x itself from u = 64 on, NaN at -infinity.
TW_INLINE Vec<double> times_sigmoid(Vec<double> x, Pair<double> u) {
  const Logistic<double> parts = logistic(u);
  const Mask<double> below = x < 0;
  const Vec<double> limited = at_least(x, 2 * ExpLimits<double>::lowest);
  const Pair<double> product = two_product(limited, parts.p.hi);
  const Pair<double> numerator = {where(below, product.hi, x),
                                  where(below, fma(limited, parts.p.lo, product.lo), 0)};
  const Vec<double> y = scale(ratio(numerator, parts.sum), where(below, parts.n, 0));
  return where((u.hi > 64) | (x == 0), x, where(x == -kInfinity, kNan, y));
}
// For float, x times a share that is 1 minus itself at -x: y 2^n is -|x| times the share at -|x|,
// to which the rest of x is added where x > 0.
TW_INLINE Vec<float> mirrored(Vec<float> x, Vec<float> y, Power<float> power) {
  return where(x == -kInfinity, kNan, scale_down(y, power) + at_least(x, -0.0));
}
TW_INLINE Vec<float> times_sigmoid(Vec<float> x, Vec<float> v, const FloatExp& e) {
  const FloatLogistic s = float_logistic(e);
  return mirrored(x, fma(v, s.y, v * s.rest), s.power);
}
// Where |x| times a share below e^-|x| is 0 in float.
inline constexpr float kShareless = -120;

#ifdef TW_HAS_LANE_TABLES
TW_INLINE Vec<double> silu(Vec<double> x) {
  const WideLogistic share = wide_logistic(x);
  const Pair<double> product = two_product(x, share.n.hi);
  const Vec<double> y = ratio<double>({product.hi, fma(x, share.n.lo, product.lo)}, share.d);
  const Vec<double> v = minus_abs(x);
  if (!any_below(v, kWideLogisticFrom)) [[likely]]
    return y;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(v < kWideLogisticFrom, times_sigmoid(x, {x, 0}), y); });
}
#else
TW_INLINE Vec<double> silu(Vec<double> x) {
  if constexpr (!kFused) return times_sigmoid(x, {x, 0});
  // x / (d + lost), less what the division lacks, so that -0.0 keeps its sign.
  constexpr double largest = -kWideDivisorFrom;
  const auto [d, lost] = wide_divisor(x);
  const Vec<double> inverse = 1 / d, q = x * inverse;
  const Vec<double> y = fma(-fma(q, lost, fma(q, d, -x)), inverse, q);
  if (!any_above(abs(x), largest)) [[likely]]
    return y;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(abs(x) <= largest, y, times_sigmoid(x, {x, 0})); });
}
#endif
TW_INLINE Vec<float> silu_by_exp(Vec<float> x) {
  const Vec<float> v = at_least(minus_abs(x), kShareless);
  return times_sigmoid(x, v, float_exp(v));
}
TW_INLINE Vec<float> silu(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(t / (1 + exp(-t))) {
#ifdef TW_HAS_LANE_TABLES
    const Vec<T> v = minus_abs(x), index = logistic_index(v, kSiluSteps);
    const Vec<T> t = v - look_up(kSiluPoints, index);
    const Vec<T> rest = where(v > kSiluHalves, x * 0.5f, at_least(x, -0.0));
    const Vec<T> y = copysign(by_pieces(t, index, kSiluValues, kSiluPieces) + rest, x);  // of 0
    if (!any_below(v, kLogisticFrom)) [[likely]]
      return y;
    return out_of_line(
        [=]() TW_LAMBDA_INLINE { return where(v < kLogisticFrom, silu_by_exp(x), y); });
#else
    // x / (d + lost), less what the division lacks, so that -0.0 keeps its sign.
    const auto [d, lost] = logistic_divisor(x);
    const Vec<T> q = x / d, more = fma(q, lost, fma(q, d, -x));
    const Vec<T> y = fma(-more, rough_reciprocal(d), q);
    if (!any_larger(x, 86)) [[likely]]
      return y;
    return out_of_line([=]() TW_LAMBDA_INLINE { return where(abs(x) <= 86, y, silu_by_exp(x)); });
#endif
  }
}

// The logistic function once: its rare lanes keep the compiler from sharing two. At the infinities
// the limits, 0 and 1.
template <Floating T> TW_INLINE Vec<T> silu_slope(Vec<T> x) {
  const Vec<T> s = sigmoid(x), finite = at_most(at_least(x, (T)-1000), (T)1000);
  return s * fma(finite, 1 - s, 1);
}
#ifndef TW_HAS_LANE_TABLES
// With e = e^-x and s = 1 / (1 + e) it is s + x e s s, where x e is finite. Beyond that it is 1, or
// e^x (1 + x).
template <Floating T> TW_INLINE Vec<T> silu_slope_by_exp(Vec<T> x, Vec<T> e) {
  const Vec<T> s = 1 / (e + 1);
  return fma(x * e * s, s, s);
}
template <Floating T> TW_INLINE Vec<T> far_silu_slope(Vec<T> x) {
  return where(x > 0, 1, exp(x) * (1 + at_least(x, (T)-1000)));
}
TW_INLINE Vec<float> silu_slope(Vec<float> x) {
  using T = float;
  TW_WIDEN(silu_slope) {
    constexpr T largest = 84;
    const FloatExp p = float_exp(-x);
    const Vec<T> y = silu_slope_by_exp(x, add_exponent(p.p, p.power.bits));
    if (!any_larger(x, largest)) [[likely]]
      return y;
    return out_of_line(
        [=]() TW_LAMBDA_INLINE { return where(abs(x) <= largest, y, far_silu_slope(x)); });
  }
}
TW_INLINE Vec<double> silu_slope(Vec<double> x) {
  if constexpr (!kFused) return silu_slope<double>(x);
  using Limits = ExpLimits<double>;
  constexpr double largest = 700;
  const Power<double> power = nearest_power(x, -kLog2e);
  const Vec<double> r = fma(power.n, -Limits::ln2_lo, fma(power.n, -Limits::ln2_hi, -x));
  const Vec<double> e = add_exponent(fma(fma(exp_short_tail(r), r, 1), r, 1), power.bits);
  const Vec<double> y = silu_slope_by_exp(x, e);
  if (!any_above(abs(x), largest)) [[likely]]
    return y;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(abs(x) > largest, far_silu_slope(x), y); });
}
#endif

// x (slope + cubic x^2) in two parts, slope = sqrt(8 / pi) and cubic = 0.044715 slope; |x| <= 32.
inline constexpr double kTanhSlope = 1.5957691216057308, kTanhCubic = 0.07135481627260025;
template <Floating T> TW_INLINE Pair<T> tanh_argument(Vec<T> x) {
  constexpr double slope_rest = -9.96930880911092e-17, cubic_rest = -6.175149918155315e-19;
  // Of so few bits that its difference from k is exact.
  constexpr T slope_hi = sizeof(T) == 4 ? (T)0x1.9884p0 : (T)0x1.9884533d4p0;
  constexpr T slope_lo = (T)((kTanhSlope - slope_hi) + slope_rest);
  constexpr T cubic_hi = (T)kTanhCubic, cubic_lo = (T)((kTanhCubic - cubic_hi) + cubic_rest);
  const Pair<T> z = two_product(x, x);
  const Vec<T> k = exact_fma(z.hi, cubic_hi, slope_hi), u = x * k;
  const Vec<T> k_lo =
      exact_fma(z.hi, cubic_hi, slope_hi - k) + fma(z.hi, cubic_lo, fma(z.lo, cubic_hi, slope_lo));
  return {u, fma(x, k_lo, exact_fma(x, k, -u))};
}
// x sigmoid(2 c (x + 0.044715 x^3)), c = sqrt(2 / pi), which is the form with tanh.
TW_INLINE Vec<double> gelu_tanh(Vec<double> x) {
  return times_sigmoid(x, tanh_argument(clamp(x, -32.0, 32.0)));
}
TW_INLINE Vec<float> gelu_tanh(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(t / (1 + exp(-t * (kTanhSlope + at_most(t * t, 1000.0) * kTanhCubic)))) {
    const Vec<T> v = at_least(minus_abs(x), -12);
    const Pair<T> u = tanh_argument(v);
    return times_sigmoid(x, v, float_exp(u.hi, u.lo));
  }
}
// min(x, 0) - log(1 + e^-|x|).
template <Floating T> TW_INLINE Vec<T> logsigmoid(Vec<T> x) {
  TW_WIDEN(logsigmoid) {
    const Logistic<T> parts = logistic<T>({x, 0});
    const auto [f, e] = decompose(parts.sum.hi);
    const Pair<T> a = fast_two_sum(ProductTerm<Vec<T>>{e, ExpLimits<T>::ln2_hi}, f);
    const Pair<T> y = two_sum(minimum(x, 0), -a.hi);
    const Vec<T> rest = log_tail(f) + fma(e, ExpLimits<T>::ln2_lo, parts.sum.lo / parts.sum.hi);
    const Vec<T> near = y.hi + (y.lo - (a.lo + rest));
    // log(1 + t) = t - t^2 / 2 for small t.
    const Pair<T> p = parts.p;
    const Vec<T> s = two_to(at_least(parts.n, 1 - Format<T>::bias));
    const Vec<T> t = scale(p.hi + fma(p.hi * p.hi * s, (T)-0.5, p.lo), parts.n);
    return where(abs(x) > (sizeof(T) == 4 ? 9 : 19), minimum(x, 0) - t, where(x != x, x, near));
  }
}

// tanh(log(1 + e^x)) = p / (p + 2) with p = e^x (e^x + 2); 1 beyond 20.
template <Floating T> TW_INLINE Vec<T> tanh_softplus(Vec<T> x) {
  const Vec<T> e = exp(at_most(x, 20)), p = e * (e + 2);
  return p / (p + 2);
}
// With e = e^x: x e (e + 2) / (e (e + 2) + 2), which is x from 48 on.
TW_INLINE Vec<double> mish(Vec<double> x) {
  using T = double;
  constexpr T last = Format<T>::mantissa_bits;
  const auto reduced = reduce_exp(clamp<T>(x, ExpLimits<T>::lowest - 16, last));
  const Pair<T> p = exp_pair(reduced);
  const Vec<T> s = two_to(at_least(reduced.n, 1 - Format<T>::bias));
  const Pair<T> more = two_sum<T>(p.hi * s, 2), product = two_product(p.hi, more.hi);
  const Vec<T> low = product.lo + fma(p.hi, fma(p.lo, s, more.lo), p.lo * more.hi);
  const Pair<T> sum = two_sum<T>(product.hi * s, 2);
  const Vec<T> limited = at_least(x, 2 * ExpLimits<T>::lowest);
  const Pair<T> n = two_product(limited, product.hi);
  const Vec<T> y =
      scale(ratio<T>({n.hi, fma(limited, low, n.lo)}, {sum.hi, fma(low, s, sum.lo)}), reduced.n);
  return where((x > last) | (x == 0), x, where(x == -kInfinity, kNan, y));
}
// With h = e^x / 2 below 0 and e^-x above: x times e^x (1 + h), or 1 + 2 h, over 1 + 2 h (1 + h).
TW_INLINE Vec<float> mish(Vec<float> x) {
  using T = float;
  TW_WIDEN_AS(t * tanh_softplus(t)) {
    const Mask<T> below = x < 0;
    const auto [w, r, p, power] = float_exp(at_least(minus_abs(x), kShareless));
    const Vec<T> h = scale_bounded(p, power.bits + Bits<T>(below.v));
    const Vec<T> n = fma(h, where(below, p, 2), where(below, p, 1)), d = fma(h + h, h + 1, 1);
    const Vec<T> y = at_least(x, kShareless) * (n / d);
    return where(x == -kInfinity, kNan,
                 scale_down(y, {where(below, power.n, 0), Bits<T>(power.bits.v & below.v)}));
  }
}

// (x - tanh(x)) / x^3 = c + c_lo + z p(z) near 0, z = x^2, within 2^-34.7 and 2^-67.9.
template <Floating T> struct TanhshrinkCube;
template <> struct TanhshrinkCube<float> {
  static constexpr float c = 0.33333334f, c_lo = -9.967722e-09f, up = 0x1p30f, down = 0x1p-90f;
};
template <> struct TanhshrinkCube<double> {
  static constexpr double c = 0.3333333333333333, c_lo = 1.8503656552960675e-17, up = 0x1p300,
                          down = 0x1p-900;
};
TW_INLINE Vec<float> tanhshrink_slope(Vec<float> z) {
  return polynomial(z, -0.13333333, 0.05396788, -0.021862853, 0.008807482, -0.003348378,
                    0.00090245396);
}
TW_INLINE Vec<double> tanhshrink_slope(Vec<double> z) {
  return polynomial(z, -0.13333333333333333, 0.05396825396825366, -0.021869488536135358,
                    0.008863235529226946, -0.00359212802252863, 0.0014558341942510625,
                    -0.000590025612194393, 0.00023911680323746083, -9.685575842159723e-05,
                    3.907009806247753e-05, -1.539879635393205e-05, 5.540874330195776e-06,
                    -1.5320028297923755e-06, 2.183492081122004e-07);
}
// x - tanh(x) from 0.6 on.
template <Floating T> TW_INLINE Vec<T> far_tanhshrink(Vec<T> x) {
#ifdef TW_HAS_LANE_TABLES
  if constexpr (sizeof(T) == 4) {
    const Vec<T> index = shifted_down<21>(x * (1 / 0.6f)),
                 t = x - look_up(kTanhshrinkPoints, index);
    return where(x < 9.6f, by_pieces(t, index, kTanhshrinkValues, kTanhshrinkPieces), x - 1);
  }
#endif
  const Pair<T> t = tanh_pair(x), rest = fast_two_sum(x, -t.hi);
  return where(x < kInfinity, rest.hi + (rest.lo - t.lo), x);
}
template <Floating T> TW_INLINE Vec<T> tanhshrink(Vec<T> x) {
  TW_WIDEN(tanhshrink) {
    using Cube = TanhshrinkCube<T>;
    const Vec<T> size = abs(x), z = size * size, far = far_tanhshrink(size);
    // The cube is scaled, so that what its roundings lose does not underflow.
    const Vec<T> scaled = at_most(size, 1) * Cube::up;
    const Pair<T> square = two_product(scaled, scaled), cube = two_product(square.hi, scaled);
    const Pair<T> p = fast_two_sum<T>(Cube::c, tanhshrink_slope(z) * z);
    const Pair<T> product = two_product(cube.hi, p.hi);
    const Vec<T> low = fma(cube.hi, p.lo + Cube::c_lo, fma(square.lo, scaled, cube.lo) * p.hi);
    const Vec<T> near = (product.hi + (product.lo + low)) * Cube::down;
    return copysign(where(size < (T)0.6, near, far), x);
  }
}
#ifdef TW_HAS_LANE_TABLES
// From 0.8 on by pieces, and x - 1 beyond the last; below it x^3 c, c = 1/3 + z q(z) and z = x^2,
// all in two parts. Squares of small numbers would underflow.
TW_INLINE Vec<double> tanhshrink(Vec<double> x) {
  using T = double;
  using Cube = TanhshrinkCube<T>;
  constexpr T first = 0.8, step = 15 / 18.3, last = 19.06;
  const Vec<T> size = abs(x);
  const Vec<T> index = shifted_down<50>(fma(size, step, 1 - step * first));
  const Vec<T> t = size - look_up(wide::kTanhshrinkPoints, index);
  const Vec<T> value = look_up(wide::kTanhshrinkValues, index);
  const Vec<T> piece = wide::by_pieces(t, index, value, wide::kTanhshrinkPieces);
  const Vec<T> far = where(size > last, size - 1, piece);
  const Pair<T> square = two_product(size, size);
  const Vec<T> z = square.hi;
  const Vec<T> q = by_pairs<T>(
      z, z * z, -0.13333333333333325, 0.05396825396824227, -0.021869488535581235,
      0.008863235515520557, -0.0035921278214130466, 0.0014558322909976407, -0.0005900134238841523,
      0.0002390626181385649, -9.6687215589872e-05, 3.8706894857219966e-05, -1.4873995643143536e-05,
      5.0671105144740386e-06, -1.3028298829227774e-06, 1.7953281519779605e-07);
  const Vec<T> c = fma(z, q, Cube::c), c_lo = fma(z, q, Cube::c - c) + Cube::c_lo;
  const Vec<T> share = z * c, lost = fma(z, c, -share);
  const Vec<T> near = fma(size, share, size * fma(z, c_lo, fma(square.lo, c, lost)));
  const Vec<T> y = with_sign(where(size < first, near, far), x);
  // -1, so that 0 is above the others.
  const Vec<std::uint64_t> bits = bit_cast<std::uint64_t>(size) - 1;
  const Mask<T> tiny = {bits.v < bit_cast<std::uint64_t>(Vec<T>(0x1p-240)).v};
  if (!any(tiny)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(tiny, tanhshrink<T>(x), y); });
}
#endif

// 1.0507 x, and 1.7581 (e^x - 1) below 0.
template <Floating T> TW_INLINE Vec<T> selu(Vec<T> x) {
  TW_WIDEN(selu) {
    constexpr double positive = 1.0507009873554805, negative = 1.7580993408473766;
    constexpr T up = (T)positive, up_rest = (T)(positive - up);
    constexpr T down = (T)negative, down_rest = (T)(negative - down);
    const Pair<T> half = half_expm1_pair(at_most(x, 0)), e = fast_two_sum(half.hi, half.lo);
    const Pair<T> product = two_product<T>(e.hi, 2 * down);
    const Vec<T> below = product.hi + fma(fma(e.lo, down, e.hi * down_rest), 2, product.lo);
    return where(x > 0, exact_fma(x, up, where(x < kInfinity, x * up_rest, 0)),
                 where(abs(x) < kUnchanged<T>, x * negative, below));
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
