// What the kernels of bins.cuh are given, and what they find wrong.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// What is wrong with bins, as faults tell it.
enum WrongBins : int32_t { kTooLargeElement, kNegativeElement, kNoBins };
// And with runs.
enum WrongRuns : int32_t { kNegativeRun, kLongerRuns, kShorterRuns };

// Of T, the elements' type; void on the host.
template <class T> struct BinsOf {
  int64_t n, bins;
  const T *x, *limits;
  int64_t* y;
  Fault* fault;
  int32_t code;
};

constexpr int kMostMaskAxes = 32;
struct Nonzero {
  int64_t count, piece, pieces, found, rank;
  int64_t extents[kMostMaskAxes];
  const uint8_t* x;
  const int64_t* counts;
  int64_t* y;
};

struct Runs {
  int64_t count, total, within;
  const int64_t* counts;
  int64_t *starts, *y;
  Fault* fault;
  int32_t code;
};

}  // namespace tw::cuda
