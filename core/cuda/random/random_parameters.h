// What the kernels of random.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Words that one computation of Philox gives: elements of uniform_float and dropout that a thread
// has.
constexpr int kPhiloxWords = 4;
// Elements whose pairs of normal numbers are made together: two of each pair of words.
constexpr int kNormalBlock = 1024;

struct Random {
  int64_t count;
  const uint64_t* key;  // seed, and the number of the first word: a multiple of 4
  const void* x;
  void* y;
  int64_t low;
  uint64_t span;
  double scale;
  float keep;
  int32_t bits;
};

}  // namespace tw::cuda
