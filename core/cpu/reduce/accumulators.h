// Vectors of partial results: sums, products of whole numbers and extrema.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/reduce/terms.h"
#include "core/cpu/math/polynomials.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

template <class T> struct AccumulatorOf {
  using type = T;
};
template <> struct AccumulatorOf<float> {
  using type = double;
};
template <class T> TW_INLINE bool is_nan(T x) { return x != x; }
// Where either is NaN.
template <class T> TW_INLINE Mask<T> unordered(Vec<T> a, Vec<T> b) { return !((a <= b) | (a > b)); }

// load(0) ... load(m - 1) joined, pairwise. (Of an array GCC keeps copies on the stack. Four are
// written out: each level of the recursion costs the compiler a function for each pair of loops.)
template <int m, int first = 0> TW_INLINE auto joined(auto load, auto join) {
  if constexpr (m == 1)
    return load(first);
  else if constexpr (m == 2)
    return join(load(first), load(first + 1));
  else if constexpr (m == 4)
    return join(join(load(first), load(first + 1)), join(load(first + 2), load(first + 3)));
  else
    return join(joined<m / 2, first>(load, join), joined<m / 2, first + m / 2>(load, join));
}

// What one vector of partial results is, for each way to combine; whether combining rounds.
template <class T> struct Sum {
  using Accumulator = typename AccumulatorOf<T>::type;
  static constexpr bool rounds = std::is_floating_point_v<T>;
  static constexpr T identity = 0;
  Vec<T> total = identity;
  template <class Term> TW_INLINE void add(Term x) { total += x; }
  TW_INLINE void merge(Sum other) { total += other.total; }
  TW_INLINE T value() const { return sum_of_lanes(total); }
  static TW_INLINE T of_few(int64_t n, auto x, auto of) {
    T sum = of(one_as<T>(x));
    for (int64_t i = 1; i < n; ++i) sum = sum + of(one_as<T>(x + i));
    return sum;
  }
  static TW_INLINE Vec<T> join(Vec<T> a, Vec<T> b) { return a + b; }
  template <int m> static TW_INLINE Vec<T> join_all(auto load) {
    return joined<m>(load, [](auto a, auto b) TW_LAMBDA_INLINE { return a + b; });
  }
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
  static TW_INLINE T of_few(int64_t n, auto x, auto of) {
    T product = of(one_as<T>(x));
    for (int64_t i = 1; i < n; ++i) product *= of(one_as<T>(x + i));
    return product;
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

}  // namespace
}  // namespace tw::TW_ISA_NAME
