// Rung 6, strassen: seven products of half the size instead of eight, after Strassen (1969), in
// Winograd's form with 15 sums. The products are the packed rung's; here are the sums, over blocks
// whose rows are contiguous. core/cpu/matmul/strassen.cpp puts them together.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// A row of a quadrant often ends with a page, where the hardware stops reading ahead: each row asks
// for the next one, line by line.
template <class T> TW_INLINE void prefetch_next(const T* next) { __builtin_prefetch(next); }

// out = x + sign * y, of `rows` rows of n elements; out may be x or y.
template <class T, int sign>
inline void sum_rows(std::int64_t rows, std::int64_t n, const T* x, std::int64_t x_row, const T* y,
                     std::int64_t y_row, T* out, std::int64_t out_row) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t i = 0; i < rows; ++i, x += x_row, y += y_row, out += out_row)
    for (std::int64_t j = 0; j < n; j += lanes) {
      const int count = n - j < lanes ? (int)(n - j) : lanes;
      prefetch_next(x + x_row + j);
      prefetch_next(y + y_row + j);
      const Vec<T> a = Vec<T>::load(x + j, count), b = Vec<T>::load(y + j, count);
      (sign > 0 ? a + b : a - b).store(out + j, count);
    }
}

// The sums behind the products, in one pass over the quadrants of C. In: P1, P6, P7, P5. Out:
// P1 as it was; P1 + P6 + P5; P1 + P6 + P7; P1 + P6 + P7 + P5.
template <class T> inline void join_rows(std::int64_t rows, std::int64_t n, T* c11, T* c12, T* c21,
                                         T* c22, std::int64_t row) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t i = 0; i < rows; ++i, c11 += row, c12 += row, c21 += row, c22 += row)
    for (std::int64_t j = 0; j < n; j += lanes) {
      const int count = n - j < lanes ? (int)(n - j) : lanes;
      prefetch_next(c11 + row + j);
      prefetch_next(c12 + row + j);
      prefetch_next(c21 + row + j);
      prefetch_next(c22 + row + j);
      const Vec<T> p5 = Vec<T>::load(c22 + j, count);
      const Vec<T> u2 = Vec<T>::load(c11 + j, count) + Vec<T>::load(c12 + j, count);
      const Vec<T> u3 = u2 + Vec<T>::load(c21 + j, count);
      (u2 + p5).store(c12 + j, count);
      u3.store(c21 + j, count);
      (u3 + p5).store(c22 + j, count);
    }
}

// c = x + beta * c, beta not 0.
template <class T> inline void blend_rows(std::int64_t rows, std::int64_t n, const T* x,
                                          std::int64_t x_row, double beta, T* c,
                                          std::int64_t c_row) {
  constexpr int lanes = kLanes<T>;
  for (std::int64_t i = 0; i < rows; ++i, x += x_row, c += c_row)
    for (std::int64_t j = 0; j < n; j += lanes) {
      const int count = n - j < lanes ? (int)(n - j) : lanes;
      prefetch_next(x + x_row + j);
      prefetch_next(c + c_row + j);
      update_vector(c + j, count, Vec<T>::load(x + j, count), (T)beta);
    }
}

// Whether no element is infinite or NaN: the difference to itself of any other is 0.
template <class T>
inline bool finite_rows(std::int64_t rows, std::int64_t n, const T* x, std::int64_t row) {
  constexpr int lanes = kLanes<T>;
  Vec<T> zero(T(0));
  for (std::int64_t i = 0; i < rows; ++i, x += row)
    for (std::int64_t j = 0; j < n; j += lanes) {
      prefetch_next(x + row + j);
      const Vec<T> v = Vec<T>::load(x + j, n - j < lanes ? (int)(n - j) : lanes);
      zero = zero + (v - v);
    }
  return sum_of_lanes<T>(zero.v) == 0;
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
