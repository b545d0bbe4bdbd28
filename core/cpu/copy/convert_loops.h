// Conversion of elements between all dtypes, and transposition of blocks through registers.
#pragma once
#ifdef __F16C__
#include <immintrin.h>
#endif
#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/simd/mask_bytes.h"
#include "core/cpu/math/polynomials.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;

template <class To, class From> TW_INLINE To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, x);
}

// Any dtype to float or double without loss (except int64: to double, nearest).
TW_INLINE float widen(float x) { return x; }
TW_INLINE float widen(BFloat16 x) { return bits_as<float>((uint32_t)x.bits << 16); }
// Moves exponent and fraction into place, then corrects the exponent's bias by a multiplication,
// which makes denormals right as well; infinities and NaN get their exponent set.
TW_INLINE float widen(Half x) {
  const uint32_t magnitude = (uint32_t)(x.bits & 0x7fff) << 13;
  const uint32_t special = magnitude >= 0x7c00u << 13 ? 0x7f800000u : 0;
  const uint32_t scaled = bits_as<uint32_t>(bits_as<float>(magnitude) * 0x1p112f);
  return bits_as<float>(scaled | special | (uint32_t)(x.bits & 0x8000) << 16);
}
template <class T> TW_INLINE double widen(T x) { return (double)x; }

// Nearest even; a denormal result is rounded by adding a constant whose last place is 2^-24.
TW_INLINE Half to_half(float x) {
  const uint32_t all = bits_as<uint32_t>(x), magnitude = all & 0x7fffffffu;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t denormal = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t odd = magnitude >> 13 & 1;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfff + odd) >> 13;
  const uint32_t finite = magnitude < 113u << 23 ? denormal : normal;
  return {(uint16_t)((magnitude >= 143u << 23 ? special : finite) | (all >> 16 & 0x8000u))};
}
// Of what is no NaN.
TW_INLINE BFloat16 number_to_bfloat16(float x) {
  const uint32_t all = bits_as<uint32_t>(x);
  return {(uint16_t)((all + 0x7fff + (all >> 16 & 1)) >> 16)};
}
TW_INLINE BFloat16 to_bfloat16(float x) {
  const uint32_t all = bits_as<uint32_t>(x), quiet = all >> 16 | 0x40;
  const uint32_t rounded = number_to_bfloat16(x).bits;
  return {(uint16_t)((all & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
}
// A number that float32 holds, whose bfloat16 is that of x: of a large one, the last nine bits only
// say whether they are all 0, far from where bfloat16 rounds.
template <class T> TW_INLINE float float_for_bfloat16(T x) {
  if constexpr (sizeof(T) < 4) return (float)x;
  const uint32_t above = (uint32_t)x + (std::is_signed_v<T> ? 1u << 24 : 0);
  const bool held = above <= (std::is_signed_v<T> ? 1u << 25 : 1u << 24);
  const T cut = (x & ~(T)0x1ff) | (x & 0x1ff ? 0x100 : 0);
  return (float)(held ? x : cut);
}
// Rounds to odd, so that a second rounding to fewer bits gives the nearest of the double.
TW_INLINE float to_odd_float(double x) {
  const float nearest = (float)x;
  const double back = nearest;
  const uint32_t away = (back > x) == (x > 0) ? 1 : 0;
  const uint32_t odd = (bits_as<uint32_t>(nearest) - away) | 1;
  return (back != x) & (back == back) ? bits_as<float>(odd) : nearest;
}
TW_INLINE float to_odd_float(float x) { return x; }

// As many of int32 as a vector has of float64.
typedef std::int32_t NarrowInts __attribute__((vector_size(kLanes<double> * 4)));

// Clamps to [low, high], NaN to low, so that the truncation after it is defined.
template <class F> TW_INLINE F clamped(F x, F low, F high) {
  x = x > low ? x : low;
  return x < high ? x : high;
}
// By a vector's instruction, so that numbers out of range become what they become in a whole
// vector.
TW_INLINE std::int32_t truncate32(float x) {
  const typename Lanes<float, 4>::type all = {x, x, x, x};
  return __builtin_convertvector(all, typename Lanes<std::int32_t, 4>::type)[0];
}
TW_INLINE std::int32_t truncate32(double x) {
  const Vec<double> all = x;
  return __builtin_convertvector(all.v, NarrowInts)[0];
}
TW_INLINE int64_t truncate64(float x) { return (int64_t)clamped(x, -0x1p63f, 0x1.fffffep62f); }
TW_INLINE int64_t truncate64(double x) {
  return (int64_t)clamped(x, -0x1p63, 0x1.fffffffffffffp62);
}

template <class To> struct Cast;
template <class To>
  requires std::is_integral_v<To>
struct Cast<To> {
  template <class From> static TW_INLINE To from(From x) {
    if constexpr (std::is_integral_v<From>) {
      return (To)x;
    } else {
      const auto wide = widen(x);
      if constexpr (std::is_same_v<To, uint64_t>) {
        const bool large = wide >= 0x1p63f;
        const uint64_t low = (uint64_t)truncate64(large ? wide - 0x1p63f : wide);
        return low + ((uint64_t)large << 63);
      } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint32_t>) {
        return (To)truncate64(wide);
      } else {
        return (To)truncate32(wide);
      }
    }
  }
};
template <> struct Cast<bool> {
  template <class From> static TW_INLINE unsigned char from(From x) {
    if constexpr (std::is_integral_v<From>)
      return x != 0;
    else
      return widen(x) != 0;
  }
  template <class Part> static TW_INLINE unsigned char from(Complex<Part> x) {
    return (x.re != 0) | (x.im != 0);
  }
};
template <> struct Cast<float> {
  template <class From> static TW_INLINE float from(From x) {
    if constexpr (std::is_integral_v<From>)
      return (float)x;
    else
      return (float)widen(x);
  }
};
template <> struct Cast<double> {
  template <class From> static TW_INLINE double from(From x) { return (double)widen(x); }
};
template <> struct Cast<Half> {
  template <class From> static TW_INLINE Half from(From x) {
    // Whole numbers that float32 does not hold are infinite.
    if constexpr (std::is_integral_v<From>)
      return to_half((float)x);
    else
      return to_half(to_odd_float(widen(x)));
  }
};
template <class From> inline constexpr bool kIsSmallInteger =
    std::is_integral_v<From> && sizeof(From) <= 4;
template <> struct Cast<BFloat16> {
  template <class From> static TW_INLINE BFloat16 from(From x) {
    if constexpr (std::is_integral_v<From> && sizeof(From) == 1)  // held without rounding
      return {(uint16_t)(bits_as<uint32_t>((float)x) >> 16)};
    else if constexpr (kIsSmallInteger<From>)
      return number_to_bfloat16(float_for_bfloat16(x));
    else
      return to_bfloat16(to_odd_float(widen(x)));
  }
};
template <class Part> struct Cast<Complex<Part>> {
  template <class From> static TW_INLINE Complex<Part> from(From x) {
    return {Cast<Part>::from(x), 0};
  }
  template <class Other> static TW_INLINE Complex<Part> from(Complex<Other> x) {
    return {(Part)x.re, (Part)x.im};
  }
};

template <class To, class From> TW_INLINE void convert_one(const void* x, void* y) {
  From in;
  __builtin_memcpy(&in, x, sizeof in);
  const auto out = Cast<To>::from(in);
  __builtin_memcpy(y, &out, sizeof out);
}

// Elements of a step of the contiguous loop: a constant, so that the compiler makes plain vector
// code of it without prologue and epilogue, which would be most of this file's 196 conversions.
inline constexpr int kStep = 32;

template <class To> using Stored = decltype(Cast<To>::from(0));

template <class To, class From>
TW_INLINE void convert_step(const From* __restrict x, Stored<To>* __restrict y);

template <class To, class From>
TW_INLINE void cast_step(const From* __restrict x, Stored<To>* __restrict y) {
#pragma GCC ivdep
  for (int i = 0; i < kStep; ++i) y[i] = Cast<To>::from(x[i]);
}
#ifdef __F16C__
template <> TW_INLINE void cast_step<float, Half>(const Half* __restrict x, float* __restrict y) {
  for (int i = 0; i < kStep; i += 8)
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(x + i))));
}
template <> TW_INLINE void cast_step<Half, float>(const float* __restrict x, Half* __restrict y) {
  for (int i = 0; i < kStep; i += 8)
    _mm_storeu_si128((__m128i*)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
}
#endif

// to_odd_float of a vector's lanes. A magnitude that was rounded up is one unit too large.
TW_INLINE void odd_floats(const double* __restrict x, float* __restrict y) {
  for (int i = 0; i < kStep; i += kLanes<double>) {
    const Vec<double> wide = Vec<double>::load(x + i);
    const NarrowLanes nearest = narrowed(wide);
    const Vec<double> back = widened(nearest);
    const Vec<int64_t> sign((int64_t)1 << 63);
    const auto size = [&](Vec<double> v) TW_LAMBDA_INLINE {
      return Vec<double>((typename Vec<double>::Raw)((typename Vec<int64_t>::Raw)v.v & ~sign.v));
    };
    const NarrowInts up = __builtin_convertvector((size(back) > size(wide)).v, NarrowInts);
    const NarrowInts inexact = __builtin_convertvector((back != wide).v, NarrowInts);
    const NarrowInts odd = ((NarrowInts)nearest + up) | (inexact & 1);
    __builtin_memcpy(y + i, &odd, sizeof odd);
  }
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// The same by whole numbers: what is cut off sets the last place that is left. Results below the
// normal numbers are rounded to the nearest; returns whether there are any, or NaN. Eight at a
// time: a vector's load of what two stores wrote would have to wait for both.
TW_INLINE bool odd_normal_floats(const double* __restrict x, float* __restrict y) {
  using Bits = typename Vec<int64_t>::Raw;
  using Sizes = typename Vec<std::int32_t>::Raw;
  const auto four = [](const double* p) TW_LAMBDA_INLINE {
    constexpr int64_t cut = ((int64_t)1 << 29) - 1;
    const Bits bits = (Bits)Vec<double>::load(p).v;
    const Bits odd = (bits | ((bits & cut) + cut)) & ~cut;
    return narrowed(Vec<double>((typename Vec<double>::Raw)odd));
  };
  Sizes others = {};
  for (int i = 0; i < kStep; i += 8) {
    const Vec<float> all(
        __builtin_shufflevector(four(x + i), four(x + i + 4), 0, 1, 2, 3, 4, 5, 6, 7));
    all.store(y + i);
    const Sizes size = (Sizes)all.v & 0x7fffffff;
    others |= ((size > 0) & (size < 0x800000)) | (size > 0x7f800000);
  }
  return any(Mask<std::int32_t>{others});
}
#endif
template <class To>
TW_INLINE void round_doubles(const double* __restrict x, Stored<To>* __restrict y) {
  float numbers[kStep];
#if defined(__AVX2__) && !defined(__AVX512F__)
  const bool others = odd_normal_floats(x, numbers);
  // A float16 of a denormal number is 0.
  if constexpr (std::is_same_v<To, Half>) return cast_step<To>((const float*)numbers, y);
  if (!others) [[likely]] {
    for (int i = 0; i < kStep; ++i) y[i] = Stored<To>{number_to_bfloat16(numbers[i]).bits};
    return;
  }
#endif
  odd_floats(x, numbers);
  cast_step<To>((const float*)numbers, y);
}
TW_INLINE void whole_numbers(const float* __restrict x, std::int32_t* __restrict y) {
  for (int i = 0; i < kStep; i += kLanes<float>)
    convert<std::int32_t>(Vec<float>::load(x + i)).store(y + i);
}
TW_INLINE void whole_numbers(const double* __restrict x, std::int32_t* __restrict y) {
  for (int i = 0; i < kStep; i += kLanes<double>) {
    const NarrowInts out = __builtin_convertvector(Vec<double>::load(x + i).v, NarrowInts);
    __builtin_memcpy(y + i, &out, sizeof out);
  }
}

template <class T> inline constexpr bool kIsShort =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class To> inline constexpr bool kFromInt32 =
    std::is_integral_v<To> && !std::is_same_v<To, bool> && sizeof(To) <= 4 &&
    !std::is_same_v<To, uint32_t>;
// What float32 holds without rounding, or rounds where the result is infinite in any case.
template <class From, class To> inline constexpr bool kByFloat =
    kIsShort<From> || (std::is_integral_v<From> && (std::is_same_v<To, Half> || sizeof(From) < 4));

// 1 for all numbers but 0, NaN included, whose bits beside the sign say so.
TW_INLINE void bools_of_shorts(const void* x, std::uint8_t* y) {
  using Bits = Vec<std::int16_t>;
  auto* bits = (const std::int16_t*)x;
  for (int i = 0; i < kStep; i += Bits::lanes)
    store_mask<std::int16_t>(y + i, (Bits::load(bits + i) & 0x7fff) != 0, Bits::lanes);
}

// Conversions of several parts are one pass for each, over numbers in the registers: the compiler
// makes vectors of each, and few of the whole.
template <class To, class From>
TW_INLINE void convert_step(const From* __restrict x, Stored<To>* __restrict y) {
  if constexpr (kIsShort<From> && std::is_same_v<To, bool>) {
    bools_of_shorts(x, (std::uint8_t*)y);
  } else if constexpr (std::is_floating_point_v<From> && kFromInt32<To>) {
    std::int32_t whole[kStep];
    whole_numbers(x, whole);
    cast_step<To>(whole, y);
  } else if constexpr (kIsSmallInteger<From> && std::is_same_v<To, BFloat16>) {
    cast_step<To>(x, y);
  } else if constexpr (!std::is_same_v<To, float> && !std::is_same_v<From, float> &&
                       kByFloat<From, To> && (kIsShort<From> || kIsShort<To>)) {
    float numbers[kStep];
    cast_step<float>(x, numbers);
    convert_step<To>((const float*)numbers, y);
  } else if constexpr (kIsShort<To> && std::is_same_v<From, double>) {
    round_doubles<To>(x, y);
  } else if constexpr (kIsShort<To> && std::is_integral_v<From>) {
    double numbers[kStep];
    cast_step<double>(x, numbers);
    convert_step<To>((const double*)numbers, y);
  } else {
    cast_step<To>(x, y);
  }
}

template <class To, class From>
void convert_array(int64_t n, const void* x, int64_t xs, void* y, int64_t ys) {
  auto* in = (const char*)x;
  auto* out = (char*)y;
  if (xs == sizeof(From) && ys == sizeof(To)) {
    for (; n >= kStep; n -= kStep, in += kStep * sizeof(From), out += kStep * sizeof(To))
      convert_step<To, From>((const From*)in, (Stored<To>*)out);
  }
#pragma GCC unroll 1
  for (; n > 0; --n, in += xs, out += ys) convert_one<To, From>(in, out);
}

// 1 where x holds, else 0, as 16-bit numbers.
template <class To>
void convert_to_bools(int64_t n, const void* x, int64_t xs, void* y, int64_t ys) {
  const uint16_t one = std::is_same_v<To, BFloat16> ? 0x3f80 : 0x3c00;
  auto* in = (const std::uint8_t*)x;
  auto* out = (uint16_t*)y;
  if (xs == 1 && ys == 2) {
    for (; n >= kStep; n -= kStep, in += kStep, out += kStep)
#pragma GCC ivdep
      for (int i = 0; i < kStep; ++i) out[i] = in[i] ? one : 0;
  }
  convert_array<To, std::uint8_t>(n, in, xs, out, ys);
}

// x goes backwards from its first element, y forwards.
template <class T, int... i>
TW_INLINE void copy_reversed(int64_t n, const T* x, T* y, Indices<i...>) {
  constexpr int L = kLanes<T>;
  x -= L - 1;
  for (; n >= 2 * L; n -= 2 * L, x -= 2 * L, y += 2 * L) {
    const Vec<T> first = Vec<T>::load(x), second = Vec<T>::load(x - L);
    Vec<T>(__builtin_shufflevector(first.v, first.v, (L - 1 - i)...)).store(y);
    Vec<T>(__builtin_shufflevector(second.v, second.v, (L - 1 - i)...)).store(y + L);
  }
  x += L - 1;
#pragma GCC unroll 1
  for (; n > 0; --n) *y++ = *x--;
}

// Every second element.
template <class T, int... i>
TW_INLINE void copy_every_second(int64_t n, const T* x, T* y, Indices<i...>) {
  constexpr int L = kLanes<T>;
  for (; n > L; n -= L, x += 2 * L, y += L) {
    const Vec<T> first = Vec<T>::load(x), second = Vec<T>::load(x + L);
    Vec<T>(__builtin_shufflevector(first.v, second.v, (2 * i)...)).store(y);
  }
#pragma GCC unroll 1
  for (; n > 0; --n, x += 2) *y++ = *x;
}

// From some KiB on the C library copies by a string instruction, whose time doubles on Zen 4 where
// the two lie badly; shorter runs gain nothing, and long ones it writes around the caches.
inline constexpr int64_t kLeastVectorCopy = thresholds::kShortCopyBytes,
                         kMostVectorCopy = thresholds::kMostVectorCopy;
TW_INLINE void copy_run(int64_t bytes, const char* x, char* y) {
#ifdef __AVX2__
  using V = Vec<std::uint8_t>;
  constexpr int L = kLanes<std::uint8_t>;
  if (bytes >= kLeastVectorCopy && bytes <= kMostVectorCopy) {
    const auto load = [](const char* p) TW_LAMBDA_INLINE {
#ifdef TW_HAS_FAR_LOADS
      return V(load_halves<V::Raw>((const std::uint8_t*)p));
#else
      return V::load((const std::uint8_t*)p);
#endif
    };
    int64_t at = 0;
    for (; at + 4 * L <= bytes; at += 4 * L) {
      V v[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) v[i] = load(x + at + i * L);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) v[i].store((std::uint8_t*)y + at + i * L);
    }
    x += at, y += at, bytes -= at;
  }
#endif
  if (bytes > 0) __builtin_memcpy(y, x, bytes);  // null pointers are legal for no elements
}

template <int bytes> void copy_array(int64_t n, const void* x, int64_t xs, void* y, int64_t ys) {
  auto* in = (const char*)x;
  auto* out = (char*)y;
  if (xs == bytes && ys == bytes) return copy_run(n * bytes, in, out);
  if constexpr (bytes <= 8) {
    using T = typename IntOfSize<bytes>::type;
    if (xs == -bytes && ys == bytes && kLanes<T> > 1)
      return copy_reversed(n, (const T*)x, (T*)y, typename CountTo<kLanes<T>>::type());
    if (xs == 2 * bytes && ys == bytes && kLanes<T> > 1)
      return copy_every_second(n, (const T*)x, (T*)y, typename CountTo<kLanes<T>>::type());
  }
#pragma GCC unroll 4
  for (; n > 0; --n, in += xs, out += ys) __builtin_memcpy(out, in, bytes);
}
template <int bytes> void fill_or_copy(int64_t n, const void* x, int64_t xs, void* y, int64_t ys) {
  if constexpr (bytes > 8) {
    copy_array<bytes>(n, x, xs, y, ys);
  } else {
    using T = typename IntOfSize<bytes>::type;
    if (xs != 0 || ys != bytes) return copy_array<bytes>(n, x, xs, y, ys);
    T value;
    __builtin_memcpy(&value, x, bytes);
    if (value == 0) {  // large runs without reading what they overwrite, where the processor can
      if (n > 0) __builtin_memset(y, 0, n * bytes);
      return;
    }
    auto* out = (T*)y;
    const Vec<T> all(value);
    for (; n >= kLanes<T>; n -= kLanes<T>, out += kLanes<T>) all.store(out);
    for (; n > 0; --n) *out++ = value;
  }
}

// The function for a pair: pairs that differ in the sign of an integer only share one.
template <class From, class To> constexpr ConvertFunction function_for() {
  constexpr bool integers = std::is_integral_v<From> && std::is_integral_v<To>;
  if constexpr (std::is_same_v<From, To>) {
    return fill_or_copy<sizeof(To)>;
  } else if constexpr (std::is_same_v<From, bool> && kIsShort<To>) {
    return convert_to_bools<To>;
  } else if constexpr (std::is_same_v<From, bool>) {
    return function_for<std::uint8_t, To>();
  } else if constexpr (std::is_same_v<To, bool>) {
    return convert_array<To, From>;
  } else if constexpr (integers && sizeof(From) == sizeof(To)) {
    return fill_or_copy<sizeof(To)>;
  } else if constexpr (integers) {
    return convert_array<IntLike<To>, From>;
  } else if constexpr (is_complex_number<From> && !is_complex_number<To>) {
    // The real part comes first, the strides are the caller's.
    return convert_array<To, decltype(From::re)>;
  } else if constexpr (std::is_integral_v<To> && sizeof(To) < 4) {
    return convert_array<IntLike<To>, From>;
  } else {
    return convert_array<To, From>;
  }
}

// Side of the square block that is transposed in registers: a whole vector, half of the registers.
template <class T> inline constexpr int kSide =
    kLanes<T> < kRegisters / 2 ? kLanes<T> : kRegisters / 2;

// Whole cache lines only: half-written lines cost more than they save.
template <class V> TW_INLINE void stream_row(void* p, V v) {
  if constexpr (sizeof(V) == 64) {
    stream_line(p, v);
  } else {
    __builtin_memcpy(p, &v, sizeof v);
  }
}

template <class T, int n, bool stream>
TW_INLINE void transpose_block(const char* x, int64_t x_row, char* y, int64_t y_row) {
  typename Lanes<T, n>::type rows[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) __builtin_memcpy(&rows[i], x + i * x_row, sizeof rows[i]);
  transpose_lanes<1, n>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if (stream)
      stream_row(y + i * y_row, rows[i]);
    else
      __builtin_memcpy(y + i * y_row, &rows[i], sizeof rows[i]);
  }
}
template <class T> void transpose_edge(int64_t rows, int64_t cols, const char* x, int64_t x_row,
                                       char* y, int64_t y_row) {
  for (int64_t j = 0; j < cols; ++j)
#pragma GCC unroll 1
    for (int64_t i = 0; i < rows; ++i)
      __builtin_memcpy(y + j * y_row + i * sizeof(T), x + i * x_row + j * sizeof(T), sizeof(T));
}

template <class T, int n, bool stream> void transpose_tile(int64_t rows, int64_t cols,
                                                           const char* x, int64_t x_row, char* y,
                                                           int64_t y_row) {
  const int64_t whole_rows = rows / n * n, whole_cols = cols / n * n;
  for (int64_t j = 0; j < whole_cols; j += n)
    for (int64_t i = 0; i < whole_rows; i += n)
      transpose_block<T, n, stream>(x + i * x_row + j * sizeof(T), x_row,
                                    y + j * y_row + i * sizeof(T), y_row);
  transpose_edge<T>(rows, cols - whole_cols, x + whole_cols * sizeof(T), x_row,
                    y + whole_cols * y_row, y_row);
  transpose_edge<T>(rows - whole_rows, whole_cols, x + whole_rows * x_row, x_row,
                    y + whole_rows * sizeof(T), y_row);
}

// Within a tile of 64 x 64 elements every cache line and page is used up soon after its first
// touch; 32 and 256 measured the same within noise.
template <class T> void transpose(int64_t rows, int64_t cols, const void* x, int64_t x_row, void* y,
                                  int64_t y_row, bool stream) {
  constexpr int64_t tile = 64;
  // Where rows are not whole cache lines, every 64-byte access would touch two of them; of 32-byte
  // ones half do, which measured 1.3 times as fast.
  constexpr int side = kSide<T>, narrow = side * sizeof(T) == 64 ? side / 2 : side;
  const bool whole_lines = ((x_row | y_row | (int64_t)x | (int64_t)y) & 63) == 0;
  const auto run = stream        ? transpose_tile<T, side, true>
                   : whole_lines ? transpose_tile<T, side, false>
                                 : transpose_tile<T, narrow, false>;
  for (int64_t i = 0; i < rows; i += tile)
    for (int64_t j = 0; j < cols; j += tile)
      run(rows - i < tile ? rows - i : tile, cols - j < tile ? cols - j : tile,
          (const char*)x + i * x_row + j * sizeof(T), x_row, (char*)y + j * y_row + i * sizeof(T),
          y_row);
  if (stream) finish_streams();
}

// Of elements that are themselves a vector's size.
template <class T> void transpose_wide(int64_t rows, int64_t cols, const void* x, int64_t x_row,
                                       void* y, int64_t y_row, bool) {
  constexpr int64_t tile = 16;  // whole cache lines on both sides, and few enough for L1
  for (int64_t i = 0; i < rows; i += tile)
    for (int64_t j = 0; j < cols; j += tile)
      transpose_edge<T>(rows - i < tile ? rows - i : tile, cols - j < tile ? cols - j : tile,
                        (const char*)x + i * x_row + j * sizeof(T), x_row,
                        (char*)y + j * y_row + i * sizeof(T), y_row);
}

// By whole vectors, which the next row's overwrite where they are too long.
template <class V, class T>
TW_INLINE void spread_by(int64_t rows, int64_t inner, const T* x, T* y) {
  constexpr int64_t lanes = sizeof(V) / sizeof(T);
  for (int64_t i = 0; i < rows; ++i, y += inner) {
    const V value = x[i] - V{};
    for (int64_t j = 0; j < inner; j += lanes) __builtin_memcpy(y + j, &value, sizeof value);
  }
}
template <class T> void spread(int64_t rows, int64_t inner, const void* x, void* y) {
  constexpr int narrow = 16 / sizeof(T);
  if (inner <= narrow)
    spread_by<typename Lanes<T, narrow>::type>(rows, inner, (const T*)x, (T*)y);
  else
    spread_by<typename RawVec<T>::type>(rows, inner, (const T*)x, (T*)y);
}
void spread_wide(int64_t rows, int64_t inner, const void* x, void* y) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < inner; ++j) ((Complex128*)y)[i * inner + j] = ((const Complex128*)x)[i];
}

// ---- rows of a few elements, many a call ----

typedef std::uint8_t Bytes16 __attribute__((vector_size(16)));
typedef std::uint8_t Bytes32 __attribute__((vector_size(32)));

// Rows without gaps of one to two W: two moves, which may overlap.
template <class W> void move_ends(const CopiedRows& r, const char* x, char* y) {
  const int64_t last = r.run - (int64_t)sizeof(W);
  for (int64_t i = 0; i < r.rows; ++i, x += r.x_row, y += r.y_row) {
    W a, b;
    __builtin_memcpy(&a, x, sizeof a);
    __builtin_memcpy(&b, x + last, sizeof b);
    __builtin_memcpy(y, &a, sizeof a);
    __builtin_memcpy(y + last, &b, sizeof b);
  }
}
void move_runs(const CopiedRows& r, const char* x, char* y) {
  constexpr int64_t W = sizeof(Bytes32);
  for (int64_t i = 0; i < r.rows; ++i, x += r.x_row, y += r.y_row) {
    const auto move = [=](int64_t at) TW_LAMBDA_INLINE {
      Bytes32 v;
      __builtin_memcpy(&v, x + at, W);
      __builtin_memcpy(y + at, &v, W);
    };
    for (int64_t at = 0; at + W < r.run; at += W) move(at);
    move(r.run - W);
  }
}
// The same of one value each, which `Lanes` repeats.
template <class Lanes, class T> void fill_ends(const CopiedRows& r, const char* x, char* y) {
  constexpr int64_t W = sizeof(Lanes);
  for (int64_t i = 0; i < r.rows; ++i, x += r.x_row, y += r.y_row) {
    T value;
    __builtin_memcpy(&value, x, sizeof value);
    const Lanes all = value - Lanes{};
    for (int64_t at = 0; at + W < r.run; at += W) __builtin_memcpy(y + at, &all, W);
    __builtin_memcpy(y + r.run - W, &all, W);
  }
}
// n elements a row, wherever they lie; 0: any number.
template <int n, class T> void move_elements(const CopiedRows& r, const char* x, char* y) {
  for (int64_t i = 0; i < r.rows; ++i, x += r.x_row, y += r.y_row) {
    const int64_t count = n ? n : r.count;
#pragma GCC unroll 8
    for (int64_t k = 0; k < count; ++k)
      __builtin_memcpy(y + k * r.y_step, x + k * r.x_step, sizeof(T));
  }
}
template <class T> void move_few(const CopiedRows& r, const char* x, char* y) {
  switch (r.count) {
    case 1: return move_elements<1, T>(r, x, y);
    case 2: return move_elements<2, T>(r, x, y);
    case 3: return move_elements<3, T>(r, x, y);
    case 4: return move_elements<4, T>(r, x, y);
    default: return move_elements<0, T>(r, x, y);
  }
}
template <class T> void copy_rows(const CopiedRows& r, const void* from, void* to) {
  const auto* x = (const char*)from;
  auto* y = (char*)to;
  constexpr int64_t size = sizeof(T);
  if (r.x_step == size && r.y_step == size) {
    if (r.run >= 32) return move_runs(r, x, y);
    if (r.run >= 16) return move_ends<Bytes16>(r, x, y);
    if (r.run >= 8) return move_ends<uint64_t>(r, x, y);
    if (r.run >= 4) return move_ends<uint32_t>(r, x, y);
  }
  if constexpr (size <= 8) {
    if (r.x_step == 0 && r.y_step == size) {
      if (r.run >= 32) return fill_ends<typename Lanes<T, 32 / size>::type, T>(r, x, y);
      if (r.run >= 16) return fill_ends<typename Lanes<T, 16 / size>::type, T>(r, x, y);
    }
  }
  move_few<T>(r, x, y);
}

template <class From> constexpr void fill_row(ConvertFunction (&row)[kDTypes]) {
#define TW_ROW(To, id, text) row[index_of(DType::id)] = function_for<From, To>();
  TW_DTYPES(TW_ROW)
#undef TW_ROW
}
constexpr ConvertTable make_table() {
  ConvertTable table = {};
#define TW_ROW(From, id, text) fill_row<From>(table.convert[index_of(DType::id)]);
  TW_DTYPES(TW_ROW)
#undef TW_ROW
  table.transpose[0] = transpose<std::uint8_t>;
  table.transpose[1] = transpose<uint16_t>;
  table.transpose[2] = transpose<uint32_t>;
  table.transpose[3] = transpose<uint64_t>;
  table.transpose[4] = transpose_wide<Complex128>;
  table.copy_rows[0] = copy_rows<std::uint8_t>;
  table.copy_rows[1] = copy_rows<uint16_t>;
  table.copy_rows[2] = copy_rows<uint32_t>;
  table.copy_rows[3] = copy_rows<uint64_t>;
  table.copy_rows[4] = copy_rows<Complex128>;
  table.spread[0] = spread<std::uint8_t>;
  table.spread[1] = spread<uint16_t>;
  table.spread[2] = spread<uint32_t>;
  table.spread[3] = spread<uint64_t>;
  table.spread[4] = spread_wide;
  return table;
}

}  // namespace

extern const ConvertTable convert_table;
const ConvertTable convert_table = make_table();

}  // namespace tw::TW_ISA_NAME
