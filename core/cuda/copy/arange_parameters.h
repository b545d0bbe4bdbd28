// What the kernel of arange.cuh is given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

struct Sequence {
  int64_t count;
  void* y;
  int64_t whole, ends, floors, start, step;
  double real_start, real_step, real_stop;
};

}  // namespace tw::cuda
