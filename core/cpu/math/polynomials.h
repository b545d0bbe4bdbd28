// What the elementary functions are built from: constants of the formats, polynomials, lane loops.
#pragma once
#include "core/cpu/simd/vec.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class T>
concept Integer = std::is_integral_v<T>;
template <class T>
concept Floating = std::is_floating_point_v<T>;
template <class T> using Same = std::type_identity_t<Vec<T>>;
template <class T> using Bits = Vec<IntLike<T>>;

// `rounder`: adding it to |x| < 2^(mantissa_bits - 1) leaves the nearest integer in the low bits.
template <class T> struct Format;
template <> struct Format<float> {
  static constexpr int mantissa_bits = 23;
  static constexpr float bias = 127, rounder = 0x1.8p23f, smallest_normal = 0x1p-126f;
};
template <> struct Format<double> {
  static constexpr int mantissa_bits = 52;
  static constexpr double bias = 1023, rounder = 0x1.8p52, smallest_normal = 0x1p-1022;
};
inline constexpr double kInfinity = __builtin_inf(), kNan = __builtin_nan("");

// a b + c, rounded once in every instruction set: where it is what a rounding lost. The scalar set
// calls the C library's.
template <Floating T> TW_INLINE Vec<T> exact_fma(Vec<T> a, Same<T> b, Same<T> c) {
  if constexpr (kFused) return fma(a, b, c);
  for (int i = 0; i < kLanes<T>; ++i)
    c.v[i] = sizeof(T) == 4 ? (T)__builtin_fmaf((float)a.v[i], (float)b.v[i], (float)c.v[i])
                            : (T)__builtin_fma(a.v[i], b.v[i], c.v[i]);
  return c;
}

// The limit where x is beyond it; both keep NaN, as one instruction each: that of x86 gives its
// second operand where either is NaN, which the compiler does not make of the comparison in
// vectors.
#if defined(__AVX512F__)
#define TW_LIMIT(name, ps, pd)                                                         \
  TW_INLINE Vec<float> name(Vec<float> x, Same<float> limit) {                         \
    return Vec<float>((Vec<float>::Raw)_mm512_##ps((__m512)limit.v, (__m512)x.v));     \
  }                                                                                    \
  TW_INLINE Vec<double> name(Vec<double> x, Same<double> limit) {                      \
    return Vec<double>((Vec<double>::Raw)_mm512_##pd((__m512d)limit.v, (__m512d)x.v)); \
  }
#elif defined(__AVX2__)
#define TW_LIMIT(name, ps, pd)                                                         \
  TW_INLINE Vec<float> name(Vec<float> x, Same<float> limit) {                         \
    return Vec<float>((Vec<float>::Raw)_mm256_##ps((__m256)limit.v, (__m256)x.v));     \
  }                                                                                    \
  TW_INLINE Vec<double> name(Vec<double> x, Same<double> limit) {                      \
    return Vec<double>((Vec<double>::Raw)_mm256_##pd((__m256d)limit.v, (__m256d)x.v)); \
  }
#endif
#ifdef TW_LIMIT
TW_LIMIT(at_most, min_ps, min_pd)
TW_LIMIT(at_least, max_ps, max_pd)
#undef TW_LIMIT
#else
template <Floating T> TW_INLINE Vec<T> at_most(Vec<T> x, Same<T> limit) {
  return x.v > limit.v ? limit.v : x.v;
}
template <Floating T> TW_INLINE Vec<T> at_least(Vec<T> x, Same<T> limit) {
  return x.v < limit.v ? limit.v : x.v;
}
#endif

TW_INLINE Bits<float> at_least(Bits<float> x, Bits<float> limit) {
#if defined(__AVX512F__)
  return Bits<float>((Bits<float>::Raw)_mm512_max_epi32((__m512i)x.v, (__m512i)limit.v));
#else
  return x.v > limit.v ? x.v : limit.v;
#endif
}
TW_INLINE Bits<double> at_least(Bits<double> x, Bits<double> limit) {
#if defined(__AVX512F__)
  return Bits<double>((Bits<double>::Raw)_mm512_max_epi64((__m512i)x.v, (__m512i)limit.v));
#else
  return x.v > limit.v ? x.v : limit.v;
#endif
}

// Of two unsigned numbers; one instruction each.
TW_INLINE Vec<std::uint32_t> larger(Vec<std::uint32_t> a, Vec<std::uint32_t> b) {
#if defined(__AVX512F__)
  return Vec<std::uint32_t>((Vec<std::uint32_t>::Raw)_mm512_max_epu32((__m512i)a.v, (__m512i)b.v));
#else
  return a.v > b.v ? a.v : b.v;
#endif
}
TW_INLINE Vec<std::uint32_t> smaller(Vec<std::uint32_t> a, Vec<std::uint32_t> b) {
#if defined(__AVX512F__)
  return Vec<std::uint32_t>((Vec<std::uint32_t>::Raw)_mm512_min_epu32((__m512i)a.v, (__m512i)b.v));
#else
  return a.v < b.v ? a.v : b.v;
#endif
}

// c0 + c1 x + c2 x^2 and so on, by Horner's rule. Coefficients here are minimax fits (Remez);
// each was rounded to the format and the later ones fitted again.
template <class T> TW_INLINE Vec<T> polynomial(Vec<T>, double c0) { return c0; }
template <class T, class... C> TW_INLINE Vec<T> polynomial(Vec<T> x, double c0, C... rest) {
  return fma(polynomial(x, rest...), x, c0);
}

// The same by pairs, in x and its square: half as long a chain for one product more.
template <class T> TW_INLINE Vec<T> by_pairs(Vec<T>, Vec<T>, double c0) { return c0; }
template <class T, class... C>
TW_INLINE Vec<T> by_pairs(Vec<T> x, Vec<T> square, double c0, double c1, C... rest) {
  const Vec<T> pair = fma(x, c1, c0);
  if constexpr (sizeof...(rest) == 0)
    return pair;
  else
    return fma(by_pairs(x, square, rest...), square, pair);
}

// And by fours: a quarter as long a chain for two products more.
template <class T, class... C> TW_INLINE Vec<T> by_fours(Vec<T> x, Vec<T> square, Vec<T> fourth,
                                                         double c0, double c1, double c2, double c3,
                                                         C... rest) {
  const Vec<T> four = by_pairs<T>(x, square, c0, c1, c2, c3);
  if constexpr (sizeof...(rest) == 0)
    return four;
  else if constexpr (sizeof...(rest) < 4)
    return fma(by_pairs<T>(x, square, rest...), fourth, four);
  else
    return fma(by_fours<T>(x, square, fourth, rest...), fourth, four);
}
// Of many terms, where vectors are short and a chain takes longer than its instructions.
template <class T, class... C> TW_INLINE Vec<T> long_polynomial(Vec<T> x, C... c) {
#ifndef TW_HAS_LANE_TABLES
  if constexpr (kFused) {
    const Vec<T> square = x * x;
    return by_fours<T>(x, square, square * square, c...);
  }
#endif
  return polynomial(x, c...);
}

// A scalar builtin for each lane, for those that are one vector instruction.
template <class T, class F> TW_INLINE Vec<T> each_lane(Vec<T> x, F f) {
  Vec<T> y;
  for (int i = 0; i < kLanes<T>; ++i) y.v[i] = f(x.v[i]);
  return y;
}
// A scalar function called for each lane. Through memory, so that no vector is live across a call:
// neither spills nor the cost of dirty upper halves in libm's SSE code.
template <class T, class F> [[gnu::noinline]] Vec<T> call_each_lane(Vec<T> x, F f) {
  T lanes[kLanes<T>];
  x.store(lanes);
#pragma GCC unroll 1
  for (T& lane : lanes) lane = f(lane);
  return Vec<T>::load(lanes);
}
template <class T, class F> [[gnu::noinline]] Vec<T> call_each_lane(Vec<T> a, Vec<T> b, F f) {
  T lanes[kLanes<T>], others[kLanes<T>];
  a.store(lanes);
  b.store(others);
#pragma GCC unroll 1
  for (int i = 0; i < kLanes<T>; ++i) lanes[i] = f(lanes[i], others[i]);
  return Vec<T>::load(lanes);
}
// What rare lanes need, so that the others keep their registers.
template <class F> [[gnu::cold, gnu::noinline]] auto out_of_line(F f) { return f(); }
// Out of line, so that rare lanes cost the others a test and no registers.
template <class T, class F>
[[gnu::cold, gnu::noinline]] Vec<T> replace_lanes(Vec<T> y, Mask<T> chosen, Vec<T> x, F f) {
  for (int i = 0; i < kLanes<T>; ++i)
    if (chosen.v[i]) y.v[i] = f(x.v[i]);
  return y;
}
template <class T, class F>
[[gnu::cold, gnu::noinline]] Vec<T> replace_lanes(Vec<T> y, Mask<T> chosen, Vec<T> a, Vec<T> b,
                                                  F f) {
  for (int i = 0; i < kLanes<T>; ++i)
    if (chosen.v[i]) y.v[i] = f(a.v[i], b.v[i]);
  return y;
}

template <class T> TW_INLINE bool any(Mask<T> m) {
#ifdef __AVX512BW__
  if constexpr (sizeof m.v == 64) return _mm512_test_epi64_mask((__m512i)m.v, (__m512i)m.v) != 0;
#endif
#ifdef __AVX2__
  if constexpr (sizeof m.v == 32) return _mm256_movemask_epi8((__m256i)m.v) != 0;
#endif
  IntLike<T> all = 0;
  for (int i = 0; i < kLanes<T>; ++i) all |= m.v[i];
  return all != 0;
}

// Whether a lane is below the limit; NaN is not.
TW_INLINE bool any_below(Vec<float> x, float limit) {
#if defined(__AVX512F__)  // straight from the comparison's mask, which the compiler does not see
  return _mm512_cmp_ps_mask((__m512)x.v, _mm512_set1_ps(limit), _CMP_LT_OQ) != 0;
#else
  return any(x < limit);
#endif
}

TW_INLINE bool any_below(Vec<double> x, double limit) {
#if defined(__AVX512F__)
  return _mm512_cmp_pd_mask((__m512d)x.v, _mm512_set1_pd(limit), _CMP_LT_OQ) != 0;
#else
  return any(x < limit);
#endif
}

// Whether a lane is above the limit; NaN is not.
TW_INLINE bool any_above(Vec<double> x, double limit) {
#if defined(__AVX512F__)
  return _mm512_cmp_pd_mask((__m512d)x.v, _mm512_set1_pd(limit), _CMP_GT_OQ) != 0;
#else
  return any(x > limit);
#endif
}

// Whether a lane is the limit, beyond it or NaN.
TW_INLINE bool any_not_below(Vec<float> x, float limit) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask((__m512)x.v, _mm512_set1_ps(limit), _CMP_NLT_UQ) != 0;
#else
  return any(!(x < limit));
#endif
}
TW_INLINE bool any_not_below(Vec<double> x, double limit) {
#if defined(__AVX512F__)
  return _mm512_cmp_pd_mask((__m512d)x.v, _mm512_set1_pd(limit), _CMP_NLT_UQ) != 0;
#else
  return any(!(x < limit));
#endif
}

// Parts of a Vec<float>, each NarrowLanes.
inline constexpr int kDoubleParts = kLanes<float> / kLanes<double>;
// By shuffles: g++ 12 copies arrays through memory, and on arm64 fails with an internal error.
template <class Raw, class Part, int N> TW_INLINE void split(Raw x, Part (&parts)[N]) {
  if constexpr (sizeof(Raw) == 64) {
    parts[0] = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
    parts[1] = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  } else if constexpr (sizeof(Raw) == 32) {
    parts[0] = __builtin_shufflevector(x, x, 0, 1, 2, 3);
    parts[1] = __builtin_shufflevector(x, x, 4, 5, 6, 7);
  } else if constexpr (N == 2) {
    parts[0] = __builtin_shufflevector(x, x, 0, 1);
    parts[1] = __builtin_shufflevector(x, x, 2, 3);
  } else {
    __builtin_memcpy(parts, &x, sizeof x);
  }
}
template <class Raw, class Part, int N> TW_INLINE void join(const Part (&parts)[N], Raw& y) {
  if constexpr (sizeof(Raw) == 64) {
    y = __builtin_shufflevector(parts[0], parts[1], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                14, 15);
  } else if constexpr (sizeof(Raw) == 32) {
    y = __builtin_shufflevector(parts[0], parts[1], 0, 1, 2, 3, 4, 5, 6, 7);
  } else if constexpr (N == 2) {
    y = __builtin_shufflevector(parts[0], parts[1], 0, 1, 2, 3);
  } else {
    __builtin_memcpy(&y, parts, sizeof y);
  }
}

// Evaluates f over double vectors and rounds once: for functions whose float form would cost more
// than twice the lanes, as all do that need `fma` where there is none.
template <class F> TW_INLINE Vec<float> through_double(Vec<float> x, F f) {
  NarrowLanes parts[kDoubleParts];
  split(x.v, parts);
  for (NarrowLanes& part : parts) part = narrowed(f(widened(part)));
  Vec<float> y;
  join(parts, y.v);
  return y;
}
template <class F> TW_INLINE Vec<float> through_double(Vec<float> a, Vec<float> b, F f) {
  NarrowLanes parts[kDoubleParts], others[kDoubleParts];
  split(a.v, parts);
  split(b.v, others);
  for (int i = 0; i < kDoubleParts; ++i)
    parts[i] = narrowed(f(widened(parts[i]), widened(others[i])));
  Vec<float> y;
  join(parts, y.v);
  return y;
}

// Functions of float that need fused multiply-add are evaluated in double where there is none: by
// the same function, or by a formula in t that is exact enough for float.
template <class T> inline constexpr bool kWidened = sizeof(T) == 4 && !kFused;
#define TW_WIDEN_AS(formula)                                                                      \
  if constexpr (kWidened<T>)                                                                      \
    return through_double(x,                                                                      \
                          [](Vec<double> t) TW_LAMBDA_INLINE -> Vec<double> { return formula; }); \
  else
#define TW_WIDEN(name) TW_WIDEN_AS(name(t))

// Where y = x + x^2 c + ... with |c| <= 1/2 is x.
template <class T> inline constexpr T kUnchanged = sizeof(T) == 4 ? (T)0x1p-25 : (T)0x1p-54;

}  // namespace
}  // namespace tw::TW_ISA_NAME
