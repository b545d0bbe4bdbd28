// Whether numbers are close to others: what its kernels are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// y[i] is 1 where a[i] and b[i] are equal or abs(a - b) <= atol + rtol * abs(b), else 0.
struct CloseValuesProblem {
  DType dtype;
  std::int64_t n;
  double rtol, atol;
  bool equal_nan;
  const void *a, *b;
  std::uint8_t* y;
};

}  // namespace tw
