// What the kernel of fill.cuh is given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

struct Fill {
  int64_t count;
  void* y;
  int64_t value[2];  // its bytes
};

}  // namespace tw::cuda
