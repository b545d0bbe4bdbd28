// Switching the engine to a dry run and back, and the figures of a planned pass.
#include "core/autograd/planner.h"

namespace tw {

namespace {

thread_local DryRun* dry_run = nullptr;
thread_local PlannedPass* planned_pass = nullptr;
PlanFigures figures;

}  // namespace

const PlanFigures& last_plan() { return figures; }

DryRun* DryRun::running() { return dry_run; }

DryRun::DryRun()
    : outer_(dry_run), lock_(frontend_lock), dispatch_(dispatch_state), source_(&recorder_) {
  dry_run = this;
  frontend_lock = {nullptr, nullptr};
  dispatch_state.observations = nullptr;
  dispatch_state.device = &null_device;
  dispatch_state.update();
}

DryRun::~DryRun() {
  dispatch_state = dispatch_;
  frontend_lock = lock_;
  dry_run = outer_;
}

Tensor DryRun::placeholder(const Shape& shape, const Strides& strides, DType dtype,
                           std::uint32_t version) {
  alignas(64) static char nothing[64];
  const auto borrowed = Storage::borrow(nothing, 0, false, nullptr, [](void*) {});
  borrowed->version = version;
  return Tensor::over(borrowed, 0, shape, strides, dtype);
}

PlannedPass::PlannedPass(ArenaPlan plan)
    : outer_(planned_pass),
      source_before_(block_source),
      arena_(Arena::open(std::move(plan), block_source)),
      source_(arena_) {
  planned_pass = this;
}

PlannedPass::~PlannedPass() {
  const ArenaPlan& plan = arena_->plan();
  figures = {plan.blocks.size(), plan.arena_bytes, plan.sum_bytes,     plan.lower_bound_bytes,
             plan.live_bytes,    plan.own_blocks,  arena_->fallbacks()};
  planned_pass = outer_;
  arena_->close();
}

BlockSource* PlannedPass::source_outside() {
  const bool planned = planned_pass && block_source == planned_pass->arena_;
  return planned ? planned_pass->source_before_ : block_source;
}

}  // namespace tw
