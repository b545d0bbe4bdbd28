// What each of 256 threads brings of a tile of `size` x `depth` elements: first to registers, while
// the tile before is multiplied, then (what the rungs differ in) to shared memory. `along_k`: whether
// elements lie together along k.
#include "problem.cuh"

template <class T, int size, int depth, int along_k> struct Brought {
  static constexpr int kEach = size * depth / kBlockThreads;
  T held[kEach];

  static TW_DEVICE int outer(int i) {
    const int n = threadIdx.x + i * kBlockThreads;
    return along_k ? n / depth : n % size;
  }
  static TW_DEVICE int inner(int i) {
    const int n = threadIdx.x + i * kBlockThreads;
    return along_k ? n % depth : n / size;
  }
  TW_DEVICE void read(const M* x, int64_t step_outer, int64_t step_k, int64_t outer0, int64_t k0,
                      int64_t end_outer, int64_t end_k) {
    // Elements of a thread lie a fixed way apart.
    const int64_t r = outer0 + outer(0), k = k0 + inner(0);
    const M* at = x + r * step_outer + k * step_k;
    const int64_t apart = along_k ? (kBlockThreads / depth) * step_outer : (kBlockThreads / size) * step_k;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const bool inside = along_k ? r + i * (kBlockThreads / depth) < end_outer && k < end_k
                                  : r < end_outer && k + i * (kBlockThreads / size) < end_k;
      held[i] = inside ? convert<T>(*at) : T(0);
      at += apart;
    }
  }
};
