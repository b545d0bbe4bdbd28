// What the kernels of reduce.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// Columns that a block of reduce_columns takes: a warp's threads side by side.
constexpr int kReducedColumns = kWarpThreads;

// Of a partial result, at most.
constexpr int kMostStateBytes = 16;

struct Reduce {
  int64_t kept = 1, reduced = 1;
  int64_t segments = 1, segment = 0;  // a row is cut into so many of so many elements
  const void* x = nullptr;
  void* y = nullptr;
  void* partial = nullptr;  // [kept][segments], where there are several
  // Counts the blocks of a row's segments that are done, one for each blockIdx.x, 0 before and
  // afterwards; the last one joins them. Null: another launch does.
  unsigned* done = nullptr;
  Extents kept_extents, reduced_extents;
  Strides kept_strides, reduced_strides;
};

}  // namespace tw::cuda
