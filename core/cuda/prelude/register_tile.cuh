// A thread's part of a tile of a product, in registers, so that what it reads from shared memory
// serves as many multiplications as it has rows or columns.
#include "prelude.cuh"

// Of high x wide elements, each of 256 threads has rows x columns: fours that lie apart, so that a
// warp's reads of them are without conflicts.
template <class S, int high, int wide, int rows, int columns, int warp_rows = 4>
struct RegisterTile {
  static constexpr int kDown = high / rows, kAcross = wide / columns;  // threads
  static_assert(kDown * kAcross == kBlockThreads && kDown % 4 == 0 && kAcross % 8 == 0);
  S sums[rows][columns];
  int row, column;  // of the thread

  // A warp has 4 x 8 threads, in an order by which two half-warps read eight different fours of a
  // row of B, and two of A, at once; or whole rows of threads.
  TW_DEVICE RegisterTile() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if constexpr (warp_rows == 4) {
      row = warp / (kAcross / 8) * 4 + lane / 16 * 2 + lane % 2;
      column = warp % (kAcross / 8) * 8 + lane / 2 % 8;
    } else {
      row = threadIdx.x / kAcross, column = threadIdx.x % kAcross;
    }
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int c = 0; c < columns; ++c) sums[r][c] = S(0);
  }
  // Where the thread's elements lie in the tile.
  TW_DEVICE int row_of(int r) const { return row * 4 + r % 4 + r / 4 * (4 * kDown); }
  TW_DEVICE int column_of(int c) const { return column * 4 + c % 4 + c / 4 * (4 * kAcross); }

  template <int depth, int a_pitch, int b_pitch>
  TW_DEVICE void add_products(const S (&a)[depth][a_pitch], const S (&b)[depth][b_pitch]) {
#pragma unroll
    for (int k = 0; k < depth; ++k) {
      S left[rows], right[columns];
#pragma unroll
      for (int r = 0; r < rows; ++r) left[r] = a[k][row_of(r)];
#pragma unroll
      for (int c = 0; c < columns; ++c) right[c] = b[k][column_of(c)];
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int c = 0; c < columns; ++c) add_product(sums[r][c], left[r], right[c]);
    }
  }
};
