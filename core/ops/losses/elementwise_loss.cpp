// Losses of an input and what it should be, element by element, made of other ops.
#include "core/ops/losses/loss_reduction.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/autograd/grad_mode.h"
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/base/modes.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

DType type_of_loss(const Use& use) {
  DType type = use.in[0].tensor.dtype();
  for (int i = 1; i < use.inputs; ++i)
    if (use.in[i].is_tensor()) type = promote(type, use.in[i].tensor.dtype());
  if (!is_floating(type))
    fail(ErrorKind::type, use.op.name, ": needs floating-point inputs, got ",
         name_of(use.in[0].tensor.dtype()), " and ", name_of(use.in[1].tensor.dtype()),
         "; convert with astype(float32)");
  return type;
}

void check_same_shape(const Use& use) {
  const Tensor &x = use.in[0].tensor, &y = use.in[1].tensor;
  if (!(x.shape() == y.shape()))
    fail(ErrorKind::value, use.op.name, ": shapes differ: ", x.shape(), " and ", y.shape());
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Not relu: where x is 0, the gradient goes through, as PyTorch's does.
Tensor at_least_0(const Tensor& x) { return clip(x, 0, kInfinity); }

// ---- distances ----

void mse_body(const Use& use, Tensor* out) {
  check_same_shape(use);
  const LossInputs in(use);
  out[0] = in.reduced(square_distance(in[0], in[1]), use.attributes[0]);
}
void l1_body(const Use& use, Tensor* out) {
  check_same_shape(use);
  const LossInputs in(use);
  out[0] = in.reduced(abs(in[0] - in[1]), use.attributes[0]);
}

// m * (d - m / 2) for a difference d and m, which is d within `end` of 0: a parabola that goes over
// into lines of the same slope. Not by |d|, whose corner at 0 would hide the curvature there.
Tensor parabola_with_lines(const Tensor& d, double end, double scale) {
  const Tensor m = clip(d, -end, end);
  return (scale == 1 ? m : m / scale) * (d - m * 0.5);
}
// Attributes: reduction, where the parabola ends.
void smooth_l1_body(const Use& use, Tensor* out) {
  check_same_shape(use);
  const LossInputs in(use);
  const double beta = use.attributes.real(1);
  if (!(beta >= 0)) fail(ErrorKind::value, "smooth_l1_loss: beta is negative: ", beta);
  if (beta == 1) {
    out[0] = in.reduced(huber_distance(in[0], in[1]), use.attributes[0]);
    return;
  }
  const Tensor d = in[0] - in[1];
  out[0] = in.reduced(beta == 0 ? abs(d) : parabola_with_lines(d, beta, beta), use.attributes[0]);
}
void huber_body(const Use& use, Tensor* out) {
  check_same_shape(use);
  const LossInputs in(use);
  const double delta = use.attributes.real(1);
  if (!(delta > 0)) fail(ErrorKind::value, "huber_loss: delta must be above 0, got ", delta);
  if (delta == 1) {
    out[0] = in.reduced(huber_distance(in[0], in[1]), use.attributes[0]);
    return;
  }
  out[0] = in.reduced(parabola_with_lines(in[0] - in[1], delta, 1), use.attributes[0]);
}

// ---- probabilities ----

// Logarithms are at least -100, so that certainty in what is wrong costs a finite number.
void bce_terms_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &t = use.in[1].tensor;
  const Tensor of_others = maximum(log1p(-x), -100);
  out[0] = (t - 1) * of_others - t * maximum(log(x), -100);
}
void bce_terms_vjp(Vjp& v) {
  const Tensor x = v.in(0).tensor;
  if (v.wants(0)) v.give(0, v.g() * (x - v.in(1)) / maximum((1 - x) * x, 1e-12));
  if (v.wants(1)) v.give(1, v.g() * (maximum(log1p(-x), -100) - maximum(log(x), -100)));
}
bool is_nan(const Tensor& number) {
  constexpr char kWhat[] = "binary_cross_entropy reads whether the loss is NaN";
  if (number.dtype() == DType::float32) return std::isnan(*HostValues(number, kWhat).as<float>());
  const Tensor wide = astype(number, DType::float64);
  return std::isnan(*HostValues(wide, kWhat).as<double>());
}
// What lies outside has a loss of NaN: only where there is one are all inputs looked at.
void check_probabilities(const Tensor& x, const Tensor& loss) {
  if (!shows_values(x)) return;
  const GradModeGuard off(false);
  if (!is_nan(loss.rank() ? max(loss, {}, false) : loss)) return;
  if (holds_any((x < Operand(0)) | (x > Operand(1)), "binary_cross_entropy"))
    fail(ErrorKind::value,
         "binary_cross_entropy: input must lie from 0 to 1; of logits it is "
         "binary_cross_entropy_with_logits");
}
void bce_body(const Use& use, Tensor* out) {
  check_same_shape(use);
  const LossInputs in(use);
  const Tensor losses = apply(kBinaryCrossEntropyTerms, {in[0], in[1]});
  out[0] = in.reduced(in.has(2) ? losses * in[2] : losses, use.attributes[0]);
  check_probabilities(in[0], out[0]);
}
// With weights, both logarithms as they are: none is the small difference of large numbers.
void bce_with_logits_body(const Use& use, Tensor* out) {
  check_same_shape(use);
  const LossInputs in(use);
  const Tensor x = in[0], t = in[1];
  const Tensor losses =
      in.has(3) ? (t - 1) * logsigmoid(-x) - t * in[3] * logsigmoid(x) : logistic_loss(x, t);
  out[0] = in.reduced(in.has(2) ? losses * in[2] : losses, use.attributes[0]);
}

// Attributes: reduction, with 'batchmean' behind the others, and log_target.
void kl_div_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Tensor x = in[0], t = in[1];
  const Tensor losses =
      use.attributes.flag(1) ? exp(t) * (t - x) : t * log(where(t == Operand(0), 1, t)) - t * x;
  if (use.attributes[0] != 3) {
    out[0] = in.reduced(losses, use.attributes[0]);
    return;
  }
  const auto batch = x.rank() ? static_cast<double>(x.size(0)) : 1.0;
  out[0] = in.in_own_type(sum(losses, {}, false) / batch);
}

// Attributes: full, eps, reduction. What var lacks of eps passes no gradient: var's own is as if it
// had been eps.
void gaussian_nll_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Tensor x = in[0], t = in[1];
  Tensor var = in[2];
  const double eps = use.attributes.real(1);
  if (!(eps > 0)) fail(ErrorKind::value, "gaussian_nll_loss: eps must be above 0, got ", eps);
  Shape without_last = x.shape(), last_is_1 = x.shape();
  if (x.rank()) {
    without_last.erase(x.rank() - 1);
    last_is_1[x.rank() - 1] = 1;
  }
  if (x.rank() && var.shape() == without_last && !(var.shape() == x.shape()))
    var = expand_dims(var, -1);
  else if (!(var.shape() == x.shape()) && !(var.shape() == last_is_1) && var.rank())
    fail(ErrorKind::value, "gaussian_nll_loss: var ", var.shape(),
         " does not fit an input of shape ", x.shape());
  Tensor lack;
  {
    GradModeGuard off(false);
    if (shows_values(var) && holds_any(var < Operand(0), "gaussian_nll_loss"))
      fail(ErrorKind::value, "gaussian_nll_loss: var has negative elements");
    lack = maximum(var, eps) - var;
  }
  const Tensor v = var + lack;
  Tensor losses = (log(v) + square(x - t) / v) * 0.5;
  if (use.attributes.flag(0)) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  out[0] = in.reduced(losses, use.attributes[2]);
}

// Attributes: log_input, full, eps, reduction. Full: with Stirling's approximation of log(t!).
void poisson_nll_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Tensor x = in[0], t = in[1];
  Tensor losses = use.attributes.flag(0) ? exp(x) - t * x : x - t * log(x + use.attributes.real(2));
  if (use.attributes.flag(1)) {
    const Tensor large = t > Operand(1), some = where(large, t, 1);
    const Tensor stirling = some * log(some) - some + 0.5 * log(2 * std::numbers::pi * some);
    losses = losses + where(large, stirling, 0);
  }
  out[0] = in.reduced(losses, use.attributes[3]);
}

// ---- margins ----

void soft_margin_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  out[0] = in.reduced(-logsigmoid(in[0] * in[1]), use.attributes[0]);
}
// Attributes of those with a margin: margin, reduction.
void hinge_embedding_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Tensor x = in[0], t = in[1];
  const Tensor apart = where(t == Operand(1), 0, at_least_0(use.attributes.real(0) - x));
  out[0] = in.reduced(apart + where(t == Operand(-1), 0, x), use.attributes[1]);
}
void margin_ranking_body(const Use& use, Tensor* out) {
  const LossInputs in(use);
  const Tensor behind = in[2] * (in[1] - in[0]);
  out[0] = in.reduced(at_least_0(behind + use.attributes.real(0)), use.attributes[1]);
}

}  // namespace

LossInputs::LossInputs(const Use& use) : use_(use), type_(type_of_loss(use)) {}
Tensor LossInputs::operator[](int i) const {
  return astype(use_.in[i].tensor, working_dtype(type_));
}
Tensor LossInputs::in_own_type(const Tensor& loss) const { return astype(loss, type_); }
Tensor LossInputs::reduced(const Tensor& losses, Attribute reduction) const {
  switch (static_cast<Reduction>(reduction)) {
    case Reduction::mean: return in_own_type(mean(losses, {}, false));
    case Reduction::sum: return in_own_type(sum(losses, {}, false));
    default: return in_own_type(losses);
  }
}

#define TW_REDUCED "reduction: 'mean' | 'sum' | 'none' = 'mean'"

constexpr OpRecord kMseLoss = {
    .name = "mse_loss",
    .signature = "(x: Tensor, y: Tensor, " TW_REDUCED ") -> Tensor",
    .help =
        "Squared differences, averaged by default.\n"
        "16-bit numbers are squared and added up in float32.\n"
        "Shapes: x and y of one shape; the result is (), or of that shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that differ.\n"
        "Source: PyTorch's torch.nn.functional.mse_loss.",
    .flags = kFunction,
    .body = mse_body,
    .autocast = Autocast::wide};
constexpr OpRecord kL1Loss = {
    .name = "l1_loss",
    .signature = "(input: Tensor, target: Tensor, " TW_REDUCED ") -> Tensor",
    .help =
        "Absolute differences, averaged by default; shapes must be equal.\n"
        "Shapes: input and target of one shape; the result is (), or of that shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that differ.\n"
        "Source: PyTorch's torch.nn.functional.l1_loss.",
    .flags = kFunction,
    .body = l1_body,
    .autocast = Autocast::wide};
constexpr OpRecord kSmoothL1Loss = {
    .name = "smooth_l1_loss",
    .signature = "(input: Tensor, target: Tensor, " TW_REDUCED ", beta: float = 1.0) -> Tensor",
    .help =
        "Differences d as d * d / (2 * beta) below beta, and |d| - beta / 2 above (Girshick, "
        "2015).\n"
        "Raises ValueError for shapes that differ and a negative beta.\n"
        "Shapes: input and target of one shape; the result is (), or of that shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.smooth_l1_loss.",
    .flags = kFunction,
    .body = smooth_l1_body,
    .autocast = Autocast::wide};
constexpr OpRecord kHuberLoss = {
    .name = "huber_loss",
    .signature = "(input: Tensor, target: Tensor, " TW_REDUCED ", delta: float = 1.0) -> Tensor",
    .help =
        "Differences d as d * d / 2 below delta, and delta * (|d| - delta / 2) above (Huber, "
        "1964).\n"
        "Raises ValueError for shapes that differ and delta <= 0.\n"
        "Shapes: input and target of one shape; the result is (), or of that shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.huber_loss.",
    .flags = kFunction,
    .body = huber_body,
    .autocast = Autocast::wide};
constexpr OpRecord kBinaryCrossEntropyTerms = {
    .name = "binary_cross_entropy_terms",
    .signature = "(input: Tensor, target: Tensor) -> Tensor",
    .help = "-target * log(input) - (1 - target) * log(1 - input), logarithms at least -100.",
    .body = bce_terms_body,
    .vjp = bce_terms_vjp,
    .reads = {{.inputs = 3}, {.inputs = 1}}};
constexpr OpRecord kBinaryCrossEntropy = {
    .name = "binary_cross_entropy",
    .signature =
        "(input: Tensor, target: Tensor, weight: Tensor | None = None, " TW_REDUCED ") -> Tensor",
    .help =
        "Negative log-likelihood of targets from 0 to 1 under probabilities; NaN stays.\n"
        "Logarithms are at least -100. Raises ValueError for shapes that differ and, on the CPU, "
        "for inputs outside [0, 1], which are NaN elsewhere and in a capture. Targets outside "
        "[0, 1] are taken as they are, as by PyTorch: the loss may then be negative.\n"
        "Shapes: input and target of one shape, weight broadcasts to it; the result is (), or of "
        "that shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.binary_cross_entropy.",
    .flags = kFunction,
    .body = bce_body,
    .autocast = Autocast::wide};
constexpr OpRecord kBinaryCrossEntropyWithLogits = {
    .name = "binary_cross_entropy_with_logits",
    .signature = "(input: Tensor, target: Tensor, weight: Tensor | None = None, " TW_REDUCED
                 ", pos_weight: Tensor | None = None) -> Tensor",
    .help =
        "binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies what "
        "positive targets cost.\n"
        "Raises ValueError for shapes that differ.\n"
        "Shapes: input and target of one shape, weight and pos_weight broadcast to it; the result "
        "is (), or of that shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.binary_cross_entropy_with_logits.",
    .flags = kFunction,
    .body = bce_with_logits_body,
    .autocast = Autocast::wide};
constexpr OpRecord kKlDiv = {
    .name = "kl_div",
    .signature =
        "(input: Tensor, target: Tensor, reduction: 'mean' | 'sum' | 'none' | 'batchmean' = "
        "'mean', log_target: bool = False) -> Tensor",
    .help =
        "target * (log(target) - input): Kullback and Leibler's divergence of log-probabilities "
        "from probabilities, or from their logarithms.\n"
        "'batchmean' is the sum over the length of the first axis.\n"
        "Shapes: input and target broadcast; the result is (), or of their common shape for "
        "'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.nn.functional.kl_div.",
    .flags = kFunction,
    .body = kl_div_body,
    .autocast = Autocast::wide};
constexpr OpRecord kGaussianNllLoss = {
    .name = "gaussian_nll_loss",
    .signature =
        "(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = "
        "1e-06, " TW_REDUCED ") -> Tensor",
    .help =
        "Negative log-likelihood of targets under normal distributions of means and variances "
        "(Nix, Weigend, 1994).\n"
        "var has the input's shape, or one number for its last axis; below eps it counts as eps. "
        "full adds log(2 * pi) / 2. Raises ValueError for other shapes and, on the CPU, for "
        "negative variances.\n"
        "Shapes: input and target of one shape, var of that shape, or without its last axis, or "
        "with extent 1 there; the result is (), or of input's shape for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.gaussian_nll_loss.",
    .flags = kFunction,
    .body = gaussian_nll_body,
    .autocast = Autocast::wide};
constexpr OpRecord kPoissonNllLoss = {
    .name = "poisson_nll_loss",
    .signature =
        "(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = "
        "1e-08, " TW_REDUCED ") -> Tensor",
    .help =
        "Negative log-likelihood of counts under Poisson distributions of means, or of their "
        "logarithms.\n"
        "full adds Stirling's approximation of log(target!).\n"
        "Shapes: input and target broadcast; the result is (), or of their common shape for "
        "'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.nn.functional.poisson_nll_loss.",
    .flags = kFunction,
    .body = poisson_nll_body,
    .autocast = Autocast::wide};
constexpr OpRecord kSoftMarginLoss = {
    .name = "soft_margin_loss",
    .signature = "(input: Tensor, target: Tensor, " TW_REDUCED ") -> Tensor",
    .help =
        "log(1 + exp(-target * input)) for targets 1 and -1, without overflow.\n"
        "Shapes: input and target broadcast; the result is (), or of their common shape for "
        "'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.nn.functional.soft_margin_loss.",
    .flags = kFunction,
    .body = soft_margin_body,
    .autocast = Autocast::wide};
constexpr OpRecord kHingeEmbeddingLoss = {
    .name = "hinge_embedding_loss",
    .signature = "(input: Tensor, target: Tensor, margin: float = 1.0, " TW_REDUCED ") -> Tensor",
    .help =
        "Distances as they are where the target is 1, and what they lack of the margin where it is "
        "-1.\n"
        "Shapes: input and target broadcast; the result is (), or of their common shape for "
        "'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.nn.functional.hinge_embedding_loss.",
    .flags = kFunction,
    .body = hinge_embedding_body,
    .autocast = Autocast::wide};
constexpr OpRecord kMarginRankingLoss = {
    .name = "margin_ranking_loss",
    .signature = "(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, " TW_REDUCED
                 ") -> Tensor",
    .help =
        "max(0, margin - target * (input1 - input2)): 0 where the first is above the second by the "
        "margin (target 1), or below (target -1).\n"
        "Shapes: input1, input2 and target broadcast; the result is (), or of their common shape "
        "for 'none'.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.nn.functional.margin_ranking_loss.",
    .flags = kFunction,
    .body = margin_ranking_body,
    .autocast = Autocast::wide};

#undef TW_REDUCED

}  // namespace tw
