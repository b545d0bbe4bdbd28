// The micro-kernel of convolutions: a tile of the result stays in registers over all taps of the
// kernel. Each step loads a vector for each of the tile's vectors and broadcasts one element a row;
// a row may lie anywhere, so that images' edges, strides and dilations cost nothing.
#pragma once

#include "core/base/thresholds.h"

namespace tw::TW_ISA_NAME {
namespace {

// 6 x 4 with 32 registers, 6 x 2 with 16: nearly all hold sums, more than the 8 chains that hide
// the latency of multiply-adds. A pointer a row allows 8 rows; rows that are evenly apart share
// pointers, and one vector, whose loads bound it, gains from more of them.
inline constexpr int kTileVectors = kRegisters / 8;
inline constexpr int kMaxTileRows = 8, kMaxEvenRows = 18;
constexpr int tile_rows(int vectors, bool even = false) {
  const int rows = (kRegisters - 1 - vectors) / vectors;
  const int most = even && vectors == 1 ? kMaxEvenRows : kMaxTileRows;
  return rows < most ? rows : most;
}
// b streams from the second-level cache, prefetched this many steps ahead; one line of two, since
// the processor brings lines in pairs.

// One term of every sum: x[r] times the vectors at b.
template <class T, int rows, int vectors>
TW_INLINE void add_term(const T* const (&x)[rows], std::int64_t at, const T* b,
                        typename Vec<T>::Raw (&sums)[rows][vectors]) {
  typename Vec<T>::Raw y[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) y[v] = Vec<T>::load(b + v * kLanes<T>).v;
#pragma GCC unroll 18
  for (int r = 0; r < rows; ++r) {
    const typename Vec<T>::Raw factor = Vec<T>(x[r][at]).v;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[r][v] = fma(factor, y[v], sums[r][v]);
  }
}
template <class T, int rows>
TW_INLINE void rows_from(const T* a, const std::int32_t* rows_at, const T* (&x)[rows]) {
#pragma GCC unroll 18
  for (int r = 0; r < rows; ++r) x[r] = a + rows_at[r];
}

template <class T, int rows, int vectors>
TW_INLINE void add_run(const ConvolutionBlock& p, const ConvolutionRun& run,
                       const std::int32_t* rows_at, typename Vec<T>::Raw (&sums)[rows][vectors]) {
  const T* x[rows];
  rows_from<T>((const T*)p.a + run.a, rows_at, x);
  const T* b = (const T*)p.b + run.b;
  const std::int64_t a_col = p.a_col, b_row = p.b_row, past = run.length * a_col;
  for (std::int64_t l = 0; l < past; l += a_col, b += b_row) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      if (v * kLanes<T> * sizeof(T) % thresholds::kBytesAhead == 0)
        __builtin_prefetch(b + v * kLanes<T> + thresholds::kStepsAhead * b_row);
    add_term<T>(x, l, b, sums);
  }
}
// The same where rows are evenly apart: a pointer for each three of them leaves registers free.
template <class T, int rows, int vectors>
TW_INLINE void add_even_rows(const ConvolutionBlock& p, std::int64_t row,
                             typename Vec<T>::Raw (&sums)[rows][vectors]) {
  constexpr int pointers = (rows + 2) / 3;
  const std::int64_t step = p.a_row;
  const T* x[pointers];
#pragma GCC unroll 18
  for (int i = 0; i < pointers; ++i) x[i] = (const T*)p.a + (row + 3 * i) * step;
  const T* b = (const T*)p.b;
  const std::int64_t a_col = p.a_col, b_row = p.b_row;
  for (std::int64_t l = p.run_count; l > 0; --l, b += b_row) {
    typename Vec<T>::Raw y[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      y[v] = Vec<T>::load(b + v * kLanes<T>).v;
      if (v * kLanes<T> * sizeof(T) % thresholds::kBytesAhead == 0)
        __builtin_prefetch(b + v * kLanes<T> + thresholds::kStepsAhead * b_row);
    }
#pragma GCC unroll 18
    for (int r = 0; r < rows; ++r) {
      const typename Vec<T>::Raw factor = Vec<T>(x[r / 3][r % 3 * step]).v;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(factor, y[v], sums[r][v]);
    }
#pragma GCC unroll 18
    for (int i = 0; i < pointers; ++i) {
      x[i] += a_col;
      asm("" : "+r"(x[i]));  // or the compiler keeps a pointer for each row after all
    }
  }
}
template <class T, int rows, int vectors>
TW_INLINE void add_taps(const ConvolutionBlock& p, const std::int32_t* rows_at,
                        typename Vec<T>::Raw (&sums)[rows][vectors]) {
  const T* x[rows];
  rows_from<T>((const T*)p.a, rows_at, x);
  const T* const b = (const T*)p.b;
  const std::int32_t* const taps_at = p.taps_at;
  for (std::int64_t l = 0; l < p.run_count; ++l) add_term<T>(x, l, b + taps_at[l], sums);
}

template <class T, int rows, int vectors>
void block_tile(const ConvolutionBlock& p, std::int64_t row, T* c) {
  constexpr int lanes = kLanes<T>;
  typename Vec<T>::Raw sums[rows][vectors] = {};
  if (p.a_row)
    add_even_rows<T>(p, row, sums);
  else if (p.taps_at)
    add_taps<T>(p, p.rows_at + row, sums);
  else
    for (std::int64_t i = 0; i < p.run_count; ++i) add_run<T>(p, p.runs[i], p.rows_at + row, sums);
  const int last = p.columns - (vectors - 1) * lanes;
#pragma GCC unroll 18
  for (int r = 0; r < rows; ++r, c += p.c_row)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const int count = v < vectors - 1 ? lanes : last;
      Vec<T> sum(sums[r][v]);
      if (p.adds) sum += load_some(c + v * lanes, count);
      store_some(c + v * lanes, sum, count);
    }
}

template <class T> using BlockTile = void (*)(const ConvolutionBlock&, std::int64_t row, T* c);
// at[vectors - 1][rows - 1], for each size that fits the registers.
template <class T> struct BlockTiles {
  BlockTile<T> at[kTileVectors][kMaxEvenRows];
  template <int vectors, int rows> constexpr void fill_rows() {
    if constexpr (rows <= tile_rows(vectors, true)) {
      at[vectors - 1][rows - 1] = block_tile<T, rows, vectors>;
      fill_rows<vectors, rows + 1>();
    }
  }
  template <int vectors = 1> constexpr void fill() {
    if constexpr (vectors <= kTileVectors) {
      fill_rows<vectors, 1>();
      fill<vectors + 1>();
    }
  }
  constexpr BlockTiles() : at{} { fill(); }
};
template <class T> constexpr BlockTiles<T> block_tiles;

// The fewest tiles that cover the rows, of nearly equal height: no thin one at the end.
template <class T> void multiply(const ConvolutionBlock& p) {
  const int vectors = (p.columns + kLanes<T> - 1) / kLanes<T>;
  const std::int64_t most = tile_rows(vectors, p.a_row != 0), tiles = (p.rows + most - 1) / most;
  if (tiles == 0) return;
  const std::int64_t least = p.rows / tiles, higher = p.rows % tiles;
  ConvolutionBlock plane = p;
  for (std::int64_t i = 0; i < p.planes; ++i) {
    std::int64_t row = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const int height = (int)least + (tile < higher);
      block_tiles<T>.at[vectors - 1][height - 1](plane, row, (T*)plane.c + row * p.c_row);
      row += height;
    }
    plane.a = (const T*)plane.a + p.a_plane;
    plane.b = (const T*)plane.b + p.b_plane;
    plane.c = (T*)plane.c + p.c_plane;
  }
}

// ---- between planes of channels and pixels of channels: squares transposed in registers ----

// Pixels at the end that are moved one by one: so few are not worth a square.
inline constexpr int kFewPixels = 3;

template <class T> void to_lanes(const ConvolutionLanes& p, const void* from, void* to) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t c = 0; c < p.channels; c += lanes) {
    const T* const x = (const T*)from + c * p.plane;
    T* const out = (T*)to + c;
    const int channels = p.channels - c < lanes ? (int)(p.channels - c) : lanes;
    for (std::int64_t i = 0; i < p.count; i += lanes) {
      const int count = p.count - i < lanes ? (int)(p.count - i) : lanes;
      typename Vec<T>::Raw square[lanes];
      if (channels == lanes && count == lanes) {
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j) square[j] = Vec<T>::load(x + i + j * p.plane).v;
      } else if (channels == lanes && count <= kFewPixels) {
        for (int l = 0; l < count; ++l)
#pragma GCC unroll 16
          for (int j = 0; j < lanes; ++j) out[p.places[i + l] + j] = x[i + l + j * p.plane];
        break;
      } else {
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j)
          square[j] =
              Vec<T>::load(x + i + (j < channels ? j * p.plane : 0), j < channels ? count : 0).v;
      }
      transpose_lanes<1>(square);
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j)
        if (j < count) Vec<T>(square[j]).store(out + p.places[i + j]);
    }
  }
}

template <class T>
void from_lanes(const ConvolutionLanes& p, const void* from, const void* bias, void* to) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t c = 0; c < p.channels; c += lanes) {
    const T* const x = (const T*)from + c;
    T* const y = (T*)to + c * p.plane;
    const int channels = p.channels - c < lanes ? (int)(p.channels - c) : lanes;
    const Vec<T> shift = bias ? Vec<T>::load((const T*)bias + c, channels) : Vec<T>(T(0));
    for (std::int64_t i = 0; i < p.count; i += lanes) {
      const int count = p.count - i < lanes ? (int)(p.count - i) : lanes;
      if (channels == lanes && count < lanes && count <= kFewPixels) {
        for (int l = 0; l < count; ++l) {
          const Vec<T> pixel = Vec<T>::load(x + p.places[i + l]) + shift;
#pragma GCC unroll 16
          for (int j = 0; j < lanes; ++j) y[i + l + j * p.plane] = pixel.v[j];
        }
        break;
      }
      typename Vec<T>::Raw square[lanes];
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j)
        square[j] = (Vec<T>::load(x + p.places[i + (j < count ? j : 0)]) + shift).v;
      transpose_lanes<1>(square);
      if (channels == lanes && count == lanes) {
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j) Vec<T>(square[j]).store(y + i + j * p.plane);
      } else {
#pragma GCC unroll 16
        for (int j = 0; j < lanes; ++j)
          if (j < channels) store_some(y + i + j * p.plane, Vec<T>(square[j]), count);
      }
    }
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
