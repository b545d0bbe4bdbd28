// The last step of a product: a bias added, what is negative cut off. Tiles do it on their way to C
// (tile.h); everything else in a pass over what it has just written.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

inline constexpr double kInfinite = __builtin_inf();

// The same from element (i, j) on.
template <class T>
TW_INLINE MatmulFinish moved(const MatmulFinish& finish, std::int64_t i, std::int64_t j) {
  MatmulFinish out = finish;
  if (out.bias) out.bias = (const T*)out.bias + i * out.row + j * out.col;
  return out;
}

template <class T, class Bias>
TW_INLINE void finish_row(std::int64_t n, const T* x, T* out, Vec<T> floor, Bias bias) {
  constexpr int lanes = kLanes<T>;
  const auto above_floor = [floor](Vec<T> v) { return Vec<T>(v.v <= floor.v ? floor.v : v.v); };
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    above_floor(Vec<T>::load(x + j) + bias(j, lanes)).store(out + j);
  if (j == n) return;
  const int rest = (int)(n - j);
  above_floor(Vec<T>::load(x + j, rest) + bias(j, rest)).store(out + j, rest);
}

// out = relu(x + bias) row by row; out may be x. NaN stays NaN.
template <class T>
[[gnu::noinline]] void finish_rows(std::int64_t m, std::int64_t n, const T* x, std::int64_t x_row,
                                   T* out, std::int64_t out_row, const MatmulFinish& finish) {
  const Vec<T> floor((T)(finish.relu ? 0 : -kInfinite));
  const T* const bias = (const T*)finish.bias;
  for (std::int64_t i = 0; i < m; ++i, x += x_row, out += out_row) {
    if (bias && finish.col) {
      finish_row(n, x, out, floor, [row = bias + i * finish.row](std::int64_t j, int count) {
        return Vec<T>::load(row + j, count);
      });
    } else {
      const Vec<T> value(bias ? bias[i * finish.row] : T(-0.0));  // x + -0.0 is x
      finish_row(n, x, out, floor, [value](std::int64_t, int) { return value; });
    }
  }
}

// C itself, whatever its strides.
template <class T> inline void finish_block(std::int64_t m, std::int64_t n, T* c,
                                            std::int64_t c_row, std::int64_t c_col,
                                            const MatmulFinish& finish) {
  if (!finish.bias && !finish.relu) return;
  if (c_col == 1) return finish_rows(m, n, c, c_row, c, c_row, finish);
  const MatmulFinish turned{finish.bias, finish.col, finish.row, finish.relu};
  if (c_row == 1) return finish_rows(n, m, c, c_col, c, c_col, turned);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      T* const element = c + i * c_row + j * c_col;
      finish_rows(1, 1, element, 1, element, 1, moved<T>(finish, i, j));
    }
}

template <class T> void finish_result(const MatmulProblem& p) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    finish_block(p.m, p.n, (T*)p.c + i * p.c_batch, p.c_row, p.c_col, p.finish);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
