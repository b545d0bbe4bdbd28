// What the kernels of ctc.cuh are given, and what they find wrong.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// What is wrong with lengths and labels, as faults tell it.
enum WrongTarget : int32_t { kWrongInputLength, kWrongTargetLength, kWrongLabel };

// Of T, the elements' type; void on the host. Sizes: log_probs (steps, batch, classes), targets
// (batch, width), beginnings (batch, steps, 2 * width + 1).
template <class T> struct PathsOf {
  int64_t steps, batch, classes, width, blank;
  const T *g, *log_probs;
  const int64_t *targets, *input_lengths, *target_lengths;
  T *losses, *beginnings, *dx;
  T* scratch;  // of the gradient, for each sequence kScratchRows rows of states
  int64_t* checked;
  Fault* fault;
  int32_t code;
};
constexpr int kScratchRows = 3;

}  // namespace tw::cuda
