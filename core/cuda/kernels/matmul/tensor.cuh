// Rung 4, tensor: tensor cores multiply 16 x 16 by 16 x 8 elements with one instruction of a warp,
// sums in float. It is faster than registers because one instruction does 2,048 multiplications;
// what feeds it must keep up, so tiles are copied four ahead without passing through registers, read
// by squares, and lie in shared memory so that eight rows of a square are in different banks.
//
// A block of four warps has TW_SIDE x TW_SIDE of C, a warp a quarter. Settings besides those of
// problem.cuh: TW_KIND (0: bfloat16, 1: half, 2: float rounded to tf32), TW_A_LINES, TW_B_LINES (1:
// elements lie together along k, 0: along the other axis), TW_A_WHOLE, TW_B_WHOLE (1: 16 bytes at a
// time, 0: any strides and addresses).
#include "output.cuh"
#include "tensor_core.cuh"

constexpr int kThreads = 128, kStages = 4, kWarpSide = TW_SIDE / 2;
constexpr int kDepth = 64 / sizeof(M);  // along k, of a tile: 64 bytes
constexpr int kChunk = 16 / sizeof(M);  // elements that are copied at once
constexpr int kTileBytes = TW_SIDE * 64, kStageBytes = 2 * kTileBytes;

// A tile of TW_SIDE x kDepth: rows of 16-byte chunks along the axis whose elements lie together.
template <int along_k> struct Layout {
  static constexpr int kChunks = (along_k ? 64 : TW_SIDE * sizeof(M)) / 16;  // of a row
  static constexpr int kRows = TW_SIDE * 4 / kChunks;
  // Chunks of a row change places by the row's number: eight rows' same chunk is in 32 banks.
  static constexpr int kTurn = kChunks < 8 ? 8 / kChunks : 1;  // rows that fill the banks once
  static TW_DEVICE char* at(char* tile, int row, int chunk) {
    return tile + (row * kChunks + (chunk ^ (row / kTurn % (8 / kTurn)))) * 16;
  }
};

// What a thread copies of each tile of one operand, from memory to shared memory.
template <int along_k, int whole> struct Loader {
  using L = Layout<along_k>;
  static constexpr int kEach = TW_SIDE * 4 / kThreads, kApart = kThreads / L::kChunks;
  const M* from;
  int64_t row_step, line_step, rows, line;  // left of rows and of elements along the line
  int row, chunk;

  // x: element (outer0, k0), of which there are so many along each axis.
  TW_DEVICE Loader(const M* x, int64_t outer_step, int64_t k_step, int64_t outers, int64_t terms) {
    row = threadIdx.x / L::kChunks, chunk = threadIdx.x % L::kChunks;
    row_step = along_k ? outer_step : k_step;
    line_step = whole ? 1 : along_k ? k_step : outer_step;
    rows = (along_k ? outers : terms) - row;
    line = (along_k ? terms : outers) - chunk * kChunk;
    from = x + row * row_step + chunk * kChunk * line_step;
  }
  TW_DEVICE void copy(char* tile) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t left = i * kApart < rows ? line : 0;
      const int valid = left < 0 ? 0 : left < kChunk ? int(left) : kChunk;
      copy_chunk(L::at(tile, row + i * kApart, chunk), from + i * kApart * row_step, valid);
    }
    from += kDepth * (along_k ? line_step : row_step);
    (along_k ? line : rows) -= kDepth;
  }
  TW_DEVICE void copy_chunk(char* to, const M* x, int valid) const {
    if constexpr (whole) {
      copy_async<16>(to, x, valid * int(sizeof(M)));
    } else if constexpr (sizeof(M) == 4) {
#pragma unroll
      for (int e = 0; e < kChunk; ++e)
        copy_async<4>(to + 4 * e, x + e * line_step, e < valid ? 4 : 0);
    } else {
      struct alignas(16) Chunk {
        uint16_t at[8];
      } held;
      const auto* bits = reinterpret_cast<const uint16_t*>(x);
#pragma unroll
      for (int e = 0; e < 8; ++e) held.at[e] = e < valid ? bits[e * line_step] : uint16_t(0);
      *reinterpret_cast<Chunk*>(to) = held;
    }
  }
};

// Sixteen rows of A, 32 bytes along k, as the product wants them.
TW_DEVICE void read_left(uint32_t (&r)[4], char* tile, int row0, int step) {
  using L = Layout<TW_A_LINES>;
  const int lane = threadIdx.x % 32;
  if constexpr (TW_A_LINES) {
    load_squares(r, L::at(tile, row0 + lane % 16, step * 2 + lane / 16));
  } else if constexpr (sizeof(M) == 2) {
    const int k = step * 16 + lane % 8 + lane / 16 * 8;
    load_squares_transposed(r, L::at(tile, k, row0 / 8 + lane / 8 % 2));
  } else {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int outer = row0 + lane / 4 + q % 2 * 8;
      r[q] = reinterpret_cast<const uint32_t*>(
          L::at(tile, step * 8 + lane % 4 + q / 2 * 4, outer / 4))[outer % 4];
    }
  }
}
// Sixteen columns of B, 32 bytes along k: two operands.
TW_DEVICE void read_right(uint32_t (&r)[4], char* tile, int column0, int step) {
  using L = Layout<TW_B_LINES>;
  const int lane = threadIdx.x % 32;
  if constexpr (TW_B_LINES) {
    load_squares(r, L::at(tile, column0 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2));
  } else if constexpr (sizeof(M) == 2) {
    load_squares_transposed(r, L::at(tile, step * 16 + lane % 16, column0 / 8 + lane / 16));
  } else {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int outer = column0 + lane / 4 + q / 2 * 8;
      r[q] = reinterpret_cast<const uint32_t*>(
          L::at(tile, step * 8 + lane % 4 + q % 2 * 4, outer / 4))[outer % 4];
    }
  }
}
TW_DEVICE void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if TW_KIND == 2
  multiply_16x8x8(c, a, b);
#else
  multiply_16x8x16<TW_KIND>(c, a, b);
#endif
}
TW_DEVICE void round_operands(uint32_t (&r)[4]) {
#if TW_KIND == 2
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
      read_left(left[m], stage, row0 + m * 16, step);
      round_operands(left[m]);
    }
#pragma unroll
    for (int n = 0; n < kWide / 2; ++n) {
      read_right(right[n], stage + kTileBytes, column0 + n * 16, step);
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

  Loader<TW_A_LINES, TW_A_WHOLE> left(p.a + member * p.a_batch + i0 * p.a_row + k0 * p.a_col,
                                      p.a_row, p.a_col, p.m - i0, terms);
  Loader<TW_B_LINES, TW_B_WHOLE> right(p.b + member * p.b_batch + j0 * p.b_col + k0 * p.b_row,
                                       p.b_col, p.b_row, p.n - j0, terms);
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
#pragma unroll
    for (int n = 0; n < kWide; n += 4)
      out.put(p, i0 + row0 + m * 16, j0 + column0 + n * 8, &sums[m][n][0], *staging);
}
