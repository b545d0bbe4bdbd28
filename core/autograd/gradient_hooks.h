// The hooks of gradients, as the walk calls them.
#pragma once
#include <vector>

#include "core/tensor/tensor.h"

namespace tw {

// What the hooks make of a gradient, each of what the one before left. Raises ValueError or
// TypeError for a result of another shape, device or type. In a dry walk none is called.
Tensor run_hooks(const HookList& hooks, Tensor g, const char* op);
// For what asks for the place of `x` in the graph without an op: raises as an op would.
void refuse_behind_function(const Tensor& x);
// Calls those of a leaf whose grad a pass has added to.
void run_grad_hooks(const Tensor& leaf);

// Tensors as they were: the same ones, unchanged.
class Snapshot {
 public:
  void take(const Tensor& x) {
    tensors_.push_back(x);
    versions_.push_back(x ? x.version() : 0);
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  bool operator==(const Snapshot&) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<std::uint32_t> versions_;
};

// Gradients that arrive at a node that passes them on to onlookers: added there alone, to be shown,
// and also, one by one, to what had arrived `before` at each place behind the node, as without it.
struct Tap {
  Snapshot before;
  std::vector<Tensor> together;  // empty where nothing had
};

}  // namespace tw
