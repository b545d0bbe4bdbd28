// What the kernels of windows.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Of T, the elements' type; void on the host.
template <class T> struct WindowsOf {
  int64_t planes = 1, count = 0;  // count: elements of the result
  int64_t x[3], kernel[3], y[3];
  int64_t stride[3];  // 0: the windows share the axis out (adaptive pooling)
  int64_t dilation[3], before[3];
  int64_t indexed = 0, include_padding = 0, divisor = 0;
  const T* from = nullptr;
  T* to = nullptr;
  int32_t* indices = nullptr;
};

template <class T> struct PlacesOf {
  int64_t planes = 1, size = 1, places = 1;
  const T* from = nullptr;
  const int32_t* at = nullptr;
  T* to = nullptr;
};

}  // namespace tw::cuda
