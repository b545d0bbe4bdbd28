// Where tensor cores' sums go: which piece of the work a block has, and its sums' way to C, or to
// the sums of its piece of k.
#include "problem.cuh"

// The tile with a number. Eight rows of tiles are walked together, column by column, so that blocks
// that run at one time share rows of A and columns of B in the GPU's cache.
struct Tile {
  int64_t row, column;
};
TW_DEVICE Tile tile_of(int64_t number, int64_t rows, int64_t columns) {
  constexpr int64_t kTogether = 8;
  const int64_t group = number / (kTogether * columns), first = group * kTogether;
  const int64_t high = rows - first < kTogether ? rows - first : kTogether;
  const int64_t within = number - group * kTogether * columns;
  return {first + within % high, within / high};
}

// Sums of 16 x 32 elements on their way from a warp's registers to memory: lanes write neighbours.
struct Staging {
  float at[16][32];
  // Rows change places, so that eight lanes that write down a column hit different banks.
  TW_DEVICE float* pair(int row, int column) { return &at[row][column ^ (row % 4 * 8)]; }
};

// Sums as they are; another rung's are scaled.
struct AsTheyAre {
  TW_DEVICE float operator()(int64_t, int64_t, float sum) const { return sum; }
};

// Of a batch's member and a piece of k.
struct Output {
  M* c;
  S* partial;  // null: sums are whole
  bool pairs;  // two neighbours of a row can be written at once

  TW_DEVICE Output(const Matmul& p, int64_t member, int64_t piece) {
    c = p.c + member * p.c_batch;
    partial = p.pieces > 1 ? p.partial + (member * p.pieces + piece) * p.m * p.n : nullptr;
    pairs = p.c_col == 1 && (uint64_t(c) | uint64_t(p.c_row * sizeof(M))) % (2 * sizeof(M)) == 0;
  }
  // A warp's 16 x 32 elements from (i0, j0) on: of each eight columns a thread has those at row
  // lane / 4, columns lane % 4 * 2 and the next, and eight rows below. `scaled` gives what a sum at
  // (i, j) stands for.
  template <class Scaled = AsTheyAre> TW_DEVICE void put(const Matmul& p, int64_t i0, int64_t j0,
                                                         const float* sums, Staging& staging,
                                                         const Scaled& scaled = {}) const {
    const int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        float* const to = staging.pair(lane / 4 + below * 8, n * 8 + lane % 4 * 2);
        to[0] = sums[n * 4 + below * 2];
        to[1] = sums[n * 4 + below * 2 + 1];
      }
    __syncwarp();
    const int column = lane % 16 * 2;
#pragma unroll 1
    for (int row = lane / 16; row < 16; row += 2) {
      const float* from = staging.pair(row, column);
      const int64_t i = i0 + row, j = j0 + column;
      if (i >= p.m || j >= p.n) continue;
      const float left = scaled(i, j, from[0]);
      if (j + 1 < p.n)
        put_pair(p, i, j, left, scaled(i, j + 1, from[1]));
      else
        put_one(p, i, j, left);
    }
  }

 private:
  TW_DEVICE void put_one(const Matmul& p, int64_t i, int64_t j, S sum) const {
    if (partial)
      partial[i * p.n + j] = sum;
    else
      store(p, c, i, j, sum);
  }
  TW_DEVICE void put_pair(const Matmul& p, int64_t i, int64_t j, S left, S right) const {
    if (partial || !pairs) {
      put_one(p, i, j, left);
      put_one(p, i, j + 1, right);
      return;
    }
    struct alignas(2 * sizeof(M)) Two {
      M at[2];
    };
    M* const at = c + i * p.c_row + j;
    *reinterpret_cast<Two*>(at) = {
        {finished(p, at, i, j, left), finished(p, at + 1, i, j + 1, right)}};
  }
};
