// Rung 5, parts: float32 on tensor cores. Operands are split into TW_PARTS parts of bfloat16, the
// first rounded and each next what is left: two parts and three products keep 16 bits, three parts
// and six products all of float's 24. It needs neither scaling nor room in memory: bfloat16 has
// float's range. A block has 128 x 64 of C, a warp 32 x 32. Settings besides those of problem.cuh:
// TW_PARTS (1 to 3), TW_A_LINES, TW_B_LINES (1: elements lie together along k).
#include "staged_tile.cuh"

constexpr int kHigh = kPartsHigh, kWide = kPartsWide, kDepth = kPartsDepth, kPitch = kPartsPitch;

struct Tiles {
  uint16_t a[TW_PARTS][kHigh][kPitch], b[TW_PARTS][kWide][kPitch];
};
static_assert(sizeof(Tiles) == parts_shared_bytes(TW_PARTS));

TW_DEVICE uint16_t bits_of(float x) { return to_bfloat16(x).bits; }
TW_DEVICE float value_of(uint16_t bits) { return to_float(bfloat16{bits}); }

template <int size, int along_k> struct Bringer : Brought<float, size, kDepth, along_k> {
  using Tile = Brought<float, size, kDepth, along_k>;
  TW_DEVICE void write(uint16_t (*tile)[size][kPitch]) const {
#pragma unroll
    for (int i = 0; i < Tile::kEach; ++i) {
      float rest = this->held[i];
#pragma unroll
      for (int part = 0; part < TW_PARTS; ++part) {
        const uint16_t bits = bits_of(rest);
        tile[part][Tile::outer(i)][Tile::inner(i)] = bits;
        // Of infinities and NaN there is nothing left.
        if (part + 1 < TW_PARTS) rest = rest - rest == 0.0f ? rest - value_of(bits) : 0.0f;
      }
    }
  }
};

// Parts of infinities meet zeros: what is no number is computed anew, in float.
TW_DEVICE float settled(const Matmul& p, const M* a, const M* b, int64_t i, int64_t j, float sum) {
  if (TW_PARTS == 1 || sum - sum == 0.0f) return sum;
  sum = 0.0f;
  for (int64_t k = 0; k < p.k; ++k)
    sum +=
        convert<float>(a[i * p.a_row + k * p.a_col]) * convert<float>(b[k * p.b_row + j * p.b_col]);
  return sum;
}

TW_DEVICE uint32_t two_of(const uint16_t* at) { return *reinterpret_cast<const uint32_t*>(at); }

using Sums = float[2][4][4];  // of a thread: squares of its warp
TW_DEVICE void add(Sums& sums, const Sums& more) {
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int q = 0; q < 4; ++q) sums[m][n][q] += more[m][n][q];
}

TW_KERNEL(matmul_parts, Matmul, kBlockThreads) {
  TW_DYNAMIC_SHARED(Tiles, tiles);
  const M* a = p.a + blockIdx.z * p.a_batch;
  const M* b = p.b + blockIdx.z * p.b_batch;
  const int64_t i0 = int64_t(blockIdx.y) * kHigh, j0 = int64_t(blockIdx.x) * kWide;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row0 = warp / 2 * 32, column0 = warp % 2 * 32;  // of the warp's part
  const int row = lane / 4, pair = lane % 4 * 2;
  Bringer<kHigh, TW_A_LINES> bring_a;
  Bringer<kWide, TW_B_LINES> bring_b;
  Sums sums = {};
#if TW_PARTS > 1
  // The unit cuts its sums off instead of rounding them. So what counts, products of first parts,
  // stays in it for a tile only; the others are small enough to stay.
  Sums small = {};
#endif

  bring_a.read(a, p.a_row, p.a_col, i0, 0, p.m, p.k);
  bring_b.read(b, p.b_col, p.b_row, j0, 0, p.n, p.k);
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    __syncthreads();  // all have read the tiles before
    bring_a.write(tiles->a);
    bring_b.write(tiles->b);
    __syncthreads();
    if (k0 + kDepth < p.k) {
      bring_a.read(a, p.a_row, p.a_col, i0, k0 + kDepth, p.m, p.k);
      bring_b.read(b, p.b_col, p.b_row, j0, k0 + kDepth, p.n, p.k);
    }
#if TW_PARTS > 1
    Sums large = {};
#else
    Sums &large = sums, &small = sums;
#endif
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      uint32_t right[TW_PARTS][4][2];
#pragma unroll
      for (int part = 0; part < TW_PARTS; ++part)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            right[part][n][h] = two_of(&tiles->b[part][column0 + n * 8 + row][k + pair + h * 8]);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        uint32_t left[TW_PARTS][4];
#pragma unroll
        for (int part = 0; part < TW_PARTS; ++part)
#pragma unroll
          for (int q = 0; q < 4; ++q)
            left[part][q] =
                two_of(&tiles->a[part][row0 + m * 16 + row + q % 2 * 8][k + pair + q / 2 * 8]);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          // The smallest products first.
#pragma unroll
          for (int order = TW_PARTS - 1; order > 0; --order)
#pragma unroll
            for (int part = 0; part <= order; ++part)
              multiply_16x8x16<TW_KIND_BFLOAT16>(small[m][n], left[part], right[order - part][n]);
          multiply_16x8x16<TW_KIND_BFLOAT16>(large[m][n], left[0], right[0][n]);
        }
      }
    }
#if TW_PARTS > 1
    add(sums, large);
#endif
  }
#if TW_PARTS > 1
  add(sums, small);
#endif
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int64_t i = i0 + row0 + m * 16 + row + q / 2 * 8;
        const int64_t j = j0 + column0 + n * 8 + pair + q % 2;
        if (i < p.m && j < p.n)
          store(p, p.c + blockIdx.z * p.c_batch, i, j, settled(p, a, b, i, j, sums[m][n][q]));
      }
}
