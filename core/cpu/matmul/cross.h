// Cross products of vectors of three numbers along an axis: what their kernels are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// (outer, 3, inner)
struct CrossProblem {
  DType dtype;
  std::int64_t outer, inner;
  const void *a, *b;
  void* y;
};

}  // namespace tw
