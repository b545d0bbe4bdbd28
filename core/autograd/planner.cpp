// Switching the engine to a dry run and back, and the figures of a planned pass.
#include "core/autograd/planner.h"

namespace tw {

namespace {

thread_local PlannedPass* planned_pass = nullptr;
PlanFigures figures;

}  // namespace

const PlanFigures& last_plan() { return figures; }

DryRun::DryRun(const Device* device)
    : outer_(std::exchange(modes.dry_run, this)),
      observers_(std::exchange(modes.observers, nullptr)),
      recorder_(device),
      source_(&recorder_) {
  modes.update_plain();
}

DryRun::~DryRun() {
  modes.dry_run = outer_;
  modes.observers = observers_;
  modes.update_plain();
}

Tensor DryRun::placeholder(const Shape& shape, const Strides& strides, DType dtype,
                           std::uint32_t version) {
  alignas(64) static char nothing[64];
  const auto borrowed = Storage::borrow(nothing, 0, false, nullptr, [](void*) {});
  borrowed->version = version;
  return Tensor::over(borrowed, 0, shape, strides, dtype);
}

static BlockSource* source_on(const Device* device) {
  BlockSource* const source = modes.source ? modes.source->serving(device) : nullptr;
  return source || !device ? source : device->source;
}

PlannedPass::PlannedPass(ArenaPlan plan, const Device* device)
    : outer_(planned_pass),
      source_before_(modes.source),
      arena_(Arena::open(std::move(plan), source_on(device), device, modes.source)),
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
  const bool planned = planned_pass && modes.source == planned_pass->arena_;
  return planned ? planned_pass->source_before_ : modes.source;
}

}  // namespace tw
