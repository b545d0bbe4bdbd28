// What the kernels of norm.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Scales that a block of scales_backward takes: a warp's threads side by side.
constexpr int kBlockScales = kWarpThreads;

// Of T, the elements' type; void on the host.
template <class T> struct NormOf {
  int64_t outer, groups, channels, inner, centered;
  double eps;
  const T *x, *weight, *bias, *g, *mean_in, *rstd_in;
  T *y, *mean, *rstd, *variance, *dx, *dweight, *dbias;
};

}  // namespace tw::cuda
