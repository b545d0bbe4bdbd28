// AVX512_BF16 on top of AVX-512: a dot product of bfloat16 pairs, added to 16 sums. Denormals count
// as zero.
#pragma once
#include <cstdint>
#include <immintrin.h>
#define TW_ISA_NAME avx512_bf16

namespace tw::avx512_bf16 {
namespace {
inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;

// sums[i] += x[0] * y[2i] + x[1] * y[2i + 1], where `x` are two bfloat16, `y` 32.
inline __attribute__((always_inline)) __m512 add_pairs(__m512 sums, const std::uint16_t* x,
                                                       __m512i y) {
  std::int32_t pair;
  __builtin_memcpy(&pair, x, sizeof pair);
  return _mm512_dpbf16_ps(sums, (__m512bh)_mm512_set1_epi32(pair), (__m512bh)y);
}
}  // namespace
}  // namespace tw::avx512_bf16
