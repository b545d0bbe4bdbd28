// AVX2 + FMA + F16C: 256-bit vectors, 16 registers.
#pragma once
#include <immintrin.h>
#define TW_ISA_NAME avx2
#define TW_HAS_STREAMING 1
#define TW_HAS_WIDENING 1

namespace tw::avx2 {
namespace {
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;

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
inline FourFloats narrow_lanes(FourDoubles x) { return (FourFloats)_mm256_cvtpd_ps((__m256d)x); }
}  // namespace
}  // namespace tw::avx2
