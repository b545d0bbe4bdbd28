// The error function, its complement and the normal distribution.
#pragma once
#include "core/cpu/math/exponential.h"
#include "core/cpu/math/pieces_float64.h"

namespace tw::TW_ISA_NAME {
namespace {

// erf(x) / x - 1 in z = x^2 for |x| <= 1/2, 2^-56.2.
TW_INLINE Vec<double> erf_near(Vec<double> z) {
  return long_polynomial(z, 0.1283791670955126, -0.3761263890318405, 0.11283791670975778,
                         -0.026866170651684354, 0.005223977737817222, -0.0008548338296638083,
                         0.00012056011280202797, -1.4949514713328481e-05, 1.6901370278633376e-06,
                         -1.9084597867304202e-07);
}
// (1 + 2 x) e^(x^2) erfc(x) = c + c_lo + t p(t), 2^-59.5, with t = (x - 2.5) / (x + 2.5), the form
// of M. M. Shepherd and J. G. Laframboise (1981).
inline constexpr double kErfcCentre = 1.2648381843668615, kErfcCentreLow = 2.0711753749050335e-17;
TW_INLINE Vec<double> erfc_slope(Vec<double> t) {
  return long_polynomial(
      t, -0.12235676308240433, -0.09902453957360173, 0.1576299190232222, -0.10296705603857727,
      0.03276089326849846, 0.0009318928175528239, -0.004382078337070155, 0.0004918658075552851,
      0.0006321243057082706, -8.847916232181917e-05, -0.00011352214452906908, 6.265395258742897e-06,
      2.2698925681755568e-05, 2.6120692518830605e-06, -4.217309389247382e-06,
      -1.5948103017690379e-06, 5.307998999198649e-07, 5.504829339403373e-07, 1.9740733494353087e-08,
      -1.41492103060377e-07, -2.2160049033694448e-08, 2.4204500485147855e-08);
}
// erfc(x) = y 2^n for x >= 1/2, in two parts; beyond 28 it is 0.
struct Scaled {
  Pair<double> y;
  Vec<double> n;
};
TW_INLINE Scaled erfc_tail(Pair<double> x) {
  const Vec<double> size = at_most(at_least(x.hi, 0.5), 28);
  const Vec<double> low = where(x.hi < 28, x.lo, 0);
  const Pair<double> square = two_product(size, size);
  const auto reduced = reduce_exp(-square.hi);
  const Pair<double> e = exp_pair<double>(reduced, -fma(2 * size, low, square.lo));
  const Vec<double> t = (size - 2.5) / (size + 2.5);
  const Pair<double> p = fast_two_sum<double>(kErfcCentre, erfc_slope(t) * t);
  const Pair<double> product = two_product(e.hi, p.hi);
  const Pair<double> denominator = fast_two_sum<double>(2 * size, 1);
  return {
      quotient<double>({product.hi, product.lo + fma(e.lo, p.hi, e.hi * (p.lo + kErfcCentreLow))},
                       {denominator.hi, fma(low, 2, denominator.lo)}),
      reduced.n};
}

#ifdef TW_HAS_LANE_TABLES
TW_INLINE Vec<double> erf(Vec<double> x) {
  const Vec<double> size = at_most(abs(x), 5.99), place = fma(size, 2.62, 16.2);
  const Vec<double> index = shifted_down<48>(place);
  const Vec<double> value = where(place < 17, size, look_up(wide::kErfValues, index));
  const Vec<double> t = size - look_up(wide::kErfPoints, index);
  return copysign(wide::by_pieces(t, index, value, wide::kErfPieces), x);
}
#else
// Near 0 an odd polynomial; beyond some c 1 - s^2, where s is the root of erfc and its own root is
// r + u with u = t p(x), t = x - c, so that s = r^2 + u (2 r + u), rounded once where it is large.
// c is a number for which r^2 (`root`) and 2 r are almost numbers of the format.
TW_INLINE Vec<double> erf_by_roots(Vec<double> x) {
  constexpr double centre = 0.9602013000131664, root = 0.4177152042122124;
  constexpr double twice = 1.2926178154616506;
  const Vec<double> size = abs(x), limited = at_most(size, 5.95), t = limited - centre;
  const Vec<double> near =
      long_polynomial(size * size, 0.12837916709551256, -0.37612638903183426, 0.11283791670942438,
                      -0.026866170643040775, 0.005223977606774487, -0.0008548326007637078,
                      0.00012055297099080993, -1.492479992217142e-05, 1.6448437133640677e-06,
                      -1.621792215497329e-07, 1.3767855644742371e-08, -7.897745509431543e-10);
  const Vec<double> p = long_polynomial(
      limited - 2, -0.37005864849886516, 0.07808880446444458, 0.02024013092985029,
      -0.012832493818576759, 0.0005830982167677713, 0.0009440737348053212, -0.00018584384783070724,
      -3.220298316422401e-05, 1.3873462263069299e-05, 4.115351400681446e-08, -5.967153616275543e-07,
      4.587928098293968e-08, 1.9253587682850793e-08, -3.0026245869580513e-09,
      -4.579711946380547e-10, 1.3567199695662641e-10, 1.387962900420794e-12, -3.433836234508591e-12,
      2.7807071837658683e-13, 2.1682717931319985e-14, -2.9908645603323698e-15);
  const Vec<double> u = t * p, s = fma(u, u + twice, root), far = fma(-s, s, 1);
  return with_sign(where(signbit(t), fma(near, size, size), far), x);
}
TW_INLINE Vec<double> erf(Vec<double> x) {
  if constexpr (kFused) return erf_by_roots(x);
  const Vec<double> size = abs(x);
  const Scaled tail = erfc_tail({at_most(size, 6.0), 0});
  const Vec<double> far = 1 - tail.y.sum() * two_to(tail.n);
  return copysign(where(size < 0.5, erf_near(size * size) * size + size, far), x);
}
#endif
// As erf_by_roots, with p in t.
TW_INLINE Vec<float> erf(Vec<float> x) {
  using T = float;
  TW_WIDEN(erf) {
#ifdef TW_HAS_LANE_TABLES
    const Vec<T> size = at_most(abs(x), 3.93), place = fma(size, 4.0625, 16);
    const Vec<T> index = shifted_down<19>(place), t = size - look_up(kErfPoints, index);
    const Vec<T> p = pieces_slope(t, index, kErfPieces);
    return copysign(fma(t, p, where(place < 17, size, look_up(kErfValues, index))), x);
#else
    constexpr T centre = 0.9602013f, root = 0.4177152f, twice = 1.2926178f;
    const Vec<T> size = abs(x), z = size * size, t = at_most(size, 3.92f) - centre;
    const Vec<T> near = polynomial(z, 0.12837917, -0.37612626, 0.112835824, -0.026853643,
                                   0.0051879627, -0.0008006793, 7.842288e-05);
    const Vec<T> u = t * polynomial(t, -0.41558686, -0.001778245, 0.0513305, -0.0026345572,
                                    -0.005777035, 0.0013032127, 3.4839093e-05, -2.5575e-05);
    const Vec<T> s = fma(u, u + twice, root), far = fma(-s, s, 1);
    return with_sign(where(signbit(t), fma(near, size, size), far), x);
#endif
  }
}
// factor erfc(x) = y 2^n.
TW_INLINE Scaled erfc_pair(Pair<double> x, double factor) {
  const Mask<double> below = x.hi < 0, near = abs(x.hi) < 0.5;
  const Scaled tail = erfc_tail({abs(x.hi), where(below, -x.lo, x.lo)});
  // 1 - x - x p near 0, 2 - tail below, the first difference exactly.
  const Vec<double> s = two_to(at_least(tail.n, 1 - Format<double>::bias));
  const Vec<double> less = where(near, x.hi, tail.y.hi * s);
  const Vec<double> rest = where(near, fma(erf_near(x.hi * x.hi), x.hi, x.lo), tail.y.lo * s);
  const Pair<double> head = fast_two_sum(where(near, Vec<double>(1), Vec<double>(2)), -less);
  const Mask<double> inside = near | below;
  const Vec<double> n = at_least(tail.n, 2 - 2 * Format<double>::bias);
  return {{where(inside, head.hi, tail.y.hi) * factor,
           where(inside, head.lo - rest, tail.y.lo) * factor},
          where(inside, 0, n)};
}
TW_INLINE Vec<double> erfc_by_quotient(Vec<double> x) {
  const Scaled y = erfc_pair({x, 0}, 1);
  return scale(y.y.sum(), y.n);
}
#ifdef TW_HAS_LANE_TABLES
// e^(-x^2) (S + what S lost in rounding), the square in two parts. From x = 26 on results come near
// the denormal ones; a limit for numbers below -26 would cost the others an instruction.
TW_INLINE Vec<double> erfc(Vec<double> x) {
  using T = double;
  constexpr T far = 26;
  const Vec<T> size = abs(x), index = shifted_down<50>(fma(size, 0.549, 1));
  const Pair<T> s = pair_by_pieces(size - look_up(wide::kErfcPoints, index), index,
                                   look_up(wide::kErfcValues, index), wide::kErfcPieces);
  const Vec<T> square = size * size;
  const WideExp e = wide_exp_of_negative(square, fma(-size, size, square));
  const Vec<T> y = e.t * s.hi, lost = fma(e.t, s.hi, -y);
  const Vec<T> tail = y + fma(y, wide_exp_rest(e), fma(e.t, s.lo, lost));
  const Vec<T> inside = where(x < 0, 2 - tail, tail);
  if (!any_above(size, far)) [[likely]]
    return inside;
  return out_of_line(
      [=]() TW_LAMBDA_INLINE { return where(abs(x) > far, erfc_by_quotient(x), inside); });
}
#else
TW_INLINE Vec<double> erfc(Vec<double> x) { return erfc_by_quotient(x); }
#endif
// e^(x^2) erfc(x) from 0 to 10.5 in two parts: beyond 9.3 results are denormal.
#ifdef TW_HAS_LANE_TABLES
TW_INLINE Pair<float> scaled_erfc(Vec<float> x) {
  const Vec<float> index = shifted_down<21>(fma(x, 1.428f, 1));
  const Vec<float> t = x - look_up(kErfcPoints, index), value = look_up(kErfcValues, index);
  const Vec<float> p = pieces_slope(t, index, kErfcPieces), y = fma(t, p, value);
  return {y, fma(t, p, value - y)};
}
#else
// (1 + x) times it is c + c_lo + t q(t), 2^-27.4 of it, with t = 0.75 - 2 / (1 + x): one division,
// and nothing else near 0. What a rounding loses, `lost` and those that end in _lo keep, as far as
// it counts.
TW_INLINE Pair<float> scaled_erfc(Vec<float> x) {
  using T = float;
  constexpr T c = 0.7900999f, c_lo = 1.8290073e-08f;
  // 1 / (1 + x) = inverse (1 + lost)
  const Vec<T> d = x + 1, inverse = 1 / d;
  const Vec<T> lost = fma(-((1 - d) + x), inverse, fma(-d, inverse, 1));
  const Vec<T> m = -2 * inverse, t = m + 0.75f, t_lo = fma(m, lost, m - (t - 0.75f));
  // In two halves for a shorter chain, but for the last two terms, whose roundings count.
  const Vec<T> z = t * t;
  const Vec<T> high =
      polynomial(t, -0.00032377508, 0.0028662952, 0.0022062166, 0.0007632098, 0.00010699119);
  const Vec<T> low_half =
      polynomial(t, 0.044254433, 0.033504058, 0.00077118585, -0.011683682, -0.0075945775);
  const Vec<T> halves = fma(high, t * z * z, low_half);
  const Vec<T> q = fma(t, fma(t, halves, -0.07427323), -0.2810922);
  const Vec<T> slope = fma(t, -0.157f, -0.264f);  // of t q(t), roughly
  const Vec<T> p = fma(t, q, c), p_lo = fma(t_lo, slope, fma(t, q, c - p) + c_lo);
  const Vec<T> share = p * inverse;
  return {share, fma(p_lo, inverse, fma(share, lost, fma(p, inverse, -share)))};
}
#endif
TW_INLINE Vec<float> erfc(Vec<float> x) {
  using T = float;
  TW_WIDEN(erfc) {
    using Limits = ExpLimits<T>;
    const Vec<T> size = at_most(abs(x), 10.5f);
    // e^(-x^2) = 2^n e^(r + low), e^r = 1 + r + h
    const Pair<T> square = two_product(size, size);
    const Power<T> power = nearest_power(square.hi, -kLog2e);
    const Vec<T> near = fma(power.n, -Limits::ln2_hi, -square.hi);
    const Vec<T> r = fma(power.n, -Limits::ln2_lo, near);
    const Vec<T> low = fma(power.n, -Limits::ln2_lo, near - r) - square.lo;
    const Vec<T> h = r * r * exp_short_tail(r);
    const auto [share, rest] = scaled_erfc(size);
    const Vec<T> share_lo = fma(share, low, rest), y = fma(share, r, share);
    const Vec<T> y_lo = fma(share, r, share - y) + fma(share_lo, (r + 1) + h, share * h);
    const Vec<T> tail = scale_down(y + y_lo, power);
    return where(x < 0, 2 - tail, tail);
  }
}

// e^(-x^2 / 2) over the root of 2 pi.
template <Floating T> TW_INLINE Vec<T> normal_density(Vec<T> x) {
  const auto reduced = reduce_exp(at_least(x * x * -0.5, ExpLimits<T>::lowest));
  return scale(exp_reduced(reduced), reduced.n) * 0.3989422804014327;
}
// The share of a normal distribution below x: erfc(-x / sqrt(2)) / 2.
TW_INLINE Scaled normal_share_pair(Vec<double> x) {
  constexpr double half_root = 0.7071067811865476, half_root_lo = -0x1.bdd3413b26456p-55;
  const Vec<double> limited = clamp<double>(x, -64, 64);
  const Pair<double> product = two_product<double>(limited, -half_root);
  return erfc_pair({product.hi, fma(limited, -half_root_lo, product.lo)}, 0.5);
}
// For float and v <= 0 the share is inverse y 2^n: e^(-v^2 / 2) / (3.5 - v) times a polynomial in
// t = (-v - 3.5) / (3.5 - v), fitted from 0 to -14.5 within 2^-26.6.
struct FloatShare {
  Vec<float> inverse, y, e;  // e 2^n = e^(-v^2 / 2)
  Power<float> power;
};
TW_INLINE FloatShare float_share(Vec<float> v) {
  const Pair<float> square = two_product(v, v);
  const auto e = float_exp(square.hi * -0.5f, square.lo * -0.5f);
  const Vec<float> d = 3.5f - v, rest = (3.5f - d) - v, inverse = 1 / d;
  const Vec<float> lost = fma(-rest, inverse, fma(-d, inverse, 1));
  const Vec<float> t = fma(-7 * inverse, lost, fma(inverse, -7, 1));
  const Vec<float> p =
      polynomial(t, 1.729699e-08, -0.5655618, 0.31542498, -0.1160527, 0.01740728, 0.0064919963,
                 -0.0031790808, -0.0004948806, 0.00042684842, 0.000113449234) +
      0.74441606f;
  return {inverse, fma(p, fma(e.w, e.r, lost), p), e.p, e.power};
}
TW_INLINE Vec<double> normal_share(Vec<double> x) {
  const Scaled y = normal_share_pair(x);
  return scale(y.y.sum(), y.n);
}
TW_INLINE Vec<float> normal_share(Vec<float> x) {
  using T = float;
  TW_WIDEN(normal_share) {
    const FloatShare s = float_share(at_least(minus_abs(x), -15));
    const Vec<T> y = scale_down(s.inverse * s.y, s.power);
    return where(x < 0, y, 1 - y);
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
