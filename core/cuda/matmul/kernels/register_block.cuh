// What rung 3, registers, does: a thread has TW_ROWS x TW_COLUMNS elements of C in registers, so
// that what it reads from shared memory serves as many multiplications; while one pair of tiles is
// multiplied the next is on its way from memory. Settings besides: TW_ROWS, TW_COLUMNS (4 or 8),
// TW_A_LINES, TW_B_LINES (1: elements lie together along k, 0: along the other axis), TW_PIECES (1: k is
// cut, else not defined).
#include "staged_tile.cuh"
#include "register_tile.cuh"

constexpr int kDepth = kRegistersDepth, kGap = kRegistersGap;
constexpr int kHigh = registers_side(TW_ROWS), kWide = registers_side(TW_COLUMNS);  // of C

struct Tiles {
  S a[2][kDepth][kHigh + kGap], b[2][kDepth][kWide + kGap];
};
static_assert(sizeof(Tiles) == registers_shared_bytes(TW_ROWS, TW_COLUMNS, sizeof(S)));

template <int size, int along_k> struct Bringer : Brought<S, size, kDepth, along_k> {
  using Tile = Brought<S, size, kDepth, along_k>;
  TW_DEVICE void write(S (*tile)[size + kGap]) const {
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) tile[Tile::inner(i)][Tile::outer(i)] = this->held[i];
  }
};

// What a block multiplies: a piece of k of one member of the batch.
TW_DEVICE void multiply_block(const Matmul& p) {
  TW_DYNAMIC_SHARED(Tiles, tiles);
#ifdef TW_PIECES
  const int64_t member = blockIdx.z / p.pieces, first = blockIdx.z % p.pieces * p.terms;
  const int64_t terms = p.k - first < p.terms ? p.k - first : p.terms;
#else
  const int64_t member = blockIdx.z, first = 0, terms = p.k;
#endif
  const M* a = p.a + member * p.a_batch + first * p.a_col;
  const M* b = p.b + member * p.b_batch + first * p.b_row;
  const int64_t i0 = int64_t(blockIdx.y) * kHigh, j0 = int64_t(blockIdx.x) * kWide;
  Bringer<kHigh, TW_A_LINES> bring_a;
  Bringer<kWide, TW_B_LINES> bring_b;
  // On an H100 a seventh faster than with a warp of 4 x 8 threads.
  RegisterTile<S, kHigh, kWide, TW_ROWS, TW_COLUMNS, 2> tile;

  bring_a.read(a, p.a_row, p.a_col, i0, 0, p.m, terms);
  bring_b.read(b, p.b_col, p.b_row, j0, 0, p.n, terms);
  bring_a.write(tiles->a[0]);
  bring_b.write(tiles->b[0]);
  __syncthreads();
  int now = 0;
  for (int64_t k0 = 0; k0 < terms; k0 += kDepth) {
    const bool more = k0 + kDepth < terms;
    if (more) {
      bring_a.read(a, p.a_row, p.a_col, i0, k0 + kDepth, p.m, terms);
      bring_b.read(b, p.b_col, p.b_row, j0, k0 + kDepth, p.n, terms);
    }
    tile.add_products(tiles->a[now], tiles->b[now]);
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
      const int64_t i = i0 + tile.row_of(r), j = j0 + tile.column_of(c);
      if (i >= p.m || j >= p.n) continue;
#ifdef TW_PIECES
      p.partial[(blockIdx.z * p.m + i) * p.n + j] = tile.sums[r][c];
#else
      store(p, p.c + member * p.c_batch, i, j, tile.sums[r][c]);
#endif
    }
}
