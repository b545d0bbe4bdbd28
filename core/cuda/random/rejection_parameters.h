// What the kernels of rejection.cuh are given, and what they find wrong.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// What is wrong with the numbers that a draw is asked for, as faults tell it.
enum WrongDraw : int32_t {
  kWrongRate,
  kWrongShape,
  kWrongShare,
  kWrongProbability,
  kNoProbability,
  kInfiniteSum,
  kTooFewClasses,
  kWrongCount,
  kWrongChance
};

struct Draw {
  int64_t count;
  const uint64_t* key;  // seed, and the number of the first word: a multiple of 4
  const double* x[3];   // parameters
  void* y;
  int32_t* reserved;  // of a permutation
  Fault* fault;
  int32_t code;
};

struct Classes {
  int64_t rows, classes, samples, replacement;
  const double *p, *u;  // u: uniform numbers, for each sample, or without replacement each class
  double* sums;         // [rows][classes]: sums up to each class, or when it arrives
  int64_t* last;        // [rows]: the last class of a probability above 0
  void* y;
  Fault* fault;
  int32_t code;
};

}  // namespace tw::cuda
