// Scans: within a vector in log2(lanes) steps, from vector to vector by the last lane.
#pragma once
#include "core/cpu/math/softmax_weights.h"
#include "core/cpu/simd/widen.h"
#include "core/cpu/reduce/scan.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using std::uint64_t;

template <class T> struct ScanAccumulator {
  using type = T;
};
template <> struct ScanAccumulator<float> {
  using type = double;
};
template <class T> using Wider = typename ScanAccumulator<T>::type;

template <class A> struct RunningSum {
  static constexpr A identity = std::is_floating_point_v<A> ? (A)-0.0 : (A)0;  // keeps -0.0
  static TW_INLINE Vec<A> join(Vec<A> a, Vec<A> b) { return a + b; }
  static TW_INLINE A one(A a, A b) { return a + b; }
};
template <class A> struct RunningProduct {
  static constexpr A identity = 1;
  static TW_INLINE Vec<A> join(Vec<A> a, Vec<A> b) { return a * b; }
  static TW_INLINE A one(A a, A b) { return a * b; }
};
template <class A> struct RunningLogSum {
  static constexpr A identity = -(A)__builtin_inf();
  static TW_INLINE Vec<A> join(Vec<A> a, Vec<A> b) {
    const Vec<A> top = maximum(a, b);
    return where(isinf(top), top, top + log1p(exp_below(-abs(a - b))));
  }
};

// ---- rows ----

// Lanes d places further on, with `fill` where none comes from.
template <int d, bool reverse, class A, int... i>
TW_INLINE Vec<A> shifted(Vec<A> v, Vec<A> fill, Indices<i...>) {
  constexpr int L = kLanes<A>;
  return Vec<A>(__builtin_shufflevector(
      v.v, fill.v, (reverse ? (i + d < L ? i + d : L + i) : (i >= d ? i - d : L + i))...));
}
template <class Op, bool reverse, int d, class A> TW_INLINE Vec<A> scan_lanes(Vec<A> v) {
  if constexpr (d < kLanes<A>) {
    using All = typename CountTo<kLanes<A>>::type;
    const Vec<A> before = shifted<d, reverse>(v, Vec<A>(Op::identity), All());
    return scan_lanes<Op, reverse, 2 * d>(Op::join(before, v));
  } else {
    return v;
  }
}
template <int lane, class A, int... i> TW_INLINE Vec<A> spread(Vec<A> v, Indices<i...>) {
  return Vec<A>(__builtin_shufflevector(v.v, v.v, (i * 0 + lane)...));
}

template <template <class> class Kind, class T, bool reverse>
TW_INLINE void row_by_vectors(int64_t n, const T* x, T* y, Wider<T> earlier, Wider<T>* total) {
  using A = Wider<T>;
  using Op = Kind<A>;
  constexpr int L = kLanes<A>;
  constexpr bool in_parts = std::is_same_v<Op, RunningSum<A>>;
  const Vec<A> before = earlier;
  Vec<A> sum = Op::identity;
  const auto step = [&](int64_t at, int count) TW_LAMBDA_INLINE {
    Vec<A> v = load_wider<A>(x + at, count);
    if (count < L) v = fill_after(v, count, Op::identity);
    v = scan_lanes<Op, reverse, 1>(v);
    if (y) {
      if constexpr (in_parts)
        store_narrower(y + at, before + sum + v, count);
      else
        store_narrower(y + at, Op::join(sum, v), count);
    }
    using All = typename CountTo<L>::type;
    sum = Op::join(sum, spread<reverse ? 0 : L - 1>(v, All()));
  };
  const int rest = (int)(n % L);
  if (reverse) {
    for (int64_t at = n - L; at >= rest; at -= L) step(at, L);
    if (rest) step(0, rest);
  } else {
    for (int64_t at = 0; at < n - rest; at += L) step(at, L);
    if (rest) step(n - rest, rest);
  }
  *total = sum[0];
}
template <template <class> class Kind, class T>
void scan_row(int64_t n, const void* x, void* y, const void* before, void* total, bool reverse) {
  using A = Wider<T>;
  const A earlier = *(const A*)before;
  if (reverse)
    row_by_vectors<Kind, T, true>(n, (const T*)x, (T*)y, earlier, (A*)total);
  else
    row_by_vectors<Kind, T, false>(n, (const T*)x, (T*)y, earlier, (A*)total);
}
// The compiler makes no vector of sums that lie beside each other, whose terms it would have to
// shuffle.
template <class A> TW_INLINE void keep_alone([[maybe_unused]] A& sum) {
#ifdef __x86_64__
  if constexpr (std::is_floating_point_v<A>) asm("" : "+x"(sum));
#endif
}
// In few elements nothing is to be had from lanes; some rows beside each other do not wait.
template <class Op, int rows, class T, class A = Wider<T>>
TW_INLINE void rows_beside(int64_t n, int64_t step, const T* x, T* y) {
  A sums[rows];
  for (A& sum : sums) sum = Op::identity;
  for (int64_t k = 0; k < n; ++k, x += step, y += step)
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
      sums[i] = Op::one(sums[i], (A)x[i * n]);
      keep_alone(sums[i]);
      y[i * n] = (T)sums[i];
    }
}
template <template <class> class Kind, class T>
void short_rows(int64_t rows, int64_t n, const void* x, void* y, bool reverse) {
  using Op = Kind<Wider<T>>;
  const T* in = (const T*)x + (reverse ? n - 1 : 0);
  T* out = (T*)y + (reverse ? n - 1 : 0);
  const int64_t step = reverse ? -1 : 1;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) rows_beside<Op, 4>(n, step, in + i * n, out + i * n);
  for (; i < rows; ++i) rows_beside<Op, 1>(n, step, in + i * n, out + i * n);
}
// One by one: products of a few neighbours may leave the range where those from the first on do
// not.
void product_row(int64_t n, const void* x, void* y, const void*, void*, bool reverse) {
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = reverse ? n - 1 - k : k;
    ((double*)y)[i] = product *= ((const double*)x)[i];
  }
}

// ---- columns ----

// Few columns have their sums in registers; vectors would be mostly empty.
template <class Op, int width, class T, class A = Wider<T>>
void few_columns(int64_t n, int64_t inner, const T* x, T* y, bool reverse) {
  A sums[width];
  for (A& sum : sums) sum = Op::identity;
  const int64_t first = reverse ? (n - 1) * inner : 0, step = reverse ? -inner : inner;
  x += first, y += first;
  for (int64_t k = 0; k < n; ++k, x += step, y += step)
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) y[j] = (T)(sums[j] = Op::one(sums[j], (A)x[j]));
}
template <template <class> class Kind, class T>
void scan_columns(int64_t n, int64_t width, int64_t inner, const void* x, void* y, bool reverse) {
  using A = Wider<T>;
  using Op = Kind<A>;
  if constexpr (!std::is_same_v<Op, RunningLogSum<A>>) {
    switch (width) {  // four are a vector of AVX2
#define TW_FEW(columns)                                                       \
  case columns:                                                               \
    if constexpr (columns != 4 || kLanes<A> != 4)                             \
      return few_columns<Op, columns>(n, inner, (const T*)x, (T*)y, reverse); \
    break;
      TW_FEW(1) TW_FEW(2) TW_FEW(3) TW_FEW(4) TW_FEW(5) TW_FEW(6) TW_FEW(7)
#undef TW_FEW
    }
  }
  alignas(64) A sums[kScanStrip];
  each_vector<A>(width, [&](int64_t j, int count) TW_LAMBDA_INLINE {
    store_some(sums + j, Vec<A>(Op::identity), count);
  });
  for (int64_t k = 0; k < n; ++k) {
    const int64_t at = (reverse ? n - 1 - k : k) * inner;
    each_vector<A>(width, [&](int64_t j, int count) TW_LAMBDA_INLINE {
      const Vec<A> v =
          Op::join(load_some(sums + j, count), load_wider<A>((const T*)x + at + j, count));
      store_some(sums + j, v, count);
      store_narrower((T*)y + at + j, v, count);
    });
  }
}

// ---- linear recurrences ----

template <class T> void recurrence_row(int64_t n, const T* a, const T* b, T* y, bool reverse) {
  Wider<T> sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = reverse ? n - 1 - k : k;
    sum = k ? fma((Wider<T>)a[i], sum, (Wider<T>)b[i]) : (Wider<T>)b[i];
    y[i] = (T)sum;
  }
}
template <class T> void recurrence(int64_t n, int64_t width, int64_t inner, const void* a,
                                   const void* b, void* y, bool reverse) {
  using A = Wider<T>;
  if (inner == 1) return recurrence_row(n, (const T*)a, (const T*)b, (T*)y, reverse);
  alignas(64) A sums[kScanStrip];
  for (int64_t k = 0; k < n; ++k) {
    const int64_t at = (reverse ? n - 1 - k : k) * inner;
    each_vector<A>(width, [&](int64_t j, int count) TW_LAMBDA_INLINE {
      Vec<A> v = load_wider<A>((const T*)b + at + j, count);
      if (k) v = fma(load_wider<A>((const T*)a + at + j, count), load_some(sums + j, count), v);
      store_some(sums + j, v, count);
      store_narrower((T*)y + at + j, v, count);
    });
  }
}

}  // namespace

#define TW_SCAN(Kind, T) {scan_row<Kind, T>, scan_columns<Kind, T>, short_rows<Kind, T>}
#define TW_LOG_SCAN(T) {scan_row<RunningLogSum, T>, scan_columns<RunningLogSum, T>, nullptr}
extern const ScanTable scan_table;
const ScanTable scan_table = {
    {TW_SCAN(RunningSum, float), TW_SCAN(RunningProduct, float), TW_LOG_SCAN(float)},
    {TW_SCAN(RunningSum, double),
     {product_row, scan_columns<RunningProduct, double>, short_rows<RunningProduct, double>},
     TW_LOG_SCAN(double)},
    {TW_SCAN(RunningSum, uint64_t), TW_SCAN(RunningProduct, uint64_t)},
    recurrence<float>,
    recurrence<double>};
#undef TW_LOG_SCAN
#undef TW_SCAN

}  // namespace tw::TW_ISA_NAME
