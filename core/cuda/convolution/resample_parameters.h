// What the kernels of resample.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"
#include "core/problems/attribute_values.h"

namespace tw::cuda {

// Of T, the elements' type; void on the host.
// Row j: weights[t * to + j] for element first[j] + t, all of which exist; first grows with j.
template <class T> struct ResampledAxis {
  int64_t from, to, taps;
  double scale;
  int32_t* first;
  T* weights;
};
// Of the transpose, y is what the bands start from.
template <class T> struct ResampleOf {
  int64_t count;
  ResampledAxis<T> axes[3];
  int64_t align_corners, antialias;
  const T* x;
  T* y;
};

}  // namespace tw::cuda
