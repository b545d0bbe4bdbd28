// Convolutions: geometry, checks, types and gradients. How they are computed is
// core/cpu/convolution's.
//
// Three ops are closed under differentiation: each is linear in two of input, weight and output, so
// the gradients of one are the two others. A transposed convolution is the gradient of one.
#include "core/ops/convolution/windows.h"

#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

// ---- the three ops ----

// Attributes of all three: stride, dilation, padding in front, sizes of the result along the axes
// of space, groups.
enum GeometryAttribute { kStride, kDilation, kBefore, kSize, kGroups, kGeometryAttributes };

Shape space_of(const Shape& shape) {
  Shape space;
  for (int i = 2; i < shape.rank(); ++i) space.push_back(shape[i]);
  return space;
}
// The same convolution for an op whose result has another shape.
AttributeList attributes_for(Attributes attributes, const Shape& result) {
  AttributeList out(kGeometryAttributes);
  out.set(kGroups, attributes[kGroups]);
  for (const int list : {kStride, kDilation, kBefore}) out.set_list(list, attributes.list(list));
  return out.set_list(kSize, space_of(result));
}

void infer_result(Call& call, Result& result, int64_t first, int64_t second) {
  result.shape = {first, second};
  for (const Attribute size : call.attributes.list(kSize)) result.shape.push_back(size);
  result.dtype = call.in[0].dtype;
}
void infer_forward(Call& call, Result* results) {
  infer_result(call, results[0], call.in[0].size(0), call.in[1].size(0));
}
void infer_input_gradient(Call& call, Result* results) {
  infer_result(call, results[0], call.in[0].size(0), call.in[1].size(1) * call.attributes[kGroups]);
}
void infer_weight_gradient(Call& call, Result* results) {
  infer_result(call, results[0], call.in[1].size(1), call.in[0].size(1) / call.attributes[kGroups]);
}

Estimate estimate(const Call& call, const Meta& weight, const Meta& y) {
  const double terms = weight.count ? double(weight.count) / double(weight.size(0)) : 0;
  const auto elements = double(call.in[0].count + call.in[1].count + call.out[0].count);
  return {2 * double(y.count) * terms, elements * double(size_of(y.dtype))};
}

void forward_vjp(Vjp& v) {
  const Tensor& g = v.g();
  if (v.wants(0))
    v.give(0, kConvolutionInputGradient, {g, v.in(1)}, attributes_for(v.attributes(), v.shape(0)));
  if (v.wants(1))
    v.give(1, kConvolutionWeightGradient, {v.in(0), g}, attributes_for(v.attributes(), v.shape(1)));
  if (!v.wants(2)) return;
  std::vector<int64_t> axes = {0};
  for (int i = 2; i < g.rank(); ++i) axes.push_back(i);
  v.give(2, sum(g, axes, false));
}
// Linear in an output's gradient, to which `v.g()` is an input, and in the weight.
void input_gradient_vjp(Vjp& v) {
  const Tensor& x = v.g();
  if (v.wants(0))
    v.give(0, kConvolution, {x, v.in(1), Operand::none()},
           attributes_for(v.attributes(), v.shape(0)));
  if (v.wants(1))
    v.give(1, kConvolutionWeightGradient, {x, v.in(0)}, attributes_for(v.attributes(), v.shape(1)));
}
// Linear in the input and in an output's gradient, to which `v.g()` is a weight.
void weight_gradient_vjp(Vjp& v) {
  const Tensor& weight = v.g();
  if (v.wants(0))
    v.give(0, kConvolutionInputGradient, {v.in(1), weight},
           attributes_for(v.attributes(), v.shape(0)));
  if (v.wants(1))
    v.give(1, kConvolution, {v.in(0), weight, Operand::none()},
           attributes_for(v.attributes(), v.shape(1)));
}

// ---- checks of public calls ----

struct Operands {
  Tensor x, weight, bias;  // of one type; x with a batch
  bool batched;
};
// `out_axis`: the weight's axis of output channels, which are `per_group` of a group or all.
Operands checked_operands(const Use& use, int axes, int64_t groups, bool transposed) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor, &bias = use.in[2].tensor;
  const char* const op = use.op.name;
  if (weight.rank() != axes + 2)
    fail(ErrorKind::value, op, ": weight must have ", axes + 2, " dimensions, got ",
         weight.shape());
  const bool batched = x.rank() == axes + 2;
  if (!batched && x.rank() != axes + 1)
    fail(ErrorKind::value, op, ": input must have ", axes + 2, " dimensions, or ", axes + 1,
         " without a batch, got ", x.shape());
  if (groups < 1) fail(ErrorKind::value, op, ": groups must be at least 1, got ", groups);
  const int64_t channels = x.size(batched ? 1 : 0);
  const int64_t all = (Checked(op, weight.size(1)) * groups).get();  // channels of all groups
  const int64_t expected = transposed ? weight.size(0) : all;
  if (channels != expected)
    fail(ErrorKind::value, op, ": input ", x.shape(), " has ", channels, " channels, but weight ",
         weight.shape(), " with groups=", groups, " takes ", expected);
  if (weight.size(0) % groups != 0)
    fail(ErrorKind::value, op, ": groups=", groups, " do not divide the ", weight.size(0),
         transposed ? " input" : " output", " channels of weight ", weight.shape());
  const int64_t out = transposed ? all : weight.size(0);
  if (bias && !(bias.shape() == Shape{out}))
    fail(ErrorKind::value, op, ": bias ", bias.shape(), " does not fit ", out, " output channels");
  DType type = promote(x.dtype(), weight.dtype());
  if (bias) type = promote(type, bias.dtype());
  if (!is_floating(type))
    fail(ErrorKind::type, op, ": floating point only, got ", name_of(type),
         "; convert with astype");
  return {astype(batched ? x : expand_dims(x, 0), type), astype(weight, type),
          bias ? astype(bias, type) : Tensor(), batched};
}

Shape kernel_of(const Use& use, const Tensor& weight) {
  const Shape kernel = space_of(weight.shape());
  for (const int64_t size : kernel)
    if (size < 1)
      fail(ErrorKind::value, use.op.name, ": the kernel has no elements: weight ", weight.shape());
  return kernel;
}

// From the first to the last element that a kernel reads along an axis, both included.
int64_t reach_of(const Use& use, int64_t dilation, int64_t kernel) {
  return (Checked(use.op.name, dilation) * (kernel - 1) + 1).get();
}

AttributeList geometry(const Dims& stride, const Dims& dilation, const Dims& before,
                       const Dims& size, int64_t groups) {
  AttributeList attributes(kGeometryAttributes);
  attributes.set(kGroups, groups);
  attributes.set_list(kStride, stride).set_list(kDilation, dilation);
  return attributes.set_list(kBefore, before).set_list(kSize, size);
}

// ---- conv1d, conv2d, conv3d ----

enum Padding { kValid, kSame };

struct Pads {
  Dims before, both;  // both: in front and behind together
};
// With 'same' an odd row goes behind, as in PyTorch.
Pads pads_of(const Use& use, const Dims& reach, const Dims& stride) {
  constexpr int kWord = 1;
  const int axes = reach.rank();
  const int named = use.attributes.none(kWord) ? -1 : use.attributes.choice(kWord);
  Dims before(axes, 0), both(axes, 0);
  if (named < 0) before = per_axis(use, kWord, "padding", axes, 0, 0);
  for (int i = 0; i < axes; ++i) {
    both[i] = named == kSame ? reach[i] - 1 : 2 * before[i];
    if (named == kSame) before[i] = both[i] / 2;
    if (named == kSame && stride[i] != 1)
      fail(ErrorKind::value, use.op.name, ": padding='same' needs stride 1, got ", stride);
  }
  return {before, both};
}

// Attributes: stride, padding, dilation, groups.
template <int axes> void conv_body(const Use& use, Tensor* out) {
  const int64_t groups = use.attributes[3];
  const Operands operands = checked_operands(use, axes, groups, false);
  const Shape kernel = kernel_of(use, operands.weight);
  const Dims stride = per_axis(use, 0, "stride", axes, 1, 1);
  const Dims dilation = per_axis(use, 2, "dilation", axes, 1, 1);
  Dims reach(axes, 0), padded(axes, 0), size(axes, 0);
  for (int i = 0; i < axes; ++i) reach[i] = reach_of(use, dilation[i], kernel[i]);
  const Pads pads = pads_of(use, reach, stride);
  bool fits = true;
  for (int i = 0; i < axes; ++i) {
    padded[i] = (Checked(use.op.name, operands.x.size(i + 2)) + pads.both[i]).get();
    fits &= reach[i] <= padded[i];
    size[i] = (padded[i] - reach[i]) / stride[i] + 1;
  }
  if (!fits)
    fail(ErrorKind::value, use.op.name, ": kernel ", reach, " is larger than the padded input ",
         padded, "; more padding or a smaller kernel or dilation fits");
  const Operand bias = operands.bias ? Operand(operands.bias) : Operand::none();
  const Tensor y = apply(kConvolution, {operands.x, operands.weight, bias},
                         geometry(stride, dilation, pads.before, size, groups));
  out[0] = operands.batched ? y : owned(squeeze(y, {0}));
}

// ---- conv_transpose1d, conv_transpose2d, conv_transpose3d ----

// Attributes: stride, padding, output_padding, groups, dilation.
template <int axes> void conv_transpose_body(const Use& use, Tensor* out) {
  const int64_t groups = use.attributes[3];
  const Operands operands = checked_operands(use, axes, groups, true);
  const Shape kernel = kernel_of(use, operands.weight);
  const Dims stride = per_axis(use, 0, "stride", axes, 1, 1);
  const Dims padding = per_axis(use, 1, "padding", axes, 0, 0);
  const Dims added = per_axis(use, 2, "output_padding", axes, 0, 0);
  const Dims dilation = per_axis(use, 4, "dilation", axes, 1, 1);
  Dims size(axes, 0);
  for (int i = 0; i < axes; ++i) {
    if (added[i] >= stride[i] && added[i] >= dilation[i])
      fail(ErrorKind::value, use.op.name, ": output_padding ", added,
           " must be smaller than stride ", stride, " or dilation ", dilation);
    const Checked span = Checked(use.op.name, operands.x.size(i + 2) - 1) * stride[i];
    size[i] = (span - 2 * padding[i] + reach_of(use, dilation[i], kernel[i]) + added[i]).get();
  }
  for (const int64_t each : size)
    if (each < 0)
      fail(ErrorKind::value, use.op.name, ": padding ", padding, " leaves nothing of input ",
           use.in[0].tensor.shape(), ": the result would be ", size);
  Tensor y = apply(kConvolutionInputGradient, {operands.x, operands.weight},
                   geometry(stride, dilation, padding, size, groups));
  if (operands.bias) {
    Shape shape(axes + 1, 1);
    shape[0] = operands.bias.size(0);
    y = add(y, reshape(operands.bias, shape));
  }
  out[0] = operands.batched ? y : owned(squeeze(y, {0}));
}

constexpr OpRecord conv(const char* name, const char* help, void (*body)(const Use&, Tensor*)) {
  return {.name = name,
          .signature =
              "(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Shape "
              "= 1, padding: Shape | 'valid' | 'same' = 0, dilation: Shape = 1, groups: "
              "int = 1) -> Tensor",
          .help = help,
          .flags = kFunction,
          .body = body,
          .autocast = Autocast::narrow};
}
constexpr OpRecord conv_transpose(const char* name, const char* help,
                                  void (*body)(const Use&, Tensor*)) {
  return {.name = name,
          .signature =
              "(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Shape "
              "= 1, padding: Shape = 0, output_padding: Shape = 0, groups: int = 1, "
              "dilation: Shape = 1) -> Tensor",
          .help = help,
          .flags = kFunction,
          .body = body,
          .autocast = Autocast::narrow};
}

}  // namespace

Dims per_axis(const Use& use, int attribute, const char* name, int axes, int64_t otherwise,
              int64_t least) {
  if (use.attributes.none(attribute)) return Dims(axes, otherwise);
  return per_axis(use, use.attributes.dims(attribute), name, axes, least);
}
Dims per_axis(const Use& use, const Dims& given, const char* name, int axes, int64_t least) {
  const int count = given.rank();
  if (count != 1 && count != axes)
    fail(ErrorKind::value, use.op.name, ": ", name, " has ", count,
         " numbers; give one for all axes, or ", axes);
  Dims sizes(axes, 0);
  for (int i = 0; i < axes; ++i) sizes[i] = given[count == 1 ? 0 : i];
  constexpr int64_t kMost = std::numeric_limits<std::int32_t>::max();  // so that no sum overflows
  for (const int64_t size : sizes)
    if (size < least || size > kMost)
      fail(ErrorKind::value, use.op.name, ": ", name, " must be at least ", least,
           size > kMost ? " and below 2^31, got " : ", got ", sizes);
  return sizes;
}

constexpr OpRecord kConvolution = {
    .name = "convolution",
    .signature =
        "(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Shape, dilation: Shape, "
        "before: Shape, size: Shape, groups: int) -> Tensor",
    .help = "Cross-correlation of input (batch, in, ...) and weight (out, in / groups, ...).",
    .infer = infer_forward,
    .estimate = [](const Call& call) { return estimate(call, call.in[1], call.out[0]); },
    .vjp = forward_vjp,
    .reads = {{.inputs = 2}, {.inputs = 1}},
    .shapes = 3};
constexpr OpRecord kConvolutionInputGradient = {
    .name = "convolution_input_gradient",
    .signature =
        "(g: Tensor, weight: Tensor, stride: Shape, dilation: Shape, before: Shape, size: Shape, "
        "groups: int) -> Tensor",
    .help = "The gradient of convolution's input, from that of its result.",
    .infer = infer_input_gradient,
    .estimate = [](const Call& call) { return estimate(call, call.in[1], call.in[0]); },
    .vjp = input_gradient_vjp,
    .reads = {{.inputs = 2}, {.inputs = 1}},
    .shapes = 3};
constexpr OpRecord kConvolutionWeightGradient = {
    .name = "convolution_weight_gradient",
    .signature =
        "(input: Tensor, g: Tensor, stride: Shape, dilation: Shape, before: Shape, size: Shape, "
        "groups: int) -> Tensor",
    .help = "The gradient of convolution's weight, from that of its result.",
    .infer = infer_weight_gradient,
    .estimate = [](const Call& call) { return estimate(call, call.out[0], call.in[1]); },
    .vjp = weight_gradient_vjp,
    .reads = {{.inputs = 2}, {.inputs = 1}},
    .shapes = 3};

constexpr OpRecord kConv1d =
    conv("conv1d",
         "Cross-correlation of input (batch, in, length) or (in, length) with weight (out, in / "
         "groups, kernel), plus bias (out,); padding is a number or 'valid' (none) or "
         "'same'.\nShapes: the result is (batch, out, ...) with floor((size + 2 * padding - "
         "dilation * (kernel - 1) - 1) / stride) + 1 elements along an axis.\nTypes: floating. "
         "Result: the common type.\nRaises ValueError for shapes that do not fit and for 'same' "
         "with a stride.\nSource: PyTorch's torch.nn.functional.conv1d.",
         conv_body<1>);
constexpr OpRecord kConv2d =
    conv("conv2d",
         "Cross-correlation of input (batch, in, height, width) or (in, height, width) with weight "
         "(out, in / groups, kernel height, kernel width), plus bias (out,); padding is one number "
         "or two, or 'valid' (none) or 'same'.\nShapes: the result is (batch, out, ...) with "
         "floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1 elements along an "
         "axis.\nTypes: floating. Result: the common type.\nRaises ValueError for shapes that do "
         "not fit and for 'same' with a stride.\nSource: PyTorch's torch.nn.functional.conv2d.",
         conv_body<2>);
constexpr OpRecord kConv3d =
    conv("conv3d",
         "Cross-correlation of input (batch, in, depth, height, width), or without batch, with "
         "weight (out, in / groups, kernel sizes), plus bias (out,); padding is one number or "
         "three, or 'valid' (none) or 'same'.\nShapes: the result is (batch, out, ...) with "
         "floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1 elements along an "
         "axis.\nTypes: floating. Result: the common type.\nRaises ValueError for shapes that do "
         "not fit and for 'same' with a stride.\nSource: PyTorch's torch.nn.functional.conv3d.",
         conv_body<3>);
constexpr OpRecord kConvTranspose1d = conv_transpose(
    "conv_transpose1d",
    "The gradient of conv1d's input as an op: input (batch, in, length) or (in, length) and weight "
    "(in, out / groups, kernel) give (length - 1) * stride - 2 * padding + dilation * (kernel - 1) "
    "+ output_padding + 1 elements, plus bias (out,).\nShapes: the result is (batch, out, "
    "...).\nTypes: floating. Result: the common type.\nRaises ValueError for shapes that do not "
    "fit.\nSource: PyTorch's torch.nn.functional.conv_transpose1d.",
    conv_transpose_body<1>);
constexpr OpRecord kConvTranspose2d = conv_transpose(
    "conv_transpose2d",
    "The gradient of conv2d's input as an op: input (batch, in, height, width), or without batch, "
    "and weight (in, out / groups, kernel height, kernel width), plus bias (out,); sizes as in "
    "conv_transpose1d.\nShapes: the result is (batch, out, ...).\nTypes: floating. Result: the "
    "common type.\nRaises ValueError for shapes that do not fit.\nSource: PyTorch's "
    "torch.nn.functional.conv_transpose2d.",
    conv_transpose_body<2>);
constexpr OpRecord kConvTranspose3d =
    conv_transpose("conv_transpose3d",
                   "The gradient of conv3d's input as an op: input (batch, in, depth, height, "
                   "width), or without batch, and weight (in, out / groups, kernel sizes), plus "
                   "bias (out,); sizes as in conv_transpose1d.\nShapes: the result is (batch, out, "
                   "...).\nTypes: floating. Result: the common type.\nRaises ValueError for shapes "
                   "that do not fit.\nSource: PyTorch's torch.nn.functional.conv_transpose3d.",
                   conv_transpose_body<3>);

}  // namespace tw
