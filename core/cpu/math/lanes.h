// What the elementary functions are built from: constants of the formats, polynomials, lane loops.
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif
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

// c0 + c1 x + c2 x^2 and so on, by Horner's rule. Coefficients here are minimax fits (Remez);
// each was rounded to the format and the later ones fitted again.
template <class T> TW_INLINE Vec<T> polynomial(Vec<T>, double c0) { return c0; }
template <class T, class... C> TW_INLINE Vec<T> polynomial(Vec<T> x, double c0, C... rest) {
  return polynomial(x, rest...) * x + c0;
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

// Parts of a Vec<float> as wide as a Vec<double> has lanes.
inline constexpr int kDoubleParts = kLanes<float> / kLanes<double>;
typedef float FloatPart __attribute__((vector_size(kLanes<double> * sizeof(float))));

TW_INLINE Vec<double> widen_part(FloatPart part) {
  return __builtin_convertvector(part, Vec<double>::Raw);
}
template <class Raw, class Part, int N> TW_INLINE void split(Raw x, Part (&parts)[N]) {
  if constexpr (sizeof(Raw) == 64) {  // shuffles, because the compiler copies through memory
    parts[0] = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
    parts[1] = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  } else if constexpr (sizeof(Raw) == 32) {
    parts[0] = __builtin_shufflevector(x, x, 0, 1, 2, 3);
    parts[1] = __builtin_shufflevector(x, x, 4, 5, 6, 7);
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
  } else {
    __builtin_memcpy(&y, parts, sizeof y);
  }
}

// Evaluates f over double vectors and rounds once: for functions whose float form would need
// double-float arithmetic, which without fused multiply-add costs more than twice the lanes.
template <class F> TW_INLINE Vec<float> through_double(Vec<float> x, F f) {
  FloatPart parts[kDoubleParts];
  split(x.v, parts);
  for (FloatPart& part : parts) part = __builtin_convertvector(f(widen_part(part)).v, FloatPart);
  Vec<float> y;
  join(parts, y.v);
  return y;
}
template <class F> TW_INLINE Vec<float> through_double(Vec<float> a, Vec<float> b, F f) {
  FloatPart parts[kDoubleParts], others[kDoubleParts];
  split(a.v, parts);
  split(b.v, others);
  for (int i = 0; i < kDoubleParts; ++i)
    parts[i] = __builtin_convertvector(f(widen_part(parts[i]), widen_part(others[i])).v, FloatPart);
  Vec<float> y;
  join(parts, y.v);
  return y;
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
