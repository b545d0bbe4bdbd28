// The logarithm of the gamma function and its derivatives, and the inverse of the error function.
// In float they are computed in double, with shorter polynomials: R is the type of the result.
#pragma once
#include "core/cpu/math/power.h"

namespace tw::TW_ISA_NAME {
namespace {

// lgamma(2 + t) / t for t from -3/4 to 1/2; 2^-36.6 and 2^-57.5.
template <class R> TW_INLINE Vec<double> lgamma_near(Vec<double> t) {
  if constexpr (sizeof(R) == 4)
    return polynomial(t, 0.42278433509565405, 0.3224670335766205, -0.06735230043625136,
                      0.02058079725012849, -0.007385576493267841, 0.002890736779142521,
                      -0.0011923246830925144, 0.000507820633144075, -0.0002266231256037729,
                      0.00010583041956168397, -3.1643627653661516e-05, 1.3951865029935126e-05,
                      -2.918490733211456e-05);
  return polynomial(t, 0.42278433509846713, 0.3224670334241132, -0.06735230105319699,
                    0.020580808427786867, -0.007385551028746344, 0.0028905103306071226,
                    -0.0011927539095374455, 0.0005096695287702922, -0.00022315479370810126,
                    9.94574426896736e-05, -4.492589965059801e-05, 2.0507961948767724e-05,
                    -9.441411521613373e-06, 4.369833126303555e-06, -2.0330513827143466e-06,
                    9.76303209898036e-07, -4.572787935679672e-07, 1.5862226123850523e-07,
                    -1.1008010824504426e-07, 1.2047621499369523e-07, 1.9463205162822774e-08,
                    -2.79934482168567e-08, -4.167314976643968e-08);
}
// From kFar on, Stirling's series in z = 1 / x^2, as polynomials: 2^-45 and 2^-64.
inline constexpr double kFar = 8;
template <class R> TW_INLINE Vec<double> lgamma_far(Vec<double> z) {
  if constexpr (sizeof(R) == 4)
    return polynomial(z, 0.08333333333171106, -0.0027777763862406445, 0.0007933273854338848,
                      -0.0005671537680414366);
  return polynomial(z, 0.08333333333333333, -0.0027777777777669662, 0.0007936507862034196,
                    -0.0005952358120042226, 0.000841388146023414, -0.0018862051957410414,
                    0.004983902105893693);
}
// sin(pi f) / (pi f) in z = f^2 for |f| <= 1/2; 2^-61.7.
TW_INLINE Vec<double> sine_of_turns(Vec<double> z) {
  return polynomial(z, 1.0, -1.6449340668482264, 0.8117424252833467, -0.1907518241217047,
                    0.02614784780852559, -0.0023460809189918093, 0.00014842794605725442,
                    -6.9723445793590956e-06, 2.4526425771257155e-07);
}

// lgamma(a) = series + slope (log(z) - less) for a >= 0. Below kFar, with a = n + t and n the
// nearest whole number (2 from 1.25 on, so that little cancels), it is lgamma(2 + t) and the
// logarithm of what gamma's recurrence multiplies or divides by.
struct GammaParts {
  Mask<double> far;
  Vec<double> n, z, series, slope, less;
};
template <class R> TW_INLINE GammaParts gamma_parts(Vec<double> a) {
  using V = Vec<double>;
  const Mask<double> far = !(a < kFar);
  const V n = where((a > 1.25) & (a < 2), 2, round(at_most(a, kFar))), t = a - n;
  V z = where(n < 1, a * (1 + a), where(n < 2, a, 1));
  for (int k = 1; k < 7; ++k) z = where(n > k + 1.5, z * (a - k), z);
  const V inverse = 1 / at_least(a, kFar);
  constexpr double kConstant = 0.4189385332046727;  // (log(2 pi) - 1) / 2
  const V stirling = fma(lgamma_far<R>(inverse * inverse), inverse, kConstant);
  return {far,
          n,
          where(far, a, z),
          where(far, stirling, lgamma_near<R>(t) * t),
          where(far, a - 0.5, where(n < 2, -1, 1)),
          where(far, V(1), V(0))};
}
template <class R> TW_INLINE Vec<double> lgamma_above(Vec<double> a) {
  const GammaParts p = gamma_parts<R>(a);
  return fma(p.slope, log(p.z) - p.less, p.series);
}
// lgamma(-a) by gamma(-a) = -pi / (a sin(pi a) gamma(a)). Factors whose product is near 1 around
// the zeros are taken together before the logarithm.
TW_INLINE Vec<double> lgamma_below(Vec<double> a) {
  using V = Vec<double>;
  const GammaParts p = gamma_parts<double>(a);
  const V f = abs(a - round(a)), sine = sine_of_turns(f * f);
  const V product = where(p.n < 1, a / (1 + a), where(p.n < 2, f, a * f * p.z));
  const V near = -p.series - log(product * sine);
  const V far = -fma(p.slope, log(p.z) - 1, p.series) - log(a * f * sine);
  return where((f == 0) | isinf(a), kInfinity, where(p.far, far, near));
}
// Below 0 in float as well by the long polynomials, as terms cancel around the zeros.
template <class R> TW_INLINE Vec<double> lgamma_of(Vec<double> x) {
  const Vec<double> a = abs(x), y = lgamma_above<R>(a);
  if (!any(x < 0)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(x < 0, lgamma_below(a), y); });
}
TW_INLINE Vec<double> lgamma(Vec<double> x) { return lgamma_of<double>(x); }
TW_INLINE Vec<float> lgamma(Vec<float> x) {
  return through_double(x, [](Vec<double> t) TW_LAMBDA_INLINE { return lgamma_of<float>(t); });
}

// digamma(1 + f) / (f - zero) in f - 1/2, f from 0 to 1; 2^-30.3 and 2^-54.4.
inline constexpr double kDigammaZero = 0x1.d8b618d5af8fep-2,
                        kDigammaZeroLow = -0x1.1e563779a1f5bp-56;
template <class R> TW_INLINE Vec<double> digamma_near(Vec<double> u) {
  if constexpr (sizeof(R) == 4)
    return polynomial(u, 0.9510558754198685, -0.42362741856424435, 0.24054265867531613,
                      -0.14840522406207024, 0.0949807002944436, -0.061912646829562906,
                      0.040894880515849906, -0.027102974854751237, 0.016909167295538225,
                      -0.011091655135151457, 0.011232875290113783, -0.007703459882342195);
  return polynomial(
      u, 0.9510558760318328, -0.4236274212814606, 0.24054248424080246, -0.14840492305388422,
      0.09498872445125915, -0.06192213327528345, 0.04076083402004033, -0.026975796666111832,
      0.0179072461845534, -0.011908219993127607, 0.007927056841969902, -0.005279938506234876,
      0.003517737146491651, -0.002345485843135098, 0.0015659198845290262, -0.0010364991518573721,
      0.000679455712116107, -0.0004858348323176673, 0.00035632988129999686, -0.00014499222322385914,
      4.4490567597334635e-05, -0.0001780896909540723, 0.00015517879007296399);
}
template <class R> TW_INLINE Vec<double> digamma_far(Vec<double> z) {
  if constexpr (sizeof(R) == 4)
    return polynomial(z, 0.0833333333043085, -0.008333315380656126, 0.0039647681032305955,
                      -0.003896206245940869);
  return polynomial(z, 0.08333333333333315, -0.008333333333032005, 0.00396825380099825,
                    -0.004166622354865275, 0.00756942118253683, -0.020586406449114917,
                    0.06149036743502962);
}
// pi cot(pi f), |f| <= 1/2, as (1 - 4 z) p(z) / f in z = f^2; 2^-52.5.
TW_INLINE Vec<double> cotangent_of_turns(Vec<double> f) {
  const Vec<double> zero = fma(f, -2, 1) * fma(f, 2, 1);
  return zero / f *
         polynomial(f * f, 0.9999999999999999, 0.7101318663037492, 0.6758809977384216,
                    0.6688378726712478, 0.667196466516662, 0.6668070233783684, 0.6665132781804901,
                    0.6692276365861894, 0.6424491362021125, 0.8267613022535378,
                    -0.06350870468574565, 2.8893562039312104, -3.5154582680228885,
                    4.665170123752399);
}

// digamma(a), or where `next` digamma(1 + a). Below kFar, with a = n + f and n its whole part, it
// is digamma(1 + f) and the reciprocals of the recurrence as one quotient.
template <class R, bool next> TW_INLINE Vec<double> digamma_above(Vec<double> a) {
  using V = Vec<double>;
  const Mask<double> near = a < kFar, small = a < 1;
  const V f = a - floor(at_most(a, kFar));
  V numerator = next ? where(small, V(0), V(1)) : where(small, V(-1), V(0));  // of 1 / a
  V denominator = next ? where(small, 1, a) : where(small, a, 1);
  for (int k = 1; k < 7; ++k) {
    const V d = a - k;
    const Mask<double> counts = d >= 1;
    // On AVX-512 a masked FMA each; the product is one too, or g++ compares for each of them.
    numerator = where(counts, fma(numerator, d, denominator), numerator);
    denominator = where(counts, fma(denominator, d, -0.0), denominator);
  }
  const V quotient = where(near, numerator, 1) / where(near, denominator, a);
  const V from_zero = (f - kDigammaZero) - kDigammaZeroLow, z = quotient * quotient;
  const V nearby = fma(digamma_near<R>(f - 0.5), from_zero, quotient);
  const V far = log(a) + fma(-digamma_far<R>(z), z, quotient * (next ? 0.5 : -0.5));
  return where(near, nearby, far);
}
// Below 0 by reflection: digamma(1 + a) + pi cot(pi a); in float as well by the long polynomials,
// as the terms cancel around the zeros.
template <class R> TW_INLINE Vec<double> digamma_of(Vec<double> x) {
  const Vec<double> y = digamma_above<R, false>(x), a = abs(x);
  if (!any(x < 0)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE {
    const Vec<double> f = x - round(x);
    const Vec<double> below = digamma_above<double, true>(a) - cotangent_of_turns(f);
    return where(x < 0, where(f == 0, kNan, below), y);
  });
}
TW_INLINE Vec<double> digamma(Vec<double> x) { return digamma_of<double>(x); }
TW_INLINE Vec<float> digamma(Vec<float> x) {
  return through_double(x, [](Vec<double> t) TW_LAMBDA_INLINE { return digamma_of<float>(t); });
}

// The second derivative of lgamma: below kFar a sum of 1 / (x + k)^2, all of one sign, up to where
// its series holds. For x < 0 that of 1 + a, taken from pi^2 / sin(pi a)^2.
template <class R> TW_INLINE Vec<double> trigamma_far(Vec<double> z) {
  if constexpr (sizeof(R) == 4)
    return polynomial(z, 0.16666666638242458, -0.03333315729315396, 0.023775267247105606,
                      -0.030663666069585004);
  return polynomial(z, 0.16666666666666657, -0.03333333333314296, 0.023809523674205416,
                    -0.033333286455056094, 0.0757485120352495, -0.2520785925396272,
                    1.0963434709681457, -4.359305510423418);
}
template <class R> TW_INLINE Vec<double> trigamma_of(Vec<double> x) {
  using V = Vec<double>;
  const V a = abs(x);
  const Mask<double> below = x < 0, near = a < kFar;
  V numerator = 0, denominator = 1;
  for (int k = 1; k < 8; ++k) {
    const V square = (a + k) * (a + k);
    numerator = fma(numerator, square, denominator);
    denominator = denominator * square;
  }
  const V inverse = 1 / where(near, a + kFar, a), z = inverse * inverse;
  const V half = where(below & !near, -0.5, 0.5);
  const V series = fma(z, fma(trigamma_far<R>(z), inverse, half), inverse);
  const V first = 1 / a, nearby = series + numerator / denominator;
  const V y = where(near, where(below, nearby, fma(first, first, nearby)), series);
  if (!any(below)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE {
    const V f = a - round(a), sine = f * sine_of_turns(f * f);
    return where(below, where(isinf(a), kInfinity, 1 / (sine * sine) - y), y);
  });
}

// The sum of (x + k)^-s over k >= 0 for x > 0 and whole s > 2, by Euler and Maclaurin.
inline double hurwitz_zeta(double s, double x) {
  double sum = 0;
  for (; x < s + 10; ++x) {
    const double term = __builtin_pow(x, -s);
    sum += term;
    if (!(term > sum * 0x1p-60)) return sum;
  }
  // B_2j / (2 j)!
  constexpr double kTerms[] = {0.08333333333333333,    -0.001388888888888889,
                               3.306878306878307e-05,  -8.267195767195768e-07,
                               2.08767569878681e-08,   -5.284190138687493e-10,
                               1.3382536530684679e-11, -3.3896802963225829e-13};
  double rest = 0.5, product = s / x;
  for (int j = 0; j < 8; ++j) {
    rest = fma(kTerms[j], product, rest);
    product *= (s + 2 * j + 1) * (s + 2 * j + 2) / (x * x);
  }
  return fma(__builtin_pow(x, -s), x / (s - 1) + rest, sum);
}
// The n-th derivative of digamma for whole n > 1; 171! is no number of double any more. Below 0 the
// sum runs over all whole steps from x, to both sides, but for those beyond it.
inline double polygamma_by_sums(double n, double x) {
  if (x != x || !(n > 1 && n <= 170) || n != __builtin_floor(n)) return kNan;
  const double s = n + 1, sign = __builtin_fmod(n, 2) == 0 ? -1 : 1;
  if (x == kInfinity) return sign * 0.0;
  const double f = x - __builtin_rint(x);
  if (x <= 0 && !(f < 0 || f > 0)) return sign * kInfinity;
  double sum;
  if (x > 0) {
    sum = hurwitz_zeta(s, x);
  } else {
    const double up = f > 0 ? f : 1 + f, down = f > 0 ? 1 - f : -f;
    sum = fma(sign, hurwitz_zeta(s, down) - hurwitz_zeta(s, 1 - x), hurwitz_zeta(s, up));
  }
  return sign * __builtin_tgamma(s) * sum;
}
TW_INLINE Vec<double> trigamma(Vec<double> x) { return trigamma_of<double>(x); }
TW_INLINE Vec<float> trigamma(Vec<float> x) {
  return through_double(x, [](Vec<double> t) TW_LAMBDA_INLINE { return trigamma_of<float>(t); });
}
// The n-th derivative of digamma, lane by lane beyond the first.
template <Floating T> TW_INLINE Vec<T> polygamma(Same<T> n, Vec<T> x) {
  const Vec<T> y = trigamma(x);
  if (!any<T>(n != 1)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE {
    const Mask<T> others = (n != 1) & (n != 0);
    const Vec<T> low = where(n == 0, digamma(x), y);
    return replace_lanes(low, others, n, x, [](T m, T t) { return (T)polygamma_by_sums(m, t); });
  });
}

// erfinv(x) / x with w = -log(1 - x^2), after M. Giles (2010): up to 6.25 in w - 3.125, 2^-27.4 and
// 2^-55.2, beyond in the root of w.
template <class R> TW_INLINE Vec<double> erfinv_near(Vec<double> u) {
  if constexpr (sizeof(R) == 4)
    return polynomial(u, 1.6536545680011314, 0.24015817863051248, -0.006033710255292368,
                      -0.0007406914051931101, 0.00018678153045580237, -1.3891928576445118e-05,
                      -1.3863031803219088e-06, 4.269355431750007e-07, -2.491362580475577e-08,
                      -4.747681506934762e-09, 6.681339933535462e-10, 5.50008078092733e-12);
  return polynomial(u, 1.6536545626831027, 0.24015818242558834, -0.0060336708714271384,
                    -0.0007407025341546347, 0.0001867342080208146, -1.3882523393966517e-05,
                    -1.3654691774668306e-06, 4.2347881682432926e-07, -2.9070389888022896e-08,
                    -4.112660434736633e-09, 1.0512226358768063e-09, -5.4143034942960786e-11,
                    -1.2978548905282486e-11, 2.6305276054322485e-12, -8.077851723286577e-14,
                    -4.002019481108802e-14, 6.53055848248414e-15, -3.938066962356843e-17,
                    -1.2311178902393214e-16, 1.5509121029412116e-17, 6.70597227132536e-19,
                    -3.4727497466806683e-19, 1.7589151625712292e-20, 3.1926464387399583e-21,
                    -3.1913117469428566e-22);
}
template <class R> TW_INLINE Vec<double> erfinv_far(Vec<double> root) {
  const Vec<double> s = root - 3.25;
  if constexpr (sizeof(R) == 4)
    return polynomial(s, 3.0838856104132857, 1.0052589713074196, 0.005370924559530344,
                      -0.0037513424206915276, 0.00249123747651751, -0.001686860651380825,
                      0.0009548072236144823, -0.000361344509265154, 1.9031606759275373e-05,
                      8.149882520126059e-05, -4.0106526296430074e-05);
  const Vec<double> far = polynomial(
      s, 3.0838856104922208, 1.0052589676941655, 0.005370914553543775, -0.003751208508229336,
      0.002491442098385779, -0.001688275535339929, 0.0009532893340811988, -0.00035503781505736155,
      2.403158499967547e-05, 6.828712583423879e-05, -4.73210981075654e-05, 1.2464994278738502e-05,
      2.934093528795513e-06, -3.985621638578054e-06, 1.4781238822209455e-06, -2.774358562055852e-08,
      -2.406124963312816e-07, 1.3169156813619248e-07, -2.4761588194843268e-08,
      -1.5342414786523384e-08, 8.978852178124558e-09);
  const Vec<double> last = polynomial(
      root - 5, 4.849906401408584, 1.0103004648645448, -0.00013871931838489398,
      -0.00021503011979789633, 7.599527817940293e-05, -1.9681771215929863e-05,
      4.526051869695042e-06, -9.930253463614013e-07, 2.2905565478054303e-07, -6.757334805242686e-08,
      2.901141654687958e-08, -1.5212173857068673e-08, 7.8326136591391e-09, -3.5363578740430866e-09,
      1.3057108087764658e-09, -3.788024930125536e-10, 7.474116256073231e-11, 1.3759669228190655e-11,
      -2.1486196080492108e-11, 6.0836988339068354e-12);
  return where(root < 4, far, last);
}
template <class R> TW_INLINE Vec<double> erfinv_of(Vec<double> x) {
  const Vec<double> a = abs(x), w = -log((1 - a) * (1 + a));
  const Vec<double> y = erfinv_near<R>(w - 3.125) * x;
  const Mask<double> far = !(w < 6.25);
  if (!any(far)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE {
    const Vec<double> end = where(a == 1, kInfinity, erfinv_far<R>(sqrt(w)));
    return where(far, end * x, y);
  });
}
#ifdef TW_HAS_LANE_TABLES
// -log(x) within 2^-53 for x up to 1, which is all that an error of 2 ulp asks; infinity at 0.
TW_INLINE Vec<double> rough_minus_log(Vec<double> x) {
  const auto [m, e] = mantissa(x);
  const Vec<double> index = shifted_down<48>(m), r = fma(m, look_up(wide::kLnInverses, index), -1);
  const Vec<double> square = r * r;
  const Vec<double> c = by_pairs<double>(
      r, square, -0.5000000000001762, 0.3333333333341847, -0.24999999916710894, 0.19999998903807736,
      -0.16666778446658856, 0.14288087535038377, -0.12463465606436172, 0.09773326870446476);
  const Vec<double> value = fma(e, -kLn2, -look_up(wide::kLnValues, index));
  return value - fma(square, c, r);
}
// The last number below 1 has w = 36.05.
TW_INLINE Vec<double> erfinv(Vec<double> x) {
  constexpr double last = 36.1;
  const Vec<double> w = rough_minus_log(fma(-x, x, 1));
  const Vec<double> index = shifted_down<50>(fma(w, 0.4155, 1));
  const Vec<double> t = w - look_up(wide::kErfinvPoints, index);
  const Vec<double> value = look_up(wide::kErfinvValues, index);
  const Vec<double> y = wide::by_pieces(t, index, value, wide::kErfinvPieces);
  return where(w > last, kInfinity, y) * x;
}
#else
TW_INLINE Vec<double> erfinv(Vec<double> x) { return erfinv_of<double>(x); }
#endif
TW_INLINE Vec<float> erfinv_by_double(Vec<float> x) {
  return through_double(x, [](Vec<double> t) TW_LAMBDA_INLINE { return erfinv_of<float>(t); });
}
// Up to w = 4, which is |x| = 0.9908, x (c + s (slope + s q(s))), s = w - 2 in two parts, 2^-28.9.
TW_INLINE Vec<float> erfinv(Vec<float> x) {
  using T = float;
  if constexpr (!kFused) return erfinv_by_double(x);
  constexpr T c = 1.3772153f, c_lo = -5.47129e-08f, slope = 0.24976808f;
  const Vec<T> rest_of_1 = fma(-x, x, 1);
  const auto [f, e] = decompose_normal(rest_of_1, 0.75f);
  // log(1 - x^2) = e ln 2 + log(1 + f), each sum with its larger number first. -6 <= e <= 0, so
  // that e times 21 bits of ln 2 is exact and what they lack does not count.
  const Pair<T> m = log_mantissa(f), l = fast_two_sum(e * 0x1.62e43p-1f, m.hi);
  const Pair<T> s = fast_two_sum<T>(-2, -l.hi);
  const Vec<T> s_lo = s.lo - (l.lo + m.lo);
  const Vec<T> square = s.hi * s.hi;
  const Vec<T> q =
      by_pairs(s.hi, square, -0.0019681358, -0.0016921797, 0.00021591962, 7.6149176e-06,
               -4.861311e-06, 3.0137366e-07, 6.547582e-08, -9.528325e-09);
  const Pair<T> product = two_product<T>(s.hi, slope), y = fast_two_sum<T>(c, product.hi);
  const Vec<T> low = fma(square, q, fma(s_lo, slope, product.lo)) + (y.lo + c_lo);
  const Vec<T> up = x * 0x1p30f;  // so that the second product does not underflow
  const Vec<T> near = fma(up, y.hi, up * low) * 0x1p-30f;
  const Mask<T> inside = rest_of_1 > 0.0184f;
  if (!any(!inside)) [[likely]]
    return near;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(inside, near, erfinv_by_double(x)); });
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
