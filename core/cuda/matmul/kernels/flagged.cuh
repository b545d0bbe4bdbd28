// Rung split's exceptions: tiles of C whose rows or columns do not fit into halves (split.cuh), by
// what rung registers does. Blocks of other tiles end at once.
#include "split.cuh"
#include "register_block.cuh"

using Flagged = SplitOf<M, S, half>;

TW_KERNEL(matmul_flagged, Flagged, kBlockThreads) {
  static_assert(kHigh == kFlaggedSide && kWide == kFlaggedSide, "tiles as rung split has them");
  if (is_flagged(p.a, p.b, blockIdx.z, int64_t(blockIdx.y) * kHigh, int64_t(blockIdx.x) * kWide))
    multiply_block(p.p);
}
