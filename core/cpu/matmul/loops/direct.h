// Rung 5, direct: nothing is packed. Small operands are in cache already, so the micro-kernel reads
// B where it lies; products of rows with columns that are contiguous along k are taken as dot
// products.
#pragma once

#include "core/base/thresholds.h"

namespace tw::TW_ISA_NAME {
namespace {

// Sums of one row of C kept in L1 rather than in registers, while four rows of B at a time stream
// past in the order of memory: a stripe down B would touch a new page, or the same cache set, at
// each step. 16 KiB of sums, a third of L1 or half.
template <class T> inline constexpr std::int64_t kRowSums = 16384 / sizeof(T);

// sums[0:n] += x[0:rows] B[0:rows, 0:n], in the order of the rows.
template <class T, int rows> inline void add_rows(std::int64_t n, const T* x, std::int64_t x_step,
                                                  const T* b, std::int64_t b_row, T* sums) {
  constexpr int lanes = kLanes<T>;
  typename Vec<T>::Raw factors[rows];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) factors[r] = Vec<T>(x[r * x_step]).v;
  const auto add = [&](std::int64_t j, auto load) TW_LAMBDA_INLINE {
    typename Vec<T>::Raw sum = Vec<T>::load(sums + j).v;
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) sum = fma(factors[r], load(b + r * b_row + j), sum);
    Vec<T>(sum).store(sums + j);
  };
  std::int64_t j = 0;
#pragma GCC unroll 4
  for (; j + lanes <= n; j += lanes)
    add(j, [](const T* from) TW_LAMBDA_INLINE { return Vec<T>::load(from).v; });
  const int rest = (int)(n - j);
  if (rest > 0)
    add(j, [rest](const T* from) TW_LAMBDA_INLINE { return Vec<T>::load(from, rest).v; });
}

// One row of C, its columns contiguous. Chains of kChain terms are added up as in a tile, so that
// the bits are a tile's.
template <class T> inline void direct_row(const MatmulProblem& p, std::int64_t k,
                                          const Update<T>& update, const T* a, const T* b, T* c) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t j = 0; j < p.n; j += kRowSums<T>) {
    const std::int64_t n = p.n - j < kRowSums<T> ? p.n - j : kRowSums<T>;
    alignas(64) T sums[kRowSums<T>];
    alignas(64) T chain[kRowSums<T>];
    for (std::int64_t l = 0; l == 0 || l < k;) {
      T* const to = l == 0 ? sums : chain;
      for (std::int64_t i = 0; i < n; i += lanes) Vec<T>(T(0)).store(to + i);
      const std::int64_t past = l + kChain < k ? l + kChain : k;
      for (; l + 4 <= past; l += 4)
        add_rows<T, 4>(n, a + l * p.a_col, p.a_col, b + l * p.b_row + j, p.b_row, to);
      for (; l < past; ++l)
        add_rows<T, 1>(n, a + l * p.a_col, p.a_col, b + l * p.b_row + j, p.b_row, to);
      if (to == chain)
        for (std::int64_t i = 0; i < n; i += lanes)
          (Vec<T>::load(sums + i) + Vec<T>::load(chain + i)).store(sums + i);
      if (k == 0) break;
    }
    for (std::int64_t i = 0; i < n; i += lanes) {
      const Vec<T> sum = Vec<T>::load(sums + i) * Vec<T>(update.alpha);
      update_vector(c + j + i, n - i < lanes ? (int)(n - i) : lanes, sum, update.beta);
    }
    if (update.epilogue) apply_epilogue(1, n, c + j, p.c_row, 1, moved<T>(*update.epilogue, 0, j));
  }
}

// One row of C, at most two vectors wide: its chains of kChain terms side by side, where one after
// the other would wait four cycles for each term. The bits are those of a tile.
template <class T, int vectors, int chains>
void chains_of_row(std::int64_t k, const T* a, std::int64_t a_col, const T* b, std::int64_t b_row,
                   T* c, int last, const Update<T>& update) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  typename V::Raw sums[chains][vectors] = {};
  const auto add_terms = [&](std::int64_t from, std::int64_t to, auto count) TW_LAMBDA_INLINE {
    for (std::int64_t l = from; l < to; ++l)
#pragma GCC unroll 4
      for (int i = 0; i < decltype(count)::value; ++i) {
        const typename V::Raw x = V(a[(l + i * kChain) * a_col]).v;
        const T* const y = b + (l + i * kChain) * b_row;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
          const bool whole = !kMaskedAccess || v < vectors - 1;
          sums[i][v] =
              fma(x, whole ? V::load(y + v * lanes).v : V::load(y + v * lanes, last).v, sums[i][v]);
        }
      }
  };
  const std::int64_t rest = k - (chains - 1) * kChain;  // terms of the last chain
  add_terms(0, rest, std::integral_constant<int, chains>());
  add_terms(rest, kChain, std::integral_constant<int, chains - 1>());
  alignas(64) T out[vectors * lanes];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 4
    for (int i = 1; i < chains; ++i) sums[0][v] += sums[i][v];
    (V(sums[0][v]) * V(update.alpha)).store(out + v * lanes);
  }
  store_apart(1, (vectors - 1) * lanes + last, out, vectors * lanes, c, 0, 1, update);
}

template <class T, int vectors>
inline bool takes_chains_of_row(std::int64_t k, const T* a, std::int64_t a_col, const T* b,
                                std::int64_t b_row, T* c, int last, const Update<T>& update) {
  if (k <= kChain || k > 4 * kChain) return false;
  const auto run = k <= 2 * kChain   ? chains_of_row<T, vectors, 2>
                   : k <= 3 * kChain ? chains_of_row<T, vectors, 3>
                                     : chains_of_row<T, vectors, 4>;
  run(k, a, a_col, b, b_row, c, last, update);
  return true;
}

// What a panel's tiles read and write: B from where it lies or from a copy, C from column j on.
template <class T> struct DirectPanel {
  const T* b;
  std::int64_t b_row, j;
  int vectors, last;

  DirectPanel(const MatmulProblem& p, const T* b, std::int64_t j, int vectors)
      : b(b + j),
        b_row(p.b_row),
        j(j),
        vectors(vectors),
        last(p.n - j < vectors * kLanes<T> ? last_lanes<T>(p.n) : kLanes<T>) {}
  ColumnFunction<T> function(int rows) const {
    const bool masked = kMaskedAccess && last < kLanes<T>;
    return masked ? tile_columns<T, kMaskedAccess>.at[vectors - 1][rows - 1]
                  : tile_columns<T, false>.at[vectors - 1][rows - 1];
  }
};

// `count` tiles of `height` rows from row i on.
template <class T>
TW_INLINE void direct_tiles_below(const MatmulProblem& p, const DirectPanel<T>& panel,
                                  std::int64_t k, const Update<T>& update, const T* a, T* c,
                                  std::int64_t i, std::int64_t count, int height) {
  typename Update<T>::Room room;
  panel.function(height)(count, k, a + i * p.a_row, p.a_row, p.a_col, panel.b, panel.b_row,
                         c + i * p.c_row + panel.j * p.c_col, p.c_row, p.c_col, panel.last,
                         update.at(i, panel.j, room));
}

// Sums of several chains that are not simply written: the chains are added up in a tile of their
// own.
template <class T>
[[gnu::noinline]] void direct_tile_of_chains(const MatmulProblem& p, const DirectPanel<T>& panel,
                                             std::int64_t k, const Update<T>& update, const T* a,
                                             T* c, std::int64_t i, int height) {
  constexpr int width = kTileVectors * kLanes<T>;
  alignas(64) T sums[kMaxTileRows * width];
  const auto run = panel.function(height);
  Update<T> sum{1, 0, false, nullptr};
  for (std::int64_t l = 0; l < k; l += kChain, sum.beta = 1)
    run(1, k - l < kChain ? k - l : kChain, a + i * p.a_row + l * p.a_col, p.a_row, p.a_col,
        panel.b + l * panel.b_row, panel.b_row, sums, width, 1, panel.last, sum);
  const std::int64_t columns = (panel.vectors - 1) * kLanes<T> + panel.last;
  if (update.alpha != 1)
    for (std::int64_t r = 0; r < height; ++r)
      for (std::int64_t j = 0; j < columns; ++j) sums[r * width + j] *= update.alpha;
  typename Update<T>::Room room;
  store_apart(height, (int)columns, sums, width, c + i * p.c_row + panel.j * p.c_col, p.c_row,
              p.c_col, update.at(i, panel.j, room));
}

// All tiles of a panel. A stripe of B of one chain stays in L1 or close to it.
template <class T> TW_INLINE void direct_panel(const MatmulProblem& p, const DirectPanel<T>& panel,
                                               std::int64_t k, const Update<T>& update, const T* a,
                                               T* c) {
  const EvenPieces rows(p.m, tile_rows(panel.vectors));
  if (k > kChain) [[unlikely]] {
    for (std::int64_t i = 0; i < rows.pieces; ++i)
      direct_tile_of_chains(p, panel, k, update, a, c, rows.start(i), rows.at(i));
    return;
  }
  if (rows.longer > 0) direct_tiles_below(p, panel, k, update, a, c, 0, rows.longer, rows.at(0));
  direct_tiles_below(p, panel, k, update, a, c, rows.start(rows.longer), rows.pieces - rows.longer,
                     (int)rows.size);
}

// Rows of B whole pages apart share few sets of L1. Tiles of few terms, whose stores go to those
// sets as well, then find little of B there: each panel is copied where there are enough tiles
// (16 x 2048 x 16 1.08 times as fast, 1024 x 1024 x 16 twice; with more terms than rows a loss).
inline constexpr std::int64_t kPanelCopyBytes = thresholds::kHalfL1Bytes;
template <class T> inline bool copies_panels(const MatmulProblem& p, std::int64_t k) {
  constexpr std::int64_t page = 4096, element = sizeof(T);
  return p.b_row * element % page == 0 && k <= p.m &&
         k * kTileVectors * kLanes<T> * element <= kPanelCopyBytes;
}
template <class T>
[[gnu::noinline]] void direct_copied_panels(const MatmulProblem& p, const EvenPieces& panels,
                                            std::int64_t k, const Update<T>& update, const T* a,
                                            const T* b, T* c) {
  alignas(64) T copy[kPanelCopyBytes / sizeof(T)];
  for (std::int64_t j = 0; j < panels.pieces; ++j) {
    DirectPanel<T> panel(p, b, panels.start(j) * kLanes<T>, panels.at(j));
    pack_panel(k, (panel.vectors - 1) * kLanes<T> + panel.last, panel.b, panel.b_row, 1, copy);
    panel.b = copy;
    panel.b_row = panel.vectors * kLanes<T>;
    direct_panel(p, panel, k, update, a, c);
  }
}

// B has unit column stride.
template <class T> inline void direct_run(const MatmulProblem& p, std::int64_t k,
                                          const Update<T>& update, const T* a, const T* b, T* c) {
  const EvenPieces panels(vectors_of<T>(p.n), kTileVectors);
  if (p.m == 1 && panels.pieces > 2 && p.c_col == 1) return direct_row(p, k, update, a, b, c);
  if (p.m == 1 && p.c_col == 1 && p.n <= 2 * kLanes<T>) {
    const bool one = p.n <= kLanes<T>;
    const auto takes = one ? takes_chains_of_row<T, 1> : takes_chains_of_row<T, 2>;
    if (takes(k, a, p.a_col, b, p.b_row, c, last_lanes<T>(p.n), update)) return;
  }
  const auto panel_at = [&](std::int64_t i) {
    return DirectPanel<T>(p, b, panels.start(i) * kLanes<T>, panels.at(i));
  };
  if (update.streams) {  // in the order of memory
    const EvenPieces rows(p.m, tile_rows(panels.at(0)));
    for (std::int64_t i = 0; i < rows.pieces; ++i)
      for (std::int64_t j = 0; j < panels.pieces; ++j)
        direct_tiles_below(p, panel_at(j), k, update, a, c, rows.start(i), 1, rows.at(i));
    return;
  }
  if (copies_panels<T>(p, k)) return direct_copied_panels(p, panels, k, update, a, b, c);
  for (std::int64_t j = 0; j < panels.pieces; ++j) direct_panel(p, panel_at(j), k, update, a, c);
}

// Runs of one chain where that changes no bit: a stripe of B of that length is used from L1.
template <class T> inline void direct_tiles(const MatmulProblem& p, const MatmulBlocks& blocks,
                                            const T* a, const T* b, T* c) {
  const bool adds_in_order = p.alpha == 1 && p.beta == 0 && p.c_col == 1 && blocks.kc >= p.k;
  const std::int64_t run = adds_in_order && p.m > 1 && kChain < blocks.kc ? kChain : blocks.kc;
  for (std::int64_t l = 0; l == 0 || l < p.k; l += run)
    direct_run(p, p.k - l < run ? p.k - l : run, update_of<T>(p, l, l + run, blocks.streams),
               a + l * p.a_col, b + l * p.b_row, c);
  if (blocks.streams) finish_streams();
}

template <class T> TW_INLINE T sum_of_lanes(typename Vec<T>::Raw v) {
  T lanes[kLanes<T>];
  __builtin_memcpy(lanes, &v, sizeof v);
#pragma GCC unroll 4
  for (int half = kLanes<T> / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// The sums of each vector's lanes. Up to `lanes` vectors are folded together, two into one a step,
// which adds the lanes of each in the same order as above. `out` has room for whole vectors.
template <class T, int count>
TW_INLINE void sums_of_lanes(const typename Vec<T>::Raw (&vectors)[count], T* out) {
  constexpr int lanes = kLanes<T>;
#pragma GCC unroll 16
  for (int start = 0; start < count; start += lanes) {
    if (count - start < 4) {  // a fold costs as much as the sums of four
#pragma GCC unroll 4
      for (int i = start; i < count; ++i) out[i] = sum_of_lanes<T>(vectors[i]);
      continue;
    }
    typename Vec<T>::Raw fold[lanes];
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i)
      fold[i] = start + i < count ? vectors[start + i] : typename Vec<T>::Raw{};
    sum_lanes<T>(fold);
    Vec<T>(fold[0]).store(out + start);
  }
}

// Writes alpha times the sums of the vectors' lanes, `columns` of them for each row of C.
template <class T, int rows, int columns>
TW_INLINE void store_dots(const typename Vec<T>::Raw (&sums)[rows * columns], T* c,
                          std::int64_t c_row, std::int64_t c_col, const Update<T>& update) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  alignas(64) T results[rows * columns + lanes];
  sums_of_lanes<T>(sums, results);
#pragma GCC unroll 4
  for (int i = 0; i < rows * columns; i += lanes)
    (V::load(results + i) * V(update.alpha)).store(results + i);
  const T beta = update.beta;
  if (beta == 0 && c_row == columns && (c_col == 1 || columns == 1)) {  // rows follow each other
    __builtin_memcpy(c, results, rows * columns * sizeof(T));
    return;
  }
  if (beta == 0 && c_col == 1) {  // a row at a time
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i)
      __builtin_memcpy(c + i * c_row, results + i * columns, columns * sizeof(T));
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
      const T sum = results[i * columns + j];
      T& out = c[i * c_row + j * c_col];
      out = beta != 0 ? fma(beta, out, sum) : sum;
    }
}

// rows x columns dot products at once, `count` times one below the other: a call for each would
// take a third of the time at 64 terms. Each has its own vector of partial sums: the result does
// not depend on its neighbours.
template <class T, int rows, int columns>
void dot_tile(std::int64_t count, std::int64_t k, const T* a, std::int64_t a_row, const T* b,
              std::int64_t b_col, T* c, std::int64_t c_row, std::int64_t c_col,
              const Update<T>& update) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  for (; count > 0; --count, a += rows * a_row, c += rows * c_row) {
    typename V::Raw sums[rows * columns];
    const auto step = [&](std::int64_t p, auto load) TW_LAMBDA_INLINE {
      typename V::Raw y[columns];
#pragma GCC unroll 8
      for (int j = 0; j < columns; ++j) y[j] = load(b + p + j * b_col);
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const typename V::Raw x = load(a + p + i * a_row);
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j)
          sums[i * columns + j] = fma(x, y[j], sums[i * columns + j]);
      }
    };
#pragma GCC unroll 16
    for (auto& sum : sums) sum = typename V::Raw{};
    std::int64_t p = 0;
    for (; p + lanes <= k; p += lanes)
      step(p, [](const T* x) TW_LAMBDA_INLINE { return V::load(x).v; });
    if (p < k) {
      const int rest = (int)(k - p);
      step(p, [rest](const T* x) TW_LAMBDA_INLINE { return V::load(x, rest).v; });
    }
    store_dots<T, rows, columns>(sums, c, c_row, c_col, update);
  }
}

// The partial sums of a few rows against one column, each row's in four chains, since one would
// wait four cycles for each of its sums.
template <class T, int rows> TW_INLINE void sum_in_chains(std::int64_t k, const T* a,
                                                          std::int64_t a_row, const T* b,
                                                          typename Vec<T>::Raw* sums) {
  constexpr int lanes = kLanes<T>, chains = 4;
  using V = Vec<T>;
  typename V::Raw sum[rows][chains] = {};
  std::int64_t p = 0;
  for (; p + chains * lanes <= k; p += chains * lanes)
#pragma GCC unroll 4
    for (int chain = 0; chain < chains; ++chain) {
      const typename V::Raw y = V::load(b + p + chain * lanes).v;
#pragma GCC unroll 4
      for (int i = 0; i < rows; ++i) {
        const T* const x = a + p + i * a_row + chain * lanes;
        sum[i][chain] = fma(V::load(x).v, y, sum[i][chain]);
        if (rows == 1) __builtin_prefetch(x + 2048 / sizeof(T));  // half a page
      }
    }
  for (; p < k; p += lanes) {
    const int count = k - p < lanes ? (int)(k - p) : lanes;
    const typename V::Raw y = V::load(b + p, count).v;
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i)
      sum[i][0] = fma(V::load(a + p + i * a_row, count).v, y, sum[i][0]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) sums[i] = (sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]);
}

// Rows of C, of one column, `side_by_side` of them at once.
template <class T, int rows, int side_by_side>
void chained_tile(std::int64_t k, const T* a, std::int64_t a_row, const T* b, T* c,
                  std::int64_t c_step, const Update<T>& update) {
  typename Vec<T>::Raw sums[rows];
  for (int i = 0; i < rows; i += side_by_side)
    sum_in_chains<T, side_by_side>(k, a + i * a_row, a_row, b, sums + i);
  store_dots<T, rows, 1>(sums, c, c_step, 0, update);
}

// With 32 registers 16 sums and 4 + 1 operands, with 16 registers 8 sums and 2 + 1.
inline constexpr int kDotRows = 4, kDotColumns = kRegisters >= 32 ? 4 : 2;

// Rows against a single column, or columns against a single row: as many as a fold of lanes takes
// together, where registers allow, since a fold of four costs what one of sixteen does. Short ones
// have one chain of sums each, and lie side by side. Beyond L1 a row is read after the other: the
// processor sees one stream, and is asked for what lies half a page ahead (float32 rows of 512 from
// L2: 135 instead of 105 GB/s on Zen 5, of 2048 from L3 120 instead of 108). Where the matrix
// is in L1, or the column too long to stay there, some rows share its loads.
inline constexpr std::int64_t kChained = 128;
inline constexpr std::int64_t kHeldInL1 = 2 * thresholds::kHalfL1Bytes;
inline constexpr int kSideBySide = kRegisters >= 32 ? 4 : 2;
template <class T> inline constexpr int kColumnRows =
    kLanes<T> < kRegisters / 2 ? kLanes<T> : kRegisters / 2;

// C's first elements, column = B's one column: how many of the m rows were done.
template <class T> std::int64_t rows_by_column(std::int64_t m, std::int64_t k, const T* a,
                                               std::int64_t a_row, const T* column, T* c,
                                               std::int64_t c_step, const Update<T>& update) {
  constexpr int rows = kColumnRows<T>, some = rows < kSideBySide ? rows : kSideBySide;
  std::int64_t done = 0;
  if (k < kChained) {
    dot_tile<T, rows, 1>(m / rows, k, a, a_row, column, 0, c, c_step, 0, update);
    return m / rows * rows;
  }
  const std::int64_t row_bytes = k * (std::int64_t)sizeof(T);
  const bool in_turn = m * row_bytes > kHeldInL1 && 2 * row_bytes < kHeldInL1;
  const auto tile = in_turn ? chained_tile<T, rows, 1> : chained_tile<T, rows, some>;
  for (; done + rows <= m; done += rows)
    tile(k, a + done * a_row, a_row, column, c + done * c_step, c_step, update);
  for (; done < m; ++done)
    chained_tile<T, 1, 1>(k, a + done * a_row, a_row, column, c + done * c_step, c_step, update);
  return done;
}

template <class T> using DotFunction = void (*)(std::int64_t count, std::int64_t k, const T* a,
                                                std::int64_t a_row, const T* b, std::int64_t b_col,
                                                T* c, std::int64_t c_row, std::int64_t c_col,
                                                const Update<T>& update);
// dots<T>.at[rows - 1][columns - 1]
template <class T> struct Dots {
  DotFunction<T> at[kDotRows][kDotColumns];
  template <int rows, int columns> constexpr void fill() {
    at[rows - 1][columns - 1] = dot_tile<T, rows, columns>;
    if constexpr (columns > 1) {
      fill<rows, columns - 1>();
    } else if constexpr (rows > 1) {
      fill<rows - 1, kDotColumns>();
    }
  }
  constexpr Dots() : at{} { fill<kDotRows, kDotColumns>(); }
};
template <class T> constexpr Dots<T> dots;

// A column of sums so short that adding up lanes would be all the work: one sum a row, many rows
// side by side. With `packed` A's rows follow each other, which a compiler can load as whole
// vectors.
template <class T, int terms, bool packed>
void short_dots(const MatmulProblem& p, const T* __restrict__ a, const T* b, T* __restrict__ c) {
  T y[terms];
  for (int l = 0; l < terms; ++l) y[l] = (T)p.alpha * b[l * p.b_row];
  const std::int64_t step = packed ? terms : p.a_row, m = p.m, c_row = p.c_row;
  const auto sum_of = [&](std::int64_t i) TW_LAMBDA_INLINE {
    T sum = a[i * step] * y[0];
#pragma GCC unroll 8
    for (int l = 1; l < terms; ++l) sum = fma(a[i * step + l], y[l], sum);
    return sum;
  };
  const T beta = (T)p.beta;
  if (beta != 0) {
    for (std::int64_t i = 0; i < m; ++i) c[i * c_row] = fma(beta, c[i * c_row], sum_of(i));
  } else if (c_row == 1) {
    for (std::int64_t i = 0; i < m; ++i) c[i] = sum_of(i);
  } else {
    for (std::int64_t i = 0; i < m; ++i) c[i * c_row] = sum_of(i);
  }
}

inline constexpr int kShortDot = 8;
template <class T> using ShortDots = void (*)(const MatmulProblem& p, const T* a, const T* b, T* c);
// short_of<T>[terms - 1][whether A's rows follow each other]
template <class T, class = std::make_integer_sequence<int, kShortDot>> constexpr int short_of = 0;
template <class T, int... term>
constexpr ShortDots<T> short_of<T, std::integer_sequence<int, term...>>[kShortDot][2] = {
    {short_dots<T, term + 1, false>, short_dots<T, term + 1, true>}...};

// Every second element of two vectors, from `first` on.
template <class Raw, int... lane>
TW_INLINE Raw every_second(Raw x, Raw y, std::integer_sequence<int, lane...>, auto first) {
  return __builtin_shufflevector(x, y, (2 * lane + first)...);
}

// Four columns whose rows follow each other, one column after the other: how many rows were done.
template <class T> std::int64_t separate_four(std::int64_t k, const T* b, T* columns) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  using Order = std::make_integer_sequence<int, lanes>;
  constexpr std::integral_constant<int, 0> even;
  constexpr std::integral_constant<int, 1> odd;
  std::int64_t l = 0;
  for (; l + lanes <= k; l += lanes, b += 4 * lanes) {
    const typename V::Raw x[4] = {V::load(b).v, V::load(b + lanes).v, V::load(b + 2 * lanes).v,
                                  V::load(b + 3 * lanes).v};
    const typename V::Raw even_low = every_second(x[0], x[1], Order(), even),
                          even_high = every_second(x[2], x[3], Order(), even),
                          odd_low = every_second(x[0], x[1], Order(), odd),
                          odd_high = every_second(x[2], x[3], Order(), odd);
    V(every_second(even_low, even_high, Order(), even)).store(columns + l);
    V(every_second(odd_low, odd_high, Order(), even)).store(columns + k + l);
    V(every_second(even_low, even_high, Order(), odd)).store(columns + 2 * k + l);
    V(every_second(odd_low, odd_high, Order(), odd)).store(columns + 3 * k + l);
  }
  return l;
}

// B's columns, each contiguous.
template <class T> void separate_columns(const MatmulProblem& p, const T* b, T* copy) {
  const std::int64_t done =
      p.n == 4 && p.b_col == 1 && p.b_row == 4 ? separate_four(p.k, b, copy) : 0;
  for (std::int64_t j = 0; j < p.n; ++j)
    for (std::int64_t l = done; l < p.k; ++l) copy[j * p.k + l] = b[l * p.b_row + j * p.b_col];
}

// A has unit column stride. `copy` has room for B where its columns are not contiguous.
template <class T> inline void direct_dots(MatmulProblem p, const T* a, const T* b, T* c, T* copy) {
  if (p.b_row != 1 && p.k > 1) {
    separate_columns(p, b, copy);
    b = copy;
    p.b_row = 1;
    p.b_col = p.k;
  }
  if (p.n == 1 && p.k > 0 && p.k <= kShortDot)
    return short_of<T>[p.k - 1][p.a_row == p.k](p, a, b, c);
  const Update<T> update{(T)p.alpha, (T)p.beta, false, nullptr};  // finished by the caller
  std::int64_t first = 0, first_column = 0;
  if (p.m == 1)
    first_column = rows_by_column<T>(p.n, p.k, b, p.b_col, a, c, p.c_col, update);
  else if (p.n == 1)
    first = rows_by_column<T>(p.m, p.k, a, p.a_row, b, c, p.c_row, update);
  const EvenPieces rows(p.m - first, kDotRows), columns(p.n - first_column, kDotColumns);
  const bool narrow = columns.pieces == 1;  // tiles of one height then follow each other
  for (std::int64_t r = 0; r < rows.pieces;) {
    const std::int64_t count = !narrow ? 1 : r < rows.longer ? rows.longer - r : rows.pieces - r;
    for (std::int64_t s = 0; s < columns.pieces; ++s) {
      const std::int64_t i = first + rows.start(r), j = first_column + columns.start(s);
      dots<T>.at[rows.at(r) - 1][columns.at(s) - 1](
          count, p.k, a + i * p.a_row, p.a_row, b + j * p.b_col, p.b_col,
          c + i * p.c_row + j * p.c_col, p.c_row, p.c_col, update);
    }
    r += count;
  }
}

// B has unit column stride, for dots A has and B has unit row stride, for few terms B has any
// strides.
template <class T> void direct(const MatmulProblem& p, const MatmulBlocks& blocks, void* scratch) {
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const T* a = (const T*)p.a + i * p.a_batch;
    const T* b = (const T*)p.b + i * p.b_batch;
    T* c = (T*)p.c + i * p.c_batch;
    switch (blocks.way) {
      case DirectWay::tiles: direct_tiles(p, blocks, a, b, c); break;
      case DirectWay::few_terms: few_terms(p, blocks.streams, a, b, c); break;
      case DirectWay::dots:
        direct_dots(p, a, b, c, (T*)scratch);
        apply_epilogue(p.m, p.n, c, p.c_row, p.c_col, p.epilogue);
    }
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
