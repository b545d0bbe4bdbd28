// Attention without the matrix of scores (Dao et al., "FlashAttention", 2022). A block of threads
// has a tile of queries and goes through the keys, a tile at a time, whose scores it holds in
// registers. With the largest score and the sum of the exponentials of each query so far, what it
// has added up is scaled when a larger one comes (Milakov, Gimelshein, "Online normalizer
// calculation for softmax", 2018). Faster than the products one by one because scores, weights and
// their gradients, of which there are queries x keys, never cross memory: keys and values are read
// once a tile of queries. Backward, weights come again from the saved log-sums: once by queries, for
// their gradient, and once by keys, for those of keys and values, so that every sum has one owner
// and one order.
// Settings besides those of cuda/sequence/attention/operands.cuh: TW_WIDE (columns of a result that a thread holds,
// 16 apart).
#include "operands.cuh"
#include "real_functions.cuh"

// Queries of a tile, and keys: 16 x 16 threads hold kEach x kEach scores each.
constexpr int kEach = scores_each(sizeof(T));
constexpr int kTile = blocks_tile(sizeof(T));
constexpr int kPitch = kTile + 1;  // threads that go down a column meet every bank of shared memory
constexpr int kDepth = 32;         // terms of a product that are staged at once
constexpr int kWidth = blocks_columns(TW_WIDE);
#define TW_ONE_BLOCK kBlockThreads, 1
// Two blocks a multiprocessor, of which one computes while the other waits, if registers suffice.
#if TW_WIDE == 8 && TW_MASK
#define TW_THREADS TW_ONE_BLOCK
#else
#define TW_THREADS kBlockThreads, 2
#endif

TW_DEVICE int down() { return threadIdx.x / 16; }
TW_DEVICE int across() { return threadIdx.x % 16; }

// Of the 16 threads that share a row, in each of them.
TW_DEVICE T sum_of_row(T x) {
#pragma unroll
  for (int bits = 8; bits > 0; bits /= 2) x += __shfl_xor_sync(TW_ALL_LANES, x, bits);
  return x;
}
TW_DEVICE T larger(T a, T b) { return a != a || a > b ? a : b; }
TW_DEVICE T largest_of_row(T x) {
#pragma unroll
  for (int bits = 8; bits > 0; bits /= 2) x = larger(x, __shfl_xor_sync(TW_ALL_LANES, x, bits));
  return x;
}

// Rows of a matrix from a tile's first on, as far as there are some; what lies outside is 0.
struct Rows {
  const M* start;
  int64_t step;
  int count;
  TW_DEVICE T at(int row, int64_t column, int64_t columns) const {
    return row < count && column < columns ? convert<T>(start[row * step + column]) : T(0);
  }
};

// products[i][j] += a's row (down + 16 i) times b's row (across + 16 j).
TW_DEVICE void multiply_rows(T (&products)[kEach][kEach], const Rows& a, const Rows& b,
                             int64_t size, T* stage) {
  T *const left = stage, *const right = stage + kDepth * kPitch;
  for (int64_t first = 0; first < size; first += kDepth) {
    __syncthreads();  // the last use of the stage is over
    for (int i = threadIdx.x; i < kTile * kDepth; i += kBlockThreads) {
      const int row = i / kDepth, depth = i % kDepth;
      left[depth * kPitch + row] = a.at(row, first + depth, size);
      right[depth * kPitch + row] = b.at(row, first + depth, size);
    }
    __syncthreads();
#pragma unroll 2
    for (int depth = 0; depth < kDepth; ++depth) {
      T x[kEach], y[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        x[i] = left[depth * kPitch + down() + 16 * i];
        y[i] = right[depth * kPitch + across() + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) products[i][j] += x[i] * y[j];
    }
  }
}

// sums[i][j] += weights' row (down + 16 i) times b's column (column + across + 16 j).
TW_DEVICE void multiply_weights(T (&sums)[kEach][TW_WIDE], const T* weights, const Rows& b,
                                int64_t column, int64_t columns, T* stage) {
  for (int first = 0; first < kTile; first += kDepth) {
    __syncthreads();  // weights are there, and the last use of the stage is over
    for (int i = threadIdx.x; i < kDepth * kWidth; i += kBlockThreads)
      stage[i] = b.at(first + i / kWidth, column + i % kWidth, columns);
    __syncthreads();
#pragma unroll 2
    for (int row = 0; row < kDepth; ++row) {
      T x[kEach], y[TW_WIDE];
#pragma unroll
      for (int i = 0; i < kEach; ++i) x[i] = weights[(down() + 16 * i) * kPitch + first + row];
#pragma unroll
      for (int j = 0; j < TW_WIDE; ++j) y[j] = stage[row * kWidth + across() + 16 * j];
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < TW_WIDE; ++j) sums[i][j] += x[i] * y[j];
    }
  }
}

// A matrix of one head, which has so many rows.
struct Matrix {
  const M* start;
  int64_t step, rows;
  TW_DEVICE Rows from(int64_t row) const {
    return {start + row * step, step, int(rows - row < kTile ? rows - row : kTile)};
  }
};
// Results and what a forward pass saved are those of all heads, one after the other.
struct Head {
  int64_t number;
  Matrix q, k, v, g, out;
  const Mask* mask;

  TW_DEVICE Head(const Attention& p, int64_t number)
      : number(number),
        q(matrix(p, p.q, kQ, p.queries)),
        k(matrix(p, p.k, kK, p.keys)),
        v(matrix(p, p.v, kV, p.keys)),
        g(matrix(p, p.g, kG, p.queries)),
        out{static_cast<const M*>(p.out) + number * p.queries * p.value_size, p.value_size,
            p.queries},
        mask(matrix_of<Mask>(p, p.mask, kMask, number)) {}
  TW_DEVICE Matrix matrix(const Attention& p, const void* all, WalkedOperand which,
                          int64_t rows) const {
    return {matrix_of<M>(p, all, which, number), p.row[which], rows};
  }
};

// -inf where the query does not attend, or there is none or no such key.
TW_DEVICE T score_of(const Attention& p, const Head& head, T product, int64_t query, int64_t key) {
  if (query >= p.queries || key >= p.keys || (p.causal && key > query)) return -T(TW_INFINITY);
  const T score = product * T(p.scale);
#if TW_MASK == TW_MASK_NONE
  return score;
#else
  const Mask mask = head.mask[query * p.mask_row + key * p.mask_column];
  return TW_MASK == TW_MASK_BOOL ? (mask ? score : -T(TW_INFINITY)) : score + T(mask);
#endif
}
// Keys before this one are all that a tile's queries attend to.
TW_DEVICE int64_t past_key(const Attention& p, int64_t query) {
  return p.causal && query + kTile < p.keys ? query + kTile : p.keys;
}
// Blocks are numbered by head and tile of so many rows.
TW_DEVICE Head head_of_block(const Attention& p, int64_t rows, int64_t& first) {
  const int64_t tiles = (rows + kTile - 1) / kTile, head = blockIdx.x / tiles;
  first = (blockIdx.x - head * tiles) * kTile;
  return Head(p, head);
}

// Rows (down + 16 i) of a result of so many rows a head, from `first` on.
TW_DEVICE void store(void* all, int64_t first, int64_t rows, const T (&x)[kEach][TW_WIDE],
                     int64_t column, int64_t columns) {
  M* const y = static_cast<M*>(all);
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < TW_WIDE; ++j) {
      const int row = down() + 16 * i;
      const int64_t c = column + across() + 16 * j;
      if (row < rows && c < columns) y[(first + row) * columns + c] = convert<M>(x[i][j]);
    }
}

TW_KERNEL(attention, Attention, TW_THREADS) {
  __shared__ T stage[2 * kDepth * kPitch], weights[kTile * kPitch];
  int64_t query;
  const Head head = head_of_block(p, p.queries, query);
  const int64_t column = int64_t(blockIdx.y) * kWidth;
  T top[kEach], sum[kEach], y[kEach][TW_WIDE] = {};
#pragma unroll
  for (int i = 0; i < kEach; ++i) top[i] = -T(TW_INFINITY), sum[i] = 0;
  for (int64_t key = 0; key < past_key(p, query); key += kTile) {
    T scores[kEach][kEach] = {};
    multiply_rows(scores, head.q.from(query), head.k.from(key), p.size, stage);
    __syncthreads();  // the last use of the weights is over
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      T most = top[i], added = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        scores[i][j] = score_of(p, head, scores[i][j], query + down() + 16 * i,
                                key + across() + 16 * j);
        most = larger(most, scores[i][j]);
      }
      most = largest_of_row(most);
      const T base = most == -T(TW_INFINITY) ? T(0) : most;
      const T shrunk = exponential(top[i] - base);
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const T weight = exponential(scores[i][j] - base);
        weights[(down() + 16 * i) * kPitch + across() + 16 * j] = weight;
        added += weight;
      }
      sum[i] = sum[i] * shrunk + sum_of_row(added);
      top[i] = most;
#pragma unroll
      for (int j = 0; j < TW_WIDE; ++j) y[i][j] *= shrunk;
    }
    multiply_weights(y, weights, head.v.from(key), column, p.value_size, stage);
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t row = query + down() + 16 * i;
    const bool attends = sum[i] != 0;
    const T scale = attends ? 1 / sum[i] : T(0);
#pragma unroll
    for (int j = 0; j < TW_WIDE; ++j) y[i][j] *= scale;
    if (blockIdx.y == 0 && across() == 0 && row < p.queries) {
      T* const log_sums = static_cast<T*>(p.y_log_sums) + head.number * 2 * p.queries + row;
      log_sums[0] = top[i] == -T(TW_INFINITY) ? T(0) : top[i];
      log_sums[p.queries] = attends ? logarithm(sum[i]) : T(TW_INFINITY);
    }
  }
  store(p.y, head.number * p.queries + query, p.queries - query, y, column, p.value_size);
}

// ---- backward: with weights w = exp(score - base - log_sum) and dw = g . v, scores have the gradient
// w (dw - slope), where a query's slope = sum over its keys of w dw = g . y ----

struct Queries {
  T bases[kTile], log_sums[kTile], slopes[kTile];
};
TW_DEVICE void load_queries(const Attention& p, const Head& head, int64_t query,
                            Queries& queries) {
  const Rows g = head.g.from(query), out = head.out.from(query);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = down() + 16 * i;
    T sum = 0;
    for (int64_t c = across(); c < p.value_size; c += 16)
      sum += g.at(row, c, p.value_size) * out.at(row, c, p.value_size);
    sum = sum_of_row(sum);
    if (across() != 0) continue;
    const T* log_sums = static_cast<const T*>(p.log_sums) + head.number * 2 * p.queries;
    const bool is_there = query + row < p.queries;
    queries.slopes[row] = sum;
    queries.bases[row] = is_there ? log_sums[query + row] : T(0);
    queries.log_sums[row] = is_there ? log_sums[p.queries + query + row] : T(TW_INFINITY);
  }
}

// Each thread's own weights of the tile, rows of which are queries, or keys where `transposed`.
template <bool transposed>
TW_DEVICE void weigh(const Attention& p, const Head& head, int64_t query, int64_t key,
                     const T (&products)[kEach][kEach], const Queries& queries, T* weights) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int row = down() + 16 * i, col = across() + 16 * j;
      const int q = transposed ? col : row, k = transposed ? row : col;
      const T score = score_of(p, head, products[i][j], query + q, key + k);
      weights[row * kPitch + col] = exponential(score - queries.bases[q] - queries.log_sums[q]);
    }
}
// From weights to the gradients of products of queries and keys.
template <bool transposed>
TW_DEVICE void differentiate(const Attention& p, const T (&dw)[kEach][kEach],
                             const Queries& queries, T* weights) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int row = down() + 16 * i, col = across() + 16 * j;
      T& weight = weights[row * kPitch + col];
      weight *= (dw[i][j] - queries.slopes[transposed ? col : row]) * T(p.scale);
    }
}

TW_KERNEL(attention_queries_backward, Attention, TW_THREADS) {
  __shared__ T stage[2 * kDepth * kPitch], weights[kTile * kPitch];
  __shared__ Queries queries;
  int64_t query;
  const Head head = head_of_block(p, p.queries, query);
  const int64_t column = int64_t(blockIdx.y) * kWidth;
  load_queries(p, head, query, queries);
  T dq[kEach][TW_WIDE] = {};
  for (int64_t key = 0; key < past_key(p, query); key += kTile) {
    T products[kEach][kEach] = {}, dw[kEach][kEach] = {};
    multiply_rows(products, head.q.from(query), head.k.from(key), p.size, stage);
    __syncthreads();  // the queries' sums are there, and the last use of the weights is over
    weigh<false>(p, head, query, key, products, queries, weights);
    multiply_rows(dw, head.g.from(query), head.v.from(key), p.value_size, stage);
    differentiate<false>(p, dw, queries, weights);
    multiply_weights(dq, weights, head.k.from(key), column, p.size, stage);
  }
  store(p.dq, head.number * p.queries + query, p.queries - query, dq, column, p.size);
}

TW_KERNEL(attention_keys_backward, Attention, TW_ONE_BLOCK) {
  __shared__ T stage[2 * kDepth * kPitch], weights[kTile * kPitch];
  __shared__ Queries queries;
  int64_t key;
  const Head head = head_of_block(p, p.keys, key);
  const int64_t column = int64_t(blockIdx.y) * kWidth;
  T dk[kEach][TW_WIDE] = {}, dv[kEach][TW_WIDE] = {};
  // Of causal attention, queries before the tile's first key attend to none of it.
  for (int64_t query = p.causal ? key : 0; query < p.queries; query += kTile) {
    __syncthreads();  // the last use of the queries' sums is over
    load_queries(p, head, query, queries);
    T products[kEach][kEach] = {}, dw[kEach][kEach] = {};
    multiply_rows(products, head.k.from(key), head.q.from(query), p.size, stage);
    __syncthreads();
    weigh<true>(p, head, query, key, products, queries, weights);
    multiply_weights(dv, weights, head.g.from(query), column, p.value_size, stage);
    multiply_rows(dw, head.v.from(key), head.g.from(query), p.value_size, stage);
    __syncthreads();  // the last use of the weights is over
    differentiate<true>(p, dw, queries, weights);
    multiply_weights(dk, weights, head.q.from(query), column, p.size, stage);
  }
  store(p.dk, head.number * p.keys + key, p.keys - key, dk, column, p.size);
  store(p.dv, head.number * p.keys + key, p.keys - key, dv, column, p.value_size);
}
