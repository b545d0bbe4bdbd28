// Softmax and log-softmax: checks, layout for the kernels, gradients.
#include "core/ops/normalization/softmax.h"

#include <algorithm>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"

namespace tw {

namespace {

void infer_same(Call& call, Result* results) {
  const Meta& x = call.in[0];
  if (is_complex(x.dtype))
    fail(ErrorKind::type, call.op->name, ": no kernel for ", name_of(x.dtype));
  normalize_axis(call.attributes[0], std::max(x.rank(), 1), call.op->name);
  results[0].like = 0;
  results[0].dtype = floating_dtype(x.dtype);
}
// An exponential, a subtraction, a sum and a division for each element.
Estimate estimate(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  return {4 * count, (1 + call.inputs) * count * static_cast<double>(size_of(call.in[0].dtype))};
}

AttributeList attributes_of(std::int64_t axis) {
  return AttributeList(2).set(0, axis).set(1, kNone);
}

// With a dtype, the op on the tensor in that type.
bool convert_first(const Use& use, Tensor* out) {
  if (use.attributes.none(1)) return false;
  const DType dtype = use.attributes.dtype(1);
  if (!is_floating(dtype))
    fail(ErrorKind::type, use.op.name, ": dtype must be a floating one, got ", name_of(dtype));
  out[0] = apply(use.op, {astype(use.in[0].tensor, dtype)}, attributes_of(use.attributes[0]));
  return true;
}

// The axis in attributes, of a tensor that is not 0-d: that has one element along any axis.
Axes axis_of(const Tensor& x, Attributes attributes) {
  return x.rank() ? Axes{attributes[0]} : Axes(std::vector<std::int64_t>());
}

// The largest is 0, so that exponentials stay in range: any shift gives the same result.
Tensor shifted(const Tensor& x, const Axes& axes) { return x.count() ? x - max(x, axes, true) : x; }
void softmax_body(const Use& use, Tensor* out) {
  const Axes axes = axis_of(use.in[0].tensor, use.attributes);
  const Tensor terms = exp(shifted(use.in[0].tensor, axes));
  out[0] = terms / sum(terms, axes, true);
}
void log_softmax_body(const Use& use, Tensor* out) {
  const Axes axes = axis_of(use.in[0].tensor, use.attributes);
  const Tensor x = shifted(use.in[0].tensor, axes);
  out[0] = x - log(sum(exp(x), axes, true));
}
void softmax_backward_body(const Use& use, Tensor* out) {
  const Tensor &y = use.in[0].tensor, &g = use.in[1].tensor;
  out[0] = y * (g - sum(y * g, axis_of(y, use.attributes), true));
}
void log_softmax_backward_body(const Use& use, Tensor* out) {
  const Tensor &y = use.in[0].tensor, &g = use.in[1].tensor;
  out[0] = g - exp(y) * sum(g, axis_of(y, use.attributes), true);
}

}  // namespace

constexpr OpRecord kSoftmaxBackward = {
    .name = "softmax_backward",
    .signature = "(y: Tensor, g: Tensor, axis: int) -> Tensor",
    .help = "The gradient of softmax from its result y: y * (g - sum(y * g)).",
    .flags = kAlongAxis,
    .infer = infer_same,
    .estimate = estimate,
    .body = softmax_backward_body};
constexpr OpRecord kLogSoftmaxBackward = {
    .name = "log_softmax_backward",
    .signature = "(y: Tensor, g: Tensor, axis: int) -> Tensor",
    .help = "The gradient of log_softmax from its result y: g - exp(y) * sum(g).",
    .flags = kAlongAxis,
    .infer = infer_same,
    .estimate = estimate,
    .body = log_softmax_backward_body};

constexpr OpRecord kSoftmax = {
    .name = "softmax",
    .signature = "(x: Tensor, axis: int = -1, dtype: dtype | None = None) -> Tensor",
    .help =
        "exp(x) / sum(exp(x)) along an axis, of x as dtype where that is given.\n"
        "Shapes: x (..., n, ...); the result has x's shape.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.nn.functional.softmax.",
    .flags = kFunction | kWidensAll | kAlongAxis,
    .rewrite = convert_first,
    .infer = infer_same,
    .estimate = estimate,
    .body = softmax_body,
    .vjp = [](Vjp& v) { v.give(0, apply(kSoftmaxBackward, {v.out(), v.g()}, v.attributes())); },
    .reads = {{.results = 1}},
    .autocast = Autocast::wide};
constexpr OpRecord kLogSoftmax = {
    .name = "log_softmax",
    .signature = "(x: Tensor, axis: int = -1, dtype: dtype | None = None) -> Tensor",
    .help =
        "log(softmax(x)), computed in one pass, of x as dtype where that is given.\n"
        "Shapes: x (..., n, ...); the result has x's shape.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.nn.functional.log_softmax.",
    .flags = kFunction | kWidensAll | kAlongAxis,
    .rewrite = convert_first,
    .infer = infer_same,
    .estimate = estimate,
    .body = log_softmax_body,
    .vjp = [](Vjp& v) { v.give(0, apply(kLogSoftmaxBackward, {v.out(), v.g()}, v.attributes())); },
    .reads = {{.results = 1}},
    .autocast = Autocast::wide};

Tensor softmax(const Tensor& x, std::int64_t axis) {
  return apply(kSoftmax, {x}, attributes_of(axis));
}
Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  return apply(kLogSoftmax, {x}, attributes_of(axis));
}

}  // namespace tw
