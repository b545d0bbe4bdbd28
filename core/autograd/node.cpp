// Saved values and the errors that protect them.
#include "core/autograd/node.h"

namespace tw {

void (*renew_view)(const Tensor& view) = nullptr;

void fail_behind_function(const Tensor& view) {
  fail(ErrorKind::runtime, describe(view),
       ", a result of a Function, shares memory with what that was given, and is used after a "
       "recorded in-place change of it, which the Function's backward knows nothing of; call the "
       "Function after the change, or return a copy() from its forward");
}

void renew(const Tensor& view) {
  if (!view->family && view->behind_function) fail_behind_function(view);
  if (!view->family)
    fail(ErrorKind::runtime, "the view ", describe(view),
         " was taken while recording was off, before its base was changed in place by a recorded "
         "op, and its graph lacks that change; take the view again");
  renew_view(view);
}

namespace {

// The same place over the same memory, but no view: a view's header may move on to places that need
// the node that holds this one, which would be a cycle. Edges go to leaves themselves.
Tensor without_family(const Tensor& x) {
  if (!x->is_view || !x->family || (x.is_leaf() && x.requires_grad())) return x;
  Tensor y = x.detached();
  y->requires_grad = x.requires_grad();
  y->grad_fn = x->grad_fn;
  y->result = x->result;
  return y;
}

}  // namespace

void SavedTensor::hold_apart(const Tensor& x_in) {
  const Tensor x = without_family(x_in);
  if (modes.checkpoint) in_frame_ = (held_ = place_in_frame(x)) != nullptr;
  if (!held_) held_ = Ref<TensorHeader>(x.get()).leak();
}

Tensor SavedTensor::get(const char* op, const char* what) const {
  const Tensor x = in_frame_ ? value_of(*static_cast<SavedPlace*>(held_))
                             : Tensor(Ref<TensorHeader>(static_cast<TensorHeader*>(held_)));
  if (x.version() != version_)
    fail(ErrorKind::runtime, op, ": backward needs its ", what, " ", describe(x),
         ", which was changed in place since (version ", x.version(), ", expected ", version_,
         "); change a copy() instead");
  return x;
}

Tensor SavedTensor::get(const Node& node, const char* what) const {
  const Tensor x = get(node.op, what);
  if (result_ < 0 || !modes.grad) return x;
  Tensor y = x.detached();
  attach(y, const_cast<Node*>(&node), result_);
  return y;
}

void fail_released(const Node& node) {
  fail(ErrorKind::runtime, node.op,
       ": backward through this op a second time, but its saved values were released by the first; "
       "call backward(retain_graph=True) the first time");
}

}  // namespace tw
