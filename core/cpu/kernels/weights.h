// Exponentials of what is at most 0, as softmax and attention weigh by, and the maximum before
// them.
#pragma once
#include "core/cpu/kernels/lanes.h"
#include "core/cpu/math.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class T> TW_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) { return a.v > b.v ? a.v : b.v; }

// e^x for x <= 0 (or NaN), and 0 where it is below the smallest normal number: a denormal result
// can cost a hundred cycles, and beside a sum that is at least 1 it is nothing.
template <class T> TW_INLINE Vec<T> exp_below(Vec<T> x) {
  constexpr T lowest = std::is_same_v<T, float> ? -87.33654f : -708.396418532264;
  const auto reduced = reduce_exp(at_least(x, lowest));
  const Vec<T> y = exp_reduced(reduced) * two_to(reduced.n);
  return x.v < lowest ? Vec<T>((T)0).v : y.v;
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
