// What the kernels of copy.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

struct Copy {
  int64_t count;  // of packs
  const void* x;  // null: a number
  void* y;
  int64_t number[2];
  Extents extents;
  Strides x_strides, y_strides;
};

// Where x's columns lie one after another and y's rows do: x[i + j * x_step], y[j + i * y_step].
struct Transpose {
  const void* x;
  void* y;
  int64_t rows, columns, x_step, y_step, x_batch, y_batch;
};
// Rows and columns of a block.
constexpr int kTransposed = kWarpThreads;

}  // namespace tw::cuda
