// What the kernels of this room are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace tw {

// y[i...] = x[i...], strides in elements.
struct CopyProblem {
  DType from, to;
  PlainDims shape, x_strides, y_strides;
  const void* x;
  void* y;
};

// A run of bytes of one value.
struct FillProblem {
  DType dtype;
  std::int64_t count;
  const void* value;
  void* y;
};
// Zeros, and a window of them that is a copy.
struct UnsliceProblem {
  FillProblem all;
  CopyProblem window;
  std::int64_t offset_bytes;
};
// start, start + step, ..., in 64 bits modulo 2^64, or in float64; then as the result's type. The
// last one of a range with its end is that end.
struct SequenceProblem {
  DType dtype;
  std::int64_t count;
  bool whole, ends, floors;
  std::int64_t start, step;
  double real_start, real_step, real_stop;
  void* y;
};
// What is left of a diagonal, or right of it.
struct TriangleProblem {
  DType dtype;
  bool dense;  // x is row-major
  std::int64_t rows, columns, diagonal;
  PlainDims shape, strides;
  const char* x;
  char* y;
};

}  // namespace tw
