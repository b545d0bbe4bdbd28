// What the kernels of scatter.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"
#include "core/problems/attribute_values.h"

namespace tw::cuda {

struct Along {
  int64_t count = 1;               // elements of the index without the axis
  int64_t length;                  // of the index along the axis
  int64_t extent, axis_step;       // of the indexed tensor along the axis
  int64_t index_step, other_step;  // of index, and of what is read or written beside it
  Extents extents;                 // of the index without the axis
  Strides indexed, index, other;
  const void* x;
  const int64_t* places;
  const void* src;
  void* y;
  Fault* fault;
  int32_t code, user;
  int64_t axis;
};

}  // namespace tw::cuda
