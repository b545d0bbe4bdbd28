// Packing: copies blocks of A and B into the order in which the micro-kernel reads them, so that it
// streams whole cache lines whatever the strides of the source.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// One vector of columns, `width` of them used, from a source whose columns are contiguous along k.
template <class T>
inline void pack_vector_of_columns(std::int64_t k, int width, const T* b, std::int64_t b_col, T* out,
                                   std::int64_t out_row) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t p = 0; p < k; p += lanes) {
    const int depth = k - p < lanes ? (int)(k - p) : lanes;
    typename Vec<T>::Raw square[lanes];
    if (width == lanes && depth == lanes) {
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j) square[j] = Vec<T>::load(b + p + j * b_col).v;
    } else {
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j)
        square[j] = Vec<T>::load(b + p + (j < width ? j * b_col : 0), j < width ? depth : 0).v;
    }
    transpose<T>(square);
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i)
      if (i < depth) Vec<T>(square[i]).store(out + (p + i) * out_row);
  }
}

// B[0:k, 0:n] as a panel of whole vectors, row after row; lanes beyond n are zero. `out` holds
// k * vectors_of(n) vectors.
template <class T>
inline void pack_panel(std::int64_t k, std::int64_t n, const T* b, std::int64_t b_row,
                       std::int64_t b_col, T* out) {
  constexpr int lanes = kLanes<T>;
  const std::int64_t vectors = vectors_of<T>(n), out_row = vectors * lanes;
  const int last = last_lanes<T>(n);
  if (b_col == 1) {
    for (std::int64_t p = 0; p < k; ++p, b += b_row, out += out_row) {
      for (std::int64_t v = 0; v < vectors - 1; ++v) Vec<T>::load(b + v * lanes).store(out + v * lanes);
      const std::int64_t tail = (vectors - 1) * lanes;
      Vec<T>::load(b + tail, last).store(out + tail);
    }
  } else if (b_row == 1) {
    for (std::int64_t v = 0; v < vectors; ++v)
      pack_vector_of_columns(k, v < vectors - 1 ? lanes : last, b + v * lanes * b_col, b_col,
                             out + v * lanes, out_row);
  } else {
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < out_row; ++j)
        out[p * out_row + j] = j < n ? b[p * b_row + j * b_col] : T(0);
  }
}

// A[0:rows, 0:k] column after column; `out` holds rows * k elements and one vector more.
template <class T>
inline void pack_rows(int rows, std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col,
                      T* out) {
  if (kMaskedAccess && a_row == 1 && rows <= kLanes<T>) {
    // Whole vectors are stored; the next column overwrites the lanes beyond `rows`.
    for (std::int64_t p = 0; p < k; ++p) Vec<T>::load(a + p * a_col, rows).store(out + p * rows);
    return;
  }
  for (std::int64_t p = 0; p < k; ++p)
    for (int r = 0; r < rows; ++r) out[p * rows + r] = a[p * a_col + r * a_row];
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
