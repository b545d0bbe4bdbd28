// What the kernels of scan.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

// How a scan combines, in numbers that the preprocessor compares.
#define TW_SCAN_SUM 0
#define TW_SCAN_PRODUCT 1
#define TW_SCAN_LOG_SUM 2
#define TW_SCAN_CUMMAX 3
#define TW_SCAN_CUMMIN 4
#define TW_SCAN_RECURRENCE 5

namespace tw::cuda {

enum class ScanKind {
  sum = TW_SCAN_SUM,
  product = TW_SCAN_PRODUCT,
  log_sum = TW_SCAN_LOG_SUM,
  cummax = TW_SCAN_CUMMAX,
  cummin = TW_SCAN_CUMMIN,
  recurrence = TW_SCAN_RECURRENCE
};

// Of T, the elements' type; void on the host.
template <class T> struct ScanOf {
  int64_t lines, n, inner, reverse;
  const T *x, *b;
  T* y;
  int64_t* places;
};

}  // namespace tw::cuda
