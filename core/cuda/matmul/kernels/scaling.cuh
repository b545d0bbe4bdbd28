// How an operand of float32 becomes two of half (split.cuh): matmul_scale finds each row's power of
// two and flags, matmul_split writes the halves, in the operand's own order along the axis whose
// elements lie together. Setting besides those of problem.cuh: TW_LINES (1: that axis is k).
#include "split.cuh"

using Operand = ScalingOf<float, half>;

// The largest power of two of a row, and elements so far below its largest that half cannot hold
// both to 22 bits: 2^15 and the least normal number 2^-14, what is left beside it.
constexpr int kLargest = 14, kMostApart = 28, kMostExponent = 60;

// Sixteen rows a block, sixteen threads a row.
TW_KERNEL(matmul_scale, Operand, kBlockThreads) {
  __shared__ uint32_t largest[16][16], least[16][16];
  const int row = TW_LINES ? threadIdx.x / 16 : threadIdx.x % 16;
  const int lane = TW_LINES ? threadIdx.x % 16 : threadIdx.x / 16;
  const int64_t outer = int64_t(blockIdx.x) * kFlagRows + row;
  // Bits of magnitudes are ordered as they are; of infinities and NaN the largest.
  uint32_t most = 0, fewest = 0xffffffff;
  if (outer < p.outers) {
    const float* at = p.x + blockIdx.z * p.member_step + outer * p.outer_step + lane * p.k_step;
    for (int64_t k = lane; k < p.terms; k += 16, at += 16 * p.k_step) {
      const uint32_t bits = __float_as_uint(*at) & 0x7fffffff;
      most = bits > most ? bits : most;
      fewest = bits && bits < fewest ? bits : fewest;
    }
  }
  largest[row][lane] = most;
  least[row][lane] = fewest;
  __syncthreads();
  bool flagged = false;
  if (threadIdx.x < 16) {
    const int64_t own = int64_t(blockIdx.x) * kFlagRows + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const uint32_t more = largest[threadIdx.x][i], fewer = least[threadIdx.x][i];
      most = i == 0 || more > most ? more : most;
      fewest = i == 0 || fewer < fewest ? fewer : fewest;
    }
    const int exponent = int(most >> 23) - 127, smallest = int(fewest >> 23) - 127;
    flagged = most && (exponent > kMostExponent || exponent < -kMostExponent ||
                       smallest < exponent - kMostApart);
    if (own < p.outers)
      p.exponents[blockIdx.z * p.outers + own] = most && !flagged ? kLargest - exponent : 0;
  }
  if (threadIdx.x < 32) {
    int any = flagged;
#pragma unroll
    for (int bits = 16; bits; bits /= 2) any |= __shfl_xor_sync(TW_ALL_LANES, any, bits);
    if (threadIdx.x == 0) p.flags[blockIdx.z * p.flag_groups + blockIdx.x] = any;
  }
}

// Eight neighbours a thread.
TW_KERNEL(matmul_split, Operand, kBlockThreads) {
  struct alignas(16) Eight {
    half at[8];
  };
  const int64_t lines = TW_LINES ? p.outers : p.terms, together = TW_LINES ? p.terms : p.outers;
  const int64_t each = p.pitch / 8, count = p.members * lines * each;
  const int64_t step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t n = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; n < count; n += step) {
    const int64_t first = n % each * 8, line = n / each % lines, member = n / each / lines;
    const int32_t* exponents = p.exponents + member * p.outers;
    const float* at = p.x + member * p.member_step +
                      (TW_LINES ? line * p.outer_step + first * p.k_step
                                : line * p.k_step + first * p.outer_step);
    Eight high, low;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      float value = 0;
      if (first + e < together)
        value = at[e * (TW_LINES ? p.k_step : p.outer_step)] *
                power_of_two(exponents[TW_LINES ? line : first + e]);
      high.at[e] = to_half(value);
      low.at[e] = to_half((value - to_float(high.at[e])) * low_scale());
    }
    const int64_t to = (member * lines + line) * p.pitch + first;
    *reinterpret_cast<Eight*>(p.high + to) = high;
    *reinterpret_cast<Eight*>(p.low + to) = low;
  }
}
