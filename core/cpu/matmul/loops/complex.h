// A complex product as a real one: rows of complex numbers are rows of twice as many real ones, and
// with each row of B twice, as it is and times i, their real product is the complex one. Where A
// has few rows its parts are multiplied by B as it lies, and joined. Two vectors are multiplied as
// they lie.
#pragma once
#include "core/cpu/simd/lane_sums.h"
#include "core/cpu/simd/complex.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class T> TW_INLINE void twice_row(std::int64_t n, const T* b, T* out) {
  constexpr int lanes = kLanes<T>;
  T* const turned = out + 2 * n;
  std::int64_t j = 0;
  if constexpr (lanes > 1)
    for (; j + lanes <= 2 * n; j += lanes) {
      const Vec<T> row = Vec<T>::load(b + j);
      row.store(out + j);
      Vec<T>(negated(exchanged(row.v), 0)).store(turned + j);  // times i
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
      if (beta != 0) sum = {fma((T)beta, out.re, sum.re), fma((T)beta, out.im, sum.im)};
      out = sum;
    }
}

// Adds the products of k numbers of a and of b to sums: those of the real parts, of the imaginary
// ones, of a's real and b's imaginary ones, and of a's imaginary and b's real ones. A lane takes 16
// at most in T, then they go to double.
template <class T>
void complex_products(std::int64_t k, const void* a, const void* b, double* sums) {
  constexpr int L = kLanes<T>, chains = 2;
  auto *x = (const T*)a, *y = (const T*)b;
  std::int64_t at = 0;
  if constexpr (L > 1) {
    while (at < 2 * k) {
      const std::int64_t block = 16 * chains * L, past = 2 * k - at > block ? at + block : 2 * k;
      Vec<T> along[chains] = {(T)0, (T)0}, across[chains] = {(T)0, (T)0};
      const auto add = [&](int chain, int count) TW_LAMBDA_INLINE {
        const Vec<T> u = load_some(x + at, count), v = load_some(y + at, count);
        along[chain] = fma(u, v, along[chain]);
        across[chain] = fma(u, Vec<T>(exchanged(v.v)), across[chain]);
        at += count;
      };
      while (at + chains * L <= past) {
        add(0, L);
        add(1, L);
      }
      while (at < past) add(0, past - at < L ? (int)(past - at) : L);
      const auto same = pair_of_lanes<T>((along[0] + along[1]).v);
      const auto other = pair_of_lanes<T>((across[0] + across[1]).v);
      for (int i = 0; i < 2; ++i) sums[i] += same[i], sums[2 + i] += other[i];
    }
  } else {
    for (; at < 2 * k; at += 2) {
      const double re = x[at], im = x[at + 1];
      sums[0] += re * y[at], sums[1] += im * y[at + 1];
      sums[2] += re * y[at + 1], sums[3] += im * y[at];
    }
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
