// What the kernels of softmax.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

struct Softmax {
  int64_t outer = 1, n = 1, inner = 1;
  const void *x = nullptr, *g = nullptr;  // backward: x is the result
  void* y = nullptr;
};

struct CrossEntropy {
  int64_t rows, classes, ignore_index, g_step;
  const void *x, *norms, *g;
  const int64_t* targets;
  void *loss, *norms_out, *counted, *dx;
  Fault* fault;
  int32_t code, is_mean;
  // Of the sum or mean of all rows: what each of so many blocks has of it, a copy of the targets,
  // and how many blocks are done, 0 before and afterwards (null: another launch adds them up).
  int64_t blocks;
  double* sums;
  int64_t *counts, *targets_out;
  unsigned* done;
  const void* total;  // backward: how many count, null where losses are not averaged
};

}  // namespace tw::cuda
