// What the kernel of pointwise.cuh is given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Of a formula: three operands, a gradient and a result.
constexpr int kMaxInputs = 5;

struct Pointwise {
  int64_t count;  // of packs
  void* y;
  const void* in[kMaxInputs];
  alignas(16) int64_t numbers[kMaxInputs][2];  // of inputs that are numbers
  Extents extents;
  Strides y_strides, strides[kMaxInputs];
};

}  // namespace tw::cuda
