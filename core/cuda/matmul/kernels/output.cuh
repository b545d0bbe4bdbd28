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

// Sums on their way from a warp's registers to memory: lanes write neighbours.
struct Staging {
  float at[kStagedRows][kStagedColumns];
  // Rows change places, so that eight lanes that write down a column hit different banks.
  TW_DEVICE float* pair(int row, int column) { return &at[row][column ^ (row % 4 * 8)]; }
};

// Sums as they are; another rung's are scaled by row and column.
struct AsTheyAre {
  TW_DEVICE float row(int64_t) const { return 1; }
  TW_DEVICE float column(int64_t) const { return 1; }
};

// Four lanes have four words each: lane q gives its word k to lane k, as that one's word q.
TW_DEVICE void turn_words(uint32_t (&w)[4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int apart = 1; apart < 4; apart *= 2) {
    const bool upper = lane & apart;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & apart) continue;
      uint32_t &here = w[i], &there = w[i + apart];
      const uint32_t got = __shfl_xor_sync(TW_ALL_LANES, upper ? here : there, apart);
      (upper ? here : there) = got;
    }
  }
}

// Of a batch's member and a piece of k.
struct Output {
  M* c;
  S* partial;  // null: sums are whole
  bool pairs;  // two neighbours of a row can be written at once
  bool lean;   // and 16 bytes, without C's old elements, a bias by columns at most

  TW_DEVICE Output(const Matmul& p, int64_t member, int64_t piece) {
    c = p.c + member * p.c_batch;
    partial = p.pieces > 1 ? p.partial + (member * p.pieces + piece) * p.m * p.n : nullptr;
    const uint64_t apart = uint64_t(c) | uint64_t(p.c_row * sizeof(M));
    pairs = p.c_col == 1 && apart % (2 * sizeof(M)) == 0;
    lean = partial ? p.n % 2 == 0
                   : p.c_col == 1 && apart % 16 == 0 && p.beta == 0 && (!p.bias || !p.bias_row);
  }
  // A warp's 16 rows of so many columns from (i0, j0) on: of each eight columns a thread has those
  // at row lane / 4, columns lane % 4 * 2 and the next, and eight rows below. `by` says what a sum
  // is to be multiplied by. Tiles inside C go straight from registers to memory.
  template <int columns, class By = AsTheyAre>
  TW_DEVICE void put(const Matmul& p, int64_t i0, int64_t j0, float* sums, Staging& staging,
                     const By& by = {}) const {
    if (lean && i0 + 16 <= p.m && j0 + columns <= p.n) {
      finish<columns>(p, i0, j0, sums, by);
      if (partial)
        put_floats<columns>(partial + i0 * p.n + j0, p.n, sums);
      else if constexpr (sizeof(M) == 4)
        put_floats<columns>(reinterpret_cast<float*>(c) + i0 * p.c_row + j0, p.c_row, sums);
      else
        put_halves<columns>(c + i0 * p.c_row + j0, p.c_row, sums);
      return;
    }
#pragma unroll
    for (int n = 0; n < columns / 32; ++n)
      put_staged(p, i0, j0 + n * 32, &sums[n * 16], staging, by);
  }

 private:
  // What becomes of sums, as `finished` has it.
  template <int columns, class By> TW_DEVICE void finish(const Matmul& p, int64_t i0, int64_t j0,
                                                         float* sums, const By& by) const {
    constexpr int count = columns / 2;
    const int lane = threadIdx.x % 32;
    const float upper = by.row(i0 + lane / 4), lower = by.row(i0 + lane / 4 + 8);
    j0 += lane % 4 * 2;
#pragma unroll
    for (int s = 0; s < count; ++s)
      sums[s] = sums[s] * (s % 4 < 2 ? upper : lower) * by.column(j0 + s / 4 * 8 + s % 2);
    if (partial) return;
    if (p.alpha != 1) {
#pragma unroll
      for (int s = 0; s < count; ++s) sums[s] *= float(p.alpha);
    }
    if (p.bias) {
#pragma unroll
      for (int s = 0; s < count; ++s)
        sums[s] += convert<float>(p.bias[(j0 + s / 4 * 8 + s % 2) * p.bias_col]);
    }
    if (p.relu) {
#pragma unroll
      for (int s = 0; s < count; ++s) sums[s] = rectified(sums[s]);
    }
  }
  template <int columns>
  TW_DEVICE void put_floats(float* to, int64_t pitch, const float* sums) const {
    struct alignas(8) Two {
      float at[2];
    };
    const int lane = threadIdx.x % 32;
    to += lane / 4 * pitch + lane % 4 * 2;
#pragma unroll
    for (int s = 0; s < columns / 2; s += 2)
      *reinterpret_cast<Two*>(to + s / 2 % 2 * 8 * pitch + s / 4 * 8) = {{sums[s], sums[s + 1]}};
  }
  // Four lanes have pairs of the same row: they change them, so that each writes eight neighbours.
  template <int columns> TW_DEVICE void put_halves(M* to, int64_t pitch, const float* sums) const {
    struct alignas(16) Eight {
      uint32_t at[4];
    };
    const int lane = threadIdx.x % 32;
    to += lane / 4 * pitch + lane % 4 * 8;
#pragma unroll
    for (int n = 0; n < columns / 32; ++n)
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        Eight words;
#pragma unroll
        for (int b = 0; b < 4; ++b) {
          const float* pair = &sums[n * 16 + b * 4 + below * 2];
          words.at[b] = bits_of(convert<M>(pair[0])) | bits_of(convert<M>(pair[1])) << 16;
        }
        turn_words(words.at);
        *reinterpret_cast<Eight*>(to + below * 8 * pitch + n * 32) = words;
      }
  }
  template <class Half> static TW_DEVICE uint32_t bits_of(Half x) { return x.bits; }
  static TW_DEVICE uint32_t bits_of(float) { return 0; }  // not asked

  // 16 x 32 elements, any of them.
  template <class By> TW_DEVICE void put_staged(const Matmul& p, int64_t i0, int64_t j0,
                                                const float* sums, Staging& staging,
                                                const By& by) const {
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
      const float left = from[0] * by.row(i) * by.column(j);
      if (j + 1 < p.n)
        put_pair(p, i, j, left, from[1] * by.row(i) * by.column(j + 1));
      else
        put_one(p, i, j, left);
    }
  }

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
