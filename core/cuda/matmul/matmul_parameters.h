// What the rungs of products are given, and what their blocks have.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// C = relu(alpha A B + bias + beta C) for a batch of matrices, with any strides. Of M, the
// elements' type, and S, what is added up in; void on the host.
template <class M, class S> struct MatmulOf {
  int64_t m, n, k;
  const M *a, *b;
  M* c;
  int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col;
  double alpha, beta;
  const M* bias;
  int64_t bias_row, bias_col, relu;
  // Of rungs that cut k: so many pieces of `terms`, whose sums go to `partial`
  // [batch][piece][m][n].
  S* partial;
  int64_t pieces, terms;
};

// ---- naive: a thread an element; tiled: squares ----

constexpr int kNaiveWide = kWarpThreads, kNaiveHigh = kBlockThreads / kNaiveWide;
constexpr int kTiledSide = kWarpThreads;

// ---- registers: 16 x 16 threads, each of which has so many rows and columns ----

constexpr int registers_side(int each) { return 16 * each; }
// Terms of a tile, and elements behind its rows, which keep them on different banks.
constexpr int kRegistersDepth = 16, kRegistersGap = 4;
// Two tiles of each operand.
constexpr int registers_shared_bytes(int rows, int columns, int sum_bytes) {
  return 2 * kRegistersDepth *
         (registers_side(rows) + registers_side(columns) + 2 * kRegistersGap) * sum_bytes;
}

// ---- parts of bfloat16 ----

constexpr int kPartsHigh = 128, kPartsWide = 64, kPartsDepth = 32;
constexpr int kPartsPitch = kPartsDepth + 8;  // no bank conflicts
constexpr int parts_shared_bytes(int parts) {
  return parts * (kPartsHigh + kPartsWide) * kPartsPitch * 2;
}

// ---- tensor cores ----

// Of a warp's sums that are on their way to memory: rows and columns.
constexpr int kStagedRows = 16, kStagedColumns = kWarpThreads;

// ---- tensor: four warps, a quarter of a square each ----

constexpr int kTensorThreads = 4 * kWarpThreads, kTensorStages = 4;
// Of a tile along k, of each rung on a warp's own tensor cores.
constexpr int kTileBytesAlong = 64;
constexpr int tensor_shared_bytes(int side) { return kTensorStages * 2 * side * kTileBytesAlong; }

}  // namespace tw::cuda
