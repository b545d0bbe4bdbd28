// What the kernels of rung split are given, and what their blocks have.
#pragma once
#include "core/cuda/prelude/parameters.h"
#include "core/cuda/matmul/hopper_parameters.h"

namespace tw::cuda {

constexpr int kFlagRows = 16;      // that share a flag
constexpr int kFlaggedSide = 128;  // of a tile of C that one or the other multiplies as a whole
constexpr int kFlaggedEach = kFlaggedSide / 16;  // rows and columns of a thread of those left out
static_assert(registers_side(kFlaggedEach) == kFlaggedSide);
constexpr int kSplitStages = 3;
// Columns of a block on a warp's own instructions.
constexpr int kSplitWarpsWide = 64;
// Halves, high and low, of the tiles of both operands.
constexpr int split_warps_shared_bytes() {
  return kSplitStages * 2 * (kFlaggedSide + kSplitWarpsWide) * kTileBytesAlong;
}
constexpr int split_groups_shared_bytes() {
  return groups_shared_bytes(kSplitStages, 2 * (kFlaggedSide + kFlaggedSide));
}

// An operand that is split. Of Float and Half, types of its elements; void on the host.
template <class Float, class Half> struct ScalingOf {
  const Float* x;
  int64_t outers, terms, members;
  int64_t outer_step, k_step, member_step;
  Half *high, *low;
  int64_t pitch;  // elements from one line to the next
  int32_t *exponents, *flags;
  int64_t flag_groups;
};

// The halves of one.
template <class Half> struct SplitOperandOf {
  const Half *high, *low;
  int64_t row_step, member_step;     // elements
  const int32_t *exponents, *flags;  // of the powers of two; not 0: flagged
  int64_t outers, flag_groups;       // for each member of the batch
  int64_t shared;                    // not 0: all members have the same
};

// On a warp's own instructions, and of what is left out.
template <class M, class S, class Half> struct SplitOf {
  MatmulOf<M, S> p;
  SplitOperandOf<Half> a, b;
};
// On warpgroups.
template <class M, class S, class Half> struct SplitGroupsOf {
  TensorMap a_high, a_low, b_high, b_low;
  MatmulOf<M, S> p;
  int64_t batch;
  SplitOperandOf<Half> a, b;
};

}  // namespace tw::cuda
