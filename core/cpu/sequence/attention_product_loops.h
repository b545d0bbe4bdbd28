// Small matrix products on operands in the first caches, without packing: a tile of C stays in
// registers along k; each step loads a few vectors of B and broadcasts one element per row of A.
#pragma once
#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// As in the ladder of matmul: 6 x 4 accumulators with 32 registers, 6 x 2 with 16; beyond 8 rows a
// narrow tile gains nothing.
inline constexpr int kWidest = kRegisters / 8;
constexpr int rows_of_tile(int vectors) {
  const int rows = (kRegisters - 1 - vectors) / vectors;
  return rows < 8 ? rows : 8;
}

// One operand by its first element and its strides.
template <class T> struct Strided {
  const T* at;
  int64_t row, column;
};

// C = A B, or C += A B. Of the last vector of each row of B and C, `last` lanes exist if `partial`.
template <class T, int rows, int vectors, bool partial>
void attention_tile(int64_t k, Strided<T> a, const T* b, int64_t b_row, T* c, int64_t c_row,
                    bool add, int last) {
  constexpr int lanes = kLanes<T>;
  using V = Vec<T>;
  const auto load = [=](const T* p, int v) TW_LAMBDA_INLINE {
    return partial && v == vectors - 1 ? V::load(p + v * lanes, last) : V::load(p + v * lanes);
  };
  typename V::Raw sums[rows][vectors] = {};
  if (add)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = load(c + r * c_row, v).v;
  for (int64_t p = 0; p < k; ++p, a.at += a.column, b += b_row) {
    typename V::Raw row[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) row[v] = load(b, v).v;
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const typename V::Raw x = V(a.at[r * a.row]).v;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = fma(x, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r, c += c_row)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      if (partial && v == vectors - 1)
        V(sums[r][v]).store(c + v * lanes, last);
      else
        V(sums[r][v]).store(c + v * lanes);
    }
}

// What a product does before each tile: nothing, or ask for lines that are needed later.
struct NothingAhead {
  TW_INLINE void operator()(int64_t, int) const {}
};

// All rows of a few columns: whole tiles, then what is left in tiles of 4, 2 and 1 rows.
template <class T, int vectors, bool partial, class Ahead = NothingAhead>
void product_columns(int64_t m, int64_t k, Strided<T> a, const T* b, int64_t b_row, T* c,
                     int64_t c_row, bool add, int last, Ahead ahead = {}) {
  constexpr int most = rows_of_tile(vectors);
  int64_t first = 0;
  const auto take = [&]<int rows>(std::integral_constant<int, rows>) TW_LAMBDA_INLINE {
    ahead(first, rows);
    first += rows;
    attention_tile<T, rows, vectors, partial>(k, a, b, b_row, c, c_row, add, last);
    a.at += rows * a.row;
    c += rows * c_row;
    m -= rows;
  };
  while (m >= most) take(std::integral_constant<int, most>());
  if (m >= 4) take(std::integral_constant<int, 4>());
  if (m >= 2) take(std::integral_constant<int, 2>());
  if (m >= 1) take(std::integral_constant<int, 1>());
}

template <class T, int vectors> int64_t product_rest(int64_t whole, int64_t m, int64_t k,
                                                     Strided<T> a, const T* b, int64_t b_row, T* c,
                                                     int64_t c_row, bool add) {
  if constexpr (vectors > 0) {
    if (whole != vectors)
      return product_rest<T, vectors - 1>(whole, m, k, a, b, b_row, c, c_row, add);
    product_columns<T, vectors, false>(m, k, a, b, b_row, c, c_row, add, 0);
  }
  return whole * kLanes<T>;
}

// C [m][n] = A [m][k] B [k][n], or C += A B; rows of B and C are contiguous.
template <class T, class Ahead = NothingAhead>
void product(int64_t m, int64_t n, int64_t k, Strided<T> a, const T* b, int64_t b_row, T* c,
             int64_t c_row, bool add, Ahead ahead = {}) {
  constexpr int wide = kWidest * kLanes<T>;
  int64_t j = 0;
  for (; j + wide <= n; j += wide)
    product_columns<T, kWidest, false>(m, k, a, b + j, b_row, c + j, c_row, add, 0, ahead);
  j += product_rest<T, kWidest - 1>((n - j) / kLanes<T>, m, k, a, b + j, b_row, c + j, c_row, add);
  if (j < n) product_columns<T, 1, true>(m, k, a, b + j, b_row, c + j, c_row, add, (int)(n - j));
}

// to[j][i] = scale * from[i][j] for i < rows, j < columns; columns of `to` from rows on, up to
// whole vectors, are 0.
template <class T> void transpose_block(int64_t rows, int64_t columns, const T* from,
                                        int64_t from_row, T* to, int64_t to_row, T scale) {
  constexpr int L = kLanes<T>;
  for (int64_t i = 0; i < rows; i += L)
    each_vector<T>(columns, [=](int64_t j, int count) TW_LAMBDA_INLINE {
      typename Vec<T>::Raw block[L];
#pragma GCC unroll 16
      for (int r = 0; r < L; ++r)
        block[r] = i + r < rows ? load_some(from + (i + r) * from_row + j, count).v
                                : typename Vec<T>::Raw{};
      transpose_lanes<1, L>(block);
#pragma GCC unroll 16
      for (int r = 0; r < L; ++r)
        if (r < count) (Vec<T>(block[r]) * scale).store(to + (j + r) * to_row + i);
    });
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
