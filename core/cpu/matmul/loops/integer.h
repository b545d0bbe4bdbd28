// Products of whole numbers and bools: the packed rung over words in which they wrap around
// as the result does. Sums of integers have no rounding, so that no order of additions must be
// kept.
#pragma once
#include <utility>

#include "core/cpu/matmul/integer.h"
#include "core/runtime/interruption.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// What a type is added up in: unsigned, where wrapping around is defined, and no wider than gives
// the bits that are kept. Vectors have no products of bytes.
template <class T> struct WordOf {
  using type = std::conditional_t<sizeof(T) <= 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
};
template <> struct WordOf<bool> {
  using type = std::uint8_t;  // 0 or 1
};
template <class T> using Word = typename WordOf<T>::type;
template <class T> TW_INLINE Word<T> word_of(T x) { return (Word<T>)x; }
template <class W> TW_INLINE W multiply_add(W x, W y, W sum) {
  if constexpr (sizeof(W) == 1)
    return sum | (x & y);
  else
    return (W)(sum + x * y);
}

// As many sums as registers hold beside a row of B and an element of A, as for floats (tile.h).
inline constexpr int kWordTileRows = 6, kWordTileVectors = kRegisters / 8;

// sums[rows][vectors of columns] of `k` packed columns of A and rows of B.
template <class W, int rows, int vectors>
void word_tile(int64_t k, const W* a, const W* b, W* sums_out) {
  constexpr int lanes = kLanes<W>;
  using Raw = typename Vec<W>::Raw;
  Raw sums[rows][vectors] = {};
  for (int64_t p = 0; p < k; ++p, a += rows, b += vectors * lanes) {
    Raw row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) row[v] = Vec<W>::load(b + v * lanes).v;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Raw x = a[r] - Raw{};
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        if constexpr (sizeof(W) == 1)
          sums[r][v] |= x & row[v];
        else
          sums[r][v] += x * row[v];
      }
    }
  }
  __builtin_memcpy(sums_out, sums, sizeof sums);
}

template <class W> using WordTile = void (*)(int64_t k, const W* a, const W* b, W* sums);
template <class W> struct WordTiles {
  WordTile<W> at[kWordTileVectors][kWordTileRows];
  template <int vectors, int... row> constexpr void fill_rows(std::integer_sequence<int, row...>) {
    ((at[vectors - 1][row] = word_tile<W, row + 1, vectors>), ...);
  }
  template <int... vector> constexpr void fill(std::integer_sequence<int, vector...>) {
    (fill_rows<vector + 1>(std::make_integer_sequence<int, kWordTileRows>()), ...);
  }
  constexpr WordTiles() : at{} { fill(std::make_integer_sequence<int, kWordTileVectors>()); }
};
template <class W> constexpr WordTiles<W> word_tiles;

// Columns j of B[0:k, j0:j0 + n] as rows of whole vectors; what lies beyond n is zero. Of B's two
// strides the shorter one is walked first, a line at a time.
template <class T> void pack_words(int64_t k, int64_t n, const T* b, int64_t b_row, int64_t b_col,
                                   int64_t width, Word<T>* out) {
  constexpr int64_t kRun = 16;
  if (b_col == 1) {
    for (int64_t p = 0; p < k; ++p, b += b_row, out += width) {
      for (int64_t j = 0; j < n; ++j) out[j] = word_of(b[j]);
      for (int64_t j = n; j < width; ++j) out[j] = 0;
    }
    return;
  }
  for (int64_t p = 0; p < k; p += kRun) {
    const int64_t end = p + kRun < k ? p + kRun : k;
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = p; i < end; ++i)
        out[i * width + j] = j < n ? word_of(b[i * b_row + j * b_col]) : Word<T>(0);
  }
}
template <class T>
void pack_rows(int rows, int64_t k, const T* a, int64_t a_row, int64_t a_col, Word<T>* out) {
  for (int r = 0; r < rows; ++r, a += a_row)
    for (int64_t p = 0; p < k; ++p) out[p * rows + r] = word_of(a[p * a_col]);
}

// C = alpha * sums + beta * C.
template <class T> void put_words(int rows, int64_t n, const Word<T>* sums, int64_t width, T* c,
                                  int64_t c_row, int64_t c_col, double alpha, double beta) {
  using W = Word<T>;
  if (alpha == 1 && beta == 0 && c_col == 1) {
    for (int r = 0; r < rows; ++r)
      for (int64_t j = 0; j < n; ++j) c[r * c_row + j] = (T)sums[r * width + j];
    return;
  }
  const auto factor = [](double x) { return sizeof(W) == 1 ? W(x != 0) : (W)(int64_t)x; };
  const W times = factor(alpha), keep = factor(beta);
  for (int r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; ++j) {
      T& out = c[r * c_row + j * c_col];
      W sum = multiply_add(times, sums[r * width + j], W(0));
      if (beta != 0) sum = multiply_add(keep, word_of(out), sum);
      out = (T)sum;
    }
}

// Columns [0, n) of one run along k: B's block is packed, then rows of A pass over it.
template <class T> void words_over_block(const MatmulProblem& p, int64_t k, int64_t n, const T* a,
                                         const T* b, T* c, Word<T>* room, double beta) {
  using W = Word<T>;
  constexpr int64_t lanes = kLanes<W>, tile = kWordTileVectors * lanes;
  const auto vectors_at = [n](int64_t j) {
    return n - j >= tile ? kWordTileVectors : (int)((n - j + lanes - 1) / lanes);
  };
  W *const rows_room = room, *const block = room + kIntegerRun * kWordTileRows;
  for (int64_t j = 0; j < n; j += tile)
    pack_words(k, n - j < tile ? n - j : tile, b + j * p.b_col, p.b_row, p.b_col,
               vectors_at(j) * lanes, block + j * k);
  alignas(64) W sums[kWordTileRows * tile];
  for (int64_t i = 0; i < p.m; i += kWordTileRows) {
    end_early_if_asked();
    const int rows = p.m - i < kWordTileRows ? (int)(p.m - i) : kWordTileRows;
    pack_rows(rows, k, a + i * p.a_row, p.a_row, p.a_col, rows_room);
    for (int64_t j = 0; j < n; j += tile) {
      const int vectors = vectors_at(j);
      word_tiles<W>.at[vectors - 1][rows - 1](k, rows_room, block + j * k, sums);
      put_words(rows, n - j < tile ? n - j : tile, sums, vectors * lanes,
                c + i * p.c_row + j * p.c_col, p.c_row, p.c_col, p.alpha, beta);
    }
  }
}

// One column: nothing is used twice, so nothing is packed.
template <class T> void words_by_column(const MatmulProblem& p, const T* a, const T* b, T* c) {
  using W = Word<T>;
  for (int64_t i = 0; i < p.m; ++i) {
    const T* row = a + i * p.a_row;
    W sum = 0;
    for (int64_t l = 0; l < p.k; ++l) sum = multiply_add(word_of(row[l]), word_of(b[l]), sum);
    put_words(1, 1, &sum, 1, c + i * p.c_row, p.c_row, p.c_col, p.alpha, p.beta);
  }
}

// `scratch` holds integer_scratch_bytes.
template <class T> void packed_words(const MatmulProblem& p, const MatmulBlocks&, void* scratch) {
  if (p.n == 1 && p.a_col == 1 && p.b_row == 1) {
    for (int64_t i = 0; i < p.batch; ++i)
      words_by_column(p, (const T*)p.a + i * p.a_batch, (const T*)p.b + i * p.b_batch,
                      (T*)p.c + i * p.c_batch);
    return;
  }
  constexpr int64_t kColumns = kIntegerBlockBytes / (kIntegerRun * (int64_t)sizeof(Word<T>));
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t l = 0; l == 0 || l < p.k; l += kIntegerRun)
      for (int64_t j = 0; j < p.n; j += kColumns)
        words_over_block(
            p, p.k - l < kIntegerRun ? p.k - l : kIntegerRun,
            p.n - j < kColumns ? p.n - j : kColumns, (const T*)p.a + i * p.a_batch + l * p.a_col,
            (const T*)p.b + i * p.b_batch + l * p.b_row + j * p.b_col,
            (T*)p.c + i * p.c_batch + j * p.c_col, (Word<T>*)scratch, l == 0 ? p.beta : 1);
}

}  // namespace

extern const MatmulIntegerTable matmul_integer_table;
const MatmulIntegerTable matmul_integer_table = {
    .packed = {packed_words<bool>, packed_words<std::int8_t>, packed_words<std::int16_t>,
               packed_words<std::int32_t>, packed_words<std::int64_t>, packed_words<std::uint8_t>,
               packed_words<std::uint16_t>, packed_words<std::uint32_t>,
               packed_words<std::uint64_t>}};

}  // namespace tw::TW_ISA_NAME
