// Sums, products, extrema and their positions along rows and down columns.
#pragma once
#include "core/cpu/kernels/extrema_backward.h"
#include "core/cpu/kernels/extrema_bfloat16.h"
#include "core/cpu/kernels/integer_sums.h"
#include "core/cpu/kernels/lane_sums.h"
#include "core/cpu/kernels/prod.h"
#include "core/cpu/kernels/prod_complex.h"
#include "core/cpu/math/basic.h"
#include "core/cpu/math/lanes.h"
#include "core/cpu/reduce.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using std::uint64_t;
using std::uint8_t;

template <class T> struct AccumulatorOf {
  using type = T;
};
template <> struct AccumulatorOf<float> {
  using type = double;
};
template <class T> TW_INLINE bool is_nan(T x) { return x != x; }
// Where either is NaN.
template <class T> TW_INLINE Mask<T> unordered(Vec<T> a, Vec<T> b) { return !((a <= b) | (a > b)); }

// load(0) ... load(m - 1) joined, pairwise. (Of an array GCC keeps copies on the stack.)
template <int m, int first = 0> TW_INLINE auto joined(auto load, auto join) {
  if constexpr (m == 1)
    return load(first);
  else
    return join(joined<m / 2, first>(load, join), joined<m / 2, first + m / 2>(load, join));
}
// Where elements are read: a pointer, or the products of the elements that two pointers point to.
template <class S> struct Products {
  const S *x, *y;
  friend TW_INLINE Products operator+(Products p, int64_t n) { return {p.x + n, p.y + n}; }
};
template <class S> TW_INLINE const S* beyond(const S* p, int64_t bytes) {
  return (const S*)((const char*)p + bytes);
}
template <class S> TW_INLINE Products<S> beyond(Products<S> p, int64_t bytes) {
  return {beyond(p.x, bytes), beyond(p.y, bytes)};
}
// Elements from there on, as T: bfloat16 is widened on the way, in the order of its numbers.
template <class T> TW_INLINE T one_as(const T* p) { return *p; }
template <class T> TW_INLINE T one_as(const BFloat16* p) {
  return __builtin_bit_cast(T, (std::uint32_t)p->bits << 16);
}
template <class T, class S> TW_INLINE T one_as(Products<S> p) {
  return one_as<T>(p.x) * one_as<T>(p.y);
}
template <class T> TW_INLINE Vec<T> load_as(const T* p) { return Vec<T>::load(p); }
template <class T> TW_INLINE Vec<T> load_as(const T* p, int count) {
  return Vec<T>::load(p, count);
}
template <class T> TW_INLINE Vec<T> load_as(const BFloat16* p) { return load_bfloat16(p); }
template <class T> TW_INLINE Vec<T> load_as(const BFloat16* p, int count) {
  BFloat16 all[kLanes<T>] = {};
  __builtin_memcpy(all, p, count * sizeof(BFloat16));
  return load_bfloat16(all);
}
template <class T, class S> TW_INLINE Vec<T> load_as(Products<S> p) {
  return load_as<T>(p.x) * load_as<T>(p.y);
}
template <class T, class S> TW_INLINE Vec<T> load_as(Products<S> p, int count) {
  return load_as<T>(p.x, count) * load_as<T>(p.y, count);
}

// What one vector of partial results is, for each way to combine; whether combining rounds.
template <class T> struct Sum {
  using Accumulator = typename AccumulatorOf<T>::type;
  static constexpr bool rounds = std::is_floating_point_v<T>;
  static constexpr T identity = 0;
  Vec<T> total = identity;
  TW_INLINE void add(Vec<T> x) { total += x; }
  TW_INLINE void merge(Sum other) { total += other.total; }
  TW_INLINE T value() const { return sum_of_lanes(total); }
  static TW_INLINE T of_few(int64_t n, auto x, auto of) {
    T sum = of(one_as<T>(x));
    for (int64_t i = 1; i < n; ++i) sum += of(one_as<T>(x + i));
    return sum;
  }
  static TW_INLINE Vec<T> join(Vec<T> a, Vec<T> b) { return a + b; }
  template <int m> static TW_INLINE Vec<T> join_all(auto load) { return joined<m>(load, join); }
  static TW_INLINE Accumulator one(Accumulator a, Accumulator b) { return a + b; }
};

// Of whole numbers, which wrap: the order does not matter.
template <class T> struct Product {
  using Accumulator = T;
  static constexpr bool rounds = false;
  static constexpr T identity = 1;
  Vec<T> product = identity;
  TW_INLINE void add(Vec<T> x) { product = product * x; }
  TW_INLINE void merge(Product other) { product = product * other.product; }
  TW_INLINE T value() const {
    return fold_lanes<T, kLanes<T>>(product.v,
                                    [](auto a, auto b) TW_LAMBDA_INLINE { return a * b; });
  }
  static TW_INLINE Vec<T> join(Vec<T> a, Vec<T> b) { return a * b; }
  template <int m> static TW_INLINE Vec<T> join_all(auto load) { return joined<m>(load, join); }
  static TW_INLINE T one(T a, T b) { return a * b; }
};

template <class T> constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>)
    return -(T)__builtin_inf();
  else
    return std::is_signed_v<T> ? (T)((T)1 << (sizeof(T) * 8 - 1)) : (T)0;
}
template <class T> constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>)
    return (T)__builtin_inf();
  else
    return (T)~lowest<T>();
}

// NaN goes beside the extremum: `x > best ? x : best` is one instruction, and drops NaN.
template <class T, bool largest> struct Extremum {
  using Accumulator = T;
  static constexpr bool rounds = false;
  static constexpr T identity = largest ? lowest<T>() : highest<T>();
  Vec<T> best = identity, nan = (T)0;
  static TW_INLINE bool better(T a, T b) { return largest ? a > b : a < b; }
  static TW_INLINE Vec<T> better_of(Vec<T> a, Vec<T> b) {
    return largest ? (a.v > b.v ? a.v : b.v) : (a.v < b.v ? a.v : b.v);
  }
  TW_INLINE void add(Vec<T> x) {
    best = better_of(x, best);
    if constexpr (std::is_floating_point_v<T>) nan = x.v == x.v ? nan.v : x.v;
  }
  TW_INLINE void merge(Extremum other) {
    best = better_of(best, other.best);
    if constexpr (std::is_floating_point_v<T>) nan = nan + other.nan;
  }
  TW_INLINE T value() const {
    if constexpr (std::is_floating_point_v<T>)
      if (any_not_below(nan, 1)) [[unlikely]]
        return sum_of_lanes(nan);
    return largest ? max_of_lanes(best) : min_of_lanes(best);
  }
  template <class Itself> static TW_INLINE T of_few(int64_t n, const T* x, Itself) {
    T best = x[0], sum = x[0];  // NaN, or two infinities
    for (int64_t i = 1; i < n; ++i) {
      best = better(x[i], best) ? x[i] : best;
      sum += x[i];
    }
    if (!is_nan(sum)) [[likely]]
      return best;
    best = x[0];
    for (int64_t i = 1; i < n; ++i) best = one(best, x[i]);
    return best;
  }
  static TW_INLINE Vec<T> join(Vec<T> a, Vec<T> b) {
    const Vec<T> best = better_of(a, b);  // b where either is NaN
    if constexpr (std::is_floating_point_v<T>) return where(a != a, a, best);
    return best;
  }
  // NaN is asked for once for each pair, and mostly there is none.
  template <int m> static TW_INLINE Vec<T> join_all(auto load) {
    if constexpr (!std::is_floating_point_v<T> || m == 1) {
      return joined<m>(load, join);
    } else {
      struct Best {
        Vec<T> best;
        Mask<T> nan;
      };
      const Best all = joined<m / 2>(
          [=](int i) TW_LAMBDA_INLINE {
            const Vec<T> a = load(2 * i), b = load(2 * i + 1);
            return Best{better_of(a, b), unordered(a, b)};
          },
          [](Best a, Best b)
              TW_LAMBDA_INLINE { return Best{better_of(a.best, b.best), a.nan | b.nan}; });
      if (!any(all.nan)) [[likely]]
        return all.best;
      return joined<m>(load, join);
    }
  }
  static TW_INLINE T one(T a, T b) { return is_nan(a) || better(a, b) ? a : b; }
};
template <class T> using Max = Extremum<T, true>;
template <class T> using Min = Extremum<T, false>;

// Four vectors in flight hide the latency of an addition (4 cycles, two a cycle, half of it spent
// on loads from the second-level cache). Each lane takes 16 terms at most, as in NumPy; blocks are
// then added pairwise.
inline constexpr int kChains = 4;
template <class T> inline constexpr int64_t kBlock = 16 * kChains * kLanes<T>;

// What of an element is combined.
struct Itself {
  template <class V> TW_INLINE V operator()(V x) const { return x; }
};
struct Number {  // NaN counts as 0
  template <class T> TW_INLINE T operator()(T x) const { return x == x ? x : 0; }
  template <class T> TW_INLINE Vec<T> operator()(Vec<T> x) const {
    return where(x == x, x, Vec<T>((T)0));
  }
};
struct Magnitude {
  template <class T> TW_INLINE T operator()(T x) const { return x < 0 ? -x : x; }
  template <class T> TW_INLINE Vec<T> operator()(Vec<T> x) const { return abs(x); }
};
struct Square {
  template <class V> TW_INLINE V operator()(V x) const { return x * x; }
};
template <class T> struct SquaredDistance {
  Vec<T> centre;
  TW_INLINE Vec<T> operator()(Vec<T> x) const {
    const Vec<T> distance = x - centre;
    return distance * distance;
  }
};

// Whether two vectors of T come from one of bfloat16 at once, as its even and its odd numbers: half
// the instructions of widening in order.
template <class T, class P> inline constexpr bool kByPairs =
    std::is_same_v<P, const BFloat16*> && kLanes<Stored16> == 2 * kLanes<T>;
// The numbers of kChains vectors from p on, not always in order.
template <class T, class P> TW_INLINE void load_chains(P p, Vec<T>* v) {
  constexpr int L = kLanes<T>, step = kByPairs<T, P> ? 2 : 1;
#pragma GCC unroll 4
  for (int c = 0; c < kChains; c += step)
    if constexpr (kByPairs<T, P>) {
      const FloatPair pair = floats_of_bfloat16(Vec<Stored16>::load((const Stored16*)p + c * L));
      v[c] = pair.even;
      v[c + 1] = pair.odd;
    } else {
      v[c] = load_as<T>(p + c * L);
    }
}

template <class Op, class T, class P, class Of = Itself>
TW_INLINE Op lanes_of_block(int64_t n, P x, Of of = {}) {
  constexpr int L = kLanes<T>;
  Op chain[kChains];
  int64_t at = 0;
  for (; at + kChains * L <= n; at += kChains * L) {
    Vec<T> v[kChains];
    load_chains(x + at, v);
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) chain[c].add(of(v[c]));
  }
  chain[0].merge(chain[1]);
  chain[2].merge(chain[3]);
  chain[0].merge(chain[2]);
  for (; at + L <= n; at += L) chain[0].add(of(load_as<T>(x + at)));
  if (at < n) {
    const int rest = (int)(n - at);
    chain[0].add(fill_after(of(load_as<T>(x + at, rest)), rest, Op::identity));
  }
  return chain[0];
}
template <class Op, class T, class P, class Of = Itself>
TW_INLINE T block_of_row(int64_t n, P x, Of of = {}) {
  return lanes_of_block<Op, T>(n, x, of).value();
}
// Whole blocks of float32 join accumulators of double lane by lane, which leaves nothing between
// two blocks that waits for a result.
template <class P, class Of> Vec<double> lanes_of_float_blocks(int64_t n, P x, Of of) {
  constexpr int L = kLanes<float>;
  constexpr bool halves = L > kLanes<double>;
  Vec<double> low = 0.0, high = 0.0;
  for (int64_t at = 0; at < n; at += kBlock<float>) {
    Vec<float> chain[kChains], v[kChains];
    load_chains(x + at, v);
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) chain[c] = of(v[c]);
#pragma GCC unroll 1
    for (int64_t i = at + kChains * L; i < at + kBlock<float>; i += kChains * L) {
      load_chains(x + i, v);
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c) chain[c] += of(v[c]);
    }
    const Vec<float> block = (chain[0] + chain[1]) + (chain[2] + chain[3]);
    low += widened_half<false>(block);
    if constexpr (halves) high += widened_half<true>(block);
  }
  return low + high;
}
template <class P, class Of> double long_float_row(int64_t n, P x, Of of) {
  const int64_t blocks = n / kBlock<float> * kBlock<float>;
  return sum_of_lanes(lanes_of_float_blocks(blocks, x, of)) +
         block_of_row<Sum<float>, float>(n - blocks, x + blocks, of);
}
// Pairwise by lanes, which are folded once.
template <class Op, class T, class P, class Of> Op lanes_of_row(int64_t n, P x, Of of) {
  if (n <= kBlock<T>) return lanes_of_block<Op, T>(n, x, of);
  const int64_t half = (n / 2 + kBlock<T> - 1) / kBlock<T> * kBlock<T>;
  // One after the other: arguments may be computed last first, and memory read backwards by blocks
  // comes at half the rate on some processors.
  Op first = lanes_of_row<Op, T>(half, x, of);
  first.merge(lanes_of_row<Op, T>(n - half, x + half, of));
  return first;
}
template <class Op, class T, class P, class Of>
typename Op::Accumulator long_row(int64_t n, P x, Of of) {
  if constexpr (std::is_same_v<Op, Sum<float>>)
    return long_float_row(n, x, of);
  else
    return lanes_of_row<Op, T>(n, x, of).value();
}
template <class Op, class T>
TW_INLINE typename Op::Accumulator row_of(int64_t n, auto row, auto of) {
  const bool whole = !Op::rounds || n <= kBlock<T>;
  return whole ? block_of_row<Op, T>(n, row, of) : long_row<Op, T>(n, row, of);
}
// Rows of complex numbers, n parts each: sums of the real and of the imaginary ones.
template <class T>
void pair_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* a = (double*)acc;
  for (int64_t i = 0; i < m; ++i, a += 2) {
    auto* row = (const T*)((const char*)x + i * row_bytes);
    const auto add = [a](auto pair) TW_LAMBDA_INLINE {
      a[0] += pair[0];
      a[1] += pair[1];
    };
    if constexpr (std::is_same_v<T, float>) {
      const int64_t blocks = n / kBlock<float> * kBlock<float>;
      if (blocks > 0) add(pair_of_lanes<double>(lanes_of_float_blocks(blocks, row, Itself()).v));
      add(pair_of_lanes<float>(
          lanes_of_block<Sum<float>, float>(n - blocks, row + blocks).total.v));
    } else {
      add(pair_of_lanes<double>(lanes_of_row<Sum<double>, double>(n, row, Itself()).total.v));
    }
  }
}
// Squares of float32 overflow from 2^64 on, and vanish below 2^-75: a sum of them that is not in
// between is found again in float64, of whose accumulators it is a part.
inline constexpr float kLeastSum = 1e-30f;
template <class T> TW_INLINE bool is_lost(T sum) {
  return !(sum >= kLeastSum && sum < (T)__builtin_inf());
}
template <class S>
__attribute__((noinline)) double wide_squares(int64_t n, const S* x, float centre) {
  constexpr int L = kLanes<float>;
  constexpr bool halves = L > kLanes<double>;
  Vec<double> low = 0.0, high = 0.0;
  const Vec<double> about = (double)centre;
  int64_t at = 0;
  for (; at + L <= n; at += L) {
    const Vec<float> v = load_as<float>(x + at);
    const Vec<double> near = widened_half<false>(v) - about;
    low += near * near;
    if constexpr (halves) {
      const Vec<double> far = widened_half<true>(v) - about;
      high += far * far;
    }
  }
  double sum = sum_of_lanes(low + high);
  if (at < n) {
    const Vec<float> rest = load_as<float>(x + at, (int)(n - at));
    for (int i = 0; at + i < n; ++i) {
      const double distance = (double)rest[i] - (double)centre;
      sum += distance * distance;
    }
  }
  return sum;
}
// A sum of squares of distances from `centre`, of which this is what the lanes of T made.
template <class T, class S>
TW_INLINE double whole_squares(double sum, int64_t n, const S* row, T centre) {
  if constexpr (std::is_same_v<T, float>)
    if (is_lost(sum)) [[unlikely]]
      return wide_squares(n, row, centre);
  return sum;
}

// Fewer elements one after the other take less time than to fold the lanes of a vector.
inline constexpr int64_t kFew = 8;
template <class Op, class T, class S = T, class Of = Itself>
void rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* a = (typename Op::Accumulator*)acc;
  const auto each = [=](auto combined) TW_LAMBDA_INLINE {
    for (int64_t i = 0; i < m; ++i) {
      const S* row = beyond((const S*)x, i * row_bytes);
      typename Op::Accumulator part = combined(row);
      if constexpr (std::is_same_v<Of, Square>) part = whole_squares(part, n, row, (T)0);
      a[i] = Op::one(a[i], part);
    }
  };
  if constexpr (std::is_floating_point_v<T>)
    if (n > 0 && n < kFew)
      return each([=](const S* row) TW_LAMBDA_INLINE { return Op::of_few(n, row, Of()); });
  each([=](const S* row) TW_LAMBDA_INLINE { return row_of<Op, T>(n, row, Of()); });
}
template <class T> void squares_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes,
                                     const void* centres, void* acc) {
  auto* centre = (const T*)centres;
  auto* a = (double*)acc;
  for (int64_t i = 0; i < m; ++i) {
    const T* row = beyond((const T*)x, i * row_bytes);
    const double part = row_of<Sum<T>, T>(n, row, SquaredDistance<T>{centre[i]});
    a[i] += whole_squares(part, n, row, centre[i]);
  }
}
template <class T, class S> void product_rows(int64_t m, int64_t n, const void* x,
                                              int64_t row_bytes, const void* y, void* acc) {
  const Products<S> first = {(const S*)x, (const S*)y};
  auto* a = (double*)acc;
  if (n > 0 && n < kFew) {
    for (int64_t i = 0; i < m; ++i)
      a[i] += Sum<T>::of_few(n, beyond(first, i * row_bytes), Itself());
    return;
  }
  for (int64_t i = 0; i < m; ++i)
    a[i] += row_of<Sum<T>, T>(n, beyond(first, i * row_bytes), Itself());
}

template <class T> TW_INLINE void add_to(double* acc, Vec<T> x) {
  constexpr int L = kLanes<double>;
  (Vec<double>::load(acc) + widened_half<false>(x)).store(acc);
  if constexpr (kLanes<T> > L) (Vec<double>::load(acc + L) + widened_half<true>(x)).store(acc + L);
}
template <class Op, class T>
TW_INLINE void add_into(typename Op::Accumulator* acc, Vec<T> x, int count) {
  constexpr int L = kLanes<T>;
  if constexpr (std::is_same_v<typename Op::Accumulator, T>) {
    if (count == L)
      Op::join(Vec<T>::load(acc), x).store(acc);
    else
      Op::join(Vec<T>::load(acc, count), x).store(acc, count);
  } else if (count == L) {
    add_to(acc, x);
  } else {
    for (int i = 0; i < count; ++i) acc[i] += (double)x[i];
  }
}
// Eight rows at once: eight streams for the prefetcher, and one visit to the accumulators for all.
inline constexpr int kRowsAtOnce = 8;
// `of` gives, for `count` columns from `at` on, what of their elements is combined; `taken` may add
// what comes of m rows itself.
struct Never {
  template <class P, class V> TW_INLINE bool operator()(int64_t, P, int64_t, int, V) const {
    return false;
  }
};
// The lower or upper half of the numbers whose even and odd ones these are.
template <bool upper, class T, int... lane>
TW_INLINE Vec<T> in_order(Vec<T> even, Vec<T> odd, std::integer_sequence<int, lane...>) {
  constexpr int L = sizeof...(lane), first = upper ? L / 2 : 0;
  return Vec<T>(__builtin_shufflevector(even.v, odd.v, (first + lane / 2 + lane % 2 * L)...));
}
template <class Op, class T, int m, class Of>
TW_INLINE void join_pairs(const char* x, int64_t row_bytes, typename Op::Accumulator* acc, Of of) {
  constexpr int L = kLanes<T>;
  constexpr auto lanes = std::make_integer_sequence<int, L>();
  const auto [even, odd] = joined<m>(
      [=](int i) TW_LAMBDA_INLINE {
        const auto pair =
            floats_of_bfloat16(Vec<Stored16>::load((const Stored16*)(x + i * row_bytes)));
        return FloatPair{of(pair.even), of(pair.odd)};
      },
      [](FloatPair a, FloatPair b)
          TW_LAMBDA_INLINE { return FloatPair{Op::join(a.even, b.even), Op::join(a.odd, b.odd)}; });
  add_into<Op, T>(acc, in_order<false>(even, odd, lanes), L);
  add_into<Op, T>(acc + L, in_order<true>(even, odd, lanes), L);
}
template <class Op, class T, int m, class P, class F, class Taken>
TW_INLINE void join_rows(int64_t n, P x, int64_t row_bytes, typename Op::Accumulator* acc, F of,
                         Taken taken) {
  constexpr int L = kLanes<T>;
  const auto join = [&](auto load, int64_t at, int count) TW_LAMBDA_INLINE {
    const auto part = of(at, count);
    const Vec<T> all = Op::template join_all<m>(
        [=](int i) TW_LAMBDA_INLINE { return part(load(beyond(x, i * row_bytes) + at)); });
    if (!taken(m, x, at, count, all)) add_into<Op, T>(acc + at, all, count);
  };
  int64_t at = 0;
  if constexpr (kByPairs<T, P>)
    for (; at + 2 * L <= n; at += 2 * L)
      join_pairs<Op, T, m>((const char*)(x + at), row_bytes, acc + at, of(at, L));
  for (; at + L <= n; at += L) join([](P p) TW_LAMBDA_INLINE { return load_as<T>(p); }, at, L);
  const int rest = (int)(n - at);
  if (rest > 0) join([=](P p) TW_LAMBDA_INLINE { return load_as<T>(p, rest); }, at, rest);
}
template <class Op, class T, class P, class F, class Taken = Never>
TW_INLINE void each_column(int64_t m, int64_t n, P x, int64_t row_bytes, void* acc, F of,
                           Taken taken = {}) {
  auto* a = (typename Op::Accumulator*)acc;
  const auto by = [&](auto together) TW_LAMBDA_INLINE {
    constexpr int rows = together;
    for (; m >= rows; m -= rows, x = beyond(x, rows * row_bytes))
      join_rows<Op, T, rows>(n, x, row_bytes, a, of, taken);
  };
  by(std::integral_constant<int, kRowsAtOnce>());
  by(std::integral_constant<int, 4>());
  by(std::integral_constant<int, 2>());
  by(std::integral_constant<int, 1>());
}
template <class Op, class T, class S = T, class Of = Itself>
void columns(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  each_column<Op, T>(m, n, (const S*)x, row_bytes, acc,
                     [](int64_t, int) TW_LAMBDA_INLINE { return Of(); });
}
// Of few rows nothing need be kept between two visits: their sums go from registers to y. Groups of
// 4, 2 and 1 are joined in double, one after the other, as visits to the columns' accumulators join
// them.
template <int m, bool upper, int first = 0>
TW_INLINE Vec<double> joined_wide(auto load, Vec<double> sum) {
  constexpr int group = m >= 4 ? 4 : m >= 2 ? 2 : 1;
  sum = sum + widened_half<upper>(joined<group, first>(load, Sum<float>::join));
  if constexpr (m == group)
    return sum;
  else
    return joined_wide<m - group, upper, first + group>(load, sum);
}
template <int m> TW_INLINE void sum_few_rows(auto load, float* y, int count) {
  constexpr int D = kLanes<double>;
  if constexpr ((m & (m - 1)) == 0) {
    const Vec<float> sum = joined<m>(load, Sum<float>::join) + 0;  // no sum is -0.0
    count == kLanes<float> ? sum.store(y) : sum.store(y, count);
  } else {
    store_narrower(y, joined_wide<m, false>(load, 0.0), count < D ? count : D);
    if constexpr (kLanes<float> > D)
      if (count > D) store_narrower(y + D, joined_wide<m, true>(load, 0.0), count - D);
  }
}
template <int m> void few_rows_of(int64_t n, const float* x, int64_t row_bytes, float* y) {
  constexpr int L = kLanes<float>;
  int64_t at = 0;
  for (; at + L <= n; at += L)
    sum_few_rows<m>(
        [=](int i) TW_LAMBDA_INLINE { return Vec<float>::load(beyond(x, i * row_bytes) + at); },
        y + at, L);
  if (const int rest = (int)(n - at))
    sum_few_rows<m>(
        [=](int i)
            TW_LAMBDA_INLINE { return Vec<float>::load(beyond(x, i * row_bytes) + at, rest); },
        y + at, rest);
}
inline void few_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* y) {
  const auto by = [&]<int... i>(std::integer_sequence<int, i...>) {
    ((m == i + 2 && (few_rows_of<i + 2>(n, (const float*)x, row_bytes, (float*)y), true)) || ...);
  };
  by(std::make_integer_sequence<int, kFewRows - 1>());
}
template <class T, class S> void product_columns(int64_t m, int64_t n, const void* x,
                                                 int64_t row_bytes, const void* y, void* acc) {
  each_column<Sum<T>, T>(m, n, Products<S>{(const S*)x, (const S*)y}, row_bytes, acc,
                         [](int64_t, int) TW_LAMBDA_INLINE { return Itself(); });
}
// `sums` of the columns of m rows of x, those that are lost in float64; no centre: about 0.
__attribute__((noinline)) void add_lost(int64_t m, int count, const float* x, int64_t row_bytes,
                                        const float* centre, Vec<float> sums, double* acc) {
  double wide[kLanes<float>] = {};
  for (int64_t i = 0; i < m; ++i) {
    const float* row = beyond(x, i * row_bytes);
    for (int j = 0; j < count; ++j) {
      const double distance = (double)row[j] - (centre ? (double)centre[j] : 0);
      wide[j] += distance * distance;
    }
  }
  for (int j = 0; j < count; ++j) acc[j] += is_lost(sums[j]) ? wide[j] : (double)sums[j];
}
// Squares are rounded before they are added: else some loops fuse them into the sum and others do
// not, and a column's bits would depend on the columns beside it.
template <class T> TW_INLINE void each_column_of_squares(int64_t m, int64_t n, const void* x,
                                                         int64_t row_bytes, const T* centre,
                                                         void* acc, auto of) {
  each_column<Sum<T>, T>(
      m, n, (const T*)x, row_bytes, acc, of,
      [=](int64_t rows, const T* first, int64_t at, int count, Vec<T> sums) TW_LAMBDA_INLINE {
        if constexpr (std::is_same_v<T, float>) {
          const Vec<float> shown = fill_after(sums, count, 1.0f);
          if (any_below(shown, kLeastSum) || any_not_below(shown, __builtin_inff())) [[unlikely]] {
            add_lost(rows, count, first + at, row_bytes, centre ? centre + at : nullptr, sums,
                     (double*)acc + at);
            return true;
          }
        }
        return false;
      });
}
template <class T>
void square_columns(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  each_column_of_squares<T>(m, n, x, row_bytes, nullptr, acc, [](int64_t, int) TW_LAMBDA_INLINE {
    return [](Vec<T> x) TW_LAMBDA_INLINE { return rounded(x * x); };
  });
}
template <class T> void squares_columns(int64_t m, int64_t n, const void* x, int64_t row_bytes,
                                        const void* centres, void* acc) {
  auto* centre = (const T*)centres;
  each_column_of_squares<T>(m, n, x, row_bytes, centre, acc,
                            [=](int64_t at, int count) TW_LAMBDA_INLINE {
                              const SquaredDistance<T> of{load_some(centre + at, count)};
                              return [=](Vec<T> x) TW_LAMBDA_INLINE { return rounded(of(x)); };
                            });
}

// Extrema of bfloat16, into float32.
template <bool largest>
void bfloat16_extremum_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  for (int64_t i = 0; i < m; ++i) {
    const auto* row = (const Stored16*)((const char*)x + i * row_bytes);
    float& best = ((float*)acc)[i];
    best = Extremum<float, largest>::one(best, extremum_of_row<largest>(n, row));
  }
}
template <bool largest, int m>
TW_INLINE void join_bfloat16_extrema(int64_t n, const char* x, int64_t row_bytes, float* acc) {
  constexpr int L = kLanes<float>;
  each_vector<Stored16>(n, [&](int64_t at, int count) TW_LAMBDA_INLINE {
    const Vec<Stored16> extrema =
        extrema_of_columns<largest, m>(x + at * sizeof(Stored16), row_bytes, count);
    BFloat16 bits[kLanes<Stored16>];
    __builtin_memcpy(bits, &extrema, sizeof bits);
    for (int part = 0; part < count; part += L) {
      const int here = count - part < L ? count - part : L;
      add_into<Extremum<float, largest>, float>(acc + at + part, load_bfloat16(bits + part), here);
    }
  });
}
template <bool largest>
void bfloat16_extremum_columns(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* row = (const char*)x;
  for (; m >= kRowsAtOnce; m -= kRowsAtOnce, row += kRowsAtOnce * row_bytes)
    join_bfloat16_extrema<largest, kRowsAtOnce>(n, row, row_bytes, (float*)acc);
  for (; m > 0; --m, row += row_bytes)
    join_bfloat16_extrema<largest, 1>(n, row, row_bytes, (float*)acc);
}

// Whether x, found later, replaces best.
template <bool largest, class T> TW_INLINE bool replaces(T x, T best) {
  return (largest ? x > best : x < best) | (is_nan(x) & !is_nan(best));
}
#ifdef __AVX2__
#ifndef __AVX512F__  // where a comparison gives such bits itself
template <class T> TW_INLINE std::uint64_t bits_of(Mask<T> equal) {
  if constexpr (sizeof(T) == 4)
    return (unsigned)_mm256_movemask_ps((__m256)equal.v);
  else
    return (unsigned)_mm256_movemask_pd((__m256d)equal.v);
}
#endif
// A bit for each lane of 32 or 64 bits.
template <class T> TW_INLINE std::uint64_t which_equal(Vec<T> a, Vec<T> b) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>)
    return _mm512_cmp_ps_mask((__m512)a.v, (__m512)b.v, _CMP_EQ_OQ);
  else if constexpr (std::is_same_v<T, double>)
    return _mm512_cmp_pd_mask((__m512d)a.v, (__m512d)b.v, _CMP_EQ_OQ);
  else if constexpr (sizeof(T) == 4)
    return _mm512_cmpeq_epi32_mask((__m512i)a.v, (__m512i)b.v);
  else
    return _mm512_cmpeq_epi64_mask((__m512i)a.v, (__m512i)b.v);
#else
  return bits_of<T>(a == b);
#endif
}
// In whole steps of four vectors; -1: it is in none.
template <class T> int64_t first_place_in_steps(int64_t n, const T* row, T x) {
  constexpr int L = kLanes<T>, step = kChains * L;
  for (int64_t from = 0; from + step <= n; from += step) {
#ifndef __AVX512F__
    // One question for four vectors: most have none.
    Mask<T> any = Vec<T>::load(row + from) == Vec<T>(x);
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c) any.v |= (Vec<T>::load(row + from + c * L) == Vec<T>(x)).v;
    if (!bits_of<T>(any)) continue;
#endif
    std::uint64_t bits = 0;
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c)
      bits |= which_equal<T>(Vec<T>::load(row + from + c * L), x) << c * L;
    if (bits) return from + __builtin_ctzll(bits);
  }
  return -1;
}
#endif
// The place of the first of n elements that is x, which is among them; NaN is found as NaN.
template <class T> int64_t first_place(int64_t n, const T* row, T x) {
  constexpr int L = kLanes<T>, step = kChains * L;
  int64_t at = 0;
  if constexpr (sizeof(T) == 1) return (const T*)__builtin_memchr(row, (uint8_t)x, n) - row;
#ifdef __AVX2__
  if constexpr (sizeof(T) >= 4) {
    if (const int64_t place = first_place_in_steps(n, row, x); place >= 0) return place;
    at = is_nan(x) ? 0 : n / step * step;
  }
#else
  if constexpr (sizeof(T) >= 4 && L > 1) {
    // From the last step to the first, so that each lane ends with its first place.
    using I = IntLike<T>;
    const I none = highest<I>();
    Vec<I> place[kChains], here = (I)(n / step * step);
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) place[c] = none;
    for (int64_t from = n / step * step - step; from >= 0; from -= step) {
      here -= Vec<I>((I)step);
#pragma GCC unroll 4
      for (int c = 0; c < kChains; ++c) {
        const auto equal = Vec<T>::load(row + from + c * L).v == Vec<T>(x).v;
        place[c] = Vec<I>(equal ? here.v : place[c].v);
      }
    }
    typename Vec<I>::Raw lane = {};
    for (int i = 0; i < L; ++i) lane[i] = (I)i;
    Vec<I> first = none;
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      // Nowhere stays nowhere: none + lane would be beyond the type.
      const auto found = (place[c].v != none ? place[c].v : Vec<I>(I(0)).v) + lane + (I)(c * L);
      first = Vec<I>(place[c].v != none && found < first.v ? found : first.v);
    }
    const I found = min_of_lanes(first);
    if (found != none) return found;
    at = is_nan(x) ? 0 : n / step * step;
  }
#endif
  while (is_nan(x) ? !is_nan(row[at]) : row[at] != x) ++at;
  return at;
}

// First the extremum of a block; where it is better, its place is looked for in the first-level
// cache.
template <class T, bool largest> void arg_rows(int64_t m, int64_t n, const void* x,
                                               int64_t row_bytes, int64_t base, void* best,
                                               int64_t* index) {
  using Op = Extremum<T, largest>;
  constexpr int64_t block = 4096 / sizeof(T);
  for (int64_t i = 0; i < m; ++i) {
    const auto* row = (const T*)((const char*)x + i * row_bytes);
    T top = ((T*)best)[i];
    for (int64_t at = 0; at < n; at += block) {
      const int64_t count = n - at < block ? n - at : block;
      const T here = block_of_row<Op, T>(count, row + at);
      if (index[i] >= 0 && !replaces<largest>(here, top)) continue;
      top = here;
      index[i] = base + at + first_place(count, row + at, here);
    }
    ((T*)best)[i] = top;
  }
}
template <class T, bool largest> void arg_columns(int64_t m, int64_t n, const void* x,
                                                  int64_t row_bytes, int64_t base, void* best,
                                                  int64_t* index) {
  auto* __restrict top = (T*)best;
  auto* __restrict where_top = index;
  for (int64_t i = 0; i < m; ++i) {
    const auto* __restrict row = (const T*)((const char*)x + i * row_bytes);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const T here = row[j], old = top[j];
      const bool take = (where_top[j] < 0) | replaces<largest>(here, old);
      top[j] = take ? here : old;
      where_top[j] = take ? base + i : where_top[j];
    }
  }
}

// Bytes 0 and 1: a row is read until it is decided.
template <class Op>
void truth_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* a = (uint8_t*)acc;
  constexpr uint8_t decided = 1 - Op::identity % 2;
  for (int64_t i = 0; i < m; ++i) {
    const auto* row = (const uint8_t*)x + i * row_bytes;
    for (int64_t at = 0; at < n && a[i] != decided; at += kBlock<uint8_t>) {
      const int64_t count = n - at < kBlock<uint8_t> ? n - at : kBlock<uint8_t>;
      a[i] = Op::one(a[i], block_of_row<Op, uint8_t>(count, row + at));
    }
  }
}

template <class T> constexpr void fill_extrema(ReduceTable& table, ReduceType type) {
  const int t = (int)type;
  table.rows[(int)Combine::max][t] = rows<Max<T>, T>;
  table.columns[(int)Combine::max][t] = columns<Max<T>, T>;
  table.rows[(int)Combine::min][t] = rows<Min<T>, T>;
  table.columns[(int)Combine::min][t] = columns<Min<T>, T>;
  table.arg_rows[0][t] = arg_rows<T, true>;
  table.arg_rows[1][t] = arg_rows<T, false>;
  table.arg_columns[0][t] = arg_columns<T, true>;
  table.arg_columns[1][t] = arg_columns<T, false>;
}
template <class T> constexpr void fill_floating(ReduceTable& table, ReduceType type) {
  const int t = (int)type;
  fill_extrema<T>(table, type);
  table.rows[(int)Combine::sum][t] = rows<Sum<T>, T>;
  table.columns[(int)Combine::sum][t] = columns<Sum<T>, T>;
  table.rows[(int)Combine::prod][t] = prod_rows<T>;
  table.columns[(int)Combine::prod][t] = prod_columns<T>;
  table.rows[(int)Combine::numbers][t] = rows<Sum<T>, T, T, Number>;
  table.columns[(int)Combine::numbers][t] = columns<Sum<T>, T, T, Number>;
  table.rows[(int)Combine::magnitudes][t] = rows<Sum<T>, T, T, Magnitude>;
  table.columns[(int)Combine::magnitudes][t] = columns<Sum<T>, T, T, Magnitude>;
  table.rows[(int)Combine::squares][t] = rows<Sum<T>, T, T, Square>;
  table.columns[(int)Combine::squares][t] = square_columns<T>;
  if constexpr (kLanes<T> > 1) table.pair_rows[t] = pair_rows<T>;
  table.squares_rows[t] = squares_rows<T>;
  table.squares_columns[t] = squares_columns<T>;
  table.product_rows[t] = product_rows<T, T>;
  if constexpr (kLanes<double> > 1) {
    table.complex_row[t] = complex_row<T>;
    table.complex_columns[t] = complex_columns<T>;
  }
  table.product_columns[t] = product_columns<T, T>;
  table.rows_backward[(int)Gradient::prod][t] = prod_rows_backward<T>;
  table.columns_backward[(int)Gradient::prod][t] = prod_columns_backward<T>;
  table.rows_backward[(int)Gradient::extremum][t] = extremum_rows_backward<T>;
  table.columns_backward[(int)Gradient::extremum][t] = extremum_columns_backward<T>;
  table.matches[t] = matches<T>;
  table.share[t] = share<T>;
}
// Wrapping sums and products of signed integers are those of unsigned ones.
constexpr void fill_wide(ReduceTable& table, ReduceType type) {
  const int t = (int)type;
  table.rows[(int)Combine::sum][t] = rows<Sum<uint64_t>, uint64_t>;
  table.columns[(int)Combine::sum][t] = columns<Sum<uint64_t>, uint64_t>;
  table.rows[(int)Combine::prod][t] = rows<Product<uint64_t>, uint64_t>;
  table.columns[(int)Combine::prod][t] = columns<Product<uint64_t>, uint64_t>;
}
template <class T> constexpr void fill_narrow(ReduceTable& table, ReduceType type) {
  fill_extrema<T>(table, type);
  table.rows[(int)Combine::sum][(int)type] = narrow_sum_rows<T>;
  table.columns[(int)Combine::sum][(int)type] = narrow_sum_columns<T>;
}
constexpr void fill_bfloat16(ReduceTable& table) {
  table.bfloat16_rows[(int)Combine::sum] = rows<Sum<float>, float, BFloat16>;
  table.bfloat16_columns[(int)Combine::sum] = columns<Sum<float>, float, BFloat16>;
  table.bfloat16_rows[(int)Combine::numbers] = rows<Sum<float>, float, BFloat16, Number>;
  table.bfloat16_columns[(int)Combine::numbers] = columns<Sum<float>, float, BFloat16, Number>;
  table.bfloat16_rows[(int)Combine::magnitudes] = rows<Sum<float>, float, BFloat16, Magnitude>;
  table.bfloat16_columns[(int)Combine::magnitudes] =
      columns<Sum<float>, float, BFloat16, Magnitude>;
  table.bfloat16_rows[(int)Combine::squares] = rows<Sum<float>, float, BFloat16, Square>;
  table.bfloat16_product_rows = product_rows<float, BFloat16>;
  table.bfloat16_product_columns = product_columns<float, BFloat16>;
  table.bfloat16_rows[(int)Combine::max] = bfloat16_extremum_rows<true>;
  table.bfloat16_columns[(int)Combine::max] = bfloat16_extremum_columns<true>;
  table.bfloat16_rows[(int)Combine::min] = bfloat16_extremum_rows<false>;
  table.bfloat16_columns[(int)Combine::min] = bfloat16_extremum_columns<false>;
}
constexpr ReduceTable make_table() {
  ReduceTable table = {};
  fill_floating<float>(table, ReduceType::f32);
  fill_floating<double>(table, ReduceType::f64);
  fill_bfloat16(table);
  table.few_rows = few_rows;
  fill_extrema<int64_t>(table, ReduceType::i64);
  fill_extrema<uint64_t>(table, ReduceType::u64);
  fill_wide(table, ReduceType::i64);
  fill_wide(table, ReduceType::u64);
  fill_narrow<std::int32_t>(table, ReduceType::i32);
  fill_narrow<std::uint32_t>(table, ReduceType::u32);
  fill_narrow<std::int16_t>(table, ReduceType::i16);
  fill_narrow<std::uint16_t>(table, ReduceType::u16);
  fill_narrow<std::int8_t>(table, ReduceType::i8);
  fill_narrow<uint8_t>(table, ReduceType::u8);
  fill_extrema<uint8_t>(table, ReduceType::truth);
  table.rows[(int)Combine::max][(int)ReduceType::truth] = truth_rows<Max<uint8_t>>;
  table.rows[(int)Combine::min][(int)ReduceType::truth] = truth_rows<Min<uint8_t>>;
  return table;
}

}  // namespace

extern const ReduceTable reduce_table;
const ReduceTable reduce_table = make_table();

}  // namespace tw::TW_ISA_NAME
