// Hooks of values and gradients: how they are registered and called.
#include "core/autograd/gradient_hooks.h"

#include <algorithm>

#include "core/autograd/backward.h"
#include "core/autograd/capture.h"
#include "core/autograd/planner.h"
#include "core/runtime/device.h"

namespace tw {

Tensor run_hooks(const HookList& hooks, Tensor g, const char* op) {
  refuse_in_capture("a hook runs");
  if (DryRun* dry = DryRun::running()) {
    dry->expose(g);
    return g;
  }
  const std::vector<HookEntry> snapshot = hooks.entries();  // a hook may remove itself
  const BlockSourceGuard source(PlannedPass::source_outside());
  for (const HookEntry& hook : snapshot) {
    Tensor replaced = hook.call(g);
    if (!replaced) continue;
    if (!(replaced.shape() == g.shape()))
      fail(ErrorKind::value, op, ": a hook returned shape ", replaced.shape(),
           " for a gradient of shape ", g.shape());
    if (replaced.device() != g.device())
      fail(ErrorKind::value, op, ": a hook returned ", describe(replaced), " for a gradient ",
           describe(g), " on another device");
    if (replaced.dtype() != g.dtype())
      fail(ErrorKind::type, op, ": a hook returned ", name_of(replaced.dtype()),
           " for a gradient of ", name_of(g.dtype()));
    g = replaced;
  }
  return g;
}

void run_grad_hooks(const Tensor& leaf) {
  refuse_in_capture("a hook runs");
  const std::vector<HookEntry> snapshot = leaf->extras->grad_hooks.entries();
  const BlockSourceGuard source(PlannedPass::source_outside());
  for (const HookEntry& hook : snapshot) hook.call(leaf);
}

bool Snapshot::operator==(const Snapshot& other) const {
  const auto same = [](const Tensor& a, const Tensor& b) { return a.get() == b.get(); };
  return std::ranges::equal(tensors_, other.tensors_, same) && versions_ == other.versions_;
}

void refuse_behind_function(const Tensor& x) {
  if (x->behind_function && is_stale(x)) renew(x);
}

std::uint64_t register_hook(const Tensor& x, Hook hook) {
  refuse_behind_function(x);
  if (!x.requires_grad())
    fail(ErrorKind::runtime, "register_hook: ", describe(x), " does not require grad");
  if (x.is_leaf()) return x.extras().backward_hooks.add(std::move(hook));
  std::unique_ptr<HookList>& hooks = place_of(*x.get()).hooks;
  if (!hooks) hooks = std::make_unique<HookList>();
  return hooks->add(std::move(hook));
}

std::uint64_t register_forward_hook(const Tensor& x, Hook hook) {
  return x.extras().forward_hooks.add(std::move(hook));
}

std::uint64_t register_grad_hook(const Tensor& leaf, Hook hook) {
  if (!leaf.requires_grad() || !leaf.is_leaf())
    fail(ErrorKind::runtime, "register_post_accumulate_grad_hook: ", describe(leaf),
         leaf.requires_grad() ? " is no leaf, whose grad a pass adds to; register_hook is called "
                                "with the gradient of any tensor"
                              : " does not require grad");
  return leaf.extras().grad_hooks.add(std::move(hook));
}

void drop_recorded_grad(TensorHeader& header) {
  if (!header.extras || !header.extras->grad || header.extras->grad.is_leaf()) return;
  const Tensor ends_last = std::move(header.extras->grad);
  header.extras->grad = Tensor();
}

void retain_grad(const Tensor& x) {
  refuse_behind_function(x);
  if (!x.requires_grad())
    fail(ErrorKind::runtime, "retain_grad: ", describe(x), " does not require grad");
  if (!x.is_leaf()) place_of(*x.get()).retainer = x.get();
}

Tensor apply_forward_hooks(const Tensor& x) {
  refuse_in_capture("a hook runs");
  // An op on the value within its own hook takes it as it is.
  static thread_local std::vector<const TensorHeader*> running;
  if (std::find(running.begin(), running.end(), x.get()) != running.end()) return x;
  struct Entry {
    explicit Entry(const Tensor& x) { running.push_back(x.get()); }
    ~Entry() { running.pop_back(); }
  } entry(x);
  Tensor value = x;
  const std::vector<HookEntry> snapshot = x->extras->forward_hooks.entries();
  for (const HookEntry& hook : snapshot)
    if (Tensor replaced = hook.call(value)) value = replaced;
  return value;
}

}  // namespace tw
