// What the kernels of attention are given, and what their blocks have.
#pragma once
#include "core/cuda/prelude/parameters.h"

// How a mask acts, in numbers that the preprocessor compares.
#define TW_MASK_NONE 0
#define TW_MASK_BOOL 1
#define TW_MASK_ADDED 2  // to scores

namespace tw::cuda {

// Operands that heads walk over; g is the last of a backward call.
enum WalkedOperand { kQ, kK, kV, kG, kMask, kWalked };

struct Attention {
  int64_t queries, keys, size, value_size;
  int64_t row[kG + 1], mask_row, mask_column;
  double scale;
  int64_t causal;
  Extents heads;  // the axes in front of the matrices
  Strides strides[kWalked];
  const void *q, *k, *v, *mask, *out, *log_sums, *g;
  void *y, *y_log_sums, *dq, *dk, *dv;
  float* slopes;  // of tensor cores' kernels: what the queries' pass tells that of keys
};

// ---- attention.cuh: multiply-adds of any type, by 16 x 16 threads ----

constexpr int kThreadSide = 16;
// Scores along each axis that a thread holds; rows of a tile of queries, and of keys.
constexpr int scores_each(int element_bytes) { return element_bytes == 8 ? 2 : 4; }
constexpr int blocks_tile(int element_bytes) { return kThreadSide * scores_each(element_bytes); }
// Columns of a result that a block makes, of so many that a thread holds.
constexpr int blocks_columns(int wide) { return kThreadSide * wide; }

// ---- the kernels on tensor cores: a block of four warps ----

constexpr int kAttentionThreads = 4 * kWarpThreads;
constexpr int kAttentionTile = 64;          // rows of the other operand's tile
constexpr int kMostAttentionColumns = 256;  // of a head
constexpr int kMostAttentionPiece = 128;    // columns of a result that a block makes
// Rows of a block, whose warps have 16 of them each, or twice as many.
constexpr int attention_rows(int high) { return 64 * high; }
constexpr int attention_piece(int columns) {
  return columns < kMostAttentionPiece ? columns : kMostAttentionPiece;
}
// Rows in shared memory are an odd number of chunks of 16 bytes apart: eight rows' same chunk is in
// 32 banks.
constexpr int attention_pitch(int columns) { return (columns / 8 | 1) * 16; }
// Of the queries' tile, and two of keys and of a piece of values.
constexpr int attention_forward_bytes(int high, int size, int values) {
  return attention_rows(high) * attention_pitch(size) +
         2 * kAttentionTile * (attention_pitch(size) + attention_pitch(attention_piece(values)));
}
// What the keys' pass knows of each query of a tile.
struct QuerySums {
  float bases[kAttentionTile], logs[kAttentionTile], slopes[kAttentionTile];
};
// Of a block's own rows of two operands, and two tiles of the others with their sums.
constexpr int attention_backward_bytes(int high, int size, int values) {
  return (attention_rows(high) + 2 * kAttentionTile) *
             (attention_pitch(size) + attention_pitch(values)) +
         2 * int(sizeof(QuerySums));
}

}  // namespace tw::cuda
