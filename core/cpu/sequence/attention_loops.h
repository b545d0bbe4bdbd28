// Attention of one head: scores of a block of queries by a block of keys lie transposed, queries in
// the lanes, so that softmax needs nothing across lanes and keys, values and gradients are read
// where they are. The running maximum and sum are those of Milakov and Gimelshein, Online
// normalizer calculation for softmax, 2018; gradients from the saved log-sums as in Dao et al.,
// FlashAttention, 2022.
#pragma once
#include "core/cpu/sequence/attention.h"
#include "core/cpu/sequence/attention_product_loops.h"
#include "core/cpu/simd/lane_sums.h"
#include "core/cpu/math/softmax_weights.h"

namespace tw::TW_ISA_NAME {
namespace {

inline constexpr int64_t kQueries = kAttentionQueries;
// On the diagonal of a causal block, so many keys share a first query: whole vectors of any type.
inline constexpr int64_t kStep = 16;

// What exponents are taken relative to: rows without any key have no maximum.
template <class T> TW_INLINE Vec<T> base_of(Vec<T> top) { return where(top == -kInfinity, 0, top); }
template <class T> TW_INLINE const T* row_of(AttentionRows x, int64_t i) {
  return (const T*)x.at + i * x.row;
}

// Keys [first, first + count) and the block's queries, of which there are `queries` from `start`.
struct KeyBlock {
  int64_t first, count, start, queries;
  bool diagonal;   // causal, and first == start
  int64_t padded;  // queries up to whole vectors

  // Calls f(first key, keys, first query) for parts that need no query before their first.
  template <class F> TW_INLINE void parts(F f) const {
    if (!diagonal) return f(0, count, 0);
    for (int64_t j = 0; j < count; j += kStep) f(j, count - j < kStep ? count - j : kStep, j);
  }
  // Keys that some query of the vector from r on attends to.
  int64_t keys_of(int64_t r) const {
    const int64_t past = (r / kStep + 1) * kStep;
    return diagonal && past < count ? past : count;
  }
};

// Calls f(block) for the blocks of at most `most` keys that queries from `start` on attend to.
template <int64_t most, class F>
TW_INLINE void each_block(const AttentionShape& s, int64_t start, int64_t queries, int lanes, F f) {
  const int64_t padded = (queries + lanes - 1) / lanes * lanes;
  const int64_t straight = s.causal && start < s.keys ? start : s.keys;
  for (int64_t j = 0; j < straight; j += most)
    f(KeyBlock{j, straight - j < most ? straight - j : most, start, queries, false, padded});
  const int64_t rest = s.keys - straight;
  if (rest > 0) f(KeyBlock{start, rest < queries ? rest : queries, start, queries, true, padded});
}

// The mask of a block as numbers to add, laid out as scores are. `rows` holds a row of the block's
// keys for each query.
template <class T> void read_mask(const AttentionShape& s, const AttentionHead& h,
                                  const KeyBlock& b, T* rows, T* mask) {
  const int64_t at = b.start * s.mask_row + b.first * s.mask_column;
  const T* from = (const T*)h.mask + at;
  int64_t from_row = s.mask_row;
  if (s.bool_mask || s.mask_column != 1) {
    const auto* counts = (const std::uint8_t*)h.mask + at;
    for (int64_t i = 0; i < b.queries; ++i)
      for (int64_t j = 0; j < b.count; ++j) {
        const int64_t place = i * s.mask_row + j * s.mask_column;
        rows[i * b.count + j] = s.bool_mask ? (counts[place] ? (T)0 : (T)-kInfinity) : from[place];
      }
    from = rows;
    from_row = b.count;
  }
  transpose_block(b.queries, b.count, from, from_row, mask, kQueries, (T)1);
}

// Asks for rows some time before they are needed.
template <class T>
TW_INLINE void ask_for(AttentionRows x, int64_t first, int64_t rows, int64_t size) {
  constexpr int64_t line = 64 / (int64_t)sizeof(T);
  for (int64_t i = first; i < first + rows; ++i)
    for (int64_t at = 0; at < size; at += line) __builtin_prefetch(row_of<T>(x, i) + at, 0, 2);
}
// While scores of keys [at, at + rows) are computed: on the diagonal the rows of the next block of
// queries, else the next keys and the values that these scores will weigh.
template <class T> TW_INLINE void prefetch_next(const AttentionShape& s, const AttentionHead& h,
                                                const KeyBlock& b, int64_t at, int64_t rows) {
  if (b.diagonal) {
    ask_for<T>(h.q, at + kQueries, rows, s.size);
    ask_for<T>(h.k, at + kQueries, rows, s.size);
    ask_for<T>(h.v, at + kQueries, rows, s.value_size);
  } else if (!s.causal) {
    ask_for<T>(h.k, at + rows, rows, s.size);
    ask_for<T>(h.v, at, rows, s.value_size);
    if (at < kQueries) ask_for<T>(h.q, b.start + kQueries + at, rows, s.size);
  }
}

// Scores of a block, from queries that are transposed and scaled. What a query may not attend to is
// -inf, or, left of the parts, unset.
template <class T> void scores_of(const AttentionShape& s, const AttentionHead& h,
                                  const KeyBlock& b, const T* queries, T* scores) {
  b.parts([&](int64_t j, int64_t keys, int64_t r) TW_LAMBDA_INLINE {
    product<T>(keys, b.padded - r, s.size, {row_of<T>(h.k, b.first + j), h.k.row, 1}, queries + r,
               kQueries, scores + j * kQueries + r, kQueries, false,
               [&](int64_t i, int64_t rows)
                   TW_LAMBDA_INLINE { prefetch_next<T>(s, h, b, b.first + j + i, rows); });
  });
  if (b.diagonal)
    for (int64_t j = 0; j < b.count; ++j)
      for (int64_t r = j / kStep * kStep; r < j; ++r) scores[j * kQueries + r] = (T)-kInfinity;
}

// What is known of each query after some blocks.
template <class T> struct Running {
  alignas(64) T top[kQueries], sum[kQueries], factor[kQueries];
};

// Turns a vector's scores into exponentials relative to the maximum so far.
template <class T>
TW_INLINE void weigh(int64_t keys, T* scores, const T* mask, T& top, T& sum, T& factor) {
  Vec<T> best[4];
  for (auto& x : best) x = Vec<T>((T)-kInfinity);
  const auto score = [=](int64_t j) TW_LAMBDA_INLINE {
    T* const at = scores + j * kQueries;
    if (!mask) return Vec<T>::load(at);
    const Vec<T> x = Vec<T>::load(at) + Vec<T>::load(mask + j * kQueries);
    x.store(at);
    return x;
  };
  int64_t j = 0;
  for (; j + 4 <= keys; j += 4)
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) best[c] = larger(score(j + c), best[c]);
  for (; j < keys; ++j) best[0] = larger(score(j), best[0]);
  const Vec<T> before = Vec<T>::load(&top);
  const Vec<T> now = larger(before, larger(larger(best[0], best[1]), larger(best[2], best[3])));
  const Vec<T> base = base_of(now);
  Vec<T> total = (T)0;
#pragma GCC unroll 2
  for (j = 0; j < keys; ++j) {
    const Vec<T> x = weight_below(Vec<T>::load(scores + j * kQueries) - base);
    x.store(scores + j * kQueries);
    total += x;
  }
  const Vec<T> scale = weight_below(before - base);
  scale.store(&factor);
  now.store(&top);
  fma(Vec<T>::load(&sum), scale, total).store(&sum);
}

template <class T> TW_INLINE void scale_row(int64_t n, T* row, T by) {
  each_vector<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
    store_some(row + at, load_some(row + at, count) * by, count);
  });
}
template <class T> TW_INLINE void clear(T* at, int64_t count) {
  __builtin_memset(at, 0, (std::size_t)count * sizeof(T));
}

// Divides by the sums, and saves their bases and logarithms.
template <class T>
void finish(const AttentionShape& s, const Running<T>& run, int64_t queries, T* y, T* log_sums) {
  for (int64_t r = 0; r < queries; ++r)
    scale_row(s.value_size, y + r * s.value_size, run.sum[r] == 0 ? (T)0 : 1 / run.sum[r]);
  each_vector<T>(queries, [&](int64_t r, int count) TW_LAMBDA_INLINE {
    const Vec<T> sum = Vec<T>::load(run.sum + r), top = Vec<T>::load(run.top + r);
    store_some(log_sums + r, base_of(top), count);
    store_some(log_sums + s.queries + r, where(sum == (T)0, kInfinity, log(sum)), count);
  });
}

template <class T> void attention_forward(const AttentionShape& s, const AttentionHead& h,
                                          int64_t start, void* scratch) {
  constexpr int L = kLanes<T>;
  const int64_t n = s.queries - start < kQueries ? s.queries - start : kQueries;
  T* const queries = (T*)scratch;
  T* const scores = queries + s.size * kQueries;
  T* const mask = scores + kAttentionKeys * kQueries;
  T* const y = (T*)h.y + start * s.value_size;
  transpose_block(n, s.size, row_of<T>(h.q, start), h.q.row, queries, kQueries, (T)s.scale);
  Running<T> run = {};
  for (T& top : run.top) top = (T)-kInfinity;
  if (s.keys == 0) clear(y, n * s.value_size);
  each_block<kAttentionKeys>(s, start, n, L, [&](const KeyBlock& b) TW_LAMBDA_INLINE {
    scores_of(s, h, b, queries, scores);
    if (s.has_mask) read_mask(s, h, b, mask + kAttentionKeys * kQueries, mask);
    for (int64_t r = 0; r < b.padded; r += L)
      weigh(b.keys_of(r), scores + r, s.has_mask ? mask + r : nullptr, run.top[r], run.sum[r],
            run.factor[r]);
    if (b.first > 0)
      for (int64_t r = 0; r < n; ++r)
        if (run.factor[r] != 1) scale_row(s.value_size, y + r * s.value_size, run.factor[r]);
    b.parts([&](int64_t j, int64_t keys, int64_t r) TW_LAMBDA_INLINE {
      if (r < n)
        product<T>(n - r, s.value_size, keys, {scores + j * kQueries + r, 1, kQueries},
                   row_of<T>(h.v, b.first + j), h.v.row, y + r * s.value_size, s.value_size,
                   b.first + j > 0);
    });
  });
  finish(s, run, n, y, (T*)h.y_log_sums + start);
}

template <class T> TW_INLINE Vec<T> mask_term(const AttentionShape& s, const AttentionHead& h,
                                              int64_t i, int64_t j, int count) {
  alignas(64) T terms[kLanes<T>] = {};
  for (int c = 0; c < count; ++c) {
    const int64_t at = i * s.mask_row + (j + c) * s.mask_column;
    terms[c] = s.bool_mask ? (((const std::uint8_t*)h.mask)[at] ? (T)0 : (T)-kInfinity)
                           : ((const T*)h.mask)[at];
  }
  return Vec<T>::load(terms);
}
template <class T> TW_INLINE T dot(int64_t n, const T* a, const T* b) {
  Vec<T> sum = (T)0;
  each_vector<T>(n, [&](int64_t at, int count) TW_LAMBDA_INLINE {
    sum = fma(load_some(a + at, count), load_some(b + at, count), sum);
  });
  return sum_of_lanes(sum);
}

// The dot products of q with the keys from `first` on, of which there are `count`, a lane each.
// What is added in which order does not depend on the lane.
template <class T> TW_INLINE Vec<T> dots_with_keys(const AttentionShape& s, const T* q,
                                                   AttentionRows k, int64_t first, int count) {
  typename Vec<T>::Raw sums[kLanes<T>] = {};
  each_vector<T>(s.size, [&](int64_t at, int n) TW_LAMBDA_INLINE {
    const Vec<T> x = load_some(q + at, n);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes<T>; ++i) {
      const int64_t key = first + (i < count ? i : 0);
      sums[i] = fma(load_some(row_of<T>(k, key) + at, n).v, x.v, sums[i]);
    }
  });
  sum_lanes<T>(sums);
  return sums[0];
}

// Some vectors of weights @ v for one query, the last of `last` lanes: four keys at a time, since a
// sum waits four cycles for the one before.
template <class T, int vectors> TW_INLINE void weigh_columns(int64_t keys, const T* weights,
                                                             const T* v, int64_t row, T* y,
                                                             int last, T scale) {
  constexpr int chains = 4;
  Vec<T> sums[chains][vectors];
  for (auto& chain : sums)
    for (Vec<T>& sum : chain) sum = (T)0;
  const auto count_of = [last](int i)
                            TW_LAMBDA_INLINE { return i + 1 < vectors ? kLanes<T> : last; };
  const auto add = [&](int64_t j, int chain) TW_LAMBDA_INLINE {
#pragma GCC unroll 2
    for (int i = 0; i < vectors; ++i)
      sums[chain][i] = fma(Vec<T>(weights[j]), load_some(v + j * row + i * kLanes<T>, count_of(i)),
                           sums[chain][i]);
  };
  int64_t j = 0;
  for (; j + chains <= keys; j += chains)
#pragma GCC unroll 4
    for (int chain = 0; chain < chains; ++chain) add(j + chain, chain);
  for (; j < keys; ++j) add(j, 0);
#pragma GCC unroll 2
  for (int i = 0; i < vectors; ++i)
    store_some(y + i * kLanes<T>, ((sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i])) * scale,
               count_of(i));
}
template <class T> TW_INLINE void weighted_sum(int64_t keys, int64_t n, const T* weights,
                                               AttentionRows v, T* y, T scale) {
  constexpr int L = kLanes<T>;
  int64_t at = 0;
  for (; at + L < n; at += 2 * L)
    weigh_columns<T, 2>(keys, weights, row_of<T>(v, 0) + at, v.row, y + at,
                        n - at < 2 * L ? (int)(n - at - L) : L, scale);
  if (at < n)
    weigh_columns<T, 1>(keys, weights, row_of<T>(v, 0) + at, v.row, y + at, (int)(n - at), scale);
}

template <class T>
void attention_forward_few(const AttentionShape& s, const AttentionHead& h, void* scratch) {
  T* const weights = (T*)scratch;
  for (int64_t i = 0; i < s.queries; ++i) {
    const int64_t keys = s.causal && i + 1 < s.keys ? i + 1 : s.keys;
    Vec<T> best = (T)-kInfinity;
    each_vector<T>(keys, [&](int64_t j, int count) TW_LAMBDA_INLINE {
      Vec<T> x = dots_with_keys<T>(s, row_of<T>(h.q, i), h.k, j, count) * (T)s.scale;
      if (s.has_mask) x += mask_term<T>(s, h, i, j, count);
      store_some(weights + j, x, count);
      best = larger(fill_after(x, count, (T)-kInfinity), best);
    });
    const T top = max_of_lanes(best);
    const Vec<T> base = base_of(Vec<T>(top));
    Vec<T> sums = (T)0;
    each_vector<T>(keys, [&](int64_t j, int count) TW_LAMBDA_INLINE {
      const Vec<T> x = exp_below(load_some(weights + j, count) - base);
      store_some(weights + j, x, count);
      sums += fill_after(x, count, (T)0);
    });
    const T sum = sum_of_lanes(sums);
    weighted_sum(keys, s.value_size, weights, h.v, (T*)h.y + i * s.value_size,
                 sum == 0 ? (T)0 : 1 / sum);
    ((T*)h.y_log_sums)[i] = base[0];
    ((T*)h.y_log_sums)[s.queries + i] = sum == 0 ? (T)kInfinity : log(Vec<T>(sum))[0];
  }
}

// What the gradients of a block of queries read of each.
template <class T> struct Saved {
  alignas(64) T base[kQueries], log_sum[kQueries], dot[kQueries];
};

// Scores become weights p, gradients of weights become those of scores: p * (dp - sum(p * dp)).
template <class T> void differentiate(const KeyBlock& b, const Saved<T>& saved, const T* mask,
                                      T scale, T* scores, T* grads) {
  for (int64_t r = 0; r < b.padded; r += kLanes<T>) {
    const Vec<T> base = Vec<T>::load(saved.base + r), log_sum = Vec<T>::load(saved.log_sum + r),
                 sum = Vec<T>::load(saved.dot + r);
    const int64_t keys = b.keys_of(r);
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t at = j * kQueries + r;
      Vec<T> x = Vec<T>::load(scores + at);
      if (mask) x += Vec<T>::load(mask + at);
      const Vec<T> p = weight_below(x - base - log_sum);
      p.store(scores + at);
      (p * (Vec<T>::load(grads + at) - sum) * scale).store(grads + at);
    }
  }
}

template <class T>
void attention_backward(const AttentionShape& s, const AttentionHead& h, void* scratch) {
  constexpr int L = kLanes<T>;
  T* const queries = (T*)scratch;
  T* const gs = queries + s.size * kQueries;
  T* const scores = gs + s.value_size * kQueries;
  T* const grads = scores + kAttentionBackwardKeys * kQueries;
  T* const mask = grads + kAttentionBackwardKeys * kQueries;
  T *const dq = (T*)h.dq, *const dk = (T*)h.dk, *const dv = (T*)h.dv;
  clear(dk, s.keys * s.size);
  clear(dv, s.keys * s.value_size);
  if (s.keys == 0) clear(dq, s.queries * s.size);
  for (int64_t start = 0; start < s.queries; start += kQueries) {
    const int64_t n = s.queries - start < kQueries ? s.queries - start : kQueries;
    transpose_block(n, s.size, row_of<T>(h.q, start), h.q.row, queries, kQueries, (T)s.scale);
    transpose_block(n, s.value_size, row_of<T>(h.g, start), h.g.row, gs, kQueries, (T)1);
    Saved<T> saved = {};
    for (T& x : saved.log_sum) x = (T)kInfinity;
    for (int64_t r = 0; r < n; ++r) {
      saved.base[r] = ((const T*)h.log_sums)[start + r];
      saved.log_sum[r] = ((const T*)h.log_sums)[s.queries + start + r];
      saved.dot[r] = dot(s.value_size, row_of<T>(h.g, start + r),
                         (const T*)h.out + (start + r) * s.value_size);
    }
    each_block<kAttentionBackwardKeys>(s, start, n, L, [&](const KeyBlock& b) TW_LAMBDA_INLINE {
      scores_of(s, h, b, queries, scores);
      b.parts([&](int64_t j, int64_t keys, int64_t r) TW_LAMBDA_INLINE {
        product<T>(keys, b.padded - r, s.value_size, {row_of<T>(h.v, b.first + j), h.v.row, 1},
                   gs + r, kQueries, grads + j * kQueries + r, kQueries, false);
      });
      if (s.has_mask) read_mask(s, h, b, mask + kAttentionBackwardKeys * kQueries, mask);
      differentiate(b, saved, s.has_mask ? mask : nullptr, (T)s.scale, scores, grads);
      b.parts([&](int64_t j, int64_t keys, int64_t r) TW_LAMBDA_INLINE {
        if (r >= n) return;
        const int64_t key = b.first + j, at = j * kQueries + r;
        product<T>(keys, s.value_size, n - r, {scores + at, kQueries, 1}, row_of<T>(h.g, start + r),
                   h.g.row, dv + key * s.value_size, s.value_size, true);
        product<T>(keys, s.size, n - r, {grads + at, kQueries, 1}, row_of<T>(h.q, start + r),
                   h.q.row, dk + key * s.size, s.size, true);
        product<T>(n - r, s.size, keys, {grads + at, 1, kQueries}, row_of<T>(h.k, key), h.k.row,
                   dq + (start + r) * s.size, s.size, key > 0);
      });
    });
  }
}

template <class T> constexpr AttentionLoops attention_loops() {
  return {attention_forward<T>, attention_forward_few<T>, attention_backward<T>};
}

}  // namespace

extern const AttentionTable attention_table;
const AttentionTable attention_table = {attention_loops<float>(), attention_loops<double>()};

}  // namespace tw::TW_ISA_NAME
