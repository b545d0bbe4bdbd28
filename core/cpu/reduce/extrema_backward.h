// Gradients of the largest and the smallest element, which those share that are equal to it.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/reduce/reduce.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class T> TW_INLINE Vec<T> chosen(Mask<T> mask, Vec<T> a, Vec<T> b) {
  return Vec<T>(mask.v ? a.v : b.v);
}

// Elements that equal y.
template <class T> std::int64_t matches(std::int64_t n, const void* x_in, const void* y_in) {
  constexpr int L = kLanes<T>;
  using I = IntLike<T>;
  auto* const x = (const T*)x_in;
  const Vec<T> y = *(const T*)y_in;
  std::int64_t count = 0, at = 0;
  while (at + L <= n) {
    // Truths are -1. Few enough that 32 bits hold the number, whatever n is.
    const std::int64_t past = n - at < (std::int64_t)L << 24 ? n : at + ((std::int64_t)L << 24);
    Vec<I> found[2] = {(I)0, (I)0};
    for (; at + 2 * L <= past; at += 2 * L)
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c) found[c].v -= Vec<T>::load(x + at + c * L).v == y.v;
    if (at + L <= past) {
      found[0].v -= Vec<T>::load(x + at).v == y.v;
      at += L;
    }
    count += sum_of_lanes(found[0] + found[1]);
  }
  for (; at < n; ++at) count += x[at] == y[0];
  return count;
}
// dx from the number of elements that equal y; where none does, NaN is among them.
template <class T> void share(std::int64_t n, const void* x_in, const void* y_in, const void* g_in,
                              std::int64_t count, void* dx_in) {
  constexpr int L = kLanes<T>;
  auto* const x = (const T*)x_in;
  auto* const dx = (T*)dx_in;
  const Vec<T> y = *(const T*)y_in, part = *(const T*)g_in / (T)count;
  const Vec<T> other = count == 0 ? (T)__builtin_nan("") : (T)0;
  std::int64_t at = 0;
  for (; at + L <= n; at += L) chosen(Vec<T>::load(x + at) == y, part, other).store(dx + at);
  const int rest = (int)(n - at);
  if (rest > 0) chosen(Vec<T>::load(x + at, rest) == y, part, other).store(dx + at, rest);
}

template <class T> void extremum_rows_backward(std::int64_t m, std::int64_t n, const void* x,
                                               const void* y, const void* g, void* dx) {
  for (std::int64_t i = 0; i < m; ++i) {
    auto* const row = (const T*)x + i * n;
    auto *const top = (const T*)y + i, *const slope = (const T*)g + i;
    share<T>(n, row, top, slope, matches<T>(n, row, top), (T*)dx + i * n);
  }
}

// Up to kExtremumColumns columns, row by row: rows are read as long runs, and what belongs to the
// columns stays in the first-level cache.
template <class T> void extremum_columns_backward(std::int64_t m, std::int64_t n, std::int64_t step,
                                                  const void* x_in, const void* y, const void* g,
                                                  void* dx_in) {
  using I = IntLike<T>;
  auto *const x = (const T*)x_in, *const slope = (const T*)g, *const top = (const T*)y;
  auto* const dx = (T*)dx_in;
  alignas(64) I found[kExtremumColumns];
  alignas(64) T part[kExtremumColumns], other[kExtremumColumns];
  const int columns = (int)m;
  const auto each = [&](auto f) TW_LAMBDA_INLINE {
    constexpr int L = kLanes<T>;
    int at = 0;
    for (; at + L <= columns; at += L) f(at, L);
    if (at < columns) f(at, columns - at);
  };
  for (int j = 0; j < columns; ++j) found[j] = 0;
  for (std::int64_t i = 0; i < n; ++i)
    each([&](int at, int count) TW_LAMBDA_INLINE {
      const auto equal = load_some(x + i * step + at, count) == load_some(top + at, count);
      store_some(found + at, Vec<I>(load_some(found + at, count).v - equal.v), count);
    });
  for (int j = 0; j < columns; ++j) {
    part[j] = slope[j] / (T)found[j];
    other[j] = found[j] == 0 ? (T)__builtin_nan("") : (T)0;
  }
  for (std::int64_t i = 0; i < n; ++i)
    each([&](int at, int count) TW_LAMBDA_INLINE {
      const auto equal = load_some(x + i * step + at, count) == load_some(top + at, count);
      store_some(dx + i * step + at,
                 chosen(equal, load_some(part + at, count), load_some(other + at, count)), count);
    });
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
