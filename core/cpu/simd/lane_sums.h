// Sums of the lanes of many vectors at once: folded together, a lane for each vector. Sums of every
// second lane.
#pragma once
#include <utility>

#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

// Of each pair of lanes whose numbers differ in the bit `step`, sums: of x where the bit is 0, of y
// where it is 1.
template <class Raw, int... lane>
TW_INLINE Raw add_lanes(Raw x, Raw y, auto step, std::integer_sequence<int, lane...>) {
  constexpr int lanes = sizeof...(lane);
  return __builtin_shufflevector(x, y, ((lane & step) ? lanes + lane : lane)...) +
         __builtin_shufflevector(x, y, ((lane & step) ? lanes + lane - step : lane + step)...);
}

// Lane i of vectors[0] becomes the sum of the lanes of vectors[i], for 2 * step = kLanes<T>
// vectors. A step makes one of two; the lanes of each are added in the order of a fold by halves.
template <class T, int step = kLanes<T> / 2>
TW_INLINE void sum_lanes(typename Vec<T>::Raw* vectors) {
  if constexpr (step > 0) {
#pragma GCC unroll 8
    for (int i = 0; i < step; ++i)
      vectors[i] = add_lanes(vectors[i], vectors[i + step], std::integral_constant<int, step>(),
                             std::make_integer_sequence<int, kLanes<T>>());
    sum_lanes<T, step / 2>(vectors);
  }
}

// The sums of the even lanes and of the odd ones.
template <class T, int n = kLanes<T>> TW_INLINE auto pair_of_lanes(typename Lanes<T, n>::type v) {
  if constexpr (n == 2) {
    return v;
  } else {
    using Half = typename CountTo<n / 2>::type;
    return pair_of_lanes<T, n / 2>(half_of<T, n>(v, Half(), false) +
                                   half_of<T, n>(v, Half(), true));
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
