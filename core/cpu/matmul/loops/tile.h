// The micro-kernel: a tile of C that stays in registers for one run along k. Each step loads one
// vector per tile column block and broadcasts one element per tile row, so that rows x vectors
// multiply-adds cost rows + vectors loads.
#pragma once

#include "core/base/thresholds.h"

namespace tw::TW_ISA_NAME {
namespace {

#ifdef TW_HAS_MASKED_ACCESS
inline constexpr bool kMaskedAccess = true;
#else
inline constexpr bool kMaskedAccess = false;
#endif

#ifdef TW_HAS_STREAMING
inline constexpr bool kStreams = true;
#else
inline constexpr bool kStreams = false;
#endif

// A full tile is this many vectors wide: 6 x 4 with 32 registers, 6 x 2 with 16. Both keep all but
// a few registers as accumulators, more than the 8 chains (2 ports x 4 cycles) that hide the
// latency.
inline constexpr int kTileVectors = kRegisters / 8;
// Tiles whose rows are a line each are not written around the caches
// (core/cpu/matmul/blocking.cpp).
inline constexpr bool kStreamsTiles = kStreams && kTileVectors * kVectorBytes > 64;
// Narrow tiles are bound by loads: beyond 8 chains more rows gain nothing (8 x 2 and 8 x 3 beat 12
// x 2).
inline constexpr int kMaxTileRows = 8;

// Rows of a tile `vectors` wide: registers hold rows * vectors sums, one row of B and one element
// of A.
constexpr int fitting_rows(int vectors) {
  const int rows = (kRegisters - 1 - vectors) / vectors;
  return rows < kMaxTileRows ? rows : kMaxTileRows;
}
constexpr int kTileRows[] = {fitting_rows(1), fitting_rows(2), fitting_rows(3), fitting_rows(4)};
constexpr int tile_rows(int vectors) { return kTileRows[vectors - 1]; }

// What becomes of the sums of one run along k: C = epilogue(alpha * sums + beta * C); beta == 0
// does not read C. `streams`: C is written around the caches where there is no epilogue, which
// spares reading each line before it is overwritten.
template <class T> struct Update {
  T alpha, beta;
  bool streams;
  const MatmulEpilogue* epilogue;  // null: nothing

  struct Room;
  // For what begins at element (i, j): itself in the usual case, else a copy in `room`.
  TW_INLINE const Update& at(std::int64_t i, std::int64_t j, Room& room) const;
};
template <class T> struct Update<T>::Room {
  Update update;
  MatmulEpilogue epilogue;
};
template <class T>
TW_INLINE const Update<T>& Update<T>::at(std::int64_t i, std::int64_t j, Room& room) const {
  if (!epilogue) return *this;
  room.epilogue = moved<T>(*epilogue, i, j);
  room.update = {alpha, beta, streams, &room.epilogue};
  return room.update;
}
// Of terms [from, to) of a product.
template <class T> TW_INLINE Update<T> update_of(const MatmulProblem& p, std::int64_t from,
                                                 std::int64_t to, bool streams = false) {
  const bool has_epilogue = to >= p.k && (p.epilogue.bias || p.epilogue.relu);
  return {(T)p.alpha, from == 0 ? (T)p.beta : T(1), streams, has_epilogue ? &p.epilogue : nullptr};
}
enum class Store { write, accumulate, stream };

// Transposes a square of lanes x lanes in registers: log2(lanes) rounds of perfect shuffles.
template <class Raw, int... lane>
TW_INLINE Raw interleave_low(Raw x, Raw y, std::integer_sequence<int, lane...>) {
  constexpr int lanes = sizeof...(lane);
  return __builtin_shufflevector(x, y, (lane / 2 + (lane % 2) * lanes)...);
}
template <class Raw, int... lane>
TW_INLINE Raw interleave_high(Raw x, Raw y, std::integer_sequence<int, lane...>) {
  constexpr int lanes = sizeof...(lane);
  return __builtin_shufflevector(x, y, (lane / 2 + lanes / 2 + (lane % 2) * lanes)...);
}
template <class T> TW_INLINE void transpose(typename Vec<T>::Raw (&rows)[kLanes<T>]) {
  constexpr int lanes = kLanes<T>;
  using Order = std::make_integer_sequence<int, lanes>;
#pragma GCC unroll 4
  for (int round = 1; round < lanes; round *= 2) {
    typename Vec<T>::Raw next[lanes];
#pragma GCC unroll 16
    for (int i = 0; i < lanes / 2; ++i) {
      next[2 * i] = interleave_low(rows[i], rows[i + lanes / 2], Order());
      next[2 * i + 1] = interleave_high(rows[i], rows[i + lanes / 2], Order());
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) rows[i] = next[i];
  }
}

template <class T> TW_INLINE void update_vector(T* c, int count, Vec<T> sum, T beta) {
  if (beta != 0) sum = fma(Vec<T>(beta), Vec<T>::load(c, count), sum);
  sum.store(c, count);
}

// A tile from memory to a C of any strides.
template <class T> inline void store_strided(int rows, int columns, const T* sums, int sums_row,
                                             T* c, std::int64_t c_row, std::int64_t c_col, T beta) {
  constexpr int lanes = kLanes<T>;
  if (c_col == 1) {
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < columns; j += lanes)
        update_vector(c + r * c_row + j, columns - j < lanes ? columns - j : lanes,
                      Vec<T>::load(sums + r * sums_row + j), beta);
    return;
  }
  if (c_row != 1) {
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < columns; ++j)
        update_vector(c + r * c_row + j * c_col, 1, Vec<T>(sums[r * sums_row + j]), beta);
    return;
  }
  for (int j = 0; j < columns; j += lanes)
    for (int r = 0; r < rows; r += lanes) {
      typename Vec<T>::Raw square[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i)
        square[i] = Vec<T>::load(sums + (r + i < rows ? r + i : r) * sums_row + j).v;
      transpose<T>(square);
      const int height = rows - r < lanes ? rows - r : lanes;
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i)
        if (j + i < columns)
          update_vector(c + r + (j + i) * c_col, height, Vec<T>(square[i]), beta);
    }
}

// A tile that has more to go through than its registers' way to C: other strides, a bias, a relu.
// `sums` has whole vectors of columns, `columns` of them are C's.
template <class T> [[gnu::noinline]] void store_apart(int rows, int columns, T* sums, int sums_row,
                                                      T* c, std::int64_t c_row, std::int64_t c_col,
                                                      const Update<T>& update) {
  const MatmulEpilogue* const epilogue = update.epilogue;
  if (epilogue && update.beta == 0) {
    if (c_col == 1) return epilogue_rows(rows, columns, sums, sums_row, c, c_row, *epilogue);
    epilogue_rows(rows, columns, sums, sums_row, sums, sums_row, *epilogue);
  }
  store_strided(rows, columns, sums, sums_row, c, c_row, c_col, update.beta);
  if (epilogue && update.beta != 0) apply_epilogue(rows, columns, c, c_row, c_col, *epilogue);
}

inline constexpr std::int64_t kChain = kMatmulChain;

// The rows of A that the next tiles read. They come from L3 or memory, and no prefetcher of the
// hardware knows of them, so they are asked for while this row of tiles is computed: one line a
// step, since in bursts they wait for each other. A chain of steps covers a row, or an equal share
// of one where there are chains enough. Worth 3 % at 2048 x 2048 (docs/notes/matmul.md).
template <class T> class RowsAhead {
 public:
  explicit RowsAhead(const T* anywhere) : at_(anywhere) {}  // nothing to come
  // `rows` rows of k elements from `a` on, over `chains` chains.
  RowsAhead(const T* a, std::int64_t a_row, int rows, std::int64_t k, std::int64_t chains)
      : at_(a), row_(a_row), rows_left_(rows) {
    if (rows == 0 || k == 0) return;
    shares_ = chains > rows ? chains / rows : 1;
    const std::int64_t most = (k + kChain - 1) / kChain;
    if (shares_ > most) shares_ = most;
    step_ = (k + shares_ * kChain - 1) / (shares_ * kChain);
  }
  std::int64_t step() const { return step_; }
  // Where the next chain begins to ask.
  const T* next() {
    const T* const from = at_ + share_ * step_ * kChain;
    if (rows_left_ > 0 && ++share_ == shares_) {
      share_ = 0;
      if (--rows_left_ > 0) at_ += row_;
    }
    return from;
  }

 private:
  const T* at_;
  std::int64_t row_ = 0, step_ = 0, share_ = 0, shares_ = 1;
  int rows_left_ = 0;
};

// The next rows of B are prefetched this many steps ahead: 8 % where a block of B streams from L2,
// and no loss where it lies in L1. One line of two: the processor brings lines in pairs, and asking
// for both takes 1-2 % of the time that loads have.

// sums += A[:, 0:k] B[0:k, :]; prefetches a line at `ahead`, `ahead_step` further each step.
template <class T, int rows, int vectors>
TW_INLINE void multiply_add(std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col,
                            const T* b, std::int64_t b_row, const T* ahead, std::int64_t ahead_step,
                            typename Vec<T>::Raw (&sums)[rows][vectors]) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  for (std::int64_t p = 0; p < k; ++p) {
    __builtin_prefetch(ahead, 0, 2);  // into L2: L1 is full of this tile's rows
    ahead += ahead_step;
    typename V::Raw row[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const T* from = b + v * lanes;
      if (v * lanes * sizeof(T) % thresholds::kBytesAhead == 0)
        __builtin_prefetch(from + thresholds::kStepsAhead * b_row);
      row[v] = V::load(from).v;
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const typename V::Raw x = V(a[r * a_row]).v;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(x, row[v], sums[r][v]);
    }
    a += a_col;
    b += b_row;
  }
}

template <class T, int rows, int vectors, Store how>
TW_INLINE void store_tile(const typename Vec<T>::Raw (&sums)[rows][vectors], T* c,
                          std::int64_t c_row, int last, T beta) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  const bool whole = !kMaskedAccess && last == lanes;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r, c += c_row)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      T* out = c + v * lanes;
      V sum(sums[r][v]);
      if (v < vectors - 1 || whole) {
        if (how == Store::accumulate) sum = fma(V(beta), V::load(out), sum);
        how == Store::stream ? sum.stream(out) : sum.store(out);
      } else {
        if (how == Store::accumulate) sum = fma(V(beta), V::load(out, last), sum);
        how == Store::stream&& last == lanes ? sum.stream(out) : sum.store(out, last);
      }
    }
}

// Sums of a tile to C, whose last vector of columns has `last` lanes.
template <class T, int rows, int vectors>
TW_INLINE void finish_tile(typename Vec<T>::Raw (&sums)[rows][vectors], T* c, std::int64_t c_row,
                           std::int64_t c_col, int last, const Update<T>& update) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  const T alpha = update.alpha, beta = update.beta;
  if (alpha != 1) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] *= V(alpha).v;
  }
  if (c_col != 1 || update.epilogue) [[unlikely]] {
    alignas(64) T out[rows][vectors * lanes];
    __builtin_memcpy(out, sums, sizeof sums);
    return store_apart(rows, (vectors - 1) * lanes + last, out[0], vectors * lanes, c, c_row, c_col,
                       update);
  }
  if (beta != 0) {
    store_tile<T, rows, vectors, Store::accumulate>(sums, c, c_row, last, beta);
  } else if (kStreamsTiles && update.streams) {
    store_tile<T, rows, vectors, Store::stream>(sums, c, c_row, last, beta);
  } else {
    store_tile<T, rows, vectors, Store::write>(sums, c, c_row, last, beta);
  }
}

// Each element is made of the same chains of multiply-adds, whatever the tile: a result does
// not depend on where the tile's borders fall. `last` is the number of lanes used of the last
// vector; B's rows are readable up to whole vectors.
template <class T, int rows, int vectors>
void tile(std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col, const T* b,
          std::int64_t b_row, T* c, std::int64_t c_row, std::int64_t c_col, int last,
          const Update<T>& update, RowsAhead<T>& ahead) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  typename V::Raw sums[rows][vectors] = {};
  const std::int64_t ahead_step = ahead.step();
  const auto add_terms = [&](std::int64_t count) TW_LAMBDA_INLINE {
    const T* const next = ahead.next();
    multiply_add<T, rows, vectors>(count, a, a_row, a_col, b, b_row, next, ahead_step, sums);
  };
  if (k > kChain && c_col == 1) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) __builtin_prefetch(c + r * c_row + v * lanes, 1);
  }
  add_terms(k < kChain ? k : kChain);
  if (k > kChain) {
    typename V::Raw total[rows][vectors];
    __builtin_memcpy(total, sums, sizeof sums);
    for (;;) {
      k -= kChain;
      a += kChain * a_col;
      b += kChain * b_row;
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sums[r][v] = typename V::Raw{};
      add_terms(k < kChain ? k : kChain);
      if (k <= kChain) break;
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) total[r][v] += sums[r][v];
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = total[r][v] + sums[r][v];
  }
  finish_tile<T, rows, vectors>(sums, c, c_row, c_col, last, update);
}

template <class T> using TileFunction = void (*)(std::int64_t k, const T* a, std::int64_t a_row,
                                                 std::int64_t a_col, const T* b, std::int64_t b_row,
                                                 T* c, std::int64_t c_row, std::int64_t c_col,
                                                 int last, const Update<T>& update,
                                                 RowsAhead<T>& ahead);

// tiles<T>.at[vectors - 1][rows - 1], for each size that fits the registers.
template <class T> struct Tiles {
  TileFunction<T> at[kTileVectors][kMaxTileRows];

  template <int vectors, int rows> constexpr void fill_rows() {
    if constexpr (rows <= tile_rows(vectors)) {
      at[vectors - 1][rows - 1] = tile<T, rows, vectors>;
      fill_rows<vectors, rows + 1>();
    }
  }
  template <int vectors = 1> constexpr void fill() {
    if constexpr (vectors <= kTileVectors) {
      fill_rows<vectors, 1>();
      fill<vectors + 1>();
    }
  }
  constexpr Tiles() : at{} { fill(); }
};
template <class T> constexpr Tiles<T> tiles;

// Cuts `count` into the fewest pieces of at most `limit` and makes them as equal as possible, so
// that no thin piece at the end runs at half the rate: 16 rows by 6 are 6, 5, 5 rather than 6,
// 6, 4.
struct EvenPieces {
  std::int64_t pieces, size, longer;  // the first `longer` pieces have one more
  EvenPieces(std::int64_t count, std::int64_t limit) : pieces(count > 0), size(count), longer(0) {
    if (count <= limit) return;  // spares small products the divisions
    pieces = (count + limit - 1) / limit;
    size = count / pieces;
    longer = count - size * pieces;
  }
  int at(std::int64_t piece) const { return (int)(size + (piece < longer)); }
  std::int64_t start(std::int64_t piece) const {
    return piece * size + (piece < longer ? piece : longer);
  }
};

// Whole or partial vectors that cover n columns.
template <class T> constexpr std::int64_t vectors_of(std::int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T>;
}
// Lanes used of the last vector of a row of n columns.
template <class T> constexpr int last_lanes(std::int64_t n) {
  return n % kLanes<T> ? (int)(n % kLanes<T>) : kLanes<T>;
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
