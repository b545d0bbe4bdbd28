// The backward walk.
#pragma once
#include <vector>

#include "core/autograd/node.h"
#include "core/runtime/op.h"

namespace tw {

// What the walk needs from the ops floor above: registered once by core/ops.
struct GradientArithmetic {
  Tensor (*add)(const Tensor& a, const Tensor& b);  // recorded when grad mode is on
  void (*add_in_place)(const Tensor& into, const Tensor& x);
  Tensor (*copy)(const Tensor& x);  // contiguous, recorded
  Tensor (*ones_like)(const Tensor& x);
  Tensor (*sum_to)(const Tensor& x, const Shape& shape);  // what broadcasting stretched
  Tensor (*astype)(const Tensor& x, DType dtype);
  bool (*has_nan)(const Tensor& x);
  void (*apply)(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                Tensor* out);
};
// Whether an element of g stands for several.
bool repeats(const Tensor& g);
// Whether this handle is the only way to the memory of g.
bool is_alone(const Tensor& g);

void set_gradient_arithmetic(const GradientArithmetic& arithmetic);
const GradientArithmetic& gradient_arithmetic();

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;  // implies retain_graph
  // A dry walk first finds the lifetimes of all gradients; the pass takes their memory from one
  // arena. Not with create_graph: ValueError.
  bool plan = false;
  bool hooks = true;  // whether those of tensors are called
};

// Adds the gradients of `roots` with respect to all leaves into the leaves' grad. A missing seed
// stands for 1 and needs a one-element root. Raises RuntimeError for roots outside the graph, wrong
// seeds (ValueError for a wrong shape), released or changed saved values; leaves no partial pass
// state behind.
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
              BackwardOptions options);

// Gradients of `roots` with respect to `inputs`, each in memory of its own, without touching any
// grad. Empty tensors where an input does not take part.
std::vector<Tensor> gradients(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds,
                              const std::vector<Tensor>& inputs, BackwardOptions options);

// The leaves that a backward pass from `root` would give gradients to, each once.
std::vector<Tensor> leaves_of(const Tensor& root);
// What the graph of `roots` leads to: leaves beside the `known` ones, and functions of the frontend
// (hooks, custom nodes), whose gradients may depend on more than their inputs.
struct Behind {
  bool other_leaves = false, functions = false;
};
Behind behind(const std::vector<Tensor>& roots, const std::vector<Tensor>& known);

// Backward hook: called with the gradient of `x`, whose result (if any) replaces it. Returns an id
// for HookList::remove.
std::uint64_t register_hook(const Tensor& x, Hook hook);
std::uint64_t register_forward_hook(const Tensor& x, Hook hook);
// Frees a grad that is part of a graph, where its tensor can no longer be asked for it: the graph
// leads back to the tensor, and counting references alone would keep both for ever.
void drop_recorded_grad(TensorHeader& header);
// Keeps the gradient of a non-leaf in its grad.
void retain_grad(const Tensor& x);
// The value an op should use for `x`: its forward hooks' result.
Tensor apply_forward_hooks(const Tensor& x);
// Calls `hook` with the leaf once a pass has added to its grad; RuntimeError for what is no leaf.
std::uint64_t register_grad_hook(const Tensor& leaf, Hook hook);

}  // namespace tw
