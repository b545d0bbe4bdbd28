// Losses of classes: negative log-likelihood and cross-entropy.
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/index.h"
#include "core/ops/move/join.h"
#include "core/ops/losses/loss_reduction.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/normalization/softmax.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"

namespace tw {

namespace {

// ---- shapes and targets ----

// (classes,) has its classes along axis 0, all else along axis 1.
int class_axis(const Tensor& x) { return x.rank() == 1 ? 0 : 1; }

// Whether `targets` has a class for each row: the shape of x without that axis.
bool fits_rows(const Tensor& x, const Tensor& targets) {
  if (x.rank() == 0) return false;
  Shape rows = x.shape();
  rows.erase(class_axis(x));
  return rows == targets.shape();
}

void check_classes(const Use& use, const char* first, const char* second) {
  const Tensor &x = use.in[0].tensor, &targets = use.in[1].tensor;
  const char* const op = use.op.name;
  if (!fits_rows(x, targets))
    fail(ErrorKind::value, op, ": expected ", first, " (n, classes) and ", second,
         " (n,), or (n, classes, d, ...) and (n, d, ...), or (classes,) and (), got ", x.shape(),
         " and ", targets.shape());
  if (!is_integer(targets.dtype()))
    fail(ErrorKind::type, op, ": targets must be class indices (integers), got ",
         name_of(targets.dtype()));
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, op, ": ", first, " must be floating-point, got ", name_of(x.dtype()));
}

// One weight for each class, in the type of x; empty where there are none.
Tensor class_weights(const Use& use, const Tensor& x) {
  if (use.in[2].absent()) return {};
  const Tensor& weight = use.in[2].tensor;
  const std::int64_t classes = x.size(class_axis(x));
  if (weight.rank() != 1 || weight.size(0) != classes)
    fail(ErrorKind::value, use.op.name, ": weight ", weight.shape(), " does not fit ", classes,
         " classes");
  return astype(weight, x.dtype());
}

// (classes,) as a batch of one; classes are along axis 1 then.
Tensor with_batch(const Tensor& x) { return x.rank() == 1 ? expand_dims(x, 0) : x; }
// `copies`: so that later changes of the targets do not reach backward.
Tensor classes_of_batch(const Tensor& targets, bool copies) {
  const Tensor wide = astype(targets, DType::int64, copies);
  return targets.rank() ? wide : reshape(wide, {1});
}
// A number for each class beside x.
Tensor along_classes(const Tensor& weight, const Tensor& x) {
  Shape shape(x.rank() - 1, 1);
  shape[0] = weight.size(0);
  return reshape(weight, shape);
}

// Class indices of rows, and which of them count.
struct Targets {
  Tensor counts;
  Tensor classes;  // in range: 0 where the row does not count
};
Targets targets_of(const Tensor& targets, std::int64_t classes, Attribute ignore_index,
                   Indexing user) {
  const Tensor counts = targets != Operand(Scalar(ignore_index));
  return {counts, checked_indices(where(counts, targets, 0), classes, kNone, user)};
}

// -log_likelihood[target] of each row along axis 1, 0 where it does not count.
Tensor picked(const Tensor& log_likelihood, const Targets& t) {
  const Tensor one =
      apply(kGather, {log_likelihood, expand_dims(t.classes, 1)}, AttributeList(1).set(0, 1));
  return where(t.counts, -squeeze(one, {1}), 0);
}
// The weight of each row's class, 0 where it does not count.
Tensor row_weights(const Tensor& weight, const Targets& t) {
  return where(t.counts, apply(kTake, {weight, t.classes}, AttributeList(1).set(0, 0)), 0);
}

// Losses of rows, shaped as targets are, or their sum, or that over `total`.
Tensor reduced_rows(const Tensor& losses, const Tensor& total, Reduction reduction,
                    const Shape& shape) {
  if (reduction == Reduction::none)
    return losses.shape() == shape ? losses : reshape(losses, shape);
  const Tensor y = sum(losses, {}, false);
  return reduction == Reduction::mean ? y / total : y;
}

// ---- negative log-likelihood ----

// Attributes: ignore_index, reduction.
void nll_body(const Use& use, Tensor* out) {
  const Tensor &input = use.in[0].tensor, &targets = use.in[1].tensor;
  check_classes(use, "input", "target");
  const Tensor x = with_batch(astype(input, working_dtype(input.dtype())));
  const Tensor weight = class_weights(use, input);
  const Targets t = targets_of(classes_of_batch(targets, false), x.size(1), use.attributes[0],
                               Indexing::nll_loss);
  Tensor losses = picked(x, t), weights, total;
  if (weight) {
    weights = row_weights(astype(weight, x.dtype()), t);
    losses = losses * weights;
  }
  const auto reduction = static_cast<Reduction>(use.attributes[1]);
  if (reduction == Reduction::mean)
    total = sum(weight ? weights : astype(t.counts, x.dtype()), {}, false);
  out[0] = astype(reduced_rows(losses, total, reduction, targets.shape()), input.dtype());
}

// ---- rows of cross-entropy, which have kernels ----

// An exponential, a subtraction, a sum and a division for each element.
Estimate estimate(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  return {4 * count, (1 + call.inputs) * count * static_cast<double>(size_of(call.in[0].dtype))};
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
  const Tensor counts = targets != Operand(Scalar(use.attributes[0]));
  const AttributeList classes =
      AttributeList(2).set(0, x.size(1)).set(1, attribute_of(DType::bool_));
  const Tensor hot = apply(kOneHot, {where(counts, targets, 0)}, classes);
  const Tensor top = max(x, {1}, true);
  out[1] = concat({top, log(sum(exp(x - top), {1}, true))}, 1);
  out[0] = where(counts, -sum(where(hot, log_softmax(x, 1), 0), {1}, false), 0);
  out[2] = sum(astype(counts, x.dtype()), {}, false);
}

void rows_backward_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &targets = use.in[1].tensor, &g = use.in[3].tensor;
  const Tensor counts = targets != Operand(Scalar(use.attributes[0]));
  const Tensor columns = expand_dims(arange(0, Scalar(x.size(1)), 1, DType::int64), 0);
  const Tensor hot = astype(expand_dims(targets, 1) == columns, x.dtype());
  out[0] = where(expand_dims(counts, 1), (softmax(x, 1) - hot) * expand_dims(g, 1), 0);
}

// ---- their sum or mean, which GPUs have kernels for ----

// Attributes: ignore_index, whether it is the mean. Results besides: norms of the rows, how many
// count, and the targets, so that later changes of these do not reach backward.
void infer_total(Call& call, Result* results) {
  for (int i = 0; i < 3; ++i) results[i].dtype = call.in[0].dtype;
  results[1].shape = {call.in[0].size(0), 2};
  results[3].dtype = DType::int64;
  results[3].shape = {call.in[0].size(0)};
}
void total_body(const Use& use, Tensor* out) {
  const Tensor& targets = use.in[1].tensor;
  Tensor rows[3];
  apply(kCrossEntropyRows, use.in, 2, AttributeList(1).set(0, use.attributes[0]), rows);
  const auto reduction = use.attributes.flag(1) ? Reduction::mean : Reduction::sum;
  out[0] = reduced_rows(rows[0], rows[2], reduction, targets.shape());
  out[1] = rows[1];
  out[2] = rows[2];
  out[3] = copy(targets);
}
void total_backward_body(const Use& use, Tensor* out) {
  const Tensor &norms = use.in[2].tensor, &counted = use.in[3].tensor, &g = use.in[4].tensor;
  const Tensor each = use.attributes.flag(1) ? g / counted : g;
  out[0] = apply(kCrossEntropyRowsBackward,
                 {use.in[0], use.in[1], norms, broadcast_to(each, {norms.size(0)})},
                 AttributeList(1).set(0, use.attributes[0]));
}
// In one launch forward and one backward, where ops of their own would be nine.
Tensor total_of_rows(const Tensor& x, const Tensor& targets, Attribute ignore_index,
                     Reduction reduction) {
  const Tensor classes = astype(targets, DType::int64);
  Tensor out[4];
  const Operand operands[] = {x, classes.rank() ? classes : reshape(classes, {1})};
  apply(kCrossEntropyTotal, operands, 2,
        AttributeList(2).set(0, ignore_index).set(1, reduction == Reduction::mean), out);
  return out[0];
}

// ---- cross-entropy ----

// Attributes of cross_entropy: ignore_index, reduction, label_smoothing.
double smoothing_of(const Use& use) {
  const double smoothing = use.attributes.real(2);
  if (!(smoothing >= 0 && smoothing <= 1))
    fail(ErrorKind::value, "cross_entropy: label_smoothing must be from 0 to 1, got ", smoothing);
  return smoothing;
}

// Targets are probabilities of the classes, of the shape of the logits.
Tensor of_probabilities(const Use& use, double smoothing) {
  const Tensor& logits = use.in[0].tensor;
  if (use.attributes[0] >= 0)
    fail(ErrorKind::value, "cross_entropy: ignore_index is for class indices, not probabilities");
  const DType wide = working_dtype(promote(logits.dtype(), use.in[1].tensor.dtype()));
  const Tensor x = with_batch(astype(logits, wide));
  Tensor likely = with_batch(astype(use.in[1].tensor, wide));
  if (smoothing > 0) likely = likely * (1 - smoothing) + smoothing / static_cast<double>(x.size(1));
  if (const Tensor weight = class_weights(use, logits))
    likely = likely * along_classes(astype(weight, wide), x);
  const Tensor losses = -sum(log_softmax(x, 1) * likely, {1}, false);
  Shape shape = logits.shape();
  shape.erase(class_axis(logits));
  const auto reduction = static_cast<Reduction>(use.attributes[1]);
  if (reduction == Reduction::mean) return mean(losses, {}, false);
  return reduced_rows(losses, {}, reduction, shape);
}

// By the logarithms of all classes. A share of each row's loss is the mean over them.
Tensor smoothed(const Tensor& x, const Targets& t, const Tensor& weight, const Tensor& weights,
                double smoothing) {
  const Tensor log_likelihood = log_softmax(x, 1);
  Tensor losses = picked(log_likelihood, t);
  if (weight) losses = losses * weights;
  if (smoothing == 0) return losses;
  const Tensor each = weight ? log_likelihood * along_classes(weight, x) : log_likelihood;
  const Tensor all = where(t.counts, -sum(each, {1}, false), 0);
  return losses * (1 - smoothing) + all * (smoothing / static_cast<double>(x.size(1)));
}

// Rows of two axes have a kernel; others are not moved into rows for it.
Tensor of_classes(const Use& use, double smoothing) {
  check_classes(use, "logits", "targets");
  const Tensor &logits = use.in[0].tensor, &targets = use.in[1].tensor;
  const Tensor x = with_batch(astype(logits, working_dtype(logits.dtype())));
  Tensor weight = class_weights(use, logits), weights;
  if (weight) weight = astype(weight, x.dtype());
  const auto reduction = static_cast<Reduction>(use.attributes[1]);
  const bool has_kernel = x.rank() == 2 && smoothing == 0;
  if (has_kernel && !weight && reduction != Reduction::none &&
      active_kernel_set() == KernelSet::cuda)
    return total_of_rows(x, targets, use.attributes[0], reduction);
  const Tensor classes = classes_of_batch(targets, true);
  Targets t;
  if (weight || !has_kernel) {
    t = targets_of(classes, x.size(1), use.attributes[0], Indexing::cross_entropy);
    weights = weight ? row_weights(weight, t) : astype(t.counts, x.dtype());
  }
  Tensor losses, total;
  if (has_kernel) {
    Tensor rows[3];
    const Operand operands[] = {x, classes};
    apply(kCrossEntropyRows, operands, 2, AttributeList(1).set(0, use.attributes[0]), rows);
    losses = weight ? rows[0] * weights : rows[0];
    total = rows[2];
  } else {
    losses = smoothed(x, t, weight, weights, smoothing);
  }
  if (weights && reduction == Reduction::mean) total = sum(weights, {}, false);
  return reduced_rows(losses, total, reduction, targets.shape());
}

void cross_entropy_body(const Use& use, Tensor* out) {
  const Tensor &logits = use.in[0].tensor, &targets = use.in[1].tensor;
  const double smoothing = smoothing_of(use);
  const bool is_probable = is_floating(targets.dtype()) && is_floating(logits.dtype()) &&
                           logits.rank() && targets.shape() == logits.shape();
  out[0] = astype(is_probable ? of_probabilities(use, smoothing) : of_classes(use, smoothing),
                  logits.dtype());
}

}  // namespace

constexpr OpRecord kNllLoss = {
    .name = "nll_loss",
    .signature =
        "(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, "
        "reduction: 'mean' | 'sum' | 'none' = 'mean') -> Tensor",
    .help =
        "-input[target] of log-likelihoods (n, classes, d, ...) and class indices (n, d, ...), "
        "times the weights of the targets; the mean is over their sum.\n"
        "Targets that are ignore_index count for nothing. Raises IndexError for other targets out "
        "of range, ValueError for other shapes.\n"
        "Shapes: input (n, classes, d, ...) or (classes,), target (n, d, ...) or (); the result is "
        "(), or of target's shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises TypeError for targets that are not integers.\n"
        "Source: PyTorch's torch.nn.functional.nll_loss.",
    .flags = kFunction,
    .body = nll_body,
    .autocast = Autocast::wide};
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
          v.give(0, apply(kCrossEntropyRowsBackward, {v.in(0), v.in(1), v.out(1), v.g()},
                          v.attributes()));
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
constexpr OpRecord kCrossEntropyTotal = {
    .name = "cross_entropy_total",
    .signature = "(logits: Tensor, targets: Tensor, ignore_index: int, mean: bool) -> Tensor",
    .help =
        "Negative log-likelihood of all rows that count, or its mean; norms of the rows, how many "
        "count, a copy of the targets.",
    .results = 4,
    .infer = infer_total,
    .estimate = estimate,
    .body = total_body,
    .vjp =
        [](Vjp& v) {
          v.give(0, apply(kCrossEntropyTotalBackward,
                          {v.in(0), v.out(3), v.out(1), v.out(2), v.g()}, v.attributes()));
        },
    .reads = {{.inputs = 1, .results = 2 | 4 | 8}}};
constexpr OpRecord kCrossEntropyTotalBackward = {
    .name = "cross_entropy_total_backward",
    .signature =
        "(logits: Tensor, targets: Tensor, norms: Tensor, counted: Tensor, g: Tensor, "
        "ignore_index: int, mean: bool) -> Tensor",
    .help = "(softmax(logits) - onehot(targets)) * g, over counted of a mean.",
    .infer = infer_rows_backward,
    .estimate = estimate,
    .body = total_backward_body};
constexpr OpRecord kCrossEntropy = {
    .name = "cross_entropy",
    .signature =
        "(logits: Tensor, targets: Tensor, weight: Tensor | None = None, ignore_index: int = -100, "
        "reduction: 'mean' | 'sum' | 'none' = 'mean', label_smoothing: float = 0.0) -> Tensor",
    .help =
        "Negative log-likelihood of integer targets (n, d, ...) under logits (n, classes, d, ...), "
        "or of probabilities of the logits' shape.\n"
        "weight has one number for each class; label_smoothing mixes targets with uniform ones "
        "(Szegedy et al., 2016). Targets that are ignore_index count for nothing. Raises "
        "IndexError for other targets out of range, ValueError for other shapes.\n"
        "Shapes: logits (n, classes, d, ...) or (classes,), targets (n, d, ...) or (), or of the "
        "logits' shape; the result is (), or of the shape without classes for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises TypeError for targets that are neither integers nor of the logits' shape and "
        "floating.\n"
        "Source: PyTorch's torch.nn.functional.cross_entropy.",
    .flags = kFunction,
    .body = cross_entropy_body,
    .autocast = Autocast::wide};

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction,
                     std::int64_t ignore_index) {
  return apply(kCrossEntropy, {logits, targets, Operand::none()},
               AttributeList(3)
                   .set(0, ignore_index)
                   .set(1, static_cast<Attribute>(reduction))
                   .set(2, attribute_of(0.0)));
}

}  // namespace tw
