// Rung 2, tiled: a block reads squares of 32 x 32 of A and B into shared memory, where each element
// serves 32 threads: memory is read 32 times less often. A thread has four elements of C.
#include "problem.cuh"

constexpr int kTile = kTiledSide;

TW_KERNEL(matmul_tiled, Matmul, kBlockThreads) {
  __shared__ S a_tile[kTile][kTile + 1];  // a column more: reads down a column hit different banks
  __shared__ S b_tile[kTile][kTile + 1];
  const M* a = p.a + blockIdx.z * p.a_batch;
  const M* b = p.b + blockIdx.z * p.b_batch;
  const int lane = threadIdx.x % 32, line = threadIdx.x / 32;
  const int64_t i0 = int64_t(blockIdx.y) * kTile, j0 = int64_t(blockIdx.x) * kTile;
  S sums[4] = {S(0), S(0), S(0), S(0)};
  for (int64_t k0 = 0; k0 < p.k; k0 += kTile) {
    for (int r = line; r < kTile; r += 8) {
      // Lanes go along the axis whose elements lie together.
      const int ar = p.a_col <= p.a_row ? r : lane, ac = p.a_col <= p.a_row ? lane : r;
      const int br = p.b_col <= p.b_row ? r : lane, bc = p.b_col <= p.b_row ? lane : r;
      const bool in_a = i0 + ar < p.m && k0 + ac < p.k, in_b = k0 + br < p.k && j0 + bc < p.n;
      a_tile[ar][ac] = in_a ? convert<S>(a[(i0 + ar) * p.a_row + (k0 + ac) * p.a_col]) : S(0);
      b_tile[br][bc] = in_b ? convert<S>(b[(k0 + br) * p.b_row + (j0 + bc) * p.b_col]) : S(0);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      const S right = b_tile[k][lane];
#pragma unroll
      for (int r = 0; r < 4; ++r) add_product(sums[r], a_tile[line + 8 * r][k], right);
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r)
    if (i0 + line + 8 * r < p.m && j0 + lane < p.n)
      store(p, p.c + blockIdx.z * p.c_batch, i0 + line + 8 * r, j0 + lane, sums[r]);
}
