// Layer, RMS, group, instance and batch normalisation: checks, running statistics, gradients.
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/arange.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

// ---- x as [outer, groups, channels, inner], normalised over rows or over channels ----

// Attributes: groups, channels, inner, eps, centered; of gradients also whether weight and bias get
// one.
void infer_normalized(Call& call, Result* results, std::int64_t sets) {
  const Meta& x = call.in[0];
  results[0].like = 0;
  results[0].dtype = x.dtype;
  for (int i = 1; i < call.op->results; ++i) {
    results[i].shape = {sets};
    results[i].dtype = working_dtype(x.dtype);
  }
}
std::int64_t outer_of(std::int64_t count, Attributes attributes) {
  const std::int64_t of_place = attributes[0] * attributes[1] * attributes[2];
  return of_place ? count / of_place : 0;
}
void infer_rows(Call& call, Result* results) {
  infer_normalized(call, results, outer_of(call.in[0].count, call.attributes) * call.attributes[0]);
}
void infer_channels(Call& call, Result* results) {
  infer_normalized(call, results, call.attributes[1]);
}
void infer_backward(Call& call, Result* results) {
  infer_normalized(call, results,
                   call.attributes.flag(5) ? call.attributes[0] * call.attributes[1] : 0);
}
// Three passes over a set in cache; memory is read and written once.
Estimate estimate(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  return {8 * count, 3 * count * static_cast<double>(size_of(call.in[0].dtype))};
}

const Axes kOfRows = {2, 3}, kOfChannels = {0, 3};

// In terms of other ops; the statistics keep all four axes. y is normalised. Where squares leave
// the range, x is scaled by a power of two for each set, and eps with its square.
struct Normalized {
  Shape shape;
  Tensor y, mean, variance, rstd;

  Normalized(const Tensor& x, Attributes attributes, const Axes& axes)
      : shape{outer_of(x.count(), attributes), attributes[0], attributes[1], attributes[2]} {
    const Tensor wide = reshape(x, shape);
    const double eps = attributes.real(3);
    find(wide, attributes.flag(4), eps, axes);
    const SafeRange range = range_of_sums(x.dtype());
    const Tensor known = variance.detached() + eps;
    if (!x.count() || !any_outside(known, range)) return;
    const Tensor scale = scale_of(known, range, max(abs(wide.detached()), axes, true));
    find(wide * scale, attributes.flag(4), scale * eps * scale, axes);
    mean = mean / scale;
    variance = variance / scale / scale;
    rstd = rstd * scale;
  }

 private:
  void find(const Tensor& x, bool centered, const Operand& eps, const Axes& axes) {
    mean = tw::mean(centered ? x : x * 0, axes, true);
    const Tensor distance = centered ? x - mean : x;
    variance = tw::mean(square(distance), axes, true);
    rstd = rsqrt(variance + eps);
    y = distance * rstd;
  }
};
// Of a scale for each (group, channel).
Tensor spread(const Tensor& scale, Attributes attributes) {
  return reshape(scale, {attributes[0], attributes[1], 1});
}
Tensor flat(const Tensor& x) { return reshape(x, {x.count()}); }

void body(const Use& use, Tensor* out, const Axes& axes) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor, &bias = use.in[2].tensor;
  const Normalized n(x, use.attributes, axes);
  Tensor y = n.y;
  if (weight) y = y * spread(weight, use.attributes);
  if (bias) y = y + spread(bias, use.attributes);
  out[0] = reshape(y, x.shape());
  out[1] = flat(n.mean);
  out[2] = flat(n.rstd);
  if (use.op.results == 4) out[3] = flat(n.variance);
}
// From g, x, mean, rstd, weight. The statistics are computed anew: their gradients are a part of
// the second one.
void backward_body(const Use& use, Tensor* out, const Axes& axes) {
  const Tensor &x = use.in[1].tensor, &weight = use.in[4].tensor;
  const Normalized n(x, use.attributes, axes);
  const Tensor g = reshape(use.in[0].tensor, n.shape), y = n.y;
  const Tensor gw = weight ? g * spread(weight, use.attributes) : g;
  Tensor dx = gw - y * mean(gw * y, axes, true);
  if (use.attributes.flag(4)) dx = dx - mean(gw, axes, true);
  out[0] = reshape(dx * n.rstd, x.shape());
  const bool affine = use.attributes.flag(5);
  out[1] = affine ? flat(sum(g * y, {0, 3}, false)) : zeros({0}, y.dtype());
  out[2] = affine ? flat(sum(g, {0, 3}, false)) : zeros({0}, y.dtype());
}

// The sums by channel run over sets, of which an empty input may have none.
void give_zeros(Vjp& v) {
  const Tensor x = v.in(0).tensor;
  if (v.wants(0)) v.give(0, zeros(x.shape(), x.dtype()));
  for (int i = 1; i < 3; ++i)
    if (v.wants(i))
      v.give(i, zeros({v.attributes()[0] * v.attributes()[1]}, working_dtype(x.dtype())));
}
void vjp(Vjp& v, const OpRecord& backward) {
  if (!v.in(0).tensor.count()) {
    give_zeros(v);
    return;
  }
  const Operand in[] = {v.g(), v.in(0), v.out(1), v.out(2), v.in(1)};
  AttributeList attributes(v.attributes().at, 6);
  attributes.set(5, v.wants(1) || v.wants(2));
  Tensor d[3];
  apply(backward, in, 5, attributes, d);
  for (int i = 0; i < 3; ++i)
    if (v.wants(i)) v.give(i, d[i]);
}
constexpr Reads kReads = {.inputs = 3, .results = 6};

}  // namespace

constexpr OpRecord kNormalizeRowsBackward = {
    .name = "normalize_rows_backward",
    .signature =
        "(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, groups: int, "
        "channels: int, inner: int, eps: float, centered: bool, affine: bool) -> Tensor",
    .help = "The gradients of normalize_rows by x, weight and bias.",
    .flags = kWidensAll,
    .results = 3,
    .infer = infer_backward,
    .estimate = estimate,
    .body = [](const Use& use, Tensor* out) { backward_body(use, out, kOfRows); }};
constexpr OpRecord kNormalizeChannelsBackward = {
    .name = "normalize_channels_backward",
    .signature = kNormalizeRowsBackward.signature,
    .help = "The gradients of normalize_channels by x, weight and bias.",
    .flags = kWidensAll,
    .results = 3,
    .infer = infer_backward,
    .estimate = estimate,
    .body = [](const Use& use, Tensor* out) { backward_body(use, out, kOfChannels); }};

constexpr OpRecord kNormalizeRows = {
    .name = "normalize_rows",
    .signature =
        "(x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, channels: int, "
        "inner: int, eps: float, centered: bool, affine: bool) -> Tensor",
    .help =
        "x as [outer, groups, channels, inner], each (outer, group) with mean 0 and variance 1, "
        "then scaled and shifted by channel; and the means and inverse standard deviations.",
    .flags = kWidensAll,
    .results = 3,
    .infer = infer_rows,
    .estimate = estimate,
    .body = [](const Use& use, Tensor* out) { body(use, out, kOfRows); },
    .vjp = [](Vjp& v) { vjp(v, kNormalizeRowsBackward); },
    .reads = {kReads, kReads, kReads}};
constexpr OpRecord kNormalizeChannels = {
    .name = "normalize_channels",
    .signature = kNormalizeRows.signature,
    .help =
        "x as [outer, 1, channels, inner], each channel with mean 0 and variance 1, then scaled "
        "and shifted; and the means, inverse standard deviations and variances.",
    .flags = kWidensAll,
    .results = 4,
    .infer = infer_channels,
    .estimate = estimate,
    .body = [](const Use& use, Tensor* out) { body(use, out, kOfChannels); },
    .vjp = [](Vjp& v) { vjp(v, kNormalizeChannelsBackward); },
    .reads = {kReads, kReads, kReads}};

namespace {

// ---- checks ----

void check_input(const char* op, const Tensor& x, int least_rank, const char* axes) {
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, op, ": needs a floating-point input, got ", name_of(x.dtype()),
         "; convert with astype(float32)");
  if (x.rank() < least_rank)
    fail(ErrorKind::value, op, ": expected an input of axes ", axes, ", got shape ", x.shape());
}
// Weights of 16-bit inputs may be float32.
void check_scale(const char* op, const char* name, const Tensor& scale, const Shape& shape,
                 const Tensor& x) {
  if (!scale) return;
  if (!(scale.shape() == shape))
    fail(ErrorKind::value, op, ": expected a ", name, " of shape ", shape, ", got ", scale.shape());
  if (scale.dtype() != x.dtype() && scale.dtype() != working_dtype(x.dtype()))
    fail(ErrorKind::type, op, ": ", name, " is ", name_of(scale.dtype()), ", but the input is ",
         name_of(x.dtype()), "; convert one of them with astype");
}
void check_scales(const char* op, const Tensor& weight, const Tensor& bias, const Shape& shape,
                  const Tensor& x) {
  check_scale(op, "weight", weight, shape, x);
  check_scale(op, "bias", bias, shape, x);
}
std::int64_t product(const Shape& shape, int from) {
  std::int64_t product = 1;
  for (int i = from; i < shape.rank(); ++i) product *= shape[i];
  return product;
}
Operand flat_or_none(const Tensor& scale) {
  if (!scale) return Operand::none();
  return scale.rank() == 1 ? scale : flat(scale);
}

struct Layout {
  std::int64_t groups, channels, inner;
};
void normalize(const OpRecord& op, const Tensor& x, const Tensor& weight, const Tensor& bias,
               Layout layout, double eps, bool centered, Tensor* out) {
  const Operand in[] = {x, flat_or_none(weight), flat_or_none(bias)};
  AttributeList attributes(6);
  attributes.set(0, layout.groups).set(1, layout.channels).set(2, layout.inner);
  apply(op, in, 3, attributes.set(3, attribute_of(eps)).set(4, centered).set(5, false), out);
}
Tensor normalized_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, Layout layout,
                       double eps, bool centered = true) {
  Tensor out[3];
  normalize(kNormalizeRows, x, weight, bias, layout, eps, centered, out);
  return out[0];
}

// A negative one would give NaN, or the wrong sign of a small variance. Norms of rows and groups
// take one, as PyTorch's do.
double eps_of(const Use& use) {
  const double eps = use.attributes.real(1);
  if (!(eps >= 0)) fail(ErrorKind::value, use.op.name, ": eps must be at least 0, got ", eps);
  return eps;
}

// ---- over the last axes ----

void check_last_axes(const char* op, const Tensor& x, const Shape& shape) {
  check_input(op, x, 0, "");
  const int first = x.rank() - shape.rank();
  bool fits = shape.rank() > 0 && first >= 0;
  for (int i = 0; fits && i < shape.rank(); ++i) fits = x.size(first + i) == shape[i];
  if (!fits)
    fail(ErrorKind::value, op, ": normalized_shape ", shape,
         " is not the last axes of the input's shape ", x.shape());
}
void layer_norm_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor, &bias = use.in[2].tensor;
  const Shape shape = use.attributes.dims(0);
  check_last_axes("layer_norm", x, shape);
  check_scales("layer_norm", weight, bias, shape, x);
  out[0] = normalized_rows(x, weight, bias, {1, product(shape, 0), 1}, use.attributes.real(1));
}
// The step from 1 to the next larger number.
double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::float64: return 0x1p-52;
    case DType::float32: return 0x1p-23;
    case DType::float16: return 0x1p-10;
    default: return 0x1p-7;
  }
}
void rms_norm_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor;
  const Shape shape = use.attributes.dims(0);
  check_last_axes("rms_norm", x, shape);
  check_scale("rms_norm", "weight", weight, shape, x);
  const double eps = use.attributes.none(1) ? epsilon_of(x.dtype()) : use.attributes.real(1);
  out[0] = normalized_rows(x, weight, Tensor(), {1, product(shape, 0), 1}, eps, false);
}

// ---- over channels ----

void check_several(const char* op, const char* of, std::int64_t count, const Tensor& x) {
  if (count == 1)
    fail(ErrorKind::value, op, ": expected more than 1 value per ", of,
         " to compute a variance, got an input of shape ", x.shape());
}
void group_norm_body(const Use& use, Tensor* out) {
  constexpr const char* op = "group_norm";
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor, &bias = use.in[2].tensor;
  const std::int64_t groups = use.attributes[0];
  check_input(op, x, 2, "(batch, channels, ...)");
  const std::int64_t channels = x.size(1);
  if (groups < 1 || channels % groups)
    fail(ErrorKind::value, op, ": ", channels, " channels cannot be divided into ", groups,
         " groups");
  check_scales(op, weight, bias, {channels}, x);
  const std::int64_t inner = product(x.shape(), 2);
  check_several(op, "group", x.size(0) * (channels / groups) * inner, x);
  out[0] =
      normalized_rows(x, weight, bias, {groups, channels / groups, inner}, use.attributes.real(1));
}

void check_running(const char* op, const Tensor& mean, const Tensor& var, const Tensor& x) {
  const Shape shape = {x.size(1)};
  check_scale(op, "running_mean", mean, shape, x);
  check_scale(op, "running_var", var, shape, x);
  if (!mean != !var)
    fail(ErrorKind::value, op, ": give running_mean and running_var, or neither of them");
}
// running += momentum * (value - running)
void move_running(const Tensor& running, const Tensor& value, const Operand& momentum) {
  Tensor into = running;
  assign(into, running + (value - running) * momentum);
}
// `count` values went into each variance, whose running average is of the unbiased one.
void move_statistics(const Use& use, const Tensor& mean, const Tensor& variance, double count) {
  const GradModeGuard off(false);
  const Operand& momentum = use.in[5];
  move_running(use.in[1].tensor, mean, momentum);
  move_running(use.in[2].tensor, variance * (count / (count - 1)), momentum);
}
// One multiplication and one addition an element.
Tensor with_running(const Use& use, double eps) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[3].tensor, &bias = use.in[4].tensor;
  Tensor scale = rsqrt(use.in[2].tensor + eps);
  if (weight) scale = scale * weight;
  Tensor shift = -use.in[1].tensor * scale;
  if (bias) shift = bias + shift;
  Shape shape(x.rank() - 1, 1);
  shape[0] = x.size(1);
  return astype(multiply_add(x, reshape(scale, shape), reshape(shift, shape)), x.dtype());
}

// Operands: x, running_mean, running_var, weight, bias, momentum.
void batch_norm_body(const Use& use, Tensor* out) {
  constexpr const char* op = "batch_norm";
  const Tensor &x = use.in[0].tensor, &running_mean = use.in[1].tensor;
  const bool training = use.attributes.flag(0);
  const double eps = eps_of(use);
  check_input(op, x, 2, "(batch, channels, ...)");
  check_scales(op, use.in[3].tensor, use.in[4].tensor, {x.size(1)}, x);
  check_running(op, running_mean, use.in[2].tensor, x);
  if (!training) {
    if (!running_mean)
      fail(ErrorKind::value, op, ": training=False needs running_mean and running_var");
    out[0] = with_running(use, eps);
    return;
  }
  const std::int64_t inner = product(x.shape(), 2), count = x.size(0) * inner;
  check_several(op, "channel", count, x);
  Tensor made[4];
  normalize(kNormalizeChannels, x, use.in[3].tensor, use.in[4].tensor, {1, x.size(1), inner}, eps,
            true, made);
  if (running_mean && count) move_statistics(use, made[1], made[3], static_cast<double>(count));
  out[0] = made[0];
}

// The same with a set for each channel of each sample.
void instance_norm_body(const Use& use, Tensor* out) {
  constexpr const char* op = "instance_norm";
  const Tensor &x = use.in[0].tensor, &running_mean = use.in[1].tensor;
  const double eps = eps_of(use);
  check_input(op, x, 3, "(batch, channels, length, ...)");
  check_scales(op, use.in[3].tensor, use.in[4].tensor, {x.size(1)}, x);
  check_running(op, running_mean, use.in[2].tensor, x);
  if (!use.attributes.flag(0)) {
    if (!running_mean)
      fail(ErrorKind::value, op, ": use_input_stats=False needs running_mean and running_var");
    out[0] = with_running(use, eps);
    return;
  }
  const std::int64_t inner = product(x.shape(), 2), channels = x.size(1);
  check_several(op, "channel", inner, x);
  Tensor made[3];
  normalize(kNormalizeRows, x, use.in[3].tensor, use.in[4].tensor, {channels, 1, inner}, eps, true,
            made);
  out[0] = made[0];
  if (!running_mean || !x.count()) return;
  const GradModeGuard off(false);
  const Shape by_sample = {x.size(0), channels};
  const Tensor variances = reciprocal(square(made[2])) - eps;
  move_statistics(use, mean(reshape(made[1], by_sample), {0}, false),
                  mean(reshape(variances, by_sample), {0}, false), static_cast<double>(inner));
}

}  // namespace

constexpr OpRecord kLayerNorm = {
    .name = "layer_norm",
    .signature =
        "(x: Tensor, normalized_shape: Shape, weight: Tensor | None = None, "
        "bias: Tensor | None = None, eps: float = 1e-05) -> Tensor",
    .help =
        "The last axes, of normalized_shape, with mean 0 and variance 1, then scaled by weight and "
        "shifted by bias, both of that shape (Ba, Kiros, Hinton, 2016).\n"
        "Raises ValueError where shapes do not fit.\n"
        "Shapes: x (..., *normalized_shape); weight and bias normalized_shape; the result has x's "
        "shape.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.layer_norm.",
    .flags = kFunction,
    .body = layer_norm_body};
constexpr OpRecord kRmsNorm = {
    .name = "rms_norm",
    .signature =
        "(x: Tensor, normalized_shape: Shape, weight: Tensor | None = None, "
        "eps: float | None = None) -> Tensor",
    .help =
        "The last axes, of normalized_shape, over the root of their mean square, then scaled by "
        "weight (Zhang, Sennrich, 2019). eps None is the step after 1 of the input's type.\n"
        "Raises ValueError where shapes do not fit.\n"
        "Shapes: x (..., *normalized_shape); weight normalized_shape; the result has x's shape.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.rms_norm.",
    .flags = kFunction,
    .body = rms_norm_body};
constexpr OpRecord kGroupNorm = {
    .name = "group_norm",
    .signature =
        "(x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, "
        "eps: float = 1e-05) -> Tensor",
    .help =
        "Groups of the channels of each sample of (batch, channels, ...) with mean 0 and variance "
        "1, then scaled and shifted by channel (Wu, He, 2018).\n"
        "Raises ValueError where channels are no multiple of num_groups or shapes do not fit.\n"
        "Shapes: x (batch, channels, ...); weight and bias (channels,); the result has x's shape.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.group_norm.",
    .flags = kFunction,
    .body = group_norm_body};
constexpr OpRecord kInstanceNorm = {
    .name = "instance_norm",
    .signature =
        "(x: Tensor, running_mean: Tensor! | None = None, running_var: Tensor! | None = None, "
        "weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True, "
        "momentum: Operand = 0.1, eps: float = 1e-05) -> Tensor",
    .help =
        "Each channel of each sample of (batch, channels, ...) with mean 0 and variance 1, then "
        "scaled and shifted (Ulyanov, Vedaldi, Lempitsky, 2016). Running statistics move towards "
        "the batch's by momentum, or stand for them where not use_input_stats.\n"
        "Raises ValueError where shapes do not fit, a channel has one value or eps is negative.\n"
        "Shapes: x (batch, channels, ...) with at least one axis behind the channels; weight, bias "
        "and running statistics (channels,); the result has x's shape.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.instance_norm.",
    .flags = kFunction,
    .body = instance_norm_body};
constexpr OpRecord kBatchNorm = {
    .name = "batch_norm",
    .signature =
        "(x: Tensor, running_mean: Tensor! | None, running_var: Tensor! | None, "
        "weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False, "
        "momentum: Operand = 0.1, eps: float = 1e-05) -> Tensor",
    .help =
        "Each channel of (batch, channels, ...) with mean 0 and variance 1 over the batch, then "
        "scaled and shifted (Ioffe, Szegedy, 2015). In training, running statistics move towards "
        "the batch's by momentum; else they stand for them.\n"
        "Raises ValueError where shapes do not fit, a channel has one value in training or eps is "
        "negative.\n"
        "Shapes: x (batch, channels, ...); weight, bias and running statistics (channels,); the "
        "result has x's shape.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.batch_norm.",
    .flags = kFunction,
    .body = batch_norm_body};

}  // namespace tw
