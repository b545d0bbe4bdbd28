// Random numbers of a key, word for word those of the CPU. Settings: TW_TYPE (float or double).
#include "philox.cuh"
#include "random_parameters.h"
using T = TW_TYPE;

TW_DEVICE Words block_of(const Random& p, int64_t block) {
  return philox(p.key[0], p.key[1] / 4 + uint64_t(block));
}
TW_DEVICE uint32_t word_of(const Random& p, int64_t word) {
  return block_of(p, word / 4).at[word % 4];
}
TW_DEVICE uint64_t pair_of(const Random& p, int64_t pair) {
  const Words words = block_of(p, pair / 2);
  const int at = int(pair % 2) * 2;
  return uint64_t(words.at[at]) << 32 | words.at[at + 1];
}

#define TW_FOR_EACH(i, n)                                                          \
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x,                 \
               tw_step = int64_t(gridDim.x) * blockDim.x; i < (n); i += tw_step)

// Four words a thread.
TW_KERNEL(uniform_float, Random, kBlockThreads) {
  float* y = static_cast<float*>(p.y);
  const float unit = 1.0f / float(1 << p.bits);
  TW_FOR_EACH(block, (p.count + kPhiloxWords - 1) / kPhiloxWords) {
    const Words words = block_of(p, block);
#pragma unroll
    for (int k = 0; k < kPhiloxWords; ++k)
      if (kPhiloxWords * block + k < p.count)
        y[kPhiloxWords * block + k] = float(int32_t(words.at[k] >> (32 - p.bits))) * unit;
  }
}
TW_KERNEL(uniform_double, Random, kBlockThreads) {
  TW_FOR_EACH(i, p.count)
    static_cast<double*>(p.y)[i] = double(int64_t(pair_of(p, i) >> 11)) * 0x1p-53;
}

// Box and Muller's pairs, by blocks of kNormalBlock elements: the first half of a block's words gives
// distances and the second angles.
constexpr int64_t kBlock = kNormalBlock;
TW_DEVICE double unit_of(const Random& p, int64_t element, double) {
  return double(int64_t(pair_of(p, element) >> 11)) * 0x1p-53;
}
TW_DEVICE float unit_of(const Random& p, int64_t element, float) {
  return float(int32_t(word_of(p, element) >> 8)) * 0x1p-24f;
}
TW_DEVICE void sine_and_cosine(float turns, float& s, float& c) {
  s = ::sinpif(turns * 2);
  c = ::cospif(turns * 2);
}
TW_DEVICE void sine_and_cosine(double turns, double& s, double& c) {
  s = ::sinpi(turns * 2);
  c = ::cospi(turns * 2);
}
TW_DEVICE float distance_of(float u) { return ::sqrtf(::logf(1 - u) * -2); }
TW_DEVICE double distance_of(double u) { return ::sqrt(::log(1 - u) * -2); }
TW_KERNEL(normal, Random, kBlockThreads) {
  T* y = static_cast<T*>(p.y);
  const int64_t blocks = (p.count + kBlock - 1) / kBlock;
  TW_FOR_EACH(n, blocks * (kBlock / 2)) {
    const int64_t first = n / (kBlock / 2) * kBlock, i = n % (kBlock / 2);
    const int64_t size = p.count - first < kBlock ? p.count - first : kBlock;
    const int64_t half = (size + 1) / 2;
    if (i >= half) continue;
    const T distance = distance_of(unit_of(p, first + i, T(0)));
    T s, c;
    sine_and_cosine(unit_of(p, first + half + i, T(0)), s, c);
    y[first + i] = distance * c;
    if (half + i < size) y[first + half + i] = distance * s;
  }
}

TW_KERNEL(integers, Random, kBlockThreads) {
  TW_FOR_EACH(i, p.count)
    static_cast<int64_t*>(p.y)[i] = int64_t(uint64_t(p.low) + high_half(pair_of(p, i), p.span));
}

// What is kept where a word, as a number in [0, 1), lies below `keep`.
TW_KERNEL(dropout, Random, kBlockThreads) {
  const T factor = T(p.scale);
  TW_FOR_EACH(block, (p.count + kPhiloxWords - 1) / kPhiloxWords) {
    const Words words = block_of(p, block);
#pragma unroll
    for (int k = 0; k < kPhiloxWords; ++k) {
      const int64_t i = kPhiloxWords * block + k;
      if (i >= p.count) break;
      const bool kept = float(int32_t(words.at[k] >> 8)) * 0x1p-24f < p.keep;
      static_cast<T*>(p.y)[i] = kept ? static_cast<const T*>(p.x)[i] * factor : T(0);
    }
  }
}
