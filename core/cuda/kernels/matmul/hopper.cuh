// Rung 6, hopper: what 9.0 multiplies with. A warpgroup multiplies 64 x TW_WIDE by one instruction that
// reads both operands from shared memory and runs beside the warps' own work; an engine copies whole
// tiles there. It is faster than tensor because neither addresses nor operands pass through
// registers: one thread keeps the engine busy, TW_STAGES tiles ahead, two warpgroups multiply, and
// registers go to them. Blocks stay and take tile after tile, so that the next tile's operands come
// in while sums of the last are written.
//
// A block has 128 x TW_WIDE of C. Settings besides those of problem.cuh: TW_KIND (0: bfloat16, 1: half),
// TW_WIDE (128 or 256), TW_STAGES, TW_A_LINES, TW_B_LINES (1: elements lie together along k).
#include "hopper.cuh"
#include "output.cuh"

constexpr int kHigh = 128, kWide = TW_WIDE, kDepth = 64, kStages = TW_STAGES;
constexpr int kRow = 128, kBox = 64 * kRow;  // bytes: of a row, of 64 rows
constexpr int kLeftBytes = kHigh * kRow, kRightBytes = kWide * kRow;
constexpr int kThreads = 384, kConsumerWarps = 8;

struct Problem {
  TensorMap a, b;
  Matmul p;
  int64_t batch, a_members, b_members;  // 0: all members of the batch share the matrix, else 1
};

struct Shared {
  char left[kStages][kLeftBytes], right[kStages][kRightBytes];
  Staging staging[kConsumerWarps];
  Barrier full[kStages], empty[kStages];
};

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
template <int along_k, int size>
TW_DEVICE void copy_tile(char* to, const TensorMap* map, Barrier* full, int outer0, int k0,
                         int member) {
  if constexpr (along_k) {
    copy_box(to, map, full, k0, outer0, member);
  } else {
#pragma unroll
    for (int box = 0; box < size / 64; ++box)
      copy_box(to + box * kBox, map, full, outer0 + box * 64, k0, member);
  }
}

TW_DEVICE void produce(const Problem& problem, Shared* shared, int64_t units) {
  const Matmul& p = problem.p;
  Ring ring;
  for (int64_t number = blockIdx.x; number < units; number += gridDim.x) {
    const Unit unit(p, number);
    for (int t = 0; t < unit.count; ++t, ring.step()) {
      const int s = ring.stage, k = int(unit.k0) + t * kDepth;
      wait_for_phase(&shared->empty[s], ring.parity ^ 1);
      arrive_and_expect(&shared->full[s], kLeftBytes + kRightBytes);
      copy_tile<TW_A_LINES, kHigh>(shared->left[s], &problem.a, &shared->full[s], int(unit.i0), k,
                                   int(unit.member * problem.a_members));
      copy_tile<TW_B_LINES, kWide>(shared->right[s], &problem.b, &shared->full[s], int(unit.j0), k,
                                   int(unit.member * problem.b_members));
    }
  }
}

// Sixteen terms from `step` on of an operand whose tile begins at an address.
template <int along_k> TW_DEVICE uint64_t operand_at(uint32_t tile, int step) {
  return along_k ? operand(tile + step * 32, 0, 8 * kRow)
                 : operand(tile + step * 16 * kRow, kBox, 8 * kRow);
}

TW_DEVICE void consume(const Problem& problem, Shared* shared, int64_t units) {
  const Matmul& p = problem.p;
  const int warp = threadIdx.x / 32 - 4, group = warp / 4;
  Ring ring;
  for (int64_t number = blockIdx.x; number < units; number += gridDim.x) {
    const Unit unit(p, number);
    float sums[kWide / 2];
    int before = 0;  // the stage that the last products read
    for (int t = 0; t < unit.count; ++t, ring.step()) {
      const int s = ring.stage;
      wait_for_phase(&shared->full[s], ring.parity);
      const uint32_t left = shared_address(shared->left[s]) + group * kBox;
      const uint32_t right = shared_address(shared->right[s]);
      fence_products();
#pragma unroll
      for (int step = 0; step < kDepth / 16; ++step)
        multiply_group<TW_KIND, TW_A_LINES, TW_B_LINES>(sums, operand_at<TW_A_LINES>(left, step),
                                                        operand_at<TW_B_LINES>(right, step),
                                                        t > 0 || step > 0);
      commit_products();
      wait_for_products<1>();
      if (t > 0 && threadIdx.x % 32 == 0) arrive(&shared->empty[before]);
      before = s;
    }
    wait_for_products<0>();
    if (threadIdx.x % 32 == 0) arrive(&shared->empty[before]);
    const Output out(p, unit.member, unit.piece);
#pragma unroll
    for (int n = 0; n < kWide / 32; ++n)
      out.put(p, unit.i0 + warp * 16, unit.j0 + n * 32, &sums[n * 16], shared->staging[warp]);
  }
}

TW_KERNEL(matmul_hopper, Problem, kThreads) {
  TW_DYNAMIC_SHARED(Shared, shared);
  if (threadIdx.x == 0) {
    prefetch_map(&p.a);
    prefetch_map(&p.b);
    for (int s = 0; s < kStages; ++s) {
      init_barrier(&shared->full[s], 1);
      init_barrier(&shared->empty[s], kConsumerWarps);
    }
    publish_barriers();
  }
  __syncthreads();
  const int64_t units = units_of(p.p, p.batch);
  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) produce(p, shared, units);
  } else {
    take_registers<232>();
    consume(p, shared, units);
  }
}
