// Saved values and the errors that protect them.
#include "core/autograd/node.h"

namespace tw {

thread_local bool grad_mode __attribute__((tls_model("initial-exec"))) = true;

Tensor detach(const Tensor& x) {
  Tensor y = Tensor::over(x->storage, x->offset_bytes, x.shape(), x.strides(), x.dtype());
  y->is_view = true;
  y->recorded_seen = kUntracked;
  return y;
}

void fail_stale(const Tensor& view) {
  fail(ErrorKind::runtime, "the view ", describe(view),
       " was taken before its base was changed in place, and its graph lacks that change; take the "
       "view again");
}

SavedTensor SavedTensor::result(const Tensor& y) {
  SavedTensor saved(detach(y));
  saved.is_result_ = true;
  return saved;
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
  if (!is_result_ || !grad_mode) return x;
  Tensor y = detach(x);
  attach(y, const_cast<Node*>(&node));
  return y;
}

void fail_released(const Node& node) {
  fail(ErrorKind::runtime, node.op,
       ": backward through this op a second time, but its saved values were released by the first; "
       "call backward(retain_graph=True) the first time");
}

}  // namespace tw
