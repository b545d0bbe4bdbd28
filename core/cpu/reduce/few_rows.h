// Sums and products of few rows of float32 down their columns, which need no accumulators in
// memory.
#pragma once
#include <utility>

#include "core/cpu/reduce/accumulators.h"
#include "core/cpu/simd/widen.h"
#include "core/cpu/reduce/reduce.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

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
// In double, whose range so many factors of float32 do not leave.
template <int m, bool upper> TW_INLINE Vec<double> product_wide(auto load) {
  Vec<double> product = widened_half<upper>(load(0));
#pragma GCC unroll 8
  for (int i = 1; i < m; ++i) product = product * widened_half<upper>(load(i));
  return product;
}
template <int m> TW_INLINE void multiply_few_rows(auto load, float* y, int count) {
  constexpr int D = kLanes<double>;
  store_narrower(y, product_wide<m, false>(load), count < D ? count : D);
  if constexpr (kLanes<float> > D)
    if (count > D) store_narrower(y + D, product_wide<m, true>(load), count - D);
}
template <bool product, int m>
void few_rows_of(int64_t n, const float* x, int64_t row_bytes, float* y) {
  constexpr int L = kLanes<float>;
  const auto join = [=](auto load, float* to, int count) TW_LAMBDA_INLINE {
    if constexpr (product)
      multiply_few_rows<m>(load, to, count);
    else
      sum_few_rows<m>(load, to, count);
  };
  int64_t at = 0;
  for (; at + L <= n; at += L)
    join([=](int i) TW_LAMBDA_INLINE { return Vec<float>::load(beyond(x, i * row_bytes) + at); },
         y + at, L);
  if (const int rest = (int)(n - at))
    join([=](int i)
             TW_LAMBDA_INLINE { return Vec<float>::load(beyond(x, i * row_bytes) + at, rest); },
         y + at, rest);
}
template <bool product>
void few_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* y) {
  const auto by = [&]<int... i>(std::integer_sequence<int, i...>) {
    ((m == i + 2 &&
      (few_rows_of<product, i + 2>(n, (const float*)x, row_bytes, (float*)y), true)) ||
     ...);
  };
  by(std::make_integer_sequence<int, (product ? kFewFactors : kFewRows) - 1>());
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
