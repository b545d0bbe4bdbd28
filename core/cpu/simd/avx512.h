// AVX-512 F, BW, DQ, VL: 512-bit vectors, 32 registers, masked loads and stores for the tails.
#pragma once
#include <immintrin.h>
#define TW_ISA_NAME avx512
#define TW_HAS_MASKED_ACCESS 1
#define TW_HAS_MASKED_HALVES 1
#define TW_HAS_PARTS 1
#define TW_HAS_STREAMING 1
#define TW_HAS_FAR_LOADS 1
#define TW_HAS_WIDENING 1
#define TW_HAS_NARROWING 1
#define TW_HAS_LANE_TABLES 1

namespace tw::avx512 {
namespace {
inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;

// First `bytes` bytes (0..64) at `p`; the rest reads as zero. Nothing beyond them is touched.
template <class Raw> inline Raw load_bytes(const void* p, int bytes) {
  return (Raw)_mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, bytes), p);
}
template <class Raw> inline void store_bytes(void* p, Raw v, int bytes) {
  _mm512_mask_storeu_epi8(p, _bzhi_u64(~0ull, bytes), (__m512i)v);
}
// The same for half a vector: 0..32.
template <class Half> inline Half load_half_of_bytes(const void* p, int bytes) {
  return (Half)_mm256_maskz_loadu_epi8(_bzhi_u32(~0u, bytes), p);
}
// 64 bytes in two loads. Zen 4 splits a load of 64 bytes; one that misses its first-level cache
// then waits for stores just before it to addresses that look alike: additions of 1024 x 1024 take
// 133 us in the place of 141 to 212 by where the arrays lie (docs/notes/pointwise.md).
template <class Raw> inline Raw load_halves(const void* p) {
  const auto* halves = static_cast<const __m256i*>(p);
  return (Raw)_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(halves)),
                                 _mm256_loadu_si256(halves + 1), 1);
}
// Writes a whole cache line around the caches; `p` is 64-byte aligned. Before other threads read
// it, the writer calls finish_streams.
template <class Raw> inline void stream_line(void* p, Raw v) {
  _mm512_stream_si512(static_cast<__m512i*>(p), (__m512i)v);
}
inline void finish_streams() { _mm_sfence(); }

// table[i] for the low four bits i of each lane of `index`; and for the low five.
typedef float SixteenFloats __attribute__((vector_size(64)));
inline SixteenFloats look_up_16(const float* table, SixteenFloats index) {
  return (SixteenFloats)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)index, _mm512_load_ps(table));
}
inline SixteenFloats look_up_32(const float* table, SixteenFloats index) {
  return (SixteenFloats)_mm512_permutex2var_ps(_mm512_load_ps(table), (__m512i)index,
                                               _mm512_load_ps(table + 16));
}
typedef double EightDoubles __attribute__((vector_size(64)));
template <class Number> inline EightDoubles look_up_16(const Number* table, EightDoubles index) {
  return (EightDoubles)_mm512_permutex2var_epi64(_mm512_load_si512(table), (__m512i)index,
                                                 _mm512_load_si512(table + 8));
}

// Eight numbers of float32 as float64 and back, and sixteen of 16 bits as 32, of which GCC 12 makes
// two halves each.
typedef float EightFloats __attribute__((vector_size(32)));
inline EightDoubles widen_lanes(EightFloats x) {
  return (EightDoubles)_mm512_maskz_cvtps_pd(0xff, (__m256)x);
}
// Of a vector the first `count`, 0 to 8.
inline EightFloats load_floats(const float* p, int count) {
  return (EightFloats)_mm256_maskz_loadu_ps((__mmask8)_bzhi_u32(0xff, count), p);
}
typedef unsigned short SixteenShorts __attribute__((vector_size(32)));
typedef unsigned SixteenInts __attribute__((vector_size(64)));
inline SixteenInts widen_lanes(SixteenShorts x) {
  return (SixteenInts)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)x);
}
inline EightFloats narrow_lanes(EightDoubles x) {
  return (EightFloats)_mm512_maskz_cvtpd_ps(0xff, (__m512d)x);
}

// Masks of lanes of four bytes, or of eight, as bytes 0 or 1 in the lanes' order. Each mask takes a
// byte of every lane; then the bytes of a mask are brought together, in 16 bytes first.
typedef signed char SixtyFourBytes __attribute__((vector_size(64)));
template <class Raw> inline SixtyFourBytes pack_masks(const Raw (&m)[4]) {
  SixteenInts lanes = (SixteenInts)m[0] & 1;
#pragma GCC unroll 4
  for (int i = 1; i < 4; ++i) lanes |= (SixteenInts)m[i] & 1u << 8 * i;
  const __m128i by_mask = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i near =
      _mm512_shuffle_epi8((__m512i)lanes, _mm512_maskz_broadcast_i32x4(0xffff, by_mask));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return (SixtyFourBytes)_mm512_maskz_permutexvar_epi32(0xffff, order, near);
}
template <class Raw> inline SixtyFourBytes pack_masks(const Raw (&m)[8]) {
  typedef unsigned long long Lanes __attribute__((vector_size(64)));
  Lanes lanes = (Lanes)m[0] & 1;
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) lanes |= (Lanes)m[i] & 1ull << 8 * i;
  const __m128i by_mask = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  const __m512i near =
      _mm512_shuffle_epi8((__m512i)lanes, _mm512_maskz_broadcast_i32x4(0xffff, by_mask));
  constexpr long long first = 0x0018'0010'0008'0000, next = 0x0001'0001'0001'0001;  // words
  const __m512i order =
      _mm512_setr_epi64(first, first + next, first + 2 * next, first + 3 * next, first + 4 * next,
                        first + 5 * next, first + 6 * next, first + 7 * next);
  return (SixtyFourBytes)_mm512_maskz_permutexvar_epi16(~0u, order, near);
}
}  // namespace
}  // namespace tw::avx512
