// Reductions down columns: rows are added to accumulators, several at once.
#pragma once
#include <utility>

#include "core/cpu/reduce/along_rows.h"
#include "core/cpu/simd/bfloat16.h"
#include "core/cpu/simd/widen.h"
#include "core/cpu/math/polynomials.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

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
// `count` columns from `at` on, a whole vector of them or what is left.
template <class Op, class T, int m, bool whole, class P, class F, class Taken>
TW_INLINE void join_vector(P x, int64_t row_bytes, int64_t at, int count,
                           typename Op::Accumulator* acc, F of, Taken taken) {
  const auto part = of(at, count);
  const Vec<T> all = Op::template join_all<m>([=](int i) TW_LAMBDA_INLINE {
    const P row = beyond(x, i * row_bytes) + at;
    return part(whole ? load_as<T>(row) : load_as<T>(row, count));
  });
  if (!taken(m, x, at, count, all)) add_into<Op, T>(acc + at, all, count);
}
template <class Op, class T, int m, class P, class F, class Taken>
TW_INLINE void join_rows(int64_t n, P x, int64_t row_bytes, typename Op::Accumulator* acc, F of,
                         Taken taken) {
  constexpr int L = kLanes<T>;
  int64_t at = 0;
  if constexpr (kByPairs<T, P>)
    for (; at + 2 * L <= n; at += 2 * L)
      join_pairs<Op, T, m>((const char*)(x + at), row_bytes, acc + at, of(at, L));
  for (; at + L <= n; at += L) join_vector<Op, T, m, true>(x, row_bytes, at, L, acc, of, taken);
  const int rest = L == 1 ? 0 : (int)(n - at);
  if (rest > 0) join_vector<Op, T, m, false>(x, row_bytes, at, rest, acc, of, taken);
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

template <class T, class S> void product_columns(int64_t m, int64_t n, const void* x,
                                                 int64_t row_bytes, const void* y, void* acc) {
  each_column<Sum<T>, T>(m, n, Products<S>{(const S*)x, (const S*)y}, row_bytes, acc,
                         [](int64_t, int) TW_LAMBDA_INLINE { return Itself(); });
}

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
  each_column_of_squares<T>(m, n, x, row_bytes, nullptr, acc,
                            [](int64_t, int) TW_LAMBDA_INLINE { return Square(); });
}
template <class T> void squares_columns(int64_t m, int64_t n, const void* x, int64_t row_bytes,
                                        const void* centres, void* acc) {
  auto* centre = (const T*)centres;
  each_column_of_squares<T>(m, n, x, row_bytes, centre, acc,
                            [=](int64_t at, int count) TW_LAMBDA_INLINE {
                              return SquaredDistance<T>{load_some(centre + at, count)};
                            });
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
