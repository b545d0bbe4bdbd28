// Rung 4, tensor: tensor cores multiply 16 x 16 by 16 x 8 elements with one instruction of a warp,
// sums in float. It is faster than registers because one instruction does 2,048 multiplications;
// what feeds it must keep up, so tiles are copied three ahead without passing through registers,
// read by squares, and lie in shared memory so that eight rows of a square are in different banks.
//
// A block of four warps has TW_SIDE x TW_SIDE of C, a warp a quarter. Settings besides those of
// problem.cuh: TW_KIND, TW_A_LINES, TW_B_LINES (1: elements lie together along k, 0: along the other
// axis), TW_A_WHOLE, TW_B_WHOLE (1: 16 bytes at a time, 0: any strides and addresses).
#include "output.cuh"
#include "tiles.cuh"

constexpr int kThreads = kTensorThreads, kStages = kTensorStages, kWarpSide = TW_SIDE / 2;
constexpr int kDepth = kTileBytesAlong / sizeof(M);  // along k, of a tile
constexpr int kTileBytes = TW_SIDE * kTileBytesAlong, kStageBytes = 2 * kTileBytes;
static_assert(kStages * kStageBytes == tensor_shared_bytes(TW_SIDE));

TW_DEVICE void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if TW_KIND == TW_KIND_TF32
  multiply_16x8x8(c, a, b);
#else
  multiply_16x8x16<TW_KIND>(c, a, b);
#endif
}
TW_DEVICE void round_operands(uint32_t (&r)[4]) {
#if TW_KIND == TW_KIND_TF32
#pragma unroll
  for (int q = 0; q < 4; ++q) r[q] = to_tf32(r[q]);
#endif
}

constexpr int kHigh = kWarpSide / 16, kWide = kWarpSide / 8;  // instructions' squares of a warp
using Sums = float[kHigh][kWide][4];

// A tile's share of a warp's sums.
TW_DEVICE void multiply_tile(Sums& sums, char* stage, int row0, int column0) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    uint32_t left[kHigh][4], right[kWide / 2][4];
#pragma unroll
    for (int m = 0; m < kHigh; ++m) {
      read_left<M, TW_SIDE, TW_A_LINES>(left[m], stage, row0 + m * 16, step);
      round_operands(left[m]);
    }
#pragma unroll
    for (int n = 0; n < kWide / 2; ++n) {
      read_right<M, TW_SIDE, TW_B_LINES>(right[n], stage + kTileBytes, column0 + n * 16, step);
      round_operands(right[n]);
    }
#pragma unroll
    for (int m = 0; m < kHigh; ++m)
#pragma unroll
      for (int n = 0; n < kWide; ++n) {
        const uint32_t two[2] = {right[n / 2][n % 2 * 2], right[n / 2][n % 2 * 2 + 1]};
        multiply(sums[m][n], left[m], two);
      }
  }
}

TW_KERNEL(matmul_tensor, Matmul, kThreads) {
  TW_DYNAMIC_SHARED(char, stages);
  const int64_t member = blockIdx.z / p.pieces, piece = blockIdx.z % p.pieces;
  const Tile tile =
      tile_of(blockIdx.x, (p.m + TW_SIDE - 1) / TW_SIDE, (p.n + TW_SIDE - 1) / TW_SIDE);
  const int64_t i0 = tile.row * TW_SIDE, j0 = tile.column * TW_SIDE, k0 = piece * p.terms;
  const int64_t terms = p.k - k0 < p.terms ? p.k - k0 : p.terms;
  const int warp = threadIdx.x / 32, row0 = warp / 2 * kWarpSide, column0 = warp % 2 * kWarpSide;

  Loader<M, TW_SIDE, TW_A_LINES, TW_A_WHOLE, kThreads> left(
      p.a + member * p.a_batch + i0 * p.a_row + k0 * p.a_col, p.a_row, p.a_col, p.m - i0, terms);
  Loader<M, TW_SIDE, TW_B_LINES, TW_B_WHOLE, kThreads> right(
      p.b + member * p.b_batch + j0 * p.b_col + k0 * p.b_row, p.b_col, p.b_row, p.n - j0, terms);
  const int count = int((terms + kDepth - 1) / kDepth);
  // A group a tile, empty ones at the end: the number of groups to wait for is always the same.
  int copied = 0;
  const auto copy_next = [&] {
    if (copied < count) {
      char* const stage = stages + copied % kStages * kStageBytes;
      left.copy(stage);
      right.copy(stage + kTileBytes);
    }
    ++copied;
    commit_copies();
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) copy_next();
  Sums sums = {};
  for (int t = 0; t < count; ++t) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the tile is there for all, and all have left the one that is next replaced
    copy_next();
    multiply_tile(sums, stages + t % kStages * kStageBytes, row0, column0);
  }
  wait_for_copies<0>();
  __syncthreads();  // nobody reads the tiles any more
  const Output out(p, member, piece);
  auto* const staging = reinterpret_cast<Staging*>(stages) + warp;
#pragma unroll
  for (int m = 0; m < kHigh; ++m)
    out.put<kWide * 8>(p, i0 + row0 + m * 16, j0 + column0, &sums[m][0][0], *staging);
}
