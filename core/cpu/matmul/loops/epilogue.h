// The last step of a product: a bias added, what is negative cut off. Tiles do it on their way to C
// (tile.h); everything else in a pass over what it has just written.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

inline constexpr double kInfinite = __builtin_inf();

// The same from element (i, j) on.
template <class T>
TW_INLINE MatmulEpilogue moved(const MatmulEpilogue& epilogue, std::int64_t i, std::int64_t j) {
  MatmulEpilogue out = epilogue;
  if (out.bias) out.bias = (const T*)out.bias + i * out.row + j * out.col;
  return out;
}

// max(v, floor); NaN stays NaN.
template <class T> TW_INLINE Vec<T> at_least(Vec<T> v, Vec<T> floor) {
  return Vec<T>(v.v <= floor.v ? floor.v : v.v);
}

template <class T, class Bias>
TW_INLINE void epilogue_row(std::int64_t n, const T* x, T* out, Vec<T> floor, Bias bias) {
  constexpr int lanes = kLanes<T>;
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    at_least(Vec<T>::load(x + j) + bias(j, lanes), floor).store(out + j);
  if (j == n) return;
  const int rest = (int)(n - j);
  at_least(Vec<T>::load(x + j, rest) + bias(j, rest), floor).store(out + j, rest);
}

// out = relu(x + bias) row by row; out may be x.
template <class T>
[[gnu::noinline]] void epilogue_rows(std::int64_t m, std::int64_t n, const T* x, std::int64_t x_row,
                                     T* out, std::int64_t out_row, const MatmulEpilogue& epilogue) {
  const Vec<T> floor((T)(epilogue.relu ? 0 : -kInfinite));
  const T* const bias = (const T*)epilogue.bias;
  for (std::int64_t i = 0; i < m; ++i, x += x_row, out += out_row) {
    if (bias && epilogue.col) {
      epilogue_row(n, x, out, floor, [row = bias + i * epilogue.row](std::int64_t j, int count) {
        return Vec<T>::load(row + j, count);
      });
    } else {
      const Vec<T> value(bias ? bias[i * epilogue.row] : T(-0.0));  // x + -0.0 is x
      epilogue_row(n, x, out, floor, [value](std::int64_t, int) { return value; });
    }
  }
}

// C itself, whatever its strides.
template <class T> inline void apply_epilogue(std::int64_t m, std::int64_t n, T* c,
                                              std::int64_t c_row, std::int64_t c_col,
                                              const MatmulEpilogue& epilogue) {
  if (!epilogue.bias && !epilogue.relu) return;
  if (c_col == 1) return epilogue_rows(m, n, c, c_row, c, c_row, epilogue);
  const MatmulEpilogue transposed{epilogue.bias, epilogue.col, epilogue.row, epilogue.relu};
  if (c_row == 1) return epilogue_rows(n, m, c, c_col, c, c_col, transposed);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      T* const element = c + i * c_row + j * c_col;
      epilogue_rows(1, 1, element, 1, element, 1, moved<T>(epilogue, i, j));
    }
}

template <class T> void epilogue_of_result(const MatmulProblem& p) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    apply_epilogue(p.m, p.n, (T*)p.c + i * p.c_batch, p.c_row, p.c_col, p.epilogue);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
