// Words of a counter: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011).
#include "prelude.cuh"

struct Words { uint32_t at[4]; };
TW_DEVICE Words philox(uint64_t seed, uint64_t block) {
  uint32_t c0 = uint32_t(block), c1 = uint32_t(block >> 32), c2 = 0, c3 = 0;
  uint32_t key0 = uint32_t(seed), key1 = uint32_t(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(p1 >> 32) ^ c1 ^ key0;
    c1 = uint32_t(p1);
    c2 = uint32_t(p0 >> 32) ^ c3 ^ key1;
    c3 = uint32_t(p0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The high half of a 64 x 64 bit product.
TW_DEVICE uint64_t high_half(uint64_t a, uint64_t b) {
  const uint64_t a0 = uint32_t(a), a1 = a >> 32, b0 = uint32_t(b), b1 = b >> 32;
  const uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), mid2 = a0 * b1 + uint32_t(mid);
  return a1 * b1 + (mid >> 32) + (mid2 >> 32);
}
