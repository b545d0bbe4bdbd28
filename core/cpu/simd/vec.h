// The vector type that every CPU kernel is written over: Vec<T> of kLanes<T> lanes and its Mask<T>.
// Included after one ISA header, which fixes the width; all names have internal linkage, so that
// code of one instruction set can never replace another's at link time. Compiler vectors, and
// intrinsics for what they lack. Hazard: include no header with inline functions (std containers,
// algorithms, <cmath>) in ISA units.
#pragma once
#include <cstdint>
#include <type_traits>
#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "core/base/dtype.h"

namespace tw::TW_ISA_NAME {
namespace {

#ifndef TW_HAS_STREAMING
// Without stores around the caches, or where a vector is no whole line, streams are plain stores.
template <class Raw> inline void stream_line(void* p, Raw v) { __builtin_memcpy(p, &v, sizeof v); }
inline void finish_streams() {}
#endif

#ifdef TW_SANITIZED
// Such a build does not optimise: inlining would only make it take five times as long to compile.
#define TW_INLINE inline
#define TW_LAMBDA_INLINE
#else
#define TW_INLINE inline __attribute__((always_inline))
#define TW_LAMBDA_INLINE __attribute__((always_inline))
#endif

template <int bytes> struct IntOfSize;
template <> struct IntOfSize<1> {
  using type = std::int8_t;
};
template <> struct IntOfSize<2> {
  using type = std::int16_t;
};
template <> struct IntOfSize<4> {
  using type = std::int32_t;
};
template <> struct IntOfSize<8> {
  using type = std::int64_t;
};
template <class T> using IntLike = typename IntOfSize<sizeof(T)>::type;

template <class T>
inline constexpr int kLanes = kVectorBytes > (int)sizeof(T) ? kVectorBytes / (int)sizeof(T) : 1;

template <class T> struct RawVec {
  typedef T type __attribute__((vector_size(kLanes<T> * sizeof(T))));
};

template <int count> struct BytesOf {
  typedef std::int8_t type __attribute__((vector_size(count)));
};

// One bool a lane: all bits set or none.
template <class T> struct Mask {
  using Raw = typename RawVec<IntLike<T>>::type;
  Raw v;
  friend TW_INLINE Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
  friend TW_INLINE Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
  friend TW_INLINE Mask operator^(Mask a, Mask b) { return {a.v ^ b.v}; }
  friend TW_INLINE Mask operator!(Mask a) { return {~a.v}; }
  // Writes the lanes as bytes 0 or 1.
  TW_INLINE void store_bytes_01(std::uint8_t* out, int count) const {
    using Bytes = typename BytesOf<kLanes<T>>::type;
    const Bytes bytes = __builtin_convertvector(v, Bytes) & 1;
    if (count == kLanes<T>) {
      __builtin_memcpy(out, &bytes, sizeof bytes);
    } else {
      for (int i = 0; i < count; ++i) out[i] = (std::uint8_t)bytes[i];
    }
  }
};

template <class T> struct Vec {
  using Element = T;
  using Raw = typename RawVec<T>::type;
  static constexpr int lanes = kLanes<T>;
  Raw v;

  Vec() = default;
  TW_INLINE Vec(Raw raw) : v(raw) {}
  TW_INLINE Vec(T scalar) : v(scalar - Raw{}) {}  // broadcast; x - 0 keeps -0.0
  template <class S>
    requires(std::is_arithmetic_v<S> && !std::is_same_v<S, T>)
  TW_INLINE Vec(S scalar) : Vec((T)scalar) {}

  static TW_INLINE Vec load(const T* p) {
    Vec out;
    __builtin_memcpy(&out.v, p, sizeof(Raw));
    return out;
  }
  TW_INLINE void store(T* p) const { __builtin_memcpy(p, &v, sizeof(Raw)); }
  // Like store, around the caches where the instruction set can; p is aligned to the vector.
  TW_INLINE void stream(T* p) const { stream_line(p, v); }
  // The first `count` lanes, 0 <= count <= lanes; others read as zero and are not written.
  static TW_INLINE Vec load(const T* p, int count) {
#ifdef TW_HAS_PARTS
    return Vec(load_bytes<Raw>(p, count * (int)sizeof(T)));
#else
    Raw out = {};
    for (int i = 0; i < count; ++i) out[i] = p[i];
    return Vec(out);
#endif
  }
  TW_INLINE void store(T* p, int count) const {
#ifdef TW_HAS_PARTS
    store_bytes(p, v, count * (int)sizeof(T));
#else
    for (int i = 0; i < count; ++i) p[i] = v[i];
#endif
  }
  TW_INLINE T operator[](int lane) const { return v[lane]; }

  friend TW_INLINE Vec operator+(Vec a, Vec b) { return a.v + b.v; }
  friend TW_INLINE Vec operator-(Vec a, Vec b) { return a.v - b.v; }
  friend TW_INLINE Vec operator*(Vec a, Vec b) { return a.v * b.v; }
  friend TW_INLINE Vec operator/(Vec a, Vec b) { return a.v / b.v; }
  friend TW_INLINE Vec operator-(Vec a) { return -a.v; }
  friend TW_INLINE Vec operator&(Vec a, Vec b) { return a.v & b.v; }
  friend TW_INLINE Vec operator|(Vec a, Vec b) { return a.v | b.v; }
  friend TW_INLINE Vec operator^(Vec a, Vec b) { return a.v ^ b.v; }
  friend TW_INLINE Mask<T> operator<(Vec a, Vec b) { return {a.v < b.v}; }
  friend TW_INLINE Mask<T> operator>(Vec a, Vec b) { return {a.v > b.v}; }
  friend TW_INLINE Mask<T> operator<=(Vec a, Vec b) { return {a.v <= b.v}; }
  friend TW_INLINE Mask<T> operator>=(Vec a, Vec b) { return {a.v >= b.v}; }
  friend TW_INLINE Mask<T> operator==(Vec a, Vec b) { return {a.v == b.v}; }
  friend TW_INLINE Mask<T> operator!=(Vec a, Vec b) { return {a.v != b.v}; }
  template <class Term> TW_INLINE Vec& operator+=(Term b) { return *this = *this + b; }
  TW_INLINE Vec& operator-=(Vec b) { return *this = *this - b; }
};

// ---- sums of products ----
//
// A product is fused into a sum where fma is written and nowhere else (-ffp-contract=off), so that
// bits follow from the formula alone: not from the loop around it, nor from the compiler.

#if defined(__FMA__) || defined(__ARM_NEON)
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif

// a b + c of numbers or of the compiler's vectors, rounded once by the instruction set's FMA. The
// scalar set has none and rounds the product and the sum: a call of the C library's function takes
// several times as long, and what needs the one rounding says exact_fma (core/cpu/math).
template <class Raw>
  requires(!std::is_class_v<Raw>)
TW_INLINE Raw fma(Raw a, Raw b, Raw c) {
  if constexpr (!kFused) {
    return a * b + c;
  } else if constexpr (std::is_same_v<Raw, float>) {
    return __builtin_fmaf(a, b, c);
  } else if constexpr (std::is_same_v<Raw, double>) {
    return __builtin_fma(a, b, c);
  } else {
    [[maybe_unused]] constexpr bool single = sizeof a[0] == sizeof(float);
#if defined(__AVX512F__)
    if constexpr (sizeof a == 64 && single)
      return (Raw)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
    else if constexpr (sizeof a == 64)
      return (Raw)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
    else
#endif
#if defined(__FMA__)
        if constexpr (sizeof a == 32 && single)
      return (Raw)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
    else if constexpr (sizeof a == 32)
      return (Raw)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
    else if constexpr (sizeof a == 16 && single)
      return (Raw)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
    else if constexpr (sizeof a == 16)
      return (Raw)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
    else
      static_assert(sizeof a == 0, "no FMA of this width");
#elif defined(__ARM_NEON)
    if constexpr (sizeof a == 16 && single)
      return (Raw)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
    else if constexpr (sizeof a == 16)
      return (Raw)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
    else {  // emulated tiles have wider ones
      Raw y;
      for (unsigned i = 0; i < sizeof a / sizeof a[0]; ++i) y[i] = fma(a[i], b[i], c[i]);
      return y;
    }
#endif
  }
}
TW_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return fma(a.v, b.v, c.v); }
TW_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return fma(a.v, b.v, c.v);
}

// A product that sums take by an FMA, of numbers or of vectors.
template <class V> struct ProductTerm {
  V a, b;
  TW_INLINE operator V() const { return a * b; }
  friend TW_INLINE V operator+(V sum, ProductTerm p) { return fma(p.a, p.b, sum); }
  friend TW_INLINE V operator+(ProductTerm p, ProductTerm q) { return fma(p.a, p.b, (V)q); }
};

template <class T>
TW_INLINE Vec<T> where(Mask<T> c, std::type_identity_t<Vec<T>> a, std::type_identity_t<Vec<T>> b) {
  return c.v ? a.v : b.v;
}

// Same bits, other lane type of the same size.
template <class To, class From> TW_INLINE Vec<To> bit_cast(Vec<From> x) {
  static_assert(sizeof(To) == sizeof(From));
  return Vec<To>((typename Vec<To>::Raw)x.v);
}
// Lane-wise conversion between types of the same size (float <-> int32, double <-> int64),
// truncating towards zero; out-of-range values are unspecified.
template <class To, class From> TW_INLINE Vec<To> convert(Vec<From> x) {
  static_assert(sizeof(To) == sizeof(From));
  return Vec<To>(__builtin_convertvector(x.v, typename Vec<To>::Raw));
}

// As many of float32 as a vector has of float64.
typedef float NarrowLanes __attribute__((vector_size(kLanes<double> * sizeof(float))));

TW_INLINE Vec<double> widened(NarrowLanes x) {
#ifdef TW_HAS_WIDENING
  return Vec<double>(widen_lanes(x));
#else
  return Vec<double>(__builtin_convertvector(x, Vec<double>::Raw));
#endif
}
TW_INLINE NarrowLanes narrowed(Vec<double> x) {
#ifdef TW_HAS_WIDENING
  return narrow_lanes(x.v);
#else
  return __builtin_convertvector(x.v, NarrowLanes);
#endif
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
