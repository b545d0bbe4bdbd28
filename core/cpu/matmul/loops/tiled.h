// Rung 2, tiled: the same loops cut into blocks that stay in cache, the innermost along a row of C,
// so that a compiler may turn it into vector code. Any strides.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// A block of B (64 x 64 floats are 16 KiB) and the rows of A and C beside it fit a 32 KiB L1 cache.
inline constexpr std::int64_t kTiledBlock = 64;

// C[0:n] += x * B[0:n].
template <class T> inline void add_scaled_row(std::int64_t n, T x, const T* __restrict__ b,
                                              T* __restrict__ c, std::int64_t c_col) {
  if (c_col == 1) {
    for (std::int64_t j = 0; j < n; ++j) c[j] = fma(x, b[j], c[j]);
  } else {
    for (std::int64_t j = 0; j < n; ++j) c[j * c_col] = fma(x, b[j], c[j * c_col]);
  }
}

// A block whose rows are not contiguous (a transposed B) is copied once and used for all rows of A.
template <class T> inline void copy_block(std::int64_t rows, std::int64_t columns, const T* b,
                                          std::int64_t b_row, std::int64_t b_col, T* copy) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t l = 0; l < rows; ++l) copy[l * kTiledBlock + j] = b[l * b_row + j * b_col];
}

template <class T> inline void scale_result(const MatmulProblem& p, T* c) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      T& out = c[i * p.c_row + j * p.c_col];
      out = p.beta == 0 ? T(0) : (T)p.beta * out;
    }
}

template <class T> inline void tiled_one(const MatmulProblem& p, const T* a, const T* b, T* c) {
  const auto end = [](std::int64_t from, std::int64_t limit) {
    return from + kTiledBlock < limit ? from + kTiledBlock : limit;
  };
  scale_result(p, c);
  alignas(64) T copy[kTiledBlock * kTiledBlock];
  for (std::int64_t l0 = 0; l0 < p.k; l0 += kTiledBlock)
    for (std::int64_t j0 = 0; j0 < p.n; j0 += kTiledBlock) {
      const std::int64_t l1 = end(l0, p.k), columns = end(j0, p.n) - j0;
      const T* block = b + l0 * p.b_row + j0 * p.b_col;
      std::int64_t row = p.b_row;
      if (p.b_col != 1) {
        copy_block(l1 - l0, columns, block, p.b_row, p.b_col, copy);
        block = copy;
        row = kTiledBlock;
      }
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t l = l0; l < l1; ++l)
          add_scaled_row(columns, (T)p.alpha * a[i * p.a_row + l * p.a_col], block + (l - l0) * row,
                         c + i * p.c_row + j0 * p.c_col, p.c_col);
    }
  apply_epilogue(p.m, p.n, c, p.c_row, p.c_col, p.epilogue);
}

template <class T> void tiled(const MatmulProblem& p, const MatmulBlocks&, void*) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    tiled_one(p, (const T*)p.a + i * p.a_batch, (const T*)p.b + i * p.b_batch,
              (T*)p.c + i * p.c_batch);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
