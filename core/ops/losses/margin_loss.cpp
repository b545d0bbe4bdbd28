// Losses of classes by margins, and of several labels at once.
#include "core/autograd/grad_mode.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/move/index.h"
#include "core/ops/losses/loss_reduction.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/move/scatter.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

// In the type that losses are computed in.
Tensor checked_input(const Use& use) {
  const Tensor& x = use.in[0].tensor;
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, use.op.name, ": input must be floating-point, got ", name_of(x.dtype()));
  return astype(x, working_dtype(x.dtype()));
}
void check_labels(const Use& use) {
  const DType dtype = use.in[1].tensor.dtype();
  if (!is_integer(dtype))
    fail(ErrorKind::type, use.op.name, ": target must be integers, got ", name_of(dtype));
}
Tensor reduced(const Use& use, const Tensor& losses, Attribute reduction) {
  const DType own = use.in[0].tensor.dtype();
  switch (static_cast<Reduction>(reduction)) {
    case Reduction::mean: return astype(mean(losses, {}, false), own);
    case Reduction::sum: return astype(sum(losses, {}, false), own);
    default: return astype(losses, own);
  }
}

// Attributes: p, margin, reduction.
void multi_margin_body(const Use& use, Tensor* out) {
  const Tensor &given = use.in[0].tensor, &target = use.in[1].tensor;
  const Attribute p = use.attributes[0];
  const bool batched = given.rank() == 2;
  if (p != 1 && p != 2) fail(ErrorKind::value, "multi_margin_loss: p is 1 or 2, got ", p);
  const bool fits = batched ? target.rank() == 1 && target.size(0) == given.size(0)
                            : given.rank() == 1 && target.count() == 1 && target.rank() < 2;
  if (!fits || given.size(given.rank() - 1) == 0)
    fail(ErrorKind::value,
         "multi_margin_loss: expected input (n, classes) and target (n,), or (classes,) and (), "
         "got ",
         given.shape(), " and ", target.shape());
  check_labels(use);
  const Tensor own = checked_input(use);
  const Tensor x = batched ? own : expand_dims(own, 0);
  const int64_t classes = x.size(1);
  const Tensor labels =
      checked_indices(batched ? target : reshape(target, {1}), classes, kNone, Indexing::nll_loss);
  const Tensor column = expand_dims(labels, 1);
  const Tensor right = gather_along(x, column, 1, AlongUser::gather);
  Tensor lack = relu(x - right + use.attributes.real(1));
  if (p == 2) lack = square(lack);
  if (use.in[2].is_tensor()) {
    const Tensor& weight = use.in[2].tensor;
    if (weight.rank() != 1 || weight.size(0) != classes)
      fail(ErrorKind::value, "multi_margin_loss: weight ", weight.shape(), " does not fit ",
           classes, " classes");
    const Tensor of_rows =
        apply(kTake, {astype(weight, x.dtype()), labels}, AttributeList(1).set(0, 0));
    lack = lack * expand_dims(of_rows, 1);
  }
  const Tensor others =
      apply(kOneHot, {labels}, AttributeList(2).set(0, classes).set(1, attribute_of(DType::bool_)));
  const Tensor terms = where(others, 0.0, lack);
  const Tensor losses = sum(terms, Axes{1}, false) / static_cast<double>(classes);
  out[0] = reduced(use, batched ? losses : reshape(losses, {}), use.attributes[2]);
}

// Attribute: reduction. Labels count up to the first that is negative.
void multilabel_margin_body(const Use& use, Tensor* out) {
  const Tensor &given = use.in[0].tensor, &target = use.in[1].tensor;
  if ((given.rank() != 1 && given.rank() != 2) || !(given.shape() == target.shape()))
    fail(ErrorKind::value,
         "multilabel_margin_loss: expected input and target of one shape, (n, classes) or "
         "(classes,), got ",
         given.shape(), " and ", target.shape());
  check_labels(use);
  const bool batched = given.rank() == 2;
  const Tensor own = checked_input(use);
  const Tensor x = batched ? own : expand_dims(own, 0);
  const int64_t n = x.size(0), classes = x.size(1);
  Tensor counts, labels, is_label;
  {
    const GradModeGuard off(false);
    const Tensor wide = astype(batched ? target : expand_dims(target, 0), DType::int64);
    const Tensor ends = astype(less(wide, 0), DType::int64);
    counts =
        equal(apply(kCumulativeSum, {ends}, AttributeList(3).set(0, 1).set(1, kNone).set(2, 0)), 0);
    labels = checked_indices(where(counts, wide, 0), classes, kNone, Indexing::nll_loss);
    const Tensor none = astype(where(counts, 0, 0), DType::float32);
    is_label = greater(
        scatter_add_along(none, labels, astype(counts, DType::float32), 1, AlongUser::scatter_add),
        0);
  }
  const Tensor right = expand_dims(gather_along(x, labels, 1, AlongUser::gather), 2);
  const Tensor lack = relu(expand_dims(x, 1) - right + 1);  // (n, labels, classes)
  const Tensor wanted = expand_dims(counts, 2) & expand_dims(logical_not(is_label), 1);
  const Tensor terms = reshape(where(wanted, lack, 0.0), {n, classes * classes});
  const Tensor losses = sum(terms, Axes{1}, false) / static_cast<double>(classes);
  out[0] = reduced(use, batched ? losses : reshape(losses, {}), use.attributes[0]);
}

// Attribute: reduction.
void multilabel_soft_margin_body(const Use& use, Tensor* out) {
  const Tensor &given = use.in[0].tensor, &target = use.in[1].tensor;
  if (given.rank() == 0 || !(given.shape() == target.shape()))
    fail(ErrorKind::value,
         "multilabel_soft_margin_loss: expected input and target of one shape, (..., classes), "
         "got ",
         given.shape(), " and ", target.shape());
  const LossInputs in(use);
  const Tensor x = in[0], t = in[1];
  Tensor losses = (t - 1) * logsigmoid(-x) - t * logsigmoid(x);
  if (in.has(2)) losses = losses * in[2];
  out[0] = in.reduced(mean(losses, Axes{-1}, false), use.attributes[0]);
}

}  // namespace

#define TW_REDUCED "reduction: 'mean' | 'sum' | 'none' = 'mean'"

constexpr OpRecord kMultiMarginLoss = {
    .name = "multi_margin_loss",
    .signature =
        "(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = "
        "None, " TW_REDUCED ") -> Tensor",
    .help =
        "max(0, margin - input[target] + input[i]) ** p of all other classes i, over the number of "
        "classes: input (n, classes) and target (n,), or (classes,) and (). weight is one number "
        "for each target class.\n"
        "Raises ValueError for shapes that do not fit and a p that is neither 1 nor 2, IndexError "
        "for targets out of range.\n"
        "Shapes: input (n, classes) and target (n,), or (classes,) and (); weight (classes,); the "
        "result is (), or of target's shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.multi_margin_loss.",
    .flags = kFunction,
    .body = multi_margin_body,
    .autocast = Autocast::wide};
constexpr OpRecord kMultilabelMarginLoss = {
    .name = "multilabel_margin_loss",
    .signature = "(input: Tensor, target: Tensor, " TW_REDUCED ") -> Tensor",
    .help =
        "max(0, 1 - input[label] + input[i]) of all labels and all classes i that are none, over "
        "the number of classes: input (n, classes), or (classes,), and target of its shape, whose "
        "labels stand in front of the first -1.\n"
        "Raises ValueError for shapes that differ, IndexError for labels out of range.\n"
        "Shapes: input and target (n, classes), or (classes,); the result is (), or (n,) for "
        "'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.multilabel_margin_loss.",
    .flags = kFunction,
    .body = multilabel_margin_body,
    .autocast = Autocast::wide};
constexpr OpRecord kMultilabelSoftMarginLoss = {
    .name = "multilabel_soft_margin_loss",
    .signature =
        "(input: Tensor, target: Tensor, weight: Tensor | None = None, " TW_REDUCED ") -> Tensor",
    .help =
        "The mean over the classes, along the last axis, of binary_cross_entropy_with_logits, "
        "times weight.\n"
        "Raises ValueError for shapes that differ.\n"
        "Shapes: input and target (..., classes); the result is (), or (...) for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.multilabel_soft_margin_loss.",
    .flags = kFunction,
    .body = multilabel_soft_margin_body,
    .autocast = Autocast::wide};

}  // namespace tw
