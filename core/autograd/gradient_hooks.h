// The hooks of gradients, as the walk calls them.
#pragma once
#include "core/tensor/tensor.h"

namespace tw {

// What the hooks make of a gradient, each of what the one before left. Raises ValueError or
// TypeError for a result of another shape, device or type. In a dry walk none is called.
Tensor run_hooks(const HookList& hooks, Tensor g, const char* op);
// Calls those of a leaf whose grad a pass has added to.
void run_grad_hooks(const Tensor& leaf);

}  // namespace tw
