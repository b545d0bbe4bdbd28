// Softmax, log-softmax and cross-entropy: checks, layout for the kernels, gradients.
#include "core/ops/softmax.h"

#include <algorithm>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/apply.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/index.h"
#include "core/ops/join.h"
#include "core/ops/pointwise.h"
#include "core/ops/records.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"

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

// The largest is 0, so that exponentials stay in range: any shift gives the same result.
Tensor shifted(const Tensor& x, const Axes& axes) { return x.count() ? x - max(x, axes, true) : x; }
void softmax_body(const Use& use, Tensor* out) {
  const Axes axes = axis_of(use.in[0].tensor, use.words);
  const Tensor terms = exp(shifted(use.in[0].tensor, axes));
  out[0] = terms / sum(terms, axes, true);
}
void log_softmax_body(const Use& use, Tensor* out) {
  const Axes axes = axis_of(use.in[0].tensor, use.words);
  const Tensor x = shifted(use.in[0].tensor, axes);
  out[0] = x - log(sum(exp(x), axes, true));
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

// ---- cross-entropy ----

namespace {

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

// Losses and norms of the rows (the largest logit, and the log-sum without it), and how many count.
void infer_rows(Call& call, Result* results) {
  for (int i = 0; i < 3; ++i) results[i].dtype = call.in[0].dtype;
  results[0].shape = {call.in[0].size(0)};
  results[1].shape = {call.in[0].size(0), 2};
}
void infer_rows_backward(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}

void rows_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &targets = use.in[1].tensor;
  const Tensor counts = targets != Operand(Scalar(use.words[0]));
  const WordList classes = WordList(2).set(0, x.size(1)).set(1, word_of(DType::bool_));
  const Tensor hot = apply(kOneHot, {where(counts, targets, 0)}, classes);
  const Tensor top = max(x, {1}, true);
  out[1] = concat({top, log(sum(exp(x - top), {1}, true))}, 1);
  out[0] = where(counts, -sum(where(hot, log_softmax(x, 1), 0), {1}, false), 0);
  out[2] = sum(astype(counts, x.dtype()), {}, false);
}

void rows_backward_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &targets = use.in[1].tensor, &g = use.in[3].tensor;
  const Tensor counts = targets != Operand(Scalar(use.words[0]));
  const Tensor columns = expand_dims(arange(0, Scalar(x.size(1)), 1, DType::int64), 0);
  const Tensor hot = astype(expand_dims(targets, 1) == columns, x.dtype());
  out[0] = where(expand_dims(counts, 1), (softmax(x, 1) - hot) * expand_dims(g, 1), 0);
}

// Words: reduction (as it stands in the signature), ignore_index.
void cross_entropy_body(const Use& use, Tensor* out) {
  const Tensor& logits = use.in[0].tensor;
  check_cross_entropy(logits, use.in[1].tensor);
  const auto reduction = static_cast<Reduction>(use.words[0]);
  const Tensor x = astype(logits, working_dtype(logits.dtype()));
  // A copy, so that later changes of the targets do not reach backward.
  const Tensor targets = astype(use.in[1].tensor, DType::int64, true);
  Tensor rows[3];
  const Operand operands[] = {x, targets};
  apply(kCrossEntropyRows, operands, 2, WordList(1).set(0, use.words[1]), rows);
  Tensor y = reduction == Reduction::none ? rows[0] : sum(rows[0], {}, false);
  if (reduction == Reduction::mean) y = y / rows[2];
  out[0] = astype(y, logits.dtype());
}

}  // namespace

constexpr OpRecord kCrossEntropyRows = {
    .name = "cross_entropy_rows",
    .signature = "(logits: Tensor, targets: Tensor, ignore_index: int) -> Tensor",
    .help =
        "Negative log-likelihood of each row, its largest logit and the log-sum without that, and "
        "how "
        "many rows count.",
    .results = 3,
    .infer = infer_rows,
    .estimate = estimate,
    .body = rows_body,
    .vjp =
        [](Vjp& v) {
          v.give(0,
                 apply(kCrossEntropyRowsBackward, {v.in(0), v.in(1), v.out(1), v.g()}, v.words()));
        },
    .reads = {{.inputs = 3, .results = 2}}};
constexpr OpRecord kCrossEntropyRowsBackward = {
    .name = "cross_entropy_rows_backward",
    .signature =
        "(logits: Tensor, targets: Tensor, norms: Tensor, g: Tensor, ignore_index: int) -> "
        "Tensor",
    .help = "(softmax(logits) - onehot(targets)) * g, 0 for rows that do not count.",
    .infer = infer_rows_backward,
    .estimate = estimate,
    .body = rows_backward_body};
constexpr OpRecord kCrossEntropy = {
    .name = "cross_entropy",
    .signature =
        "(logits: Tensor, targets: Tensor, reduction: 'mean' | 'sum' | 'none' = 'mean', "
        "ignore_index: int = -100) -> Tensor",
    .help =
        "Negative log-likelihood of integer targets (n,) under logits (n, classes).\n"
        "Rows whose target is ignore_index count for nothing. Raises IndexError for other "
        "targets out of range.",
    .flags = kFunction,
    .body = cross_entropy_body};

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction,
                     std::int64_t ignore_index) {
  return apply(kCrossEntropy, {logits, targets},
               WordList(2).set(0, static_cast<Word>(reduction)).set(1, ignore_index));
}

}  // namespace tw
