// Sums of integers narrower than their accumulators of 64 bits: neighbours are added up as one
// number of twice the size, which has room for many vectors.
#pragma once
#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using std::uint64_t;

template <class T> using Unsigned = std::make_unsigned_t<T>;
template <int bytes> struct UnsignedOfSize {
  using type = Unsigned<typename IntOfSize<bytes>::type>;
};
template <class U> using TwiceAsWide = typename UnsignedOfSize<2 * sizeof(U)>::type;

template <class U> TW_INLINE auto sums_of_pairs(Vec<U> x) {
  using W = TwiceAsWide<U>;
  constexpr int bits = 8 * sizeof(U);
  const Vec<W> pairs = (typename Vec<W>::Raw)x.v;
  return Vec<W>((pairs.v & (W)(U) ~(U)0) + (pairs.v >> bits));
}
template <class U> TW_INLINE Vec<uint64_t> sums_of_eight_bytes(Vec<U> x) {
  if constexpr (sizeof(U) == 8)
    return x;
  else
    return sums_of_eight_bytes(sums_of_pairs(x));
}

// Signed numbers are taken as unsigned ones from their least on, which is subtracted at the end.
template <class T> uint64_t sum_of_integers(int64_t n, const T* x) {
  using U = Unsigned<T>;
  constexpr int L = kLanes<T>;
  constexpr U least = std::is_signed_v<T> ? (U)((U)1 << (8 * sizeof(U) - 1)) : (U)0;
  // Vectors whose sums of pairs fit twice the size.
  constexpr int64_t together = sizeof(T) == 4 ? (int64_t)1 << 31 : 128;
  uint64_t total = 0;
  int64_t vectors = 0, at = 0;
  if constexpr (L == 1) {
    for (; at < n; ++at) total += (uint64_t)(int64_t)x[at];
  } else {
    const auto moved = [](Vec<T> v) TW_LAMBDA_INLINE {
      return sums_of_pairs(Vec<U>((typename Vec<U>::Raw)v.v ^ least));
    };
    Vec<uint64_t> all = (uint64_t)0;
    while (at + L <= n) {
      const int64_t left = (n - at) / L, count = left < together ? left : together;
      auto even = moved(Vec<T>::load(x + at)), odd = even - even;
      int64_t i = 1;
      for (; i + 2 <= count; i += 2) {
        even += moved(Vec<T>::load(x + at + i * L));
        odd += moved(Vec<T>::load(x + at + (i + 1) * L));
      }
      if (i < count) even += moved(Vec<T>::load(x + at + i * L));
      all += sums_of_eight_bytes(even) + sums_of_eight_bytes(odd);
      at += count * L;
      vectors += count;
    }
    if (at < n) {
      all += sums_of_eight_bytes(moved(Vec<T>::load(x + at, (int)(n - at))));
      ++vectors;
    }
    total = sum_of_lanes(all) - (uint64_t)least * (uint64_t)(vectors * L);
  }
  return total;
}

template <class T>
void narrow_sum_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  for (int64_t i = 0; i < m; ++i)
    ((uint64_t*)acc)[i] += sum_of_integers(n, (const T*)((const char*)x + i * row_bytes));
}

// Four rows at once: one visit to the accumulators for all.
template <class T, int m> TW_INLINE void add_integer_rows(int64_t n, const char* x,
                                                          int64_t row_bytes,
                                                          int64_t* __restrict acc) {
  using Sum = std::conditional_t<sizeof(T) == 4, int64_t, std::int32_t>;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    Sum sum = 0;
#pragma GCC unroll 4
    for (int i = 0; i < m; ++i) sum += (Sum)((const T*)(x + i * row_bytes))[j];
    acc[j] += sum;
  }
}
template <class T>
void narrow_sum_columns(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* row = (const char*)x;
  for (; m >= 4; m -= 4, row += 4 * row_bytes)
    add_integer_rows<T, 4>(n, row, row_bytes, (int64_t*)acc);
  for (; m > 0; --m, row += row_bytes) add_integer_rows<T, 1>(n, row, row_bytes, (int64_t*)acc);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
