// Rows as vectors of which the last is short, and moving values across lanes: transposed blocks,
// and a vector reduced to one value.
#pragma once
#include "core/cpu/simd/vec.h"

namespace tw::TW_ISA_NAME {
namespace {

// Calls f(at, count) for each vector of a row; count is a constant but for the last.
template <class T, class F> TW_INLINE void each_vector(std::int64_t n, F f) {
  constexpr int L = kLanes<T>;
  std::int64_t at = 0;
  for (; at + L <= n; at += L) f(at, L);
  if (at < n) f(at, (int)(n - at));
}
template <class T> TW_INLINE Vec<T> load_some(const T* p, int count) {
  return count == kLanes<T> ? Vec<T>::load(p) : Vec<T>::load(p, count);
}
template <class T> TW_INLINE void store_some(T* p, Vec<T> v, int count) {
  count == kLanes<T> ? v.store(p) : v.store(p, count);
}

template <int... i> struct Indices {};
template <int n, int... i> struct CountTo : CountTo<n - 1, n - 1, i...> {};
template <int... i> struct CountTo<0, i...> {
  using type = Indices<i...>;
};

// Exchanges the off-diagonal d x d blocks of two rows that are d apart.
template <int d, int n, class V, int... i> TW_INLINE void exchange(V& a, V& b, Indices<i...>) {
  const V low = __builtin_shufflevector(a, b, (i & d ? n + i - d : i)...);
  b = __builtin_shufflevector(a, b, (i & d ? n + i : i + d)...);
  a = low;
}
// Transposes n vectors of n lanes in log2(n) stages.
template <int d, int n, class V> TW_INLINE void transpose_lanes(V (&rows)[n]) {
  if constexpr (d < n) {
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i)
      if (!(i & d)) exchange<d, n>(rows[i], rows[i + d], typename CountTo<n>::type());
    transpose_lanes<2 * d, n>(rows);
  }
}

template <class T, int n> struct Lanes {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};
template <class T, int n, int... i>
TW_INLINE typename Lanes<T, n / 2>::type half_of(typename Lanes<T, n>::type v, Indices<i...>,
                                                 bool upper) {
  return upper ? __builtin_shufflevector(v, v, (i + n / 2)...)
               : __builtin_shufflevector(v, v, i...);
}
// f over all lanes, by halves; `f` takes two vectors of any width.
template <class T, int n, class F> TW_INLINE T fold_lanes(typename Lanes<T, n>::type v, F f) {
  if constexpr (n == 1) {
    return v[0];
  } else {
    using Half = typename CountTo<n / 2>::type;
    return fold_lanes<T, n / 2>(f(half_of<T, n>(v, Half(), false), half_of<T, n>(v, Half(), true)),
                                f);
  }
}
#define TW_FOLD(f) [](auto a, auto b) __attribute__((always_inline)) { return f; }
template <class T> TW_INLINE T sum_of_lanes(Vec<T> x) {
  return fold_lanes<T, kLanes<T>>(x.v, TW_FOLD(a + b));
}
template <class T> TW_INLINE T max_of_lanes(Vec<T> x) {
  return fold_lanes<T, kLanes<T>>(x.v, TW_FOLD(a > b ? a : b));
}
template <class T> TW_INLINE T min_of_lanes(Vec<T> x) {
  return fold_lanes<T, kLanes<T>>(x.v, TW_FOLD(a < b ? a : b));
}
#undef TW_FOLD

// Lanes from `count` on replaced by `fill`.
template <class T> TW_INLINE Vec<T> fill_after(Vec<T> x, int count, T fill) {
  using I = IntLike<T>;
  Vec<I> lane;
  for (int i = 0; i < kLanes<T>; ++i) lane.v[i] = (I)i;
  const Mask<I> inside = lane < Vec<I>((I)count);
  return Vec<T>(inside.v ? x.v : Vec<T>(fill).v);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
