// Softmax, log-softmax and cross-entropy: checks, layout for the kernels, gradients.
#include "core/ops/softmax.h"

#include <algorithm>

#include "core/autograd/op_node.h"
#include "core/cpu/isa.h"
#include "core/cpu/softmax.h"
#include "core/ops/apply.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/pointwise.h"
#include "core/ops/records.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

void infer_same(Call& call, Result* results) {
  const Meta& x = call.in[0];
  if (is_complex(x.dtype)) fail(ErrorKind::type, call.op->name, ": no kernel for complex64");
  normalize_axis(call.words[0], std::max(x.rank(), 1), call.op->name);
  results[0].like = 0;
  results[0].dtype = floating_dtype(x.dtype);
}
// An exponential, a subtraction, a sum and a division for each element.
Estimate estimate(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  return {4 * count, (1 + call.inputs) * count * static_cast<double>(size_of(call.in[0].dtype))};
}

// The axis in words, of a tensor that is not 0-d: that has one element along any axis.
Axes axis_of(const Tensor& x, Words words) {
  return x.rank() ? Axes{words[0]} : Axes(std::vector<std::int64_t>());
}

void softmax_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  Tensor top;
  {
    const GradModeGuard off(false);  // any shift gives the same result, so none needs a gradient
    top = x.count() ? max(x, axis_of(x, use.words), true) : sum(x, axis_of(x, use.words), true);
  }
  const Tensor terms = exp(x - top);
  out[0] = terms / sum(terms, axis_of(x, use.words), true);
}
void log_softmax_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  out[0] = x - logsumexp(x, axis_of(x, use.words), true);
}
void softmax_backward_body(const Use& use, Tensor* out) {
  const Tensor &y = use.in[0].tensor, &g = use.in[1].tensor;
  out[0] = y * (g - sum(y * g, axis_of(y, use.words), true));
}
void log_softmax_backward_body(const Use& use, Tensor* out) {
  const Tensor &y = use.in[0].tensor, &g = use.in[1].tensor;
  out[0] = g - exp(y) * sum(g, axis_of(y, use.words), true);
}

}  // namespace

constexpr OpRecord kSoftmaxBackward = {
    .name = "softmax_backward",
    .signature = "(y: Tensor, g: Tensor, axis: int) -> Tensor",
    .help = "The gradient of softmax from its result y: y * (g - sum(y * g)).",
    .infer = infer_same,
    .estimate = estimate,
    .body = softmax_backward_body};
constexpr OpRecord kLogSoftmaxBackward = {
    .name = "log_softmax_backward",
    .signature = "(y: Tensor, g: Tensor, axis: int) -> Tensor",
    .help = "The gradient of log_softmax from its result y: g - exp(y) * sum(g).",
    .infer = infer_same,
    .estimate = estimate,
    .body = log_softmax_backward_body};

constexpr OpRecord kSoftmax = {
    .name = "softmax",
    .signature = "(x: Tensor, axis: int = -1) -> Tensor",
    .help = "exp(x) / sum(exp(x)) along an axis.",
    .flags = kFunction | kMethod | kWidensAll,
    .infer = infer_same,
    .estimate = estimate,
    .body = softmax_body,
    .vjp = [](Vjp& v) { v.give(0, apply(kSoftmaxBackward, {v.out(), v.g()}, v.words())); },
    .reads = {{.results = 1}}};
constexpr OpRecord kLogSoftmax = {
    .name = "log_softmax",
    .signature = "(x: Tensor, axis: int = -1) -> Tensor",
    .help = "log(softmax(x)), computed in one pass.",
    .flags = kFunction | kMethod | kWidensAll,
    .infer = infer_same,
    .estimate = estimate,
    .body = log_softmax_body,
    .vjp = [](Vjp& v) { v.give(0, apply(kLogSoftmaxBackward, {v.out(), v.g()}, v.words())); },
    .reads = {{.results = 1}}};

Tensor softmax(const Tensor& x, std::int64_t axis) {
  return apply(kSoftmax, {x}, WordList(1).set(0, axis));
}
Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  return apply(kLogSoftmax, {x}, WordList(1).set(0, axis));
}

namespace {

bool computes_natively(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

template <class Run> void observed(const char* op, const Tensor& x, double passes, Run run) {
  const double count = static_cast<double>(x.count());
  dispatch(
      // An exponential, a subtraction, a sum and a division for each element.
      4 * count, passes * count * static_cast<double>(x.item_bytes()), run, [&](Observation& seen) {
        seen.op = op;
        seen.kernel = "vector";
        seen.isa = name_of(active_isa());
        seen.problem = std::string(name_of(x.dtype())) + " " + to_string(x.shape());
      });
}

void check_cross_entropy(const Tensor& logits, const Tensor& targets) {
  if (logits.rank() != 2 || targets.rank() != 1 || targets.size(0) != logits.size(0))
    fail(ErrorKind::value, "cross_entropy: expected logits (n, classes) and targets (n,), got ",
         logits.shape(), " and ", targets.shape());
  if (!is_integer(targets.dtype()))
    fail(ErrorKind::type, "cross_entropy: targets must be class indices (integers), got ",
         name_of(targets.dtype()));
  if (!is_floating(logits.dtype()))
    fail(ErrorKind::type, "cross_entropy: logits must be floating-point, got ",
         name_of(logits.dtype()));
}

CrossEntropyProblem problem_for(Access& at, const Tensor& x, const Tensor& targets,
                                std::int64_t ignore_index) {
  return {x.dtype(), x.size(0), x.size(1), at(x), at.as<std::int64_t>(targets), ignore_index};
}

// Gradient of the losses `g` (rows,) with respect to the logits, in one fused pass.
Tensor losses_gradient(const Tensor& x, const Tensor& targets, const Tensor& lse,
                       const Tensor& g_in, std::int64_t ignore_index) {
  const bool one_for_all = g_in.strides()[0] == 0;
  const Tensor g = one_for_all ? g_in : contiguous(g_in);
  Access at;
  const CrossEntropyProblem problem = problem_for(at, x, targets, ignore_index);
  const char *const lse_at = at(lse), *const g_at = at(g);
  Tensor dx = Tensor::empty_like(x);
  char* const dx_at = at(dx);
  observed("cross_entropy", x, 2,
           [&] { cross_entropy_backward(problem, lse_at, g_at, one_for_all ? 0 : 1, dx_at); });
  return dx;
}

// The same out of recorded ops.
Tensor recorded_losses_gradient(const Tensor& x, const Tensor& targets, const Tensor& g,
                                std::int64_t ignore_index) {
  const Tensor counts = astype(targets != Operand(Scalar(ignore_index)), x.dtype());
  const Tensor columns = expand_dims(arange(0, Scalar(x.size(1)), 1, DType::int64), 0);
  const Tensor hot = astype(expand_dims(targets, 1) == columns, x.dtype());
  return (softmax(x, 1) - hot) * expand_dims(g * counts, 1);
}

// Losses (rows,) of contiguous float32 or float64 logits.
Tensor row_losses(const Tensor& x, const Tensor& targets, std::int64_t ignore_index) {
  Access at;
  const CrossEntropyProblem problem = problem_for(at, x, targets, ignore_index);
  const std::int64_t bad = first_bad_target(problem);
  if (bad >= 0)
    fail(ErrorKind::index, "cross_entropy: target ", problem.targets[bad], " in row ", bad,
         " is out of range for ", x.size(1), " classes");
  Tensor losses = Tensor::empty({x.size(0)}, x.dtype());
  Tensor lse = Tensor::empty({x.size(0)}, x.dtype());
  char *const losses_at = at(losses), *const lse_at = at(lse);
  observed("cross_entropy", x, 1, [&] { cross_entropy(problem, losses_at, lse_at); });
  if (should_record(x))
    record_saving(losses, "cross_entropy",
                  with_saved(
                      [targets, lse, ignore_index](Node& node, const Tensor& g, Tensor* dx,
                                                   const SavedTensor& x) {
                        const Tensor logits = x.get(node, "logits");
                        dx[0] = modes.grad
                                    ? recorded_losses_gradient(logits, targets, g, ignore_index)
                                    : losses_gradient(logits, targets, lse, g, ignore_index);
                      },
                      SavedTensor(x)),
                  x);
  return losses;
}

}  // namespace

namespace {

std::int64_t count_targets(const Tensor& targets, std::int64_t ignore_index) {
  Access at;
  const std::int64_t* const first = at.as<std::int64_t>(targets);
  return targets.count() - std::count(first, first + targets.count(), ignore_index);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets_in, Reduction reduction,
                     std::int64_t ignore_index) {
  check_cross_entropy(logits, targets_in);
  const DType wide = computes_natively(logits.dtype()) ? logits.dtype() : DType::float32;
  const Tensor x = contiguous(astype(logits, wide));
  // A copy, so that later changes of the targets do not reach backward.
  const Tensor targets = copy(astype(targets_in, DType::int64));
  const Tensor losses = row_losses(x, targets, ignore_index);
  Tensor y = losses;
  if (reduction == Reduction::sum) y = sum(losses, {}, false);
  if (reduction == Reduction::mean) {
    const std::int64_t counted = count_targets(targets, ignore_index);
    y = counted == targets.count() ? mean(losses, {}, false)
                                   : sum(losses, {}, false) / static_cast<double>(counted);
  }
  return astype(y, logits.dtype());
}

}  // namespace tw
