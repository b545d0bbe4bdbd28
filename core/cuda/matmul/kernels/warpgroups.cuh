// What rungs of warpgroups share: a block of three, one that keeps the copy engine busy and two
// that multiply, goes through a ring of stages and takes tile after tile. Who includes it says
// kWide and kStages.
#include "sm90.cuh"
#include "output.cuh"
#include "hopper_parameters.h"

constexpr int kHigh = kGroupsHigh, kDepth = kGroupsDepth, kThreads = kGroupsThreads;
constexpr int kRow = kBoxRowBytes, kBox = kBoxSide * kRow;  // bytes: of a row, of as many as a side

// Where in the ring of stages a warp is, and how often it has been around.
struct Ring {
  int stage = 0;
  uint32_t parity = 0;
  TW_DEVICE void step() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

// What a block does next: a tile, of a member of the batch, for a piece of k.
struct Unit {
  int64_t i0, j0, k0, member, piece;
  int count;  // of tiles along k

  TW_DEVICE Unit(const Matmul& p, int64_t number) {
    const int64_t rows = (p.m + kHigh - 1) / kHigh, columns = (p.n + kWide - 1) / kWide;
    const Tile tile = tile_of(number % (rows * columns), rows, columns);
    const int64_t rest = number / (rows * columns);
    piece = rest % p.pieces, member = rest / p.pieces;
    i0 = tile.row * kHigh, j0 = tile.column * kWide, k0 = piece * p.terms;
    const int64_t terms = p.k - k0 < p.terms ? p.k - k0 : p.terms;
    count = int((terms + kDepth - 1) / kDepth);
  }
};
TW_DEVICE int64_t units_of(const Matmul& p, int64_t batch) {
  return (p.m + kHigh - 1) / kHigh * ((p.n + kWide - 1) / kWide) * p.pieces * batch;
}

// Rows outer0 .. + size along k from k0, as boxes of 128-byte rows.
template <int along_k, int size> TW_DEVICE void copy_tile(char* to, const TensorMap* map,
                                                          Barrier* full, int outer0, int k0,
                                                          int member) {
  if constexpr (along_k) {
    copy_box(to, map, full, k0, outer0, member);
  } else {
#pragma unroll
    for (int box = 0; box < size / kBoxSide; ++box)
      copy_box(to + box * kBox, map, full, outer0 + box * kBoxSide, k0, member);
  }
}

// Sixteen terms from `step` on of an operand whose tile begins at an address.
template <int along_k> TW_DEVICE uint64_t operand_at(uint32_t tile, int step) {
  return along_k ? operand(tile + step * 32, 0, 8 * kRow)
                 : operand(tile + step * 16 * kRow, kBox, 8 * kRow);
}

// The stages' barriers: one thread says that a stage is full, each warp that multiplies that it is
// done with it.
template <class Stages> TW_DEVICE void start_block(Stages* shared) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(&shared->full[s], 1);
      init_barrier(&shared->empty[s], kConsumerWarps);
    }
    publish_barriers();
  }
  __syncthreads();
}
