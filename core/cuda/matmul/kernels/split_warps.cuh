// Rung 7, split, on a warp's own instructions, from 8.0 on: what split_groups.cuh does on
// warpgroups. Products of high parts leave the unit every 32 terms. A block of eight warps has 128
// x 64 of C, a warp 32 x 32. Settings besides those of problem.cuh: TW_A_LINES, TW_B_LINES (1:
// halves lie together along k).
#include "output.cuh"
#include "split.cuh"
#include "tiles.cuh"

constexpr int kThreads = kBlockThreads, kStages = kSplitStages;
constexpr int kHigh = kFlaggedSide, kWide = kSplitWarpsWide, kDepth = kTileBytesAlong / sizeof(half);
constexpr int kLeftBytes = kHigh * kTileBytesAlong, kRightBytes = kWide * kTileBytesAlong;
constexpr int kStageBytes = 2 * (kLeftBytes + kRightBytes);
static_assert(kStages * kStageBytes == split_warps_shared_bytes());

using Problem = SplitOf<M, S, half>;

using Sums = float[2][4][4];
TW_DEVICE void add(Sums& sums, const Sums& more, float factor) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int q = 0; q < 4; ++q) sums[m][n][q] += factor * more[m][n][q];
}

// A tile's share of a warp's sums.
TW_DEVICE void multiply_tile(Sums& large, Sums& small, char* stage, int row0, int column0) {
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    uint32_t left[2][2][4], right[2][2][4];  // high and low
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        read_left<half, kHigh, TW_A_LINES>(left[part][h], stage + part * kLeftBytes, row0 + h * 16,
                                           step);
        read_right<half, kWide, TW_B_LINES>(
            right[part][h], stage + 2 * kLeftBytes + part * kRightBytes, column0 + h * 16, step);
      }
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        uint32_t two[2][2];
#pragma unroll
        for (int part = 0; part < 2; ++part)
#pragma unroll
          for (int h = 0; h < 2; ++h) two[part][h] = right[part][n / 2][n % 2 * 2 + h];
        multiply_16x8x16<TW_KIND_HALF>(large[m][n], left[0][m], two[0]);
        multiply_16x8x16<TW_KIND_HALF>(small[m][n], left[0][m], two[1]);
        multiply_16x8x16<TW_KIND_HALF>(small[m][n], left[1][m], two[0]);
      }
  }
}

// Copies both halves of an operand's tiles.
template <int side, int along_k> struct Halves {
  Loader<half, side, along_k, 1, kThreads> high, low;
  TW_DEVICE Halves(const SplitOperand& x, int64_t member, int64_t outer0, int64_t terms)
      : high(start(x, x.high, member, outer0, terms)),
        low(start(x, x.low, member, outer0, terms)) {}
  static TW_DEVICE Loader<half, side, along_k, 1, kThreads> start(const SplitOperand& x,
                                                                  const half* at, int64_t member,
                                                                  int64_t outer0, int64_t terms) {
    const int64_t outer_step = along_k ? x.row_step : 1, k_step = along_k ? 1 : x.row_step;
    return {at + member_of(x, member) * x.member_step + outer0 * outer_step, outer_step, k_step,
            x.outers - outer0, terms};
  }
  TW_DEVICE void copy(char* tile) {
    high.copy(tile);
    low.copy(tile + side * kTileBytesAlong);
  }
};

TW_KERNEL(matmul_split_warps, Problem, kThreads) {
  TW_DYNAMIC_SHARED(char, stages);
  const Matmul& m = p.p;
  const int64_t member = blockIdx.z;
  const Tile tile = tile_of(blockIdx.x, (m.m + kHigh - 1) / kHigh, (m.n + kWide - 1) / kWide);
  const int64_t i0 = tile.row * kHigh, j0 = tile.column * kWide;
  if (is_flagged(p.a, p.b, member, i0, j0)) return;
  const int warp = threadIdx.x / 32, row0 = warp / 2 * 32, column0 = warp % 2 * 32;

  Halves<kHigh, TW_A_LINES> left(p.a, member, i0, m.k);
  Halves<kWide, TW_B_LINES> right(p.b, member, j0, m.k);
  const int count = int((m.k + kDepth - 1) / kDepth);
  int copied = 0;
  const auto copy_next = [&] {
    if (copied < count) {
      char* const stage = stages + copied % kStages * kStageBytes;
      left.copy(stage);
      right.copy(stage + 2 * kLeftBytes);
    }
    ++copied;
    commit_copies();
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) copy_next();
  Sums sums = {}, small = {};
  for (int t = 0; t < count; ++t) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the tile is there for all, and all have left the one that is next replaced
    copy_next();
    Sums large = {};
    multiply_tile(large, small, stages + t % kStages * kStageBytes, row0, column0);
    add(sums, large, 1);
  }
  wait_for_copies<0>();
  __syncthreads();  // nobody reads the tiles any more
  add(sums, small, 1 / low_scale());
  const Output out(m, member, 0);
  const Unscale unscale(p.a, p.b, member);
  auto* const staging = reinterpret_cast<Staging*>(stages) + warp;
#pragma unroll
  for (int h = 0; h < 2; ++h)
    out.put<32>(m, i0 + row0 + h * 16, j0 + column0, &sums[h][0][0], *staging, unscale);
}
