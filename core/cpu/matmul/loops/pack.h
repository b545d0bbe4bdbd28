// Packing: copies blocks of A and B into the order in which the micro-kernel reads them, so that it
// streams whole cache lines whatever the strides of the source.
#pragma once

#include "core/base/thresholds.h"

namespace tw::TW_ISA_NAME {
namespace {

// One square of B[0:depth, 0:width] from a source whose columns are contiguous along k.
template <class T> TW_INLINE void pack_square(int depth, int width, const T* b, std::int64_t b_col,
                                              T* out, std::int64_t out_row) {
  constexpr int lanes = kLanes<T>;
  typename Vec<T>::Raw square[lanes];
  if (width == lanes && depth == lanes) {
#pragma GCC unroll 16
    for (int j = 0; j < lanes; ++j) square[j] = Vec<T>::load(b + j * b_col).v;
  } else {
#pragma GCC unroll 16
    for (int j = 0; j < lanes; ++j)
      square[j] = Vec<T>::load(b + (j < width ? j * b_col : 0), j < width ? depth : 0).v;
  }
  transpose<T>(square);
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i)
    if (i < depth) Vec<T>(square[i]).store(out + i * out_row);
}

// Runs of this many rows at a time, so that the lines written stay in L1 until all columns are
// there.
inline constexpr std::int64_t kPackRun = 64;

template <class T> [[gnu::noinline]] void pack_columns(std::int64_t k, std::int64_t n, const T* b,
                                                       std::int64_t b_col, T* out,
                                                       std::int64_t out_row) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t run = 0; run < k; run += kPackRun) {
    const std::int64_t end = run + kPackRun < k ? run + kPackRun : k;
    for (std::int64_t j = 0; j < n; j += lanes)
      for (std::int64_t p = run; p < end; p += lanes)
        pack_square(end - p < lanes ? (int)(end - p) : lanes, n - j < lanes ? (int)(n - j) : lanes,
                    b + p + j * b_col, b_col, out + p * out_row + j, out_row);
  }
}

// B[0:k, 0:n] of any strides.
template <class T> [[gnu::noinline]] void pack_elements(std::int64_t k, std::int64_t n, const T* b,
                                                        std::int64_t b_row, std::int64_t b_col,
                                                        T* out, std::int64_t out_row) {
  for (std::int64_t p = 0; p < k; ++p)
    for (std::int64_t j = 0; j < out_row; ++j)
      out[p * out_row + j] = j < n ? b[p * b_row + j * b_col] : T(0);
}

// B[0:k, 0:n] as a panel of whole vectors, row after row; lanes beyond n are zero. `out` holds
// k * vectors_of(n) vectors.
// Prefetches the row `ahead` further down, if not 0.
template <class T> inline void pack_panel(std::int64_t k, std::int64_t n, const T* b,
                                          std::int64_t b_row, std::int64_t b_col, T* out,
                                          std::int64_t ahead = 0) {
  constexpr int lanes = kLanes<T>;
  const std::int64_t vectors = vectors_of<T>(n), out_row = vectors * lanes;
  const int last = last_lanes<T>(n);
  if (b_col == 1) {
    for (std::int64_t p = 0; p < k; ++p, b += b_row, out += out_row) {
      if (ahead > 0)
        for (std::int64_t v = 0; v < vectors; ++v)
          __builtin_prefetch(b + ahead * b_row + v * lanes);
      for (std::int64_t v = 0; v < vectors - 1; ++v)
        Vec<T>::load(b + v * lanes).store(out + v * lanes);
      const std::int64_t tail = (vectors - 1) * lanes;
      Vec<T>::load(b + tail, last).store(out + tail);
    }
  } else if (b_row == 1) {
    pack_columns(k, n, b, b_col, out, out_row);
  } else {
    pack_elements(k, n, b, b_row, b_col, out, out_row);
  }
}

// Tiles of A packed together, a few columns at a time: with 32 tiles of 6 rows each visit to a
// column, often a page of its own, takes 12 whole cache lines. Such columns share a set of L1, so
// that more of them would drive each other out before all tiles have theirs. No prefetcher of the
// hardware goes ahead from page to page: the lines are prefetched so many columns before.
inline constexpr int kPackTiles = 32, kColumnsAtOnce = 4;

// Elements from one packed tile to the next: room for the tile and a vector stored past its end.
template <class T> constexpr std::int64_t packed_tile_stride(std::int64_t k) {
  return k * kMaxTileRows + kLanes<T>;
}

// One tile's rows of A, column after column. `wide`: kMaxTileRows rows are readable, so that a
// column is one short vector; the next column overwrites what it stores beyond `height`.
template <class T> inline void pack_tile(int height, bool wide, std::int64_t k, const T* a,
                                         std::int64_t a_row, std::int64_t a_col, T* out) {
  struct Column {
    T rows[kMaxTileRows];
  };
  if (wide && a_row == 1) {
    for (std::int64_t p = 0; p < k; ++p)
      __builtin_memcpy(out + p * height, a + p * a_col, sizeof(Column));
    return;
  }
  for (std::int64_t p = 0; p < k; ++p)
    for (int r = 0; r < height; ++r) out[p * height + r] = a[p * a_col + r * a_row];
}

// `m` rows of A, cut as `tiles` from tile `first` on, `count` of them.
template <class T> inline void pack_tiles(const EvenPieces& tiles, std::int64_t first, int count,
                                          std::int64_t m, std::int64_t k, const T* a,
                                          std::int64_t a_row, std::int64_t a_col, T* out) {
  constexpr std::int64_t run = kColumnsAtOnce, line = 64 / sizeof(T);
  const std::int64_t from = tiles.start(first), past = tiles.start(first + count);
  for (std::int64_t p = 0; p < k; p += run) {
    if (a_row == 1)
      for (std::int64_t next = p + thresholds::kColumnsAhead;
           next < k && next < p + thresholds::kColumnsAhead + run; ++next)
        for (std::int64_t row = from; row < past; row += line)
          __builtin_prefetch(a + row + next * a_col);
    std::int64_t row = from;
    for (int t = 0; t < count; ++t) {
      const int height = tiles.at(first + t);
      pack_tile(height, m - row >= kMaxTileRows, k - p < run ? k - p : run,
                a + row * a_row + p * a_col, a_row, a_col,
                out + (first + t) * packed_tile_stride<T>(k) + p * height);
      row += height;
    }
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
