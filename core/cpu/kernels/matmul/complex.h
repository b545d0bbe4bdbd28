// A complex product as a real one: rows of complex numbers are rows of twice as many real ones, and
// with each row of B twice, as it is and times i, their real product is the complex one. Where A
// has few rows its parts are multiplied by B as it lies, and joined.
#pragma once
#include "core/cpu/kernels/lanes.h"

namespace tw::TW_ISA_NAME {
namespace {

// The row times i: each pair (re, im) becomes (-im, re).
template <class T, int... lane>
TW_INLINE Vec<T> times_i(Vec<T> x, std::integer_sequence<int, lane...>) {
  const typename Vec<T>::Raw swapped = __builtin_shufflevector(x.v, x.v, (lane ^ 1)...);
  const typename Vec<T>::Raw negative = -swapped;
  return Vec<T>(__builtin_shufflevector(swapped, negative,
                                        (lane % 2 ? lane : lane + (int)sizeof...(lane))...));
}
template <class T> TW_INLINE void twice_row(std::int64_t n, const T* b, T* out) {
  constexpr int lanes = kLanes<T>;
  T* const turned = out + 2 * n;
  std::int64_t j = 0;
  if constexpr (lanes > 1)
    for (; j + lanes <= 2 * n; j += lanes) {
      const Vec<T> row = Vec<T>::load(b + j);
      row.store(out + j);
      times_i<T>(row, std::make_integer_sequence<int, lanes>()).store(turned + j);
    }
  for (; j < 2 * n; j += 2) {
    out[j] = turned[j + 1] = b[j];
    out[j + 1] = b[j + 1];
    turned[j] = -b[j + 1];
  }
}

// Rows walked together where elements along a row lie apart: a line of each column.
inline constexpr std::int64_t kComplexRun = 8;
// f(row, column) for all elements of m x n, a line of whichever way is contiguous at a time.
template <class F> TW_INLINE void each_element(std::int64_t m, std::int64_t n, F f) {
  for (std::int64_t first = 0; first < m; first += kComplexRun) {
    const std::int64_t past = first + kComplexRun < m ? first + kComplexRun : m;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = first; i < past; ++i) f(i, j);
  }
}

template <class T> void twice_rows(std::int64_t k, std::int64_t n, const void* from,
                                   std::int64_t row, std::int64_t col, void* to) {
  const auto* b = (const Complex<T>*)from;
  T* out = (T*)to;
  if (col == 1) {
    for (std::int64_t l = 0; l < k; ++l) twice_row(n, (const T*)(b + l * row), out + 4 * l * n);
    return;
  }
  each_element(k, n, [=](std::int64_t l, std::int64_t j) TW_LAMBDA_INLINE {
    const Complex<T> z = b[l * row + j * col];
    T* const at = out + 4 * l * n + 2 * j;
    at[0] = at[2 * n + 1] = z.re;
    at[1] = z.im;
    at[2 * n] = -z.im;
  });
}
template <class T> void complex_rows(std::int64_t m, std::int64_t n, const void* from,
                                     std::int64_t row, std::int64_t col, void* to) {
  const auto* x = (const Complex<T>*)from;
  auto* out = (Complex<T>*)to;
  each_element(m, n, [=](std::int64_t i, std::int64_t j) TW_LAMBDA_INLINE {
    out[i * n + j] = x[i * row + j * col];
  });
}
// The real parts of m rows, then the imaginary ones.
template <class T> void part_rows(std::int64_t m, std::int64_t n, const void* from,
                                  std::int64_t row, std::int64_t col, void* to) {
  const auto* x = (const Complex<T>*)from;
  T *re = (T*)to, *im = re + m * n;
  if (col == 1) {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        re[i * n + j] = x[i * row + j].re, im[i * n + j] = x[i * row + j].im;
    return;
  }
  each_element(m, n, [=](std::int64_t i, std::int64_t j) TW_LAMBDA_INLINE {
    re[i * n + j] = x[i * row + j * col].re;
    im[i * n + j] = x[i * row + j * col].im;
  });
}
// c = alpha * (products of the real parts + i * products of the imaginary ones) + beta * c.
template <class T> void join_rows(std::int64_t m, std::int64_t n, const void* products,
                                  double alpha, double beta, void* to, std::int64_t row,
                                  std::int64_t col) {
  const auto* re = (const Complex<T>*)products;
  const auto* im = re + m * n;
  auto* c = (Complex<T>*)to;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const Complex<T> x = re[i * n + j], y = im[i * n + j];
      Complex<T>& out = c[i * row + j * col];
      Complex<T> sum = {(T)alpha * (x.re - y.im), (T)alpha * (x.im + y.re)};
      if (beta != 0) sum = {sum.re + (T)beta * out.re, sum.im + (T)beta * out.im};
      out = sum;
    }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
