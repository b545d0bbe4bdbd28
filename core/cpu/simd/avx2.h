// AVX2 + FMA + F16C: 256-bit vectors, 16 registers.
#pragma once
#include <immintrin.h>
#define TW_ISA_NAME avx2
#define TW_HAS_PACKS 1
#define TW_HAS_PARTS 1
#define TW_HAS_STREAMING 1
#define TW_HAS_WIDENING 1

namespace tw::avx2 {
namespace {
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;

// Words of all ones, then of none: eight from 8 - n on have n of them.
alignas(64) inline constexpr int kOnes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
// Eight from n on move the lanes that end at lane n + 4 (or n + 2) to the front.
alignas(32) inline constexpr int kFrom[16] = {0, 1, 2, 3, 4, 5, 6, 7};
inline __m256i words_at(const int* p) { return _mm256_loadu_si256((const __m256i*)p); }

// First `bytes` bytes (0..32) at `p`; the rest reads as zero. Nothing beyond them is touched.
template <class Raw> inline Raw load_bytes(const void* p, int bytes) {
  const int words = bytes / 4;
  const __m256i whole = _mm256_maskload_epi32((const int*)p, words_at(kOnes + 8 - words));
  if (bytes % 4 == 0) return (Raw)whole;
  int last = 0;
  for (int i = 0; i < bytes % 4; ++i) last |= ((const unsigned char*)p)[4 * words + i] << 8 * i;
  const __m256i lanes = _mm256_cmpeq_epi32(words_at(kFrom), _mm256_set1_epi32(words));
  return (Raw)_mm256_blendv_epi8(whole, _mm256_set1_epi32(last), lanes);
}
// Pieces of 16, 8 and 4 bytes that may overlap: stores by a mask take many times as long on AMD's.
template <class Raw> inline void store_bytes(void* p, Raw v, int bytes) {
  auto* const to = (char*)p;
  const auto all = (__m256i)v;
  if (bytes % 4 != 0) {
    alignas(32) char copy[32];
    _mm256_store_si256((__m256i*)copy, all);
    for (int i = 0; i < bytes; ++i) to[i] = copy[i];
  } else if (bytes >= 16) {
    const __m256i end = _mm256_permutevar8x32_epi32(all, words_at(kFrom + bytes / 4 - 4));
    _mm_storeu_si128((__m128i*)to, _mm256_castsi256_si128(all));
    _mm_storeu_si128((__m128i*)(to + bytes - 16), _mm256_castsi256_si128(end));
  } else if (bytes >= 8) {
    const __m256i end = _mm256_permutevar8x32_epi32(all, words_at(kFrom + bytes / 4 - 2));
    _mm_storel_epi64((__m128i*)to, _mm256_castsi256_si128(all));
    _mm_storel_epi64((__m128i*)(to + bytes - 8), _mm256_castsi256_si128(end));
  } else if (bytes) {
    _mm_storeu_si32(to, _mm256_castsi256_si128(all));
  }
}

// Writes half a cache line around the caches; `p` is 32-byte aligned. The processor joins two that
// come one after the other. Before other threads read it, the writer calls finish_streams.
template <class Raw> inline void stream_line(void* p, Raw v) {
  _mm256_stream_si256(static_cast<__m256i*>(p), (__m256i)v);
}
inline void finish_streams() { _mm_sfence(); }

// Four numbers of float32 as float64 and back, and eight of 16 bits as 32, of which GCC 12 makes
// two halves each.
typedef float FourFloats __attribute__((vector_size(16)));
typedef double FourDoubles __attribute__((vector_size(32)));
typedef unsigned short EightShorts __attribute__((vector_size(16)));
typedef unsigned EightInts __attribute__((vector_size(32)));
inline FourDoubles widen_lanes(FourFloats x) { return (FourDoubles)_mm256_cvtps_pd((__m128)x); }
inline EightInts widen_lanes(EightShorts x) { return (EightInts)_mm256_cvtepu16_epi32((__m128i)x); }
// Of a vector the first `count`, 0 to 4.
inline FourFloats load_floats(const float* p, int count) {
  const __m128i lanes = _mm_loadu_si128((const __m128i*)(kOnes + 8 - count));
  return (FourFloats)_mm_maskload_ps(p, lanes);
}
inline FourFloats narrow_lanes(FourDoubles x) { return (FourFloats)_mm256_cvtpd_ps((__m256d)x); }

// Masks of lanes of two bytes, or of four, as bytes in the lanes' order.
typedef signed char ThirtyTwoBytes __attribute__((vector_size(32)));
template <class Raw> inline ThirtyTwoBytes pack_masks(const Raw (&m)[2]) {
  const __m256i halves = _mm256_packs_epi16((__m256i)m[0], (__m256i)m[1]);
  return (ThirtyTwoBytes)_mm256_permute4x64_epi64(halves, 0xd8);
}
template <class Raw> inline ThirtyTwoBytes pack_masks(const Raw (&m)[4]) {
  const __m256i low = _mm256_packs_epi32((__m256i)m[0], (__m256i)m[1]);
  const __m256i high = _mm256_packs_epi32((__m256i)m[2], (__m256i)m[3]);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return (ThirtyTwoBytes)_mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}
}  // namespace
}  // namespace tw::avx2
