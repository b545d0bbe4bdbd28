// Tiles of operands in shared memory, for a warp's own tensor-core instructions: where elements lie
// so that eight rows of a square are in different banks, how they come there, how they are read.
#include "problem.cuh"
#include "tensor_core.cuh"

// A tile of `side` x kTileBytesAlong bytes along k: rows of 16-byte chunks along the axis whose elements E lie
// together.
template <class E, int side, int along_k> struct Layout {
  static constexpr int kChunks = (along_k ? kTileBytesAlong : side * sizeof(E)) / 16;  // of a row
  // Chunks of a row change places by the row's number: eight rows' same chunk is in 32 banks.
  static constexpr int kTurn = kChunks < 8 ? 8 / kChunks : 1;  // rows that fill the banks once
  static TW_DEVICE char* at(char* tile, int row, int chunk) {
    return tile + (row * kChunks + (chunk ^ (row / kTurn % (8 / kTurn)))) * 16;
  }
};

// What one of so many threads copies of each tile of an operand, from memory to shared memory.
// Whole: 16 bytes at a time; else any strides and addresses.
template <class E, int side, int along_k, int whole, int threads> struct Loader {
  using L = Layout<E, side, along_k>;
  static constexpr int kEach = side * 4 / threads, kApart = threads / L::kChunks;
  static constexpr int kDepth = kTileBytesAlong / sizeof(E);  // along k, of a tile
  static constexpr int kChunk = 16 / sizeof(E);  // elements that are copied at once
  const E* from;
  int64_t row_step, line_step, rows, line;  // left of rows and of elements along the line
  int row, chunk;

  // x: element (outer0, k0), of which there are so many along each axis.
  TW_DEVICE Loader(const E* x, int64_t outer_step, int64_t k_step, int64_t outers, int64_t terms) {
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
  TW_DEVICE void copy_chunk(char* to, const E* x, int valid) const {
    if constexpr (whole) {
      copy_async<16>(to, x, valid * int(sizeof(E)));
    } else if constexpr (sizeof(E) == 4) {
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

// Sixteen rows of A from row0 on, 32 bytes along k, as the product wants them.
template <class E, int side, int along_k>
TW_DEVICE void read_left(uint32_t (&r)[4], char* tile, int row0, int step) {
  using L = Layout<E, side, along_k>;
  const int lane = threadIdx.x % 32;
  if constexpr (along_k) {
    load_squares(r, L::at(tile, row0 + lane % 16, step * 2 + lane / 16));
  } else if constexpr (sizeof(E) == 2) {
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
// Sixteen columns of B from column0 on, 32 bytes along k: two operands.
template <class E, int side, int along_k>
TW_DEVICE void read_right(uint32_t (&r)[4], char* tile, int column0, int step) {
  using L = Layout<E, side, along_k>;
  const int lane = threadIdx.x % 32;
  if constexpr (along_k) {
    load_squares(r, L::at(tile, column0 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2));
  } else if constexpr (sizeof(E) == 2) {
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
