// What rung 3, registers, does: a thread has TW_ROWS x TW_COLUMNS elements of C in registers, so
// that what it reads from shared memory serves as many multiplications; while one pair of tiles is
// multiplied the next is on its way from memory. Settings besides: TW_ROWS, TW_COLUMNS (4 or 8),
// TW_A_LINES, TW_B_LINES (1: elements lie together along k, 0: along the other axis).
#include "problem.cuh"

constexpr int kDepth = 16;                                    // along k, of a tile
constexpr int kHigh = 16 * TW_ROWS, kWide = 16 * TW_COLUMNS;  // of C, a block of 16 x 16 threads
constexpr int kGap = 4;                                       // keeps rows on different banks

struct Tiles {
  S a[2][kDepth][kHigh + kGap], b[2][kDepth][kWide + kGap];
};

// What a thread brings of a tile of `size` x kDepth: first to registers, then to shared memory.
template <int size, int along_k> struct Bringer {
  static constexpr int kEach = size * kDepth / 256;
  S held[kEach];

  static TW_DEVICE int outer(int i) {
    const int n = threadIdx.x + i * 256;
    return along_k ? n / kDepth : n % size;
  }
  static TW_DEVICE int inner(int i) {
    const int n = threadIdx.x + i * 256;
    return along_k ? n % kDepth : n / size;
  }
  TW_DEVICE void read(const M* x, int64_t step_outer, int64_t step_k, int64_t outer0, int64_t k0,
                      int64_t end_outer, int64_t end_k) {
    // Elements of a thread lie a fixed way apart.
    const int64_t r = outer0 + outer(0), k = k0 + inner(0);
    const M* at = x + r * step_outer + k * step_k;
    const int64_t apart = along_k ? (256 / kDepth) * step_outer : (256 / size) * step_k;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const bool inside = along_k ? r + i * (256 / kDepth) < end_outer && k < end_k
                                  : r < end_outer && k + i * (256 / size) < end_k;
      held[i] = inside ? convert<S>(*at) : S(0);
      at += apart;
    }
  }
  TW_DEVICE void write(S (*tile)[size + kGap]) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) tile[inner(i)][outer(i)] = held[i];
  }
};

// What a block multiplies.
TW_DEVICE void multiply_block(const Matmul& p) {
  TW_DYNAMIC_SHARED(Tiles, tiles);
  const M* a = p.a + blockIdx.z * p.a_batch;
  const M* b = p.b + blockIdx.z * p.b_batch;
  const int64_t i0 = int64_t(blockIdx.y) * kHigh, j0 = int64_t(blockIdx.x) * kWide;
  const int column = threadIdx.x % 16, row = threadIdx.x / 16;
  Bringer<kHigh, TW_A_LINES> bring_a;
  Bringer<kWide, TW_B_LINES> bring_b;
  S sums[TW_ROWS][TW_COLUMNS];
#pragma unroll
  for (int r = 0; r < TW_ROWS; ++r)
#pragma unroll
    for (int c = 0; c < TW_COLUMNS; ++c) sums[r][c] = S(0);

  bring_a.read(a, p.a_row, p.a_col, i0, 0, p.m, p.k);
  bring_b.read(b, p.b_col, p.b_row, j0, 0, p.n, p.k);
  bring_a.write(tiles->a[0]);
  bring_b.write(tiles->b[0]);
  __syncthreads();
  int now = 0;
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    const bool more = k0 + kDepth < p.k;
    if (more) {
      bring_a.read(a, p.a_row, p.a_col, i0, k0 + kDepth, p.m, p.k);
      bring_b.read(b, p.b_col, p.b_row, j0, k0 + kDepth, p.n, p.k);
    }
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      S left[TW_ROWS], right[TW_COLUMNS];
      // Fours that lie 64 apart: a warp's reads of them are without conflicts.
#pragma unroll
      for (int r = 0; r < TW_ROWS; ++r) left[r] = tiles->a[now][k][row * 4 + r % 4 + r / 4 * 64];
#pragma unroll
      for (int c = 0; c < TW_COLUMNS; ++c)
        right[c] = tiles->b[now][k][column * 4 + c % 4 + c / 4 * 64];
#pragma unroll
      for (int r = 0; r < TW_ROWS; ++r)
#pragma unroll
        for (int c = 0; c < TW_COLUMNS; ++c) sums[r][c] += left[r] * right[c];
    }
    if (more) {
      bring_a.write(tiles->a[1 - now]);
      bring_b.write(tiles->b[1 - now]);
    }
    __syncthreads();
    now = 1 - now;
  }
#pragma unroll
  for (int r = 0; r < TW_ROWS; ++r)
#pragma unroll
    for (int c = 0; c < TW_COLUMNS; ++c) {
      const int64_t i = i0 + row * 4 + r % 4 + r / 4 * 64, j = j0 + column * 4 + c % 4 + c / 4 * 64;
      if (i < p.m && j < p.n) store(p, p.c + blockIdx.z * p.c_batch, i, j, sums[r][c]);
    }
}
