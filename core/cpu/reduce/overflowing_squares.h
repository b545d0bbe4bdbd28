// Sums of squares of float32 that leave its range, found again in float64.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/reduce/terms.h"
#include "core/cpu/simd/widen.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

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
    low = fma(near, near, low);
    if constexpr (halves) {
      const Vec<double> far = widened_half<true>(v) - about;
      high = fma(far, far, high);
    }
  }
  double sum = sum_of_lanes(low + high);
  if (at < n) {
    const Vec<float> rest = load_as<float>(x + at, (int)(n - at));
    for (int i = 0; at + i < n; ++i) {
      const double distance = (double)rest[i] - (double)centre;
      sum = fma(distance, distance, sum);
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

// `sums` of the columns of m rows of x, those that are lost in float64; no centre: about 0.
__attribute__((noinline)) void add_lost(int64_t m, int count, const float* x, int64_t row_bytes,
                                        const float* centre, Vec<float> sums, double* acc) {
  double wide[kLanes<float>] = {};
  for (int64_t i = 0; i < m; ++i) {
    const float* row = beyond(x, i * row_bytes);
    for (int j = 0; j < count; ++j) {
      const double distance = (double)row[j] - (centre ? (double)centre[j] : 0);
      wide[j] = fma(distance, distance, wide[j]);
    }
  }
  for (int j = 0; j < count; ++j) acc[j] += is_lost(sums[j]) ? wide[j] : (double)sums[j];
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
