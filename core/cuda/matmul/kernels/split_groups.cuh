// Rung 7, split, on warpgroups of 9.0: float32 as exact as from float32's own instructions, at a
// third of the rate of half: high x high + (high x low + low x high) / 2048 (split.cuh). The unit
// cuts its sums off instead of rounding them, so products of high parts leave it every 64 terms and
// are added up in float; products with low parts are 2048 times smaller and stay to the end.
//
// A block has 128 x 128 of C. Settings besides those of problem.cuh: TW_A_LINES, TW_B_LINES (1:
// halves lie together along k).
#include "split.cuh"
constexpr int kWide = kFlaggedSide, kStages = kSplitStages;
#include "warpgroups.cuh"

constexpr int kTileBytes = kFlaggedSide * kRow, kStageBytes = 4 * kTileBytes;
constexpr int kSums = kWide / 2;  // of a thread

using Problem = SplitGroupsOf<M, S, half>;
struct Stages {
  char a_high[kStages][kTileBytes], a_low[kStages][kTileBytes];
  char b_high[kStages][kTileBytes], b_low[kStages][kTileBytes];
  Staging staging[kConsumerWarps];
  Barrier full[kStages], empty[kStages];
};
static_assert(sizeof(Stages) == split_groups_shared_bytes());

// Whether the others leave a unit out.
TW_DEVICE bool is_flagged(const Problem& problem, const Unit& unit) {
  return is_flagged(problem.a, problem.b, unit.member, unit.i0, unit.j0);
}

TW_DEVICE void produce(const Problem& problem, Stages* shared, int64_t units) {
  Ring ring;
  for (int64_t number = blockIdx.x; number < units; number += gridDim.x) {
    const Unit unit(problem.p, number);
    if (is_flagged(problem, unit)) continue;
    const int i0 = int(unit.i0), j0 = int(unit.j0);
    const int a = int(member_of(problem.a, unit.member)),
              b = int(member_of(problem.b, unit.member));
    for (int t = 0; t < unit.count; ++t, ring.step()) {
      const int s = ring.stage, k = t * kDepth;
      Barrier* const full = &shared->full[s];
      wait_for_phase(&shared->empty[s], ring.parity ^ 1);
      arrive_and_expect(full, kStageBytes);
      copy_tile<TW_A_LINES, 128>(shared->a_high[s], &problem.a_high, full, i0, k, a);
      copy_tile<TW_B_LINES, 128>(shared->b_high[s], &problem.b_high, full, j0, k, b);
      copy_tile<TW_A_LINES, 128>(shared->a_low[s], &problem.a_low, full, i0, k, a);
      copy_tile<TW_B_LINES, 128>(shared->b_low[s], &problem.b_low, full, j0, k, b);
    }
  }
}

// sums = a b of a tile's 64 terms; added to what was there where `keep` is not 0.
TW_DEVICE void multiply_tile(float (&sums)[kSums], const char* a, const char* b, int keep) {
#pragma unroll
  for (int step = 0; step < kDepth / 16; ++step)
    multiply_group<TW_KIND_HALF, TW_A_LINES, TW_B_LINES>(sums, operand_at<TW_A_LINES>(shared_address(a), step),
                                              operand_at<TW_B_LINES>(shared_address(b), step),
                                              step > 0 || keep);
}

TW_DEVICE void consume(const Problem& problem, Stages* shared, int64_t units) {
  const Matmul& p = problem.p;
  const int warp = threadIdx.x / 32 - 4, part = warp / 4 * kBox;
  Ring ring;
  for (int64_t number = blockIdx.x; number < units; number += gridDim.x) {
    const Unit unit(p, number);
    if (is_flagged(problem, unit)) continue;
    float sums[kSums], large[kSums], small[kSums];
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] = 0;
    int before = 0;  // the stage that the last products read
    for (int t = 0; t < unit.count; ++t, ring.step()) {
      const int s = ring.stage;
      wait_for_phase(&shared->full[s], ring.parity);
      fence_products();
      multiply_tile(large, shared->a_high[s] + part, shared->b_high[s], 0);
      commit_products();
      multiply_tile(small, shared->a_high[s] + part, shared->b_low[s], t > 0);
      multiply_tile(small, shared->a_low[s] + part, shared->b_high[s], 1);
      commit_products();
      wait_for_products<1>();  // small ones go on while large ones are added
      if (t > 0 && threadIdx.x % 32 == 0) arrive(&shared->empty[before]);
      before = s;
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[i] += large[i];
    }
    wait_for_products<0>();
    if (threadIdx.x % 32 == 0) arrive(&shared->empty[before]);
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] += small[i] * (1 / low_scale());
    const Output out(p, unit.member, 0);
    const Unscale unscale(problem.a, problem.b, unit.member);
    out.put<kWide>(p, unit.i0 + warp * 16, unit.j0, sums, shared->staging[warp], unscale);
  }
}

TW_KERNEL(matmul_split_groups, Problem, kThreads) {
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
