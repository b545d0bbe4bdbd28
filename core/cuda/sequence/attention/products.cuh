// What attention's kernels on tensor cores share: tiles of operands in shared memory, products of
// rows with a tile's rows, products of weights with a tile's columns.
//
// A block of four warps has kRows rows of its own, a warp 16 kHigh of them, and goes through the
// other operand's rows, 64 at a time: a tile is copied while the one before is multiplied. Scores,
// weights and results stay in registers: of each 16 x 8 of them a thread has those at row lane / 4
// and 8 below, columns lane % 4 * 2 and the next, which is how a product wants pairs of weights.
// Settings besides those of operands.cuh: TW_KIND (of bfloat16 or half), TW_SIZE, TW_VALUES (columns
// of queries and keys, of values: rounded up to a multiple of 16, from 128 on to 256), TW_HIGH.
#include "operands.cuh"
#include "tensor_core.cuh"

constexpr int kThreads = kAttentionThreads, kTile = kAttentionTile;
constexpr int kHigh = TW_HIGH, kRows = attention_rows(kHigh);
constexpr float kLog2E = 1.4426950408889634f;

TW_DEVICE int lane() { return threadIdx.x % 32; }
// The first of a warp's rows among those of the block.
TW_DEVICE int warp_row() { return threadIdx.x / 32 * 16 * kHigh; }

// Rows of 16-byte chunks.
template <int columns> struct Tile {
  static constexpr int kPitch = attention_pitch(columns);
  static constexpr int bytes(int rows) { return rows * kPitch; }
  static TW_DEVICE int at(int row, int chunk) { return row * kPitch + chunk * 16; }
};

// What a thread copies of a matrix's tiles; rows and columns that the matrix does not have are 0.
template <int columns> struct Loader {
  static constexpr int kChunks = columns / 8;
  static constexpr int kAcross = kChunks <= 2    ? 2
                                 : kChunks <= 4  ? 4
                                 : kChunks <= 8  ? 8
                                 : kChunks <= 16 ? 16
                                                 : 32;  // threads of a row
  static constexpr int kApart = kThreads / kAcross;
  const M* from;  // row 0
  int64_t step;
  int rows, bytes;  // of the matrix; of a chunk

  TW_DEVICE Loader(const M* x, int64_t step, int64_t rows, int column, int64_t of_columns)
      : step(step), rows(int(rows)) {
    const int at = column + threadIdx.x % kAcross * 8;
    from = x + at;
    bytes = at < of_columns ? 16 : 0;
  }
  template <int count = kTile> TW_DEVICE void copy(SharedPlace tile, int first) const {
    const int row = threadIdx.x / kAcross, chunk = threadIdx.x % kAcross;
    if (chunk >= kChunks) return;
    const SharedPlace to = tile + Tile<columns>::at(row, chunk);
    const M* const x = from + (first + row) * step;
#pragma unroll
    for (int i = 0; i < count; i += kApart)
      copy_async<16>(to + Tile<columns>::at(i, 0), x + i * step,
                     first + row + i < rows ? bytes : 0);
  }
};

// A warp's rows of a tile, as the left operand of products: in registers if they are few.
template <int columns, int most_held> struct Left {
  static constexpr bool kHeld = kHigh * columns <= most_held;
  static constexpr int kSteps = columns / 16;
  SharedPlace tile;
  uint32_t held[kHeld ? kSteps : 1][kHigh][4];

  TW_DEVICE explicit Left(SharedPlace rows)
      : tile(rows + Tile<columns>::at(warp_row() + lane() % 16, lane() / 16)) {
    if constexpr (kHeld) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) read(held[step], step);
    }
  }
  TW_DEVICE void read(uint32_t (&r)[kHigh][4], int step) const {
#pragma unroll
    for (int m = 0; m < kHigh; ++m)
      load_squares(r[m], tile + Tile<columns>::at(m * 16, step * 2));
  }
  TW_DEVICE void get(uint32_t (&r)[kHigh][4], int step) const {
    if constexpr (kHeld) {
#pragma unroll
      for (int m = 0; m < kHigh; ++m)
#pragma unroll
        for (int q = 0; q < 4; ++q) r[m][q] = held[step][m][q];
    } else {
      read(r, step);
    }
  }
};

using Scores = float[kHigh][kTile / 8][4];
using Weights = uint32_t[kTile / 16][kHigh][4];  // as a left operand

TW_DEVICE void multiply(float (&left)[4], float (&right)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[4]) {
  const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
  multiply_16x8x16<TW_KIND>(left, a, b0);
  multiply_16x8x16<TW_KIND>(right, a, b1);
}

// Each of the warp's rows times each row of a tile.
template <int columns, int most_held>
TW_DEVICE void multiply_rows(Scores& scores, const Left<columns, most_held>& left,
                             SharedPlace tile) {
  const SharedPlace row = tile + Tile<columns>::at(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
#pragma unroll
  for (int m = 0; m < kHigh; ++m)
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[m][n][i] = 0;
#pragma unroll
  for (int step = 0; step < columns / 16; ++step) {
    uint32_t a[kHigh][4];
    left.get(a, step);
#pragma unroll
    for (int n = 0; n < kTile / 16; ++n) {
      uint32_t b[4];
      load_squares(b, row + Tile<columns>::at(n * 16, step * 2));
#pragma unroll
      for (int m = 0; m < kHigh; ++m) multiply(scores[m][2 * n], scores[m][2 * n + 1], a[m], b);
    }
  }
}

TW_DEVICE void round_weights(Weights& weights, const Scores& scores) {
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step)
#pragma unroll
    for (int m = 0; m < kHigh; ++m)
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float* two = &scores[m][2 * step + q / 2][q % 2 * 2];
        weights[step][m][q] = pair_of<TW_KIND>(two[0], two[1]);
      }
}

// sums += the weights of a tile's rows times columns of those rows, from `column` on.
template <int columns, int piece>
TW_DEVICE void multiply_weights(float (&sums)[kHigh][piece / 8][4], const Weights& weights,
                                SharedPlace tile, int column) {
  const SharedPlace row = tile + Tile<columns>::at(lane() % 16, column / 8 + lane() / 16);
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step)
#pragma unroll
    for (int n = 0; n < piece / 16; ++n) {
      uint32_t b[4];
      load_squares_transposed(b, row + Tile<columns>::at(step * 16, n * 2));
#pragma unroll
      for (int m = 0; m < kHigh; ++m) multiply(sums[m][2 * n], sums[m][2 * n + 1], weights[step][m], b);
    }
}

// Does something with each score: f(score, row of the warp's, column of the tile's).
template <class F> TW_DEVICE void each(Scores& scores, F f) {
#pragma unroll
  for (int m = 0; m < kHigh; ++m)
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f(scores[m][n][i], m * 2 + i / 2, n * 8 + lane() % 4 * 2 + i % 2);
}
// A thread's rows are numbered: where the warp has them.
TW_DEVICE int row_of(int number) { return number / 2 * 16 + number % 2 * 8 + lane() / 4; }

// Of the four lanes that share a row, in each of them.
TW_DEVICE float sum_of_row(float x) {
  x += __shfl_xor_sync(TW_ALL_LANES, x, 1);
  return x + __shfl_xor_sync(TW_ALL_LANES, x, 2);
}
TW_DEVICE float largest_of_row(float x) {
  x = ::fmaxf(x, __shfl_xor_sync(TW_ALL_LANES, x, 1));
  return ::fmaxf(x, __shfl_xor_sync(TW_ALL_LANES, x, 2));
}

// Keys from this one on are not for a query: none are where there is no such query.
TW_DEVICE int past_key(const Attention& p, int query) {
  if (query >= p.queries) return 0;
  return p.causal && query < p.keys ? query + 1 : int(p.keys);
}
// With the mask; -inf where the query does not attend. `sees`: but for the mask it would.
TW_DEVICE float masked(const Attention& p, const Mask* mask, float score, int query, int key,
                       bool sees) {
  if (!sees) return -TW_INFINITY;
#if TW_MASK == TW_MASK_NONE
  return score;
#else
  const Mask x = mask[query * p.mask_row + key * p.mask_column];
  return TW_MASK == TW_MASK_BOOL ? (x ? score : -TW_INFINITY) : score + float(x);
#endif
}

// Blocks are numbered by head and rows, those first that have most to do.
struct Share {
  int64_t head;
  int row;
  TW_DEVICE Share(int64_t rows, bool last_first) {
    const int tiles = int((rows + kRows - 1) / kRows);
    head = blockIdx.x / tiles;
    const int tile = int(blockIdx.x - head * tiles);
    row = (last_first ? tiles - 1 - tile : tile) * kRows;
  }
};

// The warp's rows of a result with so many rows a head and columns, from a column on.
template <int piece>
TW_DEVICE void store(void* all, const float (&x)[kHigh][piece / 8][4], const Share& share,
                     int64_t rows, int column, int64_t columns, float scale) {
  auto* const y = static_cast<M*>(all) + share.head * rows * columns;
#pragma unroll
  for (int m = 0; m < kHigh; ++m)
#pragma unroll
    for (int below = 0; below < 2; ++below) {
      const int64_t row = share.row + warp_row() + row_of(m * 2 + below);
      if (row >= rows) continue;
#pragma unroll
      for (int n = 0; n < piece / 8; ++n) {
        const int at = column + n * 8 + lane() % 4 * 2;
        if (at < columns)
          *reinterpret_cast<uint32_t*>(y + row * columns + at) =
              pair_of<TW_KIND>(x[m][n][2 * below] * scale, x[m][n][2 * below + 1] * scale);
      }
    }
}
