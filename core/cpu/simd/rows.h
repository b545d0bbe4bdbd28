// Rows as vectors of which the last is short, moving values across lanes (transposed blocks, a
// vector reduced to one value), and sums along rows and down columns.
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

// Stores around the caches where `stream`.
template <bool stream, class T> TW_INLINE void put(T* p, Vec<T> v, int count) {
  if constexpr (stream)
    if (count == kLanes<T>) return v.stream(p);
  store_some(p, v, count);
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
#define TW_FOLD(f) [](auto a, auto b) TW_LAMBDA_INLINE { return f; }
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

template <class T>
TW_INLINE ProductTerm<Vec<T>> fill_after(ProductTerm<Vec<T>> x, int count, T fill) {
  return {fill_after(x.a, count, fill), fill_after(x.b, count, fill)};
}

// Sum of the vectors or products term(at, count), whose lanes from count on do not count. A lane
// takes 64 terms at most in T, then goes to double.
template <class T, class F> TW_INLINE double sum_of_row(std::int64_t n, F term) {
  constexpr int L = kLanes<T>;
  double total = 0;
  std::int64_t at = 0;
  while (at + L <= n) {
    const std::int64_t past = n - at > 128 * L ? at + 128 * L : n;
    Vec<T> a = (T)0, b = (T)0;
    for (; at + 2 * L <= past; at += 2 * L) {
      a += term(at, L);
      b += term(at + L, L);
    }
    if (at + L <= past) {
      a += term(at, L);
      at += L;
    }
    total += sum_of_lanes(a + b);
  }
  if (at < n) {
    const int rest = (int)(n - at);
    const Vec<T> last = fill_after(term(at, rest), rest, (T)0);
    total += sum_of_lanes(last);
  }
  return total;
}

// Down n rows, a column a lane: term(i) is a vector of row i.
template <class T, class F> TW_INLINE Vec<T> sum_of_columns(std::int64_t n, F term) {
  Vec<T> total = (T)0;
  for (std::int64_t i = 0; i < n;) {
    const std::int64_t past = n - i > 64 ? i + 64 : n;  // bounds the rounding error as in rows
    Vec<T> block = (T)0;
    for (; i < past; ++i) block += term(i);
    total += block;
  }
  return total;
}

// ---- every second element ----

// The even lanes of a, then the odd ones of b.
template <class T, int... i> TW_INLINE Vec<T> even_and_odd(Vec<T> a, Vec<T> b, Indices<i...>) {
  constexpr int L = kLanes<T>;
  return Vec<T>(__builtin_shufflevector(a.v, b.v, (2 * i + (2 * i >= L))...));
}
template <class T, int half, int... i>
TW_INLINE Vec<T> alternated(Vec<T> a, Vec<T> b, Indices<i...>) {
  constexpr int L = kLanes<T>;
  return Vec<T>(__builtin_shufflevector(a.v, b.v, (half * L / 2 + i / 2 + i % 2 * L)...));
}
// p[0], p[stride], ...: `count` of them, at least one, and nothing beyond is read.
template <int known, class T>
TW_INLINE Vec<T> load_every(const T* p, std::int64_t stride, int count) {
  constexpr int L = kLanes<T>;
  if constexpr (L == 1 || known == 1) {
    return load_some(p, count);
  } else if constexpr (known == 2) {
    using All = typename CountTo<L>::type;
    if (count == L) return even_and_odd(Vec<T>::load(p), Vec<T>::load(p + L - 1), All());
    const int span = 2 * count - 1;
    const Vec<T> low = Vec<T>::load(p, span < L ? span : L);
    return even_and_odd(low, Vec<T>::load(p + L - 1, span < L ? 0 : span - L + 1), All());
  } else {
    Vec<T> out = (T)0;
    for (int i = 0; i < count; ++i) out.v[i] = p[i * stride];
    return out;
  }
}
// Calls f with the stride as a constant: 1, 2, or 0 for others.
template <class F> TW_INLINE void with_stride(std::int64_t stride, F f) {
  if (stride == 1)
    f.template operator()<1>();
  else if (stride == 2)
    f.template operator()<2>();
  else
    f.template operator()<0>();
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
