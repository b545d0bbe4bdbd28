// What is normalised together, and the scale and shift of its elements.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/normalization/norm.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// What is normalised together: `count` runs of `length` elements, `stride` apart. Run i has the
// scale scale + i * scale_step.
struct NormSet {
  int64_t number, start;
  int64_t count, stride, length;
  int64_t scale, scale_step;
  int64_t next;  // from an element to its counterpart in the next set
  double elements() const { return (double)count * (double)length; }
};
inline NormSet row_of_runs(const NormProblem& p, int64_t row) {
  const int64_t n = p.channels * p.inner;
  return {row, row * n, p.channels, p.inner, p.inner, row % p.groups * p.channels, 1, n};
}
inline NormSet channel_of_runs(const NormProblem& p, int64_t channel) {
  return {channel, channel * p.inner, p.outer, p.channels * p.inner, p.inner, channel, 0, p.inner};
}
// A row whose elements have a scale each, as one run for its statistics.
inline NormSet plain_row(const NormProblem& p, int64_t row) {
  const int64_t n = p.channels;
  return {row, row * n, 1, 0, n, row % p.groups * n, 0, n};
}

template <class T> TW_INLINE T scale_of(const void* weight, int64_t at) {
  return weight ? ((const T*)weight)[at] : (T)1;
}
template <class T> TW_INLINE T shift_of(const void* bias, int64_t at) {
  return bias ? ((const T*)bias)[at] : (T)0;
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
