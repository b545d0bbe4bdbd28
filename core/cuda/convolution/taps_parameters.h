// What the kernels of taps.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Channels that a thread of spread_taps has.
constexpr int kSpreadChannels = 8;

// Of T, the elements' type; void on the host. `first` and `second` in the order of y, x, weights,
// less what is made. All arrays are row-major.
template <class T> struct TapsOf {
  int64_t batch, channels, size, taps, points;
  const T *first, *second;
  const int32_t* places;
  T* made;
};

}  // namespace tw::cuda
