// What rungs on the copy engine and warpgroups of 9.0 are given, and what their blocks have.
#pragma once
#include "core/cuda/prelude/parameters.h"
#include "core/cuda/matmul/matmul_parameters.h"

namespace tw::cuda {

// Rows of a tile of C, and terms of a stage: 128 bytes of halves, one row of the engine's boxes.
constexpr int kGroupsHigh = 128, kGroupsDepth = 64, kBoxRowBytes = 128;
// Elements of a row of a box, and rows of one where those lie along k.
constexpr int kBoxSide = 64;
// A warpgroup that keeps the engine busy, and two that multiply.
constexpr int kConsumerWarps = 8, kGroupsThreads = (4 + kConsumerWarps) * kWarpThreads;
// Tiles of so many rows a stage, with two barriers, and the sums.
constexpr int groups_shared_bytes(int stages, int rows) {
  return stages * (rows * kBoxRowBytes + 2 * int(sizeof(uint64_t))) +
         kConsumerWarps * kStagedRows * kStagedColumns * int(sizeof(float));
}

template <class M, class S> struct HopperOf {
  TensorMap a, b;
  MatmulOf<M, S> p;
  int64_t batch, a_members, b_members;  // 0: all members of the batch share the matrix, else 1
};

}  // namespace tw::cuda
