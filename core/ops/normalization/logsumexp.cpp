// The logarithm of a sum of exponentials.
#include "core/autograd/op_node.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduction_records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {
// What is taken off before exponentials, so that they stay in range: any shift gives the same
// result, so that it needs no gradient.
Tensor shift_of(const Tensor& x, std::uint32_t axes) {
  if (count_of(x.shape(), axes) == 0) return zeros(Shape(), x.dtype());  // log(0) is -infinity
  const GradModeGuard off(false);
  const Tensor largest = max(x, list_of(axes), true);
  return where(isfinite(largest), largest, 0.0);
}
void infer_along(Call& call, Result* results) {
  const Meta& x = call.in[0];
  results[0].dtype = x.dtype;
  results[0].shape = kept_shape(*x.shape, call.attributes.axes(0, x.rank(), call.op->name), true);
}
}  // namespace
constexpr OpRecord kLogsumexpBackward = {
    .name = "logsumexp_backward",
    .signature = "(x: Tensor, g: Tensor, axis: Axes) -> Tensor",
    .help = "The gradient of logsumexp: g * softmax(x).",
    .flags = kAlongAxes,
    .infer = infer_like_first,
    .estimate = estimate_reduction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &x = use.in[0].tensor, &g = use.in[1].tensor;
      const std::uint32_t axes = use.attributes.axes(0, x.rank(), use.op.name);
      const Tensor terms = exp(x - shift_of(x, axes));
      out[0] = terms * (g / sum(terms, list_of(axes), true));
    }};
constexpr OpRecord kLogsumexpAlong = {
    .name = "logsumexp_along",
    .signature = "(x: Tensor, axis: Axes) -> Tensor",
    .help = "What logsumexp gives, with extent 1 along the axes.",
    .flags = kAlongAxes,
    .infer = infer_along,
    .estimate = estimate_reduction,
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor& x = use.in[0].tensor;
          const std::uint32_t axes = use.attributes.axes(0, x.rank(), use.op.name);
          const Tensor shift = shift_of(x, axes);
          out[0] = log(sum(exp(x - shift), list_of(axes), true)) + shift;
        },
    .vjp = [](Vjp& v) { v.give(0, apply(kLogsumexpBackward, {v.in(0), v.g()}, v.attributes())); },
    .reads = {{.inputs = 1}}};
constexpr OpRecord kLogsumexp = {
    .name = "logsumexp",
    .signature = "(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor",
    .help =
        "log(sum(exp(x))) without overflow.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.logsumexp.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      check_ordered(use.in[0].tensor.dtype(), "logsumexp");
      const DType result = floating_dtype(use.in[0].tensor.dtype());
      const Tensor x = astype(use.in[0].tensor, working_dtype(result));
      const std::uint32_t bits = use.attributes.axes(0, x.rank(), "logsumexp");
      AttributeList attributes(1);
      attributes.set_list(0, list_of(bits).list);
      const Tensor y = apply(kLogsumexpAlong, {x}, attributes);
      out[0] =
          astype(owned(reshape(y, kept_shape(x.shape(), bits, use.attributes.flag(1)))), result);
    }};

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced_by(kLogsumexp, x, axes, AttributeList(2).set(1, keepdims));
}

}  // namespace tw
