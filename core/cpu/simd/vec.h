// The vector type that every CPU kernel is written over: Vec<T> of kLanes<T> lanes and its Mask<T>.
// Included after one ISA header, which fixes the width; all names have internal linkage, so that
// code of one instruction set can never replace another's at link time. Compiler vectors, no
// intrinsics. Hazard: include no header with inline functions (std containers, algorithms, <cmath>)
// in ISA units.
#pragma once
#include <cstdint>
#include <type_traits>

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
  TW_INLINE Vec& operator+=(Vec b) { return *this = *this + b; }
  TW_INLINE Vec& operator-=(Vec b) { return *this = *this - b; }
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
