// Planned backward passes: a dry walk of the tape, whose kernels compute nothing, yields the
// lifetime of every gradient; the real walk then takes its memory from one arena.
#pragma once
#include <cstdint>
#include <memory>

#include "core/memory/arena.h"
#include "core/runtime/launch.h"
#include "core/tensor/tensor.h"

namespace tw {

struct PlanFigures {
  std::size_t allocations = 0;                                        // planned
  std::size_t arena_bytes = 0, sum_bytes = 0, lower_bound_bytes = 0;  // as in ArenaPlan
  std::size_t live_bytes = 0;  // most alive at one time, gradients that outlive the pass included
  std::size_t survivors = 0;   // blocks of their own: leaf gradients, and what hooks may keep
  std::size_t fallbacks = 0;   // allocations that did not follow the plan
};
// Of this process's last planned pass; zeros before the first.
const PlanFigures& last_plan();

// While it lives, this thread's kernels are not run and its allocations are recorded.
class DryRun {
 public:
  // Of a pass on one device; null: the CPU.
  explicit DryRun(const Device* device = nullptr);
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  static DryRun* running() { return modes.dry_run; }  // null outside a dry run
  void begin_step() { recorder_.begin_step(); }
  void expose(const Tensor& x) { recorder_.expose(x->storage->block); }
  void end() { recorder_.end(); }
  ArenaPlan plan() { return recorder_.plan(); }
  // A tensor that stands for a value that is not there: no plan knows it.
  static Tensor placeholder(const Shape& shape, const Strides& strides, DType dtype,
                            std::uint32_t version);

 private:
  DryRun* const outer_;
  Observers* const observers_;
  const LockKept lock_;
  ArenaRecorder recorder_;
  BlockSourceGuard source_;
};

// A pass whose allocations follow `plan` while it lives.
class PlannedPass {
 public:
  PlannedPass(ArenaPlan plan, const Device* device);
  ~PlannedPass();
  PlannedPass(const PlannedPass&) = delete;
  PlannedPass& operator=(const PlannedPass&) = delete;

  void begin_step() { arena_->begin_step(step_++); }
  // Where memory comes from that the plan does not know of: what was in force before the pass.
  static BlockSource* source_outside();

 private:
  PlannedPass* outer_;
  BlockSource* source_before_;
  Arena* arena_;
  BlockSourceGuard source_;
  std::size_t step_ = 0;
};

}  // namespace tw
