// What the kernels of gather.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Rows by so many arrays of indices.
template <int arrays> struct IndexedRows {
  int64_t rows, row_count;  // index tuples, and elements that each stands for
  int64_t count;            // elements of y
  const int64_t* at[arrays];
  int64_t row_step[arrays];  // elements of the indexed tensor that an index is worth
  Extents index;
  Strides steps[arrays];
  const void* x;
  void* y;
};

struct Indices {
  int64_t count, low, extent, axis;
  int32_t user, code;
  const int64_t* x;
  int64_t* y;
  Fault* fault;
};

}  // namespace tw::cuda
