// Logarithms.
#pragma once
#include "core/cpu/math/exponential.h"
#include "core/cpu/math/tables_float32.h"
#include "core/cpu/math/tables_float64.h"

namespace tw::TW_ISA_NAME {
namespace {

#ifdef TW_HAS_MASKED_ACCESS
// x = m 2^e with m in [0.75, 1.5).
template <Floating T> struct Mantissa {
  Vec<T> m, e;
};
template <Floating T> TW_INLINE Mantissa<T> mantissa(Vec<T> x) {
  using Raw = typename Vec<T>::Raw;
  Vec<T> m, e;
  if constexpr (std::is_same_v<T, float>) {
    m = (Raw)_mm512_maskz_getmant_ps(0xffff, (__m512)x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    e = (Raw)_mm512_maskz_getexp_ps(0xffff, (__m512)x.v);
  } else {
    m = (Raw)_mm512_maskz_getmant_pd(0xff, (__m512d)x.v, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    e = (Raw)_mm512_maskz_getexp_pd(0xff, (__m512d)x.v);
  }
  return {m, where(m < 1, e + 1, e)};
}
#endif

// x = (1 + f) 2^e with 1 + f in [0.75, 1.5), so that f is exact and e = 0 around 1.
template <Floating T> struct Exponent {
  Vec<T> f, e;
};
template <Floating T> TW_INLINE Exponent<T> decompose(Vec<T> x) {
#ifdef TW_HAS_MASKED_ACCESS
  const auto [m, e] = mantissa(x);
  return {m - 1, e};
#else
  // Denormals are scaled by 2^mantissa_bits first. The exponent is read as a whole number below
  // 2^mantissa_bits, by placing it in the mantissa of that power of two: no conversion is needed.
  constexpr int shift = Format<T>::mantissa_bits;
  using U = std::make_unsigned_t<IntLike<T>>;
  using UnsignedBits = Vec<U>;
  constexpr T power = (T)((U)1 << shift);
  const Mask<T> denormal = x < Format<T>::smallest_normal;
  const UnsignedBits bits = bit_cast<U>(where(denormal, x * power, x));
  const UnsignedBits lowest = bit_cast<U>(Vec<T>(0.75)), one = bit_cast<U>(Vec<T>(1));
  const UnsignedBits above = bits - lowest + one;  // exponent field: bias + e
  const UnsignedBits field = UnsignedBits(above.v >> shift);
  const UnsignedBits fraction = above & ((U)((U)1 << shift) - 1);
  const Vec<T> e = bit_cast<T>(field | bit_cast<U>(Vec<T>(power))) - (power + Format<T>::bias);
  return {bit_cast<T>(fraction + lowest) - 1, where(denormal, e - shift, e)};
#endif
}

// log(1 + f) - f for 1 + f from the root of 1/2 to 1.5. float: f^3 p(f) - f^2 / 2, polynomial good
// to 2^-28.6.
TW_INLINE Vec<float> log_tail(Vec<float> f) {
  const Vec<float> p = polynomial(f, 0.3333331, -0.25000262, 0.20002249, -0.16654864, 0.14208853,
                                  -0.12617359, 0.12156164, -0.10582594, 0.049098764);
  const Vec<float> z = f * f;
  return fma(z, f * p, z * -0.5f);
}
// double: 2 atanh(s) with s = f / (2 + f), arranged as in FreeBSD's e_log.c: f - f^2 / 2 + s (p +
// f^2 / 2), where p = z q and the polynomial is within 2^-61.6.
struct LogSeries {
  Vec<double> s, z, q;
};
TW_INLINE LogSeries log_series(Vec<double> f) {
  const Vec<double> s = f / (f + 2), z = s * s;
  return {
      s, z,
      polynomial(z, 0.666666666666666, 0.4000000000005667, 0.2857142855582956, 0.22222224296516227,
                 0.18181665859844565, 0.15391112895803089, 0.1317357638500592, 0.138432390054763)};
}
TW_INLINE Vec<double> log_tail(Vec<double> f) {
  const auto [s, z, q] = log_series(f);
  const Vec<double> half_square = f * f * 0.5;
  return fma(s, fma(z, q, half_square), -half_square);
}

// The result for x > 0, or what belongs at 0, below, at infinity and for NaN.
template <Floating T> TW_INLINE Vec<T> log_domain(Vec<T> x, Vec<T> y) {
#ifdef TW_HAS_MASKED_ACCESS
  // Four bits for each kind of x say what becomes of y: 0 keep it, 2 x as a quiet NaN, 3 NaN, 4 and
  // 5 the infinities. From the lowest: quiet and signalling NaN, 0, 1, -infinity, infinity, below
  // 0, above.
  constexpr int kinds = 0x03530422;
  using Raw = typename Vec<T>::Raw;
  if constexpr (std::is_same_v<T, float>) {
    return Vec<T>((Raw)_mm512_fixupimm_ps((__m512)y.v, (__m512)x.v, _mm512_set1_epi32(kinds), 0));
  } else {
    return Vec<T>((Raw)_mm512_fixupimm_pd((__m512d)y.v, (__m512d)x.v, _mm512_set1_epi64(kinds), 0));
  }
#else
  const Vec<T> outside = where(x == 0, -kInfinity, where(x < 0, kNan, x));
  return where((x > 0) & (x < kInfinity), y, outside);
#endif
}

// log(1 + f) in two parts, where exponents cancel most of it: f - f^2 / 2 without error, and the
// rest, which is below a twentieth.
TW_INLINE Pair<double> log_pair(Vec<double> f) {
  const auto [s, z, q] = log_series(f);
  const Pair<double> half_square = two_product<double>(f, f * 0.5);
  const Pair<double> head = fast_two_sum(f, -half_square.hi);
  return {head.hi, exact_fma(s, fma(z, q, half_square.hi), head.lo - half_square.lo)};
}
TW_INLINE Pair<float> log_pair(Vec<float> f) { return fast_two_sum(f, log_tail(f)); }
template <Floating T> TW_INLINE Vec<T> log(Vec<T> x) {
  TW_WIDEN(log) {
    const auto [f, e] = decompose(x);
    const Pair<T> log = log_pair(f);
    const Pair<T> head = fast_two_sum(ProductTerm<Vec<T>>{e, ExpLimits<T>::ln2_hi}, log.hi);
    return log_domain(x, head.hi + (head.lo + fma(e, ExpLimits<T>::ln2_lo, log.lo)));
  }
}

inline constexpr double kRootOf2 = 1.4142135623730951;
// A number in two parts, and the first part of another one that whole numbers below 2^11 times it
// are exact: log2 e, log10 e and log10 2.
template <Floating T> struct LogBases;
template <> struct LogBases<float> {
  static constexpr float log2e = 0x1.715476p0f, log2e_lo = 0x1.4ae0cp-26f;
  static constexpr float log10e = 0x1.bcb7b2p-2f, log10e_lo = -0x1.5b235ep-27f;
  static constexpr float log10_2 = 0x1.344p-2f, log10_2_lo = 0x1.3509f8p-18f;
};
template <> struct LogBases<double> {
  static constexpr double log2e = 0x1.71547652b82fep0, log2e_lo = 0x1.777d0ffda0d24p-56;
  static constexpr double log10e = 0x1.bcb7b1526e50ep-2, log10e_lo = 0x1.95355baaafad3p-57;
  static constexpr double log10_2 = 0x1.34413509f78p-2, log10_2_lo = 0x1.fef311f12b358p-46;
};
// head + low + base log(1 + f), where the head, a number or a product, is exact and base has a
// second part.
template <Floating T, class Head>
TW_INLINE Vec<T> log_to_base(Vec<T> f, Head head, Vec<T> low, T base, T base_lo) {
  const Pair<T> log = log_pair(f), p = two_product<T>(log.hi, base);
  const Pair<T> sum = fast_two_sum(head, p.hi);
  return sum.hi + (sum.lo + (p.lo + fma(log.hi, base_lo, fma(log.lo, base, low))));
}
// e + log2(1 + f). 1 + f is brought to the root of 2 at most, so that less of the two cancels.
// Powers of two give whole numbers.
template <Floating T> TW_INLINE Vec<T> log2(Vec<T> x) {
  TW_WIDEN(log2) {
    using B = LogBases<T>;
    const auto parts = decompose(x);
    const Mask<T> high = parts.f > (T)(kRootOf2 - 1);
    const Vec<T> f = where(high, fma(parts.f, (T)0.5, (T)-0.5), parts.f);
    const Vec<T> e = where(high, parts.e + 1, parts.e);
    return log_domain(x, log_to_base<T>(f, e, 0, B::log2e, B::log2e_lo));
  }
}
// Powers of ten give whole numbers.
template <Floating T> TW_INLINE Vec<T> log10(Vec<T> x) {
  TW_WIDEN(log10) {
    using B = LogBases<T>;
    const auto [f, e] = decompose(x);
    const ProductTerm<Vec<T>> head = {e, B::log10_2};
    return log_domain(x, log_to_base<T>(f, head, e * B::log10_2_lo, B::log10e, B::log10e_lo));
  }
}
// log(u) + c / u, where u = 1 + x rounded and c is what rounding lost.
template <Floating T> TW_INLINE Vec<T> log1p(Vec<T> x) {
  TW_WIDEN(log1p) {
    const Vec<T> u = x + 1, lost = x - (u - 1);
    const auto [f, e] = decompose(u);
    const Vec<T> low = log_tail(f) + fma(e, ExpLimits<T>::ln2_lo, lost / u);
    const Vec<T> y = log_domain(u, fma(e, ExpLimits<T>::ln2_hi, low + f));
    return where(abs(x) < Format<T>::smallest_normal, x, y);
  }
}

// A normal x as (1 + f) 2^e with 1 + f from `lowest` to twice that, which is from 1/2 to 1.
TW_INLINE Exponent<float> decompose_normal(Vec<float> x, float lowest) {
  const Bits<float> bits = bit_cast<std::int32_t>(x);
  const Bits<float> above = bits - bit_cast<std::int32_t>(Vec<float>(lowest));
  const Bits<float> field = above & (std::int32_t)0xff800000;
  return {bit_cast<float>(bits - field) - 1, convert<float>(Bits<float>(above.v >> 23))};
}
TW_INLINE Vec<float> log_tail_by_pairs(Vec<float> f) {
  const Vec<float> z = f * f;
  const Vec<float> p = by_pairs(f, z, 0.3333331, -0.25000262, 0.20002249, -0.16654864, 0.14208853,
                                -0.12617359, 0.12156164, -0.10582594, 0.049098764);
  return fma(z, f * p, z * -0.5f);
}
// log(1 + f) in two parts.
TW_INLINE Pair<float> log_mantissa(Vec<float> f) { return fast_two_sum(f, log_tail_by_pairs(f)); }

#ifdef TW_HAS_LANE_TABLES
// float by tables: x = (1 + r) 2^e / inverse, so that log(x) is e log 2 plus the table's value plus
// log(1 + r), |r| < 2^-5. Beside 1 the inverse is 1 and r exact.
struct LogPiece {
  Vec<float> m, e, inverse, value;
};
TW_INLINE LogPiece log_piece(Vec<float> x) {
  const auto [m, e] = mantissa(x);
  const Vec<float> index = shifted_down<18>(m);
  return {m, e, look_up(kLnInverses, index), look_up(kLnValues, index)};
}
// (log(1 + r) - r) / r^2 within 2^-32 of log(1 + r), in two halves for a shorter chain.
TW_INLINE Vec<float> log_rest(Vec<float> r, Vec<float> square) {
  return fma(square, fma(r, 0.19483064f, -0.25004688f), fma(r, 0.333335f, -0.5f));
}
// hi + r + low, where hi = 0 or |hi| > |r|.
TW_INLINE Vec<float> sum_of(Vec<float> hi, Vec<float> r, Vec<float> low) {
  const Pair<float> head = fast_two_sum(hi, r);
  return head.hi + (head.lo + low);
}
TW_INLINE Vec<float> log(Vec<float> x) {
  using Limits = ExpLimits<float>;
  const LogPiece p = log_piece(x);
  const Vec<float> r = fma(p.m, p.inverse, -1), square = r * r;
  const Vec<float> low = fma(square, log_rest(r, square), p.e * Limits::ln2_lo);
  return log_domain(x, sum_of(fma(p.e, Limits::ln2_hi, p.value), r, low));
}
// The same for bases 2 and 10, but with an exact r and the table's value in two parts, value + low:
// what rounding these loses counts for more there.
struct ExactLogPiece {
  Vec<float> r, e, value, low;
};
TW_INLINE ExactLogPiece exact_log_piece(Vec<float> x, const float (&values)[32],
                                        const float (&lows)[32]) {
  const auto [m, e] = mantissa(x);
  const Vec<float> index = shifted_down<18>(m);
  return {fma(m, look_up(kExactInverses, index), -1), e, look_up(values, index),
          look_up(lows, index)};
}
TW_INLINE Vec<float> log2(Vec<float> x) {
  using B = LogBases<float>;
  const auto [r, e, value, value_low] = exact_log_piece(x, kLog2Values, kLog2Lows);
  const Vec<float> square = r * r;
  const Vec<float> c =
      fma(square, fma(r, 0.2888208f, -0.36096445f), fma(r, 0.48089826f, -0.72134745f));
  const Vec<float> low = fma(square, c, fma(r, B::log2e_lo, value_low));
  return log_domain(x, (e + value) + fma(r, B::log2e, low));
}
TW_INLINE Vec<float> log10(Vec<float> x) {
  using B = LogBases<float>;
  const auto [r, e, value, value_low] = exact_log_piece(x, kLog10Values, kLog10Lows);
  const Vec<float> square = r * r;
  const Vec<float> c =
      fma(square, fma(r, 0.08695021f, -0.10866593f), fma(r, 0.1447648f, -0.21714722f));
  const Vec<float> low = fma(square, c, fma(r, B::log10e_lo, fma(e, B::log10_2_lo, value_low)));
  return log_domain(x, fma(e, B::log10_2, value) + fma(r, B::log10e, low));
}
// float64 the same way by 16 inverses and without a division: r is from -1/32 to 1/16.
struct WideLogPiece {
  Vec<double> e, value, r, low;  // m inverse = 1 + r + low
};
TW_INLINE WideLogPiece wide_log_piece(Vec<double> x, const double (&inverses)[16],
                                      const double (&values)[16]) {
  const auto [m, e] = mantissa(x);
  const Vec<double> index = shifted_down<48>(m);
  const Pair<double> product = two_product(m, look_up(inverses, index));
  return {e, look_up(values, index), product.hi - 1, product.lo};
}
// (log(1 + r) - r) / r^2.
TW_INLINE Vec<double> wide_log_rest(Vec<double> r) {
  return by_pairs<double>(r, r * r, -0.49999999999999994, 0.33333333333333454, -0.25000000000049527,
                          0.19999999999726556, -0.16666666533018146, 0.142857134184493,
                          -0.12500138465854066, 0.11113365718979196, -0.09959413568650245,
                          0.07872770364650285);
}
TW_INLINE Vec<double> log(Vec<double> x) {
  using Limits = ExpLimits<double>;
  const auto [e, value, r, r_low] = wide_log_piece(x, wide::kLnInverses, wide::kLnValues);
  const Vec<double> whole = r + r_low;
  const Vec<double> low = fma(whole * whole, wide_log_rest(r), fma(e, Limits::ln2_lo, r_low));
  return log_domain(x, fma(e, Limits::ln2_hi, value) + (r + low));
}
TW_INLINE Vec<double> log2(Vec<double> x) {
  using B = LogBases<double>;
  const auto [e, value, r, r_low] = wide_log_piece(x, wide::kLog2Inverses, wide::kLog2Values);
  const Vec<double> c = by_pairs<double>(
      r, r * r, -0.7213475204444817, 0.4808983469629902, -0.360673760222626, 0.2885390081681424,
      -0.24044917198179014, 0.2060992900935578, -0.18033876364503335, 0.1603261447959094,
      -0.1436276688720468, 0.11343907070398523);
  const Vec<double> whole = r + r_low, share = fma(whole, c, B::log2e_lo);
  const Vec<double> low = fma(whole, share, r_low * B::log2e);
  return log_domain(x, (e + value) + fma(r, B::log2e, low));
}
TW_INLINE Vec<double> log10(Vec<double> x) {
  using B = LogBases<double>;
  const auto [e, value, r, r_low] = wide_log_piece(x, wide::kLog10Inverses, wide::kLog10Values);
  const Vec<double> c = by_pairs<double>(
      r, r * r, -0.2171472409516259, 0.14476482730108464, -0.10857362047594032, 0.08685889637796125,
      -0.07238241318439285, 0.0620420679978768, -0.05428738079951443, 0.048263188131913444,
      -0.04323841175450602, 0.034154887643523334);
  const Vec<double> rest = fma(r_low, B::log10e, e * B::log10_2_lo);
  const Vec<double> whole = r + r_low, low = fma(whole, fma(whole, c, B::log10e_lo), rest);
  return log_domain(x, fma(e, B::log10_2, value) + fma(r, B::log10e, low));
}
// Near 0 r is x itself; elsewhere what rounding 1 + x lost is added over 1 + x.
TW_INLINE Vec<float> log1p(Vec<float> x) {
  using Limits = ExpLimits<float>;
  const Vec<float> u = x + 1, lost = x - (u - 1);
  const Mask<float> far = !(abs(x) < 0x1p-6f);
  const LogPiece p = log_piece(u);
  const Vec<float> r = where(far, fma(p.m, p.inverse, -1), x), square = r * r;
  const Vec<float> more = where(far, fma(lost, near_reciprocal(u), p.e * Limits::ln2_lo), -0.0);
  const Vec<float> low = fma(square, log_rest(r, square), more);
  const Vec<float> y = sum_of(fma(p.e, Limits::ln2_hi, p.value), r, low);
  return log_domain(u, where(far, y, r + low));  // r + low keeps the sign of 0
}
// In the same way; has the sign of x, also where that is 0.
TW_INLINE Vec<double> log1p(Vec<double> x) {
  using Limits = ExpLimits<double>;
  const Vec<double> u = x + 1, lost = x - (u - 1);
  const Mask<double> far = !(abs(x) < 0x1p-6);
  const auto [e, value, u_r, r_low] = wide_log_piece(u, wide::kLnInverses, wide::kLnValues);
  const Vec<double> r = where(far, u_r, x), whole = r + r_low;
  const Vec<double> more = where(far, fma(lost, near_reciprocal(u), r_low), 0);
  const Vec<double> low = fma(whole * whole, wide_log_rest(r), fma(e, Limits::ln2_lo, more));
  return log_domain(u, with_sign(fma(e, Limits::ln2_hi, value) + (r + low), x));
}
#else
// float without tables: what is no normal number waits out of line, so that the others need neither
// scaling nor choices, and the polynomial is in pairs.
TW_INLINE Mask<float> is_normal(Vec<float> x) {
  return (x >= Format<float>::smallest_normal) & (x < kInfinity);
}
// One comparison of bits, turned so that those of normal numbers come first.
TW_INLINE bool any_not_normal(Vec<float> x) {
  constexpr std::uint32_t infinity = 0x7f800000;
  constexpr std::int32_t last = -(1 << 24) - 1;
  const Vec<std::uint32_t> turned = bit_cast<std::uint32_t>(x) + infinity;
  return any(Mask<float>{bit_cast<std::int32_t>(turned).v > last});
}
template <class F> TW_INLINE Vec<float> where_normal(Vec<float> x, Vec<float> y, F others) {
  if (!any_not_normal(x)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(is_normal(x), y, others()); });
}
TW_INLINE Vec<float> log(Vec<float> x) {
  using T = float;
  TW_WIDEN(log) {
    const auto [f, e] = decompose_normal(x, 0.75f);
    const Vec<T> low = fma(e, ExpLimits<T>::ln2_lo, log_tail_by_pairs(f)) + f;
    return where_normal(x, fma(e, ExpLimits<T>::ln2_hi, low),
                        [=]() TW_LAMBDA_INLINE { return log<T>(x); });
  }
}
// To another base log(1 + f) is f base + f^2 p(f), the product in two parts. Powers of two and of
// ten give whole numbers.
TW_INLINE Vec<float> log2(Vec<float> x) {
  using T = float;
  TW_WIDEN(log2) {
    using B = LogBases<T>;
    const auto [f, e] = decompose_normal(x, 0.70710678f);
    const Pair<T> p = two_product<T>(f, B::log2e), head = fast_two_sum(e, p.hi);
    const Vec<T> low = polynomial(f, B::log2e_lo, -0.72134733, 0.48089838, -0.3606979, 0.28855887,
                                  -0.23958682, 0.2047509, -0.19143984, 0.18535852, -0.10807432);
    return where_normal(x, head.hi + (head.lo + fma(f, low, p.lo)),
                        [=]() TW_LAMBDA_INLINE { return log2<T>(x); });
  }
}
TW_INLINE Vec<float> log10(Vec<float> x) {
  using T = float;
  TW_WIDEN(log10) {
    using B = LogBases<T>;
    const auto [f, e] = decompose_normal(x, 0.70710678f);
    const Pair<T> p = two_product<T>(f, B::log10e);
    const Pair<T> head = fast_two_sum(e * B::log10_2, p.hi);
    const Vec<T> low = polynomial(f, B::log10e_lo, -0.21714719, 0.14476484, -0.10858075, 0.08686461,
                                  -0.07212511, 0.061641913, -0.057618853, 0.05576151, -0.032511283);
    const Vec<T> rest = fma(e, B::log10_2_lo, fma(f, low, p.lo));
    return where_normal(x, head.hi + (head.lo + rest),
                        [=]() TW_LAMBDA_INLINE { return log10<T>(x); });
  }
}
// Has the sign of x, also where that is 0.
TW_INLINE Vec<float> log1p(Vec<float> x) {
  using T = float;
  TW_WIDEN(log1p) {
    const Vec<T> u = x + 1, lost = x - (u - 1);
    const auto [f, e] = decompose_normal(u, 0.75f);
    const Vec<T> low = fma(e, ExpLimits<T>::ln2_lo, lost / u);
    const Vec<T> y = fma(e, ExpLimits<T>::ln2_hi, (log_tail_by_pairs(f) + low) + f);
    return where_normal(u, with_sign(y, x), [=]() TW_LAMBDA_INLINE { return log1p<T>(x); });
  }
}
#endif

// log(u (1 + share)) + more ln 2 for u >= 1.1 and a share of at most a few ulp.
TW_INLINE Vec<float> log_of(Vec<float> u, Vec<float> share, Vec<float> more = 0) {
  using Limits = ExpLimits<float>;
#ifdef TW_HAS_LANE_TABLES
  const LogPiece p = log_piece(u);
  const Vec<float> n = p.e + more, r = fma(p.m, p.inverse, -1), square = r * r;
  const Vec<float> low = fma(n, Limits::ln2_lo, share);
  return fma(n, Limits::ln2_hi, p.value) + (r + fma(square, log_rest(r, square), low));
#else
  const auto [f, e] = decompose(u);
  const Vec<float> n = e + more, low = fma(n, Limits::ln2_lo, share);
  return fma(n, Limits::ln2_hi, log_tail(f) + low + f);
#endif
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
