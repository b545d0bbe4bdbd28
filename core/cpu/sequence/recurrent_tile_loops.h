// The products of recurrent layers: some rows by a panel of a weight, whose columns are all gates
// of some units. Tiles of few rows, made equally high, keep their sums in registers.
#pragma once
#include "core/base/thresholds.h"
#include "core/cpu/simd/rows.h"
#include "core/cpu/matmul/matmul.h"
#include "core/cpu/sequence/recurrent.h"

namespace tw::TW_ISA_NAME {
namespace {

// Registers hold the sums, the panel's vectors and an element of each row or, of whichever there
// are fewer, all, and of the other one.
constexpr bool fits(int rows, int vectors) {
  return rows * vectors + (rows < vectors ? rows : vectors) + 1 <= kRegisters;
}
constexpr int most_rows(int vectors) {
  int rows = 1;
  while (fits(rows + 1, vectors)) ++rows;
  return rows;
}
// Rows of the panel that are prefetched: they come from L2, or further away.

template <class T, int rows, int vectors>
TW_INLINE void add_terms(std::int64_t k, const T* a, std::int64_t a_row, const T* panel,
                         typename Vec<T>::Raw (&sums)[rows][vectors]) {
  constexpr int L = kLanes<T>, width = vectors * L;
  for (std::int64_t l = 0; l < k; ++l, ++a, panel += width) {
    typename Vec<T>::Raw row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      if (v * L * sizeof(T) % thresholds::kBytesAhead == 0)
        __builtin_prefetch(panel + thresholds::kStepsAhead * width + v * L);
      row[v] = Vec<T>::load(panel + v * L).v;
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const typename Vec<T>::Raw x = Vec<T>(a[r * a_row]).v;
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(x, row[v], sums[r][v]);
    }
  }
}

// Chains of terms are as long as those of other products.
template <class T, int rows, int vectors>
void recurrent_tile(const RecurrentProduct& p, std::int64_t first) {
  constexpr int L = kLanes<T>, width = vectors * L;
  const T* a = (const T*)p.a + first * p.a_row;
  const T *panel = (const T*)p.panel, *from = (const T*)p.from + first * p.from_row;
  T* const to = (T*)p.to + first * width;
  bool has_from = p.from;
  std::int64_t from_row = p.from_row;
  std::int64_t left = p.k;
  do {
    typename Vec<T>::Raw sums[rows][vectors] = {};
    add_terms<T, rows, vectors>(left < kMatmulChain ? left : kMatmulChain, a, p.a_row, panel, sums);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        const Vec<T> sum = sums[r][v];
        (has_from ? Vec<T>::load(from + r * from_row + v * L) + sum : sum)
            .store(to + r * width + v * L);
      }
    a += kMatmulChain;
    panel += kMatmulChain * width;
    has_from = true;
    from = to;
    from_row = width;
    left -= kMatmulChain;
  } while (left > 0);
}

template <class T, int vectors, int rows = most_rows(vectors)>
TW_INLINE void tile_of_height(int height, const RecurrentProduct& p, std::int64_t first) {
  if (height == rows) return recurrent_tile<T, rows, vectors>(p, first);
  if constexpr (rows > 1) tile_of_height<T, vectors, rows - 1>(height, p, first);
}
template <class T, int vectors> void recurrent_product(const RecurrentProduct& p) {
  for (std::int64_t row = 0; row < p.rows;) {
    const std::int64_t left = p.rows - row;
    const std::int64_t tiles = (left + most_rows(vectors) - 1) / most_rows(vectors);
    const int height = (int)((left + tiles - 1) / tiles);
    tile_of_height<T, vectors>(height, p, row);
    row += height;
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
