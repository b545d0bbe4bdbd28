// Attention of 16-bit operands on tensor cores (Dao, "FlashAttention-2", 2023): as attention.cuh,
// but both products are a warp's own instructions, sums in float, weights rounded to 16 bits for the
// second one. Powers are of two and relative to the largest score so far, so rows' sums and largest
// scores never leave registers.
#include "products.cuh"

// Blocks of a multiprocessor, as many as registers suffice for: some multiply while others take
// powers.
constexpr int kBlocks = kHigh == 2 || TW_SIZE > 64 || TW_VALUES > 64 ? 2 : TW_MASK ? 3 : 4;
#define TW_THREADS kThreads, kBlocks

TW_KERNEL(attention_tensor, Attention, TW_THREADS) {
  constexpr int kPiece = attention_piece(TW_VALUES);
  constexpr int kKeyBytes = Tile<TW_SIZE>::bytes(kTile);
  constexpr int kStageBytes = kKeyBytes + Tile<kPiece>::bytes(kTile);
  static_assert(Tile<TW_SIZE>::bytes(kRows) + 2 * kStageBytes ==
                attention_forward_bytes(kHigh, TW_SIZE, TW_VALUES));
  TW_DYNAMIC_SHARED(char, tiles);
  const SharedPlace q_tile(tiles), stages = q_tile + Tile<TW_SIZE>::bytes(kRows);
  const Share share(p.queries, p.causal);
  const int column = int(blockIdx.y) * kPiece, first_row = share.row + warp_row();
  const Mask* const mask = matrix_of<Mask>(p, p.mask, kMask, share.head);

  const Loader<TW_SIZE> queries(matrix_of<M>(p, p.q, kQ, share.head), p.row[kQ],
                                p.queries, 0, p.size);
  const Loader<TW_SIZE> keys(matrix_of<M>(p, p.k, kK, share.head), p.row[kK], p.keys, 0,
                             p.size);
  const Loader<kPiece> values(matrix_of<M>(p, p.v, kV, share.head), p.row[kV], p.keys, column,
                              p.value_size);
  const auto copy = [&](int stage, int key) {
    keys.copy(stages + stage * kStageBytes, key);
    values.copy(stages + stage * kStageBytes + kKeyBytes, key);
    commit_copies();
  };
  queries.template copy<kRows>(q_tile, share.row);
  copy(0, 0);
  wait_for_copies<0>();
  __syncthreads();
  const Left<TW_SIZE, 128> q(q_tile);

  // Added masks are in the scores' unit, which otherwise is that of the products.
  const float scale = TW_MASK == TW_MASK_ADDED ? float(p.scale) : 1.0f;
  const float factor = TW_MASK == TW_MASK_ADDED ? kLog2E : float(p.scale * kLog2E);
  float top[2 * kHigh], sum[2 * kHigh], y[kHigh][kPiece / 8][4] = {};
#pragma unroll
  for (int i = 0; i < 2 * kHigh; ++i) top[i] = -TW_INFINITY, sum[i] = 0;
  const int past = int(p.causal && share.row + kRows < p.keys ? share.row + kRows : p.keys);
  for (int key = 0, stage = 0; key < past; key += kTile, stage ^= 1) {
    if (key > 0) {
      wait_for_copies<0>();
      __syncthreads();  // the tile is there for all, and all have left the one that is replaced next
    }
    if (key + kTile < past) copy(stage ^ 1, key + kTile);
    if (p.causal && key >= first_row + 16 * kHigh) continue;  // after all of the warp's queries
    const SharedPlace tile = stages + stage * kStageBytes;
    Scores scores;
    multiply_rows(scores, q, tile);
    if (TW_MASK || key + kTile > p.keys || (p.causal && key + kTile - 1 > first_row))
      each(scores, [&](float& score, int row, int at) {
        const int query = first_row + row_of(row);
        score = masked(p, mask, TW_MASK == TW_MASK_ADDED ? score * scale : score, query, key + at,
                       key + at < past_key(p, query));
      });
    float base[2 * kHigh];
#pragma unroll
    for (int i = 0; i < 2 * kHigh; ++i) base[i] = top[i];
    each(scores, [&](float& score, int row, int) { base[row] = ::fmaxf(base[row], score); });
#pragma unroll
    for (int i = 0; i < 2 * kHigh; ++i) {
      const float most = largest_of_row(base[i]);
      base[i] = most == -TW_INFINITY ? 0.0f : most;
      const float shrunk = power_of_two((top[i] - base[i]) * factor);
      top[i] = most;
      sum[i] *= shrunk;
#pragma unroll
      for (int n = 0; n < kPiece / 8; ++n)
#pragma unroll
        for (int k = 0; k < 2; ++k) y[i / 2][n][i % 2 * 2 + k] *= shrunk;
    }
    each(scores, [&](float& score, int row, int) {
      score = power_of_two((score - base[row]) * factor);
      sum[row] += score;
    });
    Weights weights;
    round_weights(weights, scores);
    multiply_weights<kPiece, kPiece>(y, weights, tile + kKeyBytes, 0);
  }
#pragma unroll
  for (int i = 0; i < 2 * kHigh; ++i) {
    const float total = sum_of_row(sum[i]);
    const bool attends = total != 0;
    const float by = attends ? 1 / total : 0.0f;
#pragma unroll
    for (int n = 0; n < kPiece / 8; ++n)
#pragma unroll
      for (int k = 0; k < 2; ++k) y[i / 2][n][i % 2 * 2 + k] *= by;
    const int row = first_row + row_of(i);
    if (blockIdx.y == 0 && lane() % 4 == 0 && row < p.queries) {
      float* const log_sums = static_cast<float*>(p.y_log_sums) + share.head * 2 * p.queries + row;
      const float unit = TW_MASK == TW_MASK_ADDED ? 1.0f : float(p.scale);
      log_sums[0] = top[i] == -TW_INFINITY ? 0.0f : top[i] * unit;
      log_sums[p.queries] = attends ? ::logf(total) : TW_INFINITY;
    }
  }
  store<kPiece>(p.y, y, share, p.queries, column, p.value_size, 1.0f);
}
