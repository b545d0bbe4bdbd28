// Signs, rounding, classification, extremes, roots and division with Python's rounding.
#pragma once
#include "core/cpu/math/double_word.h"

namespace tw::TW_ISA_NAME {
namespace {

template <Floating T> TW_INLINE Bits<T> sign_bit() { return bit_cast<IntLike<T>>(Vec<T>(-0.0)); }
// In unsigned arithmetic, as the least number's negative wraps: else a compiler may conclude that
// abs(x) < 0 never holds, which fmod asks.
template <Integer T> TW_INLINE Vec<T> abs(Vec<T> x) {
  using U = std::make_unsigned_t<T>;
  return where(x < 0, bit_cast<T>(Vec<U>(0) - bit_cast<U>(x)), x);
}
template <Floating T> TW_INLINE Vec<T> abs(Vec<T> x) {
  return Vec<T>((typename Vec<T>::Raw)(bit_cast<IntLike<T>>(x).v & ~sign_bit<T>().v));
}
// Whether a lane's size is above the limit, or NaN, which its bits are as well.
TW_INLINE bool any_larger(Vec<float> x, float limit) {
  return any(
      Mask<float>{bit_cast<std::int32_t>(abs(x)).v > bit_cast<std::int32_t>(Vec<float>(limit)).v});
}
// -|x|, which is one instruction.
template <Floating T> TW_INLINE Vec<T> minus_abs(Vec<T> x) {
  return bit_cast<T>(bit_cast<IntLike<T>>(x) | sign_bit<T>());
}
template <Floating T> TW_INLINE Vec<T> copysign(Vec<T> magnitude, Same<T> sign) {
#if defined(__AVX512F__)  // one instruction, which the compiler does not see
  constexpr int first_where_third = 0xe4;
  return Vec<T>((typename Vec<T>::Raw)_mm512_ternarylogic_epi32(
      (__m512i)sign.v, (__m512i)magnitude.v, (__m512i)sign_bit<T>().v, first_where_third));
#else
  const Bits<T> s = bit_cast<IntLike<T>>(sign) & sign_bit<T>();
  return bit_cast<T>(bit_cast<IntLike<T>>(abs(magnitude)) | s);
#endif
}
// The same for numbers that are positive or have that sign already.
template <Floating T> TW_INLINE Vec<T> with_sign(Vec<T> magnitude, Same<T> sign) {
  return bit_cast<T>(bit_cast<IntLike<T>>(magnitude) |
                     (bit_cast<IntLike<T>>(sign) & sign_bit<T>()));
}
template <Floating T> TW_INLINE Mask<T> signbit(Vec<T> x) {
  return {bit_cast<IntLike<T>>(x).v < 0};
}
// 0 for -0.0, which x + 0 makes of it, as the Array API has it.
template <class T> TW_INLINE Vec<T> sign(Vec<T> x) {
  return where(x > 0, 1, where(x < 0, -1, x + 0));
}

template <Floating T> TW_INLINE Mask<T> isnan(Vec<T> x) { return x != x; }
template <Floating T> TW_INLINE Mask<T> isinf(Vec<T> x) { return abs(x) == kInfinity; }
template <Floating T> TW_INLINE Mask<T> isfinite(Vec<T> x) { return abs(x) < kInfinity; }
template <Integer T> TW_INLINE Mask<T> isnan(Vec<T> x) { return x != x; }
template <Integer T> TW_INLINE Mask<T> isinf(Vec<T> x) { return x != x; }
template <Integer T> TW_INLINE Mask<T> isfinite(Vec<T> x) { return x == x; }

// NaN where either is NaN, as in NumPy; b where equal, so that maximum(-0.0, 0) is 0. The
// comparison is one instruction, which gives b where either is NaN.
template <class T> TW_INLINE Vec<T> maximum(Vec<T> a, Same<T> b) {
  if constexpr (Integer<T>)
    return a.v > b.v ? a.v : b.v;
  else
    return where(a != a, a, at_least(b, a));
}
template <class T> TW_INLINE Vec<T> minimum(Vec<T> a, Same<T> b) {
  if constexpr (Integer<T>)
    return a.v < b.v ? a.v : b.v;
  else
    return where(a != a, a, at_most(b, a));
}

// With a number that is not NaN one instruction keeps NaN; it also keeps -0.0, which + 0 makes 0.
template <Floating T, class S>
  requires std::is_arithmetic_v<S>
TW_INLINE Vec<T> maximum(Vec<T> a, S b) {
  const Vec<T> y = at_least(a, (T)b);
  return b == 0 ? y + 0 : y;
}
template <Floating T, class S>
  requires std::is_arithmetic_v<S>
TW_INLINE Vec<T> minimum(Vec<T> a, S b) {
  const Vec<T> y = at_most(a, (T)b);
  return b == 0 ? y + 0 : y;
}

#define TW_ROUNDING(name, builtin)                                                           \
  TW_INLINE Vec<float> name(Vec<float> x) {                                                  \
    return each_lane(x, [](float t) TW_LAMBDA_INLINE { return __builtin_##builtin##f(t); }); \
  }                                                                                          \
  TW_INLINE Vec<double> name(Vec<double> x) {                                                \
    return each_lane(x, [](double t) TW_LAMBDA_INLINE { return __builtin_##builtin(t); });   \
  }                                                                                          \
  template <Integer T> TW_INLINE Vec<T> name(Vec<T> x) { return x; }
TW_ROUNDING(floor, floor)
TW_ROUNDING(ceil, ceil)
TW_ROUNDING(trunc, trunc)
TW_ROUNDING(round, rint)  // halves to even
#undef TW_ROUNDING

// Correctly rounded.
TW_INLINE Vec<float> sqrt(Vec<float> x) {
  return each_lane(x, [](float t) TW_LAMBDA_INLINE { return __builtin_sqrtf(t); });
}
TW_INLINE Vec<double> sqrt(Vec<double> x) {
  return each_lane(x, [](double t) TW_LAMBDA_INLINE { return __builtin_sqrt(t); });
}
// 1 - x y^2 where that is small.
template <Floating T> TW_INLINE Vec<T> lack_of_rsqrt(Vec<T> x, Vec<T> y) {
  const Pair<T> root = two_product(x, y);
  return fma(-root.lo, y, fma(-root.hi, y, 1));
}
// y / sqrt(1 - lack), good to lack^3.
template <Floating T> TW_INLINE Vec<T> rsqrt_step(Vec<T> y, Vec<T> lack) {
  return fma(y * lack, fma(lack, (T)0.375, (T)0.5), y);
}
#ifdef TW_HAS_MASKED_ACCESS
// 1 / sqrt(x) within 2^-14.
TW_INLINE Vec<float> near_rsqrt(Vec<float> x) {
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_rsqrt14_ps(0xffff, (__m512)x.v));
}
TW_INLINE Vec<double> near_rsqrt(Vec<double> x) {
  return Vec<double>((Vec<double>::Raw)_mm512_maskz_rsqrt14_pd(0xff, (__m512d)x.v));
}
// The same, and 0 of 0.
TW_INLINE Vec<double> near_rsqrt_or_0(Vec<double> x) {
  const auto v = (__m512d)x.v;
  const __mmask8 other = _mm512_cmp_pd_mask(v, _mm512_setzero_pd(), _CMP_NEQ_UQ);
  return Vec<double>((Vec<double>::Raw)_mm512_maskz_rsqrt14_pd(other, v));
}
TW_INLINE Vec<float> near_rsqrt_or_0(Vec<float> x) {
  const auto v = (__m512)x.v;
  const __mmask16 other = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_rsqrt14_ps(other, v));
}
// a b + c, rounded down.
TW_INLINE Vec<float> fma_down(Vec<float> a, Vec<float> b, Vec<float> c) {
  return Vec<float>((Vec<float>::Raw)_mm512_fmadd_round_ps(
      (__m512)a.v, (__m512)b.v, (__m512)c.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
TW_INLINE Vec<double> fma_down(Vec<double> a, Vec<double> b, Vec<double> c) {
  return Vec<double>((Vec<double>::Raw)_mm512_fmadd_round_pd(
      (__m512d)a.v, (__m512d)b.v, (__m512d)c.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
// Whether the bits of every lane, as a number, are one of `count` from `first` on.
TW_INLINE bool all_bits_within(Vec<float> x, std::uint32_t first, std::uint32_t count) {
  const __m512i from_first = _mm512_sub_epi32((__m512i)x.v, _mm512_set1_epi32((int)first));
  return !_mm512_cmpge_epu32_mask(from_first, _mm512_set1_epi32((int)count));
}
TW_INLINE bool all_bits_within(Vec<double> x, std::uint64_t first, std::uint64_t count) {
  const __m512i from_first = _mm512_sub_epi64((__m512i)x.v, _mm512_set1_epi64((long long)first));
  return !_mm512_cmpge_epu64_mask(from_first, _mm512_set1_epi64((long long)count));
}
// Numbers of which a root is found by steps: not 0, infinities, NaN, nor what is too small for
// them.
template <Floating T> TW_INLINE bool all_have_near_roots(Vec<T> x) {
  using Unsigned = std::make_unsigned_t<IntLike<T>>;
  constexpr T small = sizeof(T) == 8 ? 0x1p-900 : 0x1p-80, large = kInfinity;
  constexpr auto least = __builtin_bit_cast(Unsigned, small);
  return all_bits_within(x, least, __builtin_bit_cast(Unsigned, large) - least);
}
// sqrt where nothing else is computed beside it: on an Intel processor in 0.4 (float64) and 0.7 of
// the instruction's time. A series from 14 bits errs by less than 0.4 ulp, so that, rounded down,
// it gives the result or the number before it. Which, the sign of x - s next(s) tells, since no
// root lies halfway between two numbers (Tuckerman's test). A vector with any other number is
// `outside`'s as a whole, which has the same bits for these.
template <Floating T, class F> TW_INLINE Vec<T> lone_sqrt(Vec<T> x, F outside) {
  if (!all_have_near_roots(x)) [[unlikely]]
    return outside(x);
  const Vec<T> inverse = near_rsqrt(x), near = x * inverse, e = fma(-near, inverse, 1);
  Vec<T> series = (T)0.5;        // (1 - e)^-1/2 = 1 + e series
  if constexpr (sizeof(T) == 8)  // within 2^-55, for |e| up to 2^-13
    series = fma(fma(e, 5.0 / 16, 3.0 / 8 + 105.0 / 512 * 0x1p-26), e, 0.5);
  const Vec<T> s = fma_down(near * e, series, near);
  const Vec<T> next = bit_cast<T>(bit_cast<IntLike<T>>(s) + 1);
  return where(fma(-s, next, x) > 0, next, s);
}
// The same within 2^-23, which rounds to bfloat16 as the root does: a root of a bfloat16 lies 2^-19
// or more beside the middle of two, whose square has more bits.
template <class F> TW_INLINE Vec<float> near_sqrt(Vec<float> x, F outside) {
  if (!all_have_near_roots(x)) [[unlikely]]
    return outside(x);
  const Vec<float> inverse = near_rsqrt(x), near = x * inverse, e = fma(-near, inverse, 1);
  return fma(near * e, 0.5f, near);
}
// x / c, correctly rounded, for z = 1 / c and c from 2^-500 to 2^500, in half of the
// instruction's time. The product errs by 1.5 ulp at most, the first step makes it one of the two
// numbers beside the quotient, and from there a step by a correctly rounded 1 / c rounds correctly
// (Markstein, IA-64 and Elementary Functions, 2000). What is beyond 2^400 or below 2^-400, but 0,
// takes the instruction.
TW_INLINE Vec<double> quotient_by(Vec<double> x, Vec<double> c, Vec<double> z) {
  constexpr auto least = __builtin_bit_cast(std::uint64_t, 0x1p-400);
  constexpr auto count = __builtin_bit_cast(std::uint64_t, 0x1p400) - least;
  const Vec<double> size = abs(x);
  if (!all_bits_within(where(size == 0, 1, size), least, count)) [[unlikely]]
    return x / c;
  const Vec<double> near = x * z, beside = fma(fma(-near, c, x), z, near);
  return copysign(fma(fma(-beside, c, x), z, beside), near);
}
// By steps from 14 bits, which take half of the time of a root and a division. Of 0, infinities,
// NaN and numbers below 0 they make NaN.
template <Floating T> TW_INLINE Vec<T> rsqrt(Vec<T> x) {
  const Vec<T> first = near_rsqrt(x);
  Vec<T> y = first;
  if constexpr (sizeof(T) == 8) y = rsqrt_step(y, fma(-(x * y), y, 1));
  y = rsqrt_step(y, lack_of_rsqrt(x, y));
  return where(y == y, y, first);
}
#else
template <Floating T, class F> TW_INLINE Vec<T> lone_sqrt(Vec<T> x, F outside) {
  return outside(x);
}
template <class F> TW_INLINE Vec<float> near_sqrt(Vec<float> x, F outside) { return outside(x); }
// The quotient of two rounded numbers, and Newton's step with the exact remainder.
template <Floating T> TW_INLINE Vec<T> rsqrt(Vec<T> x) {
  TW_WIDEN(rsqrt) {
    const Vec<T> y = 1 / sqrt(x);
    const Pair<T> product = two_product(x, y);
    const Vec<T> rest = fma(-product.lo, y, exact_fma(-product.hi, y, 1));
    return where((x > 0) & (x < kInfinity), fma(y * rest, (T)0.5, y), y);
  }
}
#ifdef __AVX2__
// By a step from 11.4 bits or more, which the instruction has of normal numbers.
TW_INLINE Vec<float> rsqrt(Vec<float> x) {
  const Vec<float> first = Vec<float>((Vec<float>::Raw)_mm256_rsqrt_ps((__m256)x.v));
  const Vec<float> y = rsqrt_step(first, lack_of_rsqrt(x, first));
  const Mask<float> normal = (x >= Format<float>::smallest_normal) & (x < kInfinity);
  if (!any(!normal)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(normal, y, rsqrt<float>(x)); });
}
#endif
#endif

// Where the sum of the squares is inside these limits, and the bits from which a root's are taken
// for about half its inverse.
template <Floating T> struct HypotRange;
template <> struct HypotRange<float> {
  static constexpr float least = 0x1p-80f, most = 0x1p120f;
  static constexpr std::int32_t half_inverse = 0x7e6eb3c0;
};
template <> struct HypotRange<double> {
  static constexpr double least = 0x1p-800, most = 0x1p1000;
  static constexpr std::int64_t half_inverse = 0x7fcdd67800000000;
};
// The root of the sum of the squares, and what both lost in rounding over twice the root, for which
// a tenth of it is near enough. Elsewhere by `outside`. A NaN stays in `high` or in `low`.
template <Floating T, class F> TW_INLINE Vec<T> hypot_by_root(Vec<T> a, Vec<T> b, F outside) {
  using Range = HypotRange<T>;
  const Vec<T> p = abs(a), q = abs(b), high = at_least(p, q), low = at_most(q, p);
  const Pair<T> square = two_product(high, high);
  const Vec<T> sum = fma(low, low, square.hi), lost = fma(low, low, square.hi - sum);
  const Vec<T> root = sqrt(sum), rest = fma(-root, root, sum) + (lost + square.lo);
  const Bits<T> inverse = Bits<T>(Range::half_inverse) - bit_cast<IntLike<T>>(root);
  const Vec<T> y = fma(rest, bit_cast<T>(inverse), root);
  const Mask<T> inside = (sum >= Range::least) & (sum < Range::most);
  if (!any(!inside)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE { return where(inside, y, outside(a, b)); });
}

// In double, where no float's square overflows. 0.51 ulp.
TW_INLINE Vec<float> hypot_by_double(Vec<float> a, Vec<float> b) {
  const Vec<float> y = through_double(
      a, b, [](Vec<double> p, Vec<double> q) TW_LAMBDA_INLINE { return sqrt(fma(p, p, q * q)); });
  return where(isinf(a) | isinf(b), kInfinity, y);
}
#ifdef TW_HAS_MASKED_ACCESS
// The sum of the squares in two parts, and Newton's steps from 14 bits of its inverse root: the
// second makes good what the rounding of sum and root left. Where squares leave the normal range,
// and at 0, in double. A NaN stays in `high` or in `low`.
TW_INLINE Vec<float> hypot(Vec<float> a, Vec<float> b) {
  const Vec<float> p = abs(a), q = abs(b), high = at_least(p, q), low = at_most(q, p);
  const Pair<float> square = two_product(high, high);
  const Vec<float> sum = fma(low, low, square.hi), lost = fma(low, low, square.hi - sum);
  const Vec<float> inverse = near_rsqrt(sum), half = inverse * 0.5f, near = sum * inverse;
  const Vec<float> root = fma(fma(-near, near, sum), half, near);
  const Vec<float> y = fma(fma(-root, root, sum) + (lost + square.lo), half, root);
  if (!any_below(sum, 0x1p-80f) && !any_not_below(sum, 0x1p120f)) [[likely]]
    return y;
  return out_of_line([=]() TW_LAMBDA_INLINE {
    return where((sum >= 0x1p-80f) & (sum < 0x1p120f), y, hypot_by_double(a, b));
  });
}
#else
TW_INLINE Vec<float> hypot(Vec<float> a, Vec<float> b) {
  if constexpr (!kFused) return hypot_by_double(a, b);
  return hypot_by_root(
      a, b, [](Vec<float> p, Vec<float> q) TW_LAMBDA_INLINE { return hypot_by_double(p, q); });
}
#endif
// Scaled by a power of two; what the squares and the root lose in rounding is made good.
TW_INLINE Vec<double> hypot_by_scaling(Vec<double> a, Vec<double> b) {
  const Vec<double> p = abs(a), q = abs(b);
  const Mask<double> more = p > q, infinite = isinf(p) | isinf(q);
  const Vec<double> high = where(more, p, q);
  const Mask<double> huge = high > 0x1p500, tiny = high < 0x1p-400;
  const Vec<double> s = where(huge, 0x1p-600, where(tiny, 0x1p600, 1));
  const Vec<double> h = high * s, l = where(more, q, p) * s;
  const Pair<double> x = two_product(h, h), y = two_product(l, l);
  const Pair<double> sum = fast_two_sum(x.hi, y.hi);
  const Vec<double> root = sqrt(sum.hi),
                    rest = exact_fma(-root, root, sum.hi) + (sum.lo + x.lo + y.lo);
  const Vec<double> length = where(high == 0, p + q, root + rest * 0.5 / root);
  return where(infinite, kInfinity, length * where(huge, 0x1p600, where(tiny, 0x1p-600, 1)));
}
TW_INLINE Vec<double> hypot(Vec<double> a, Vec<double> b) {
  if constexpr (!kFused) return hypot_by_scaling(a, b);
  return hypot_by_root(
      a, b, [](Vec<double> p, Vec<double> q) TW_LAMBDA_INLINE { return hypot_by_scaling(p, q); });
}

// Numbers of one sign are in the order of their bits.
template <Floating T> TW_INLINE Vec<T> nextafter(Vec<T> a, Vec<T> b) {
  const Bits<T> bits = bit_cast<IntLike<T>>(a);
  const Mask<T> away = {((a > 0) ^ (a > b)).v};
  const Vec<T> moved = bit_cast<T>(Bits<T>(away.v ? bits.v + 1 : bits.v - 1));
  const Vec<T> least = copysign(bit_cast<T>(Bits<T>(1)), b);
  return where((a != a) | (b != b), a + b, where(a == b, b, where(a == 0, least, moved)));
}

template <Floating T> TW_INLINE Vec<T> quotient_or_0(Vec<T> a, Vec<T> b) {
  return where(b == 0, 0, a / b);
}
// x / (a^2 + b^2) without overflow or underflow of the squares; 0 where both are 0.
template <Floating T> TW_INLINE Vec<T> over_squared_length(Vec<T> x, Vec<T> a, Vec<T> b) {
  const Vec<T> size = maximum(abs(a), abs(b)), p = a / size, q = b / size;
  return where(size == 0, 0, x / size / fma(p, p, q * q) / size);
}

template <Floating T> struct FloorDivision {
  T quotient, remainder;
};
// Python's divmod but for zero divisors, which give a / b and NaN, and the quotient of infinities,
// which is floor(a / b) as in the Array API. The remainder has the sign of b.
template <Floating T> TW_INLINE FloorDivision<T> floor_division(T a, T b) {
  T r = (T)(sizeof(T) == 4 ? __builtin_fmodf((float)a, (float)b) : __builtin_fmod(a, b));
  if (b == 0) return {a / b, r};
  T q = (a - r) / b;
  if (r == 0) {
    r = (T)__builtin_copysign(0, b);
  } else if ((r < 0) != (b < 0)) {
    r += b;
    q -= 1;
  }
  if (__builtin_isinf(a) || __builtin_isinf(b)) return {(T)__builtin_floor(a / b), r};
  if (q == 0) return {(T)__builtin_copysign(0, a / b), r};
  const T whole = (T)__builtin_floor(q);
  return {q - whole > (T)0.5 ? whole + 1 : whole, r};
}

// |a| = quotient |b| + remainder, both exact where `exact` says so. A rounded quotient below
// 2^(digits - 1) is the whole one or, where it was rounded up, one more; the remainder, which one
// fused multiply-add gives without rounding, shows by its sign which.
template <Floating T> struct Division {
  Vec<T> quotient, remainder;
  Mask<T> exact;
};
template <Floating T> TW_INLINE Division<T> divide_sizes(Vec<T> a, Vec<T> b) {
  // Up to here Python's formula for the quotient, which rounds twice, gives the whole number too.
  constexpr T kLimit = (T)((std::int64_t)1 << (Format<T>::mantissa_bits - 2));
  const Vec<T> p = abs(a), q = abs(b), ratio = p / q, whole = trunc(ratio);
  const Vec<T> rest = fma(-whole, q, p);
  const Mask<T> more = rest < 0;
  return {where(more, whole - 1, whole), where(more, rest + q, rest),
          (ratio < kLimit) & (q < kInfinity)};
}
template <Floating T> TW_INLINE Vec<T> floored_quotient(const Division<T>& d, Vec<T> a, Vec<T> b) {
  const Bits<T> sign = (bit_cast<IntLike<T>>(a) ^ bit_cast<IntLike<T>>(b)) & sign_bit<T>();
  const Mask<T> below = Mask<T>{sign.v < 0} & (d.remainder != 0);
  return bit_cast<T>(bit_cast<IntLike<T>>(where(below, d.quotient + 1, d.quotient)) | sign);
}
template <Floating T> TW_INLINE Vec<T> floored_remainder(const Division<T>& d, Vec<T> a, Vec<T> b) {
  const Mask<T> below = (signbit(a) ^ signbit(b)) & (d.remainder != 0);
  return copysign(where(below, abs(b) - d.remainder, d.remainder), b);
}

TW_INLINE Vec<double> floor_divide(Vec<double> a, Vec<double> b) {
  const auto one = [](double p, double q) { return floor_division(p, q).quotient; };
  if constexpr (!kFused) return call_each_lane(a, b, one);
  const Division<double> d = divide_sizes(a, b);
  const Vec<double> y = floored_quotient(d, a, b);
  if (!any(!d.exact)) [[likely]]
    return y;
  return replace_lanes(y, !d.exact, a, b, one);
}
TW_INLINE Vec<double> remainder(Vec<double> a, Vec<double> b) {
  const auto one = [](double p, double q) { return floor_division(p, q).remainder; };
  if constexpr (!kFused) return call_each_lane(a, b, one);
  const Division<double> d = divide_sizes(a, b);
  const Vec<double> y = floored_remainder(d, a, b);
  if (!any(!d.exact)) [[likely]]
    return y;
  return replace_lanes(y, !d.exact, a, b, one);
}

// Lanes where a - floor(a / b) * b is not exact in double: the product needs 24 bits more than the
// quotient has; and infinities and NaN.
TW_INLINE Mask<float> needs_fmod(Vec<float> a, Vec<float> b) {
  return (!(abs(a / b) < 0x1p28f)) | isinf(b);
}
// The quotient in double may have been rounded up to a whole number: then the remainder shows it.
TW_INLINE Mask<double> too_large(Vec<double> r, Vec<double> b) {
  return (r != 0) & ((r < 0) ^ (b < 0));
}

// Of larger quotients, and where there is no fused multiply-add.
TW_INLINE Vec<float> floor_divide_wide(Vec<float> a, Vec<float> b) {
  const Vec<float> y = through_double(a, b, [](Vec<double> p, Vec<double> q) TW_LAMBDA_INLINE {
    const Vec<double> whole = floor(p / q);
    return where(too_large(fma(-whole, q, p), q), whole - 1, whole);
  });
  const Mask<float> rare = needs_fmod(a, b);
  if (!any(rare)) [[likely]]
    return y;
  return replace_lanes(y, rare, a, b,
                       [](float p, float q) { return floor_division(p, q).quotient; });
}
TW_INLINE Vec<float> remainder_wide(Vec<float> a, Vec<float> b) {
  const Vec<float> y = through_double(a, b, [](Vec<double> p, Vec<double> q) TW_LAMBDA_INLINE {
    const Vec<double> r = fma(-floor(p / q), q, p);
    return where(r == 0, copysign(r, q), where(too_large(r, q), r + q, r));
  });
  const Mask<float> rare = needs_fmod(a, b);
  if (!any(rare)) [[likely]]
    return y;
  return replace_lanes(y, rare, a, b,
                       [](float p, float q) { return floor_division(p, q).remainder; });
}

TW_INLINE Vec<float> floor_divide(Vec<float> a, Vec<float> b) {
  if constexpr (!kFused) return floor_divide_wide(a, b);
  const Division<float> d = divide_sizes(a, b);
  if (any(!d.exact)) [[unlikely]]
    return out_of_line([&] { return floor_divide_wide(a, b); });
  return floored_quotient(d, a, b);
}
TW_INLINE Vec<float> remainder(Vec<float> a, Vec<float> b) {
  if constexpr (!kFused) return remainder_wide(a, b);
  const Division<float> d = divide_sizes(a, b);
  if (any(!d.exact)) [[unlikely]]
    return out_of_line([&] { return remainder_wide(a, b); });
  return floored_remainder(d, a, b);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
