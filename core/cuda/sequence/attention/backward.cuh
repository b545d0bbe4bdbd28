// The gradients of attention of 16-bit operands on tensor cores: by queries, then by keys, as
// attention.cuh. Weights and the scores' gradients are rounded to 16 bits for the products that they
// are in; the scores' gradients before they are scaled, since half has few small numbers.
#include "products.cuh"

constexpr int kMostHeld = 64;
using SizeTile = Tile<TW_SIZE>;
using ValueTile = Tile<TW_VALUES>;
constexpr int kSizeBytes = SizeTile::bytes(kTile), kValueBytes = ValueTile::bytes(kTile);
constexpr int kPairBytes = kSizeBytes + kValueBytes;

TW_DEVICE float product_of_chunks(const M* a, const M* b) {
  struct alignas(16) Chunk {
    M at[8];
  };
  const Chunk x = *reinterpret_cast<const Chunk*>(a), y = *reinterpret_cast<const Chunk*>(b);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += convert<float>(x.at[i]) * convert<float>(y.at[i]);
  return sum;
}

// dw becomes the scores' gradient, but for the scale: w (dw - slope).
template <class F> TW_DEVICE void differentiate(Scores& dw, const Scores& w, F slope) {
#pragma unroll
  for (int m = 0; m < kHigh; ++m)
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        dw[m][n][i] =
            w[m][n][i] * (dw[m][n][i] - slope(m * 2 + i / 2, n * 8 + lane() % 4 * 2 + i % 2));
}

TW_KERNEL(attention_tensor_queries_backward, Attention, kThreads) {
  constexpr int kPiece = attention_piece(TW_SIZE);
  static_assert(kPairBytes * (kHigh + 2) <= attention_backward_bytes(kHigh, TW_SIZE, TW_VALUES));
  TW_DYNAMIC_SHARED(char, tiles);
  const char* const g_rows = tiles + kSizeBytes * kHigh;
  const SharedPlace q_tile(tiles), g_tile(g_rows), stages = q_tile + kPairBytes * kHigh;
  const Share share(p.queries, p.causal);
  const int column = int(blockIdx.y) * kPiece, first_row = share.row + warp_row();
  const Mask* const mask = matrix_of<Mask>(p, p.mask, kMask, share.head);

  const Loader<TW_SIZE> queries(matrix_of<M>(p, p.q, kQ, share.head), p.row[kQ], p.queries, 0,
                                p.size);
  const Loader<TW_VALUES> gradients(matrix_of<M>(p, p.g, kG, share.head), p.row[kG],
                                    p.queries, 0, p.value_size);
  const Loader<TW_SIZE> keys(matrix_of<M>(p, p.k, kK, share.head), p.row[kK], p.keys, 0,
                             p.size);
  const Loader<TW_VALUES> values(matrix_of<M>(p, p.v, kV, share.head), p.row[kV], p.keys, 0,
                                 p.value_size);
  const auto copy = [&](int stage, int key) {
    keys.copy(stages + stage * kPairBytes, key);
    values.copy(stages + stage * kPairBytes + kSizeBytes, key);
    commit_copies();
  };
  queries.template copy<kRows>(q_tile, share.row);
  gradients.template copy<kRows>(g_tile, share.row);
  copy(0, 0);
  wait_for_copies<0>();
  __syncthreads();
  const Left<TW_SIZE, kMostHeld> q(q_tile);
  const Left<TW_VALUES, kMostHeld> g(g_tile);

  float bases[2 * kHigh], logs[2 * kHigh], slopes[2 * kHigh];
#pragma unroll
  for (int i = 0; i < 2 * kHigh; ++i) {
    const int64_t row = first_row + row_of(i), at = share.head * p.queries + row;
    const bool is_there = row < p.queries;
    const float* const log_sums =
        static_cast<const float*>(p.log_sums) + share.head * 2 * p.queries + row;
    bases[i] = is_there ? log_sums[0] : 0.0f;
    logs[i] = (is_there ? log_sums[p.queries] : TW_INFINITY) * kLog2E;
    const M* const out = static_cast<const M*>(p.out) + at * p.value_size;
    float slope = 0;
    for (int chunk = lane() % 4; is_there && chunk * 8 < p.value_size; chunk += 4)
      slope += product_of_chunks(
          out + chunk * 8,
          reinterpret_cast<const M*>(g_rows + ValueTile::at(warp_row() + row_of(i), chunk)));
    slopes[i] = sum_of_row(slope);
    if (blockIdx.y == 0 && lane() % 4 == 0 && is_there) p.slopes[at] = slopes[i];
  }

  const float scale = float(p.scale);
  float dq[kHigh][kPiece / 8][4] = {};
  const int past = int(p.causal && share.row + kRows < p.keys ? share.row + kRows : p.keys);
  for (int key = 0, stage = 0; key < past; key += kTile, stage ^= 1) {
    if (key > 0) {
      wait_for_copies<0>();
      __syncthreads();  // the tile is there for all, and all have left the one that is replaced next
    }
    if (key + kTile < past) copy(stage ^ 1, key + kTile);
    const SharedPlace tile = stages + stage * kPairBytes;
    Scores w, dw;
    multiply_rows(w, q, tile);
    const bool checked = TW_MASK || key + kTile > p.keys || (p.causal && key + kTile - 1 > first_row);
    each(w, [&](float& score, int row, int at) {
      score *= scale;
      const int query = first_row + row_of(row);
      if (checked)
        score = masked(p, mask, score, query, key + at, key + at < past_key(p, query));
      score = power_of_two((score - bases[row]) * kLog2E - logs[row]);
    });
    multiply_rows(dw, g, tile + kSizeBytes);
    differentiate(dw, w, [&](int row, int) { return slopes[row]; });
    Weights rounded;
    round_weights(rounded, dw);
    multiply_weights<TW_SIZE, kPiece>(dq, rounded, tile, column);
  }
  store<kPiece>(p.dq, dq, share, p.queries, column, p.size, scale);
}

// Rows are keys, and columns of scores queries.
TW_KERNEL(attention_tensor_keys_backward, Attention, kThreads) {
  constexpr int kPiece = attention_piece(TW_SIZE), kValuePiece = attention_piece(TW_VALUES);
  using Sums = QuerySums;
  constexpr int kStageBytes = kPairBytes + sizeof(Sums);
  static_assert(kPairBytes * kHigh + 2 * kStageBytes ==
                attention_backward_bytes(kHigh, TW_SIZE, TW_VALUES));
  TW_DYNAMIC_SHARED(char, tiles);
  const SharedPlace k_tile(tiles), v_tile = k_tile + kSizeBytes * kHigh,
                              stages = k_tile + kPairBytes * kHigh;
  const Share share(p.keys, false);
  const int column = int(blockIdx.y) * kMostAttentionPiece, first_row = share.row + warp_row();
  const int first = p.causal ? share.row : 0;  // queries before the first key attend to none
  const Mask* const mask = matrix_of<Mask>(p, p.mask, kMask, share.head);

  const Loader<TW_SIZE> keys(matrix_of<M>(p, p.k, kK, share.head), p.row[kK], p.keys, 0,
                             p.size);
  const Loader<TW_VALUES> values(matrix_of<M>(p, p.v, kV, share.head), p.row[kV], p.keys, 0,
                                 p.value_size);
  const Loader<TW_SIZE> queries(matrix_of<M>(p, p.q, kQ, share.head), p.row[kQ], p.queries, 0,
                                p.size);
  const Loader<TW_VALUES> gradients(matrix_of<M>(p, p.g, kG, share.head), p.row[kG],
                                    p.queries, 0, p.value_size);
  const float* const log_sums = static_cast<const float*>(p.log_sums) + share.head * 2 * p.queries;
  const float* const all_slopes = p.slopes + share.head * p.queries;
  const auto sums_of = [&](int stage) -> Sums& {
    char* const tile = tiles + kPairBytes * kHigh + stage * kStageBytes;
    return *reinterpret_cast<Sums*>(tile + kPairBytes);
  };
  const auto copy = [&](int stage, int query) {
    const SharedPlace tile = stages + stage * kStageBytes;
    queries.copy(tile, query);
    gradients.copy(tile + kSizeBytes, query);
    if (threadIdx.x < kTile) {
      const int64_t at = query + threadIdx.x;
      const int bytes = at < p.queries ? 4 : 0;
      Sums& sums = sums_of(stage);
      copy_async<4>(&sums.bases[threadIdx.x], log_sums + at, bytes);
      copy_async<4>(&sums.logs[threadIdx.x], log_sums + p.queries + at, bytes);
      copy_async<4>(&sums.slopes[threadIdx.x], all_slopes + at, bytes);
    }
    commit_copies();
  };
  keys.template copy<kRows>(k_tile, share.row);
  values.template copy<kRows>(v_tile, share.row);
  copy(0, first);
  wait_for_copies<0>();
  __syncthreads();
  const Left<TW_SIZE, kMostHeld> k(k_tile);
  const Left<TW_VALUES, kMostHeld> v(v_tile);

  const float scale = float(p.scale);
  float dk[kHigh][kPiece / 8][4] = {}, dv[kHigh][kValuePiece / 8][4] = {};
  for (int query = first, stage = 0; query < p.queries; query += kTile, stage ^= 1) {
    if (query > first) {
      wait_for_copies<0>();
      __syncthreads();  // the tile is there for all, and all have left the one that is replaced next
    }
    if (query + kTile < p.queries) copy(stage ^ 1, query + kTile);
    const SharedPlace tile = stages + stage * kStageBytes;
    const Sums& sums = sums_of(stage);
    Scores w, dw;
    multiply_rows(w, k, tile);
    const bool checked = TW_MASK || query + kTile > p.queries || share.row + kRows > p.keys ||
                         (p.causal && first_row + 16 * kHigh - 1 > query);
    each(w, [&](float& score, int row, int at) {
      score *= scale;
      const int key = first_row + row_of(row);
      if (checked)
        score = masked(p, mask, score, query + at, key, key < past_key(p, query + at));
      score = power_of_two((score - sums.bases[at]) * kLog2E - sums.logs[at] * kLog2E);
    });
    Weights rounded;
    if (column < TW_VALUES) {
      round_weights(rounded, w);
      multiply_weights<TW_VALUES, kValuePiece>(dv, rounded, tile + kSizeBytes, column);
    }
    if (column < TW_SIZE) {
      multiply_rows(dw, v, tile + kSizeBytes);
      differentiate(dw, w, [&](int, int at) { return sums.slopes[at]; });
      round_weights(rounded, dw);
      multiply_weights<TW_SIZE, kPiece>(dk, rounded, tile, column);
    }
  }
  store<kPiece>(p.dk, dk, share, p.keys, column, p.size, scale);
  store<kValuePiece>(p.dv, dv, share, p.keys, column, p.value_size, 1.0f);
}
