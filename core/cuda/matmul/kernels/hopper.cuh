// Rung 6, hopper: what 9.0 multiplies with. A warpgroup multiplies 64 x TW_WIDE by one instruction
// that reads both operands from shared memory and runs beside the warps' own work; an engine copies
// whole tiles there. It is faster than tensor because neither addresses nor operands pass through
// registers: one thread keeps the engine busy, TW_STAGES tiles ahead, two warpgroups multiply, and
// registers go to them. Blocks stay and take tile after tile, so that the next tile's operands come
// in while sums of the last are written.
//
// A block has 128 x TW_WIDE of C. Settings besides those of problem.cuh: TW_KIND (of bfloat16
// or half), TW_WIDE (128 or 256), TW_STAGES, TW_A_LINES, TW_B_LINES (1: elements lie together along
// k).
constexpr int kWide = TW_WIDE, kStages = TW_STAGES;
#include "warpgroups.cuh"

constexpr int kLeftBytes = kHigh * kRow, kRightBytes = kWide * kRow;

using Problem = HopperOf<M, S>;

struct Stages {
  char left[kStages][kLeftBytes], right[kStages][kRightBytes];
  Staging staging[kConsumerWarps];
  Barrier full[kStages], empty[kStages];
};
static_assert(sizeof(Stages) == groups_shared_bytes(kStages, kHigh + kWide));

TW_DEVICE void produce(const Problem& problem, Stages* shared, int64_t units) {
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

TW_DEVICE void consume(const Problem& problem, Stages* shared, int64_t units) {
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
    out.put<kWide>(p, unit.i0 + warp * 16, unit.j0, sums, shared->staging[warp]);
  }
}

TW_KERNEL(matmul_hopper, Problem, kThreads) {
  TW_DYNAMIC_SHARED(Stages, shared);
  start_block(shared);
  const int64_t units = units_of(p.p, p.batch);
  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) produce(p, shared, units);
  } else {
    take_registers<232>();
    consume(p, shared, units);
  }
}
