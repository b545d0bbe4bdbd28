// Activations that are made of pointwise rows.
#include <algorithm>

#include "core/base/error.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

// One slope, or one for each channel: of axis 1, and of vectors of their only axis.
void prelu_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &weight = use.in[1].tensor;
  if (weight.rank() > 1)
    fail(ErrorKind::value, "prelu: expected a weight of shape (1,) or (channels,), got ",
         weight.shape());
  const std::int64_t channels = x.rank() > 1 ? x.size(1) : 1, count = weight.count();
  if (count != 1 && count != channels)
    fail(ErrorKind::value, "prelu: ", count, " weights do not fit an input of shape ", x.shape(),
         ", which has ", channels, channels == 1 ? " channel" : " channels");
  Shape shape(x.rank() > 1 ? x.rank() - 1 : 0, 1);
  if (shape.rank()) shape[0] = count;
  out[0] = leaky_relu(x, reshape(weight, shape));
}

void glu_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  if (x.rank() == 0) fail(ErrorKind::value, "glu: a 0-d tensor has no halves");
  const int axis = normalize_axis(use.attributes[0], x.rank(), "glu");
  const std::int64_t half = x.size(axis) / 2;
  if (x.size(axis) % 2)
    fail(ErrorKind::value, "glu: axis ", axis, " of shape ", x.shape(), " is of odd length ",
         x.size(axis));
  std::vector<Range> ranges;
  for (const std::int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  ranges[static_cast<std::size_t>(axis)] = {0, 1, half};
  const Tensor a = slice(x, ranges);
  ranges[static_cast<std::size_t>(axis)] = {half, 1, half};
  out[0] = gated(a, slice(x, ranges));
}

}  // namespace

constexpr OpRecord kGelu = {
    .name = "gelu",
    .signature = "(x: Tensor, approximate: 'none' | 'tanh' = 'none') -> Tensor",
    .help =
        "x times the share of a normal distribution below x (Hendrycks, Gimpel, 2016).\n"
        "approximate='tanh' is their formula with a tanh in the place of erf.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.nn.functional.gelu.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] = use.attributes[0] ? gelu_tanh(use.in[0]) : gelu_erf(use.in[0]);
    }};
constexpr OpRecord kAddcmul = {
    .name = "addcmul",
    .signature = "(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Operand = 1) -> Tensor",
    .help =
        "x + value * tensor1 * tensor2, of floating numbers in one pass where value is 1.\n"
        "Shapes: x, tensor1 and tensor2 broadcast; the result has their common shape.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.addcmul.",
    .flags = kFunction | kInPlace,
    .body = [](const Use& use, Tensor* out) {
      const Operand& value = use.in[3];
      const bool plain = !value.is_tensor() && value.scalar.re == 1;
      const Tensor& x = use.in[0].tensor;
      const Tensor factor = plain ? use.in[1].tensor : use.in[1].tensor * value;
      const Tensor& other = use.in[2].tensor;
      const DType types[] = {x.dtype(), factor.dtype(), other.dtype()};
      const bool fused =
          std::any_of(types, types + 3, is_floating) && std::none_of(types, types + 3, is_complex);
      out[0] = fused ? multiply_add(factor, other, x) : x + factor * other;
    }};
constexpr OpRecord kPrelu = {.name = "prelu",
                             .signature = "(x: Tensor, weight: Tensor) -> Tensor",
                             .help =
                                 "x where positive, else x times weight, which is one number or "
                                 "one for each channel (axis 1) (He et al., 2015).\n"
                                 "Raises ValueError for another number of weights.\n"
                                 "Shapes: x of any shape, (batch, channels, ...) for several "
                                 "weights; weight () or (channels,); the result has x's shape.\n"
                                 "Types: floating; integers and bool become the default floating "
                                 "type. Result: the same type.\n"
                                 "Source: PyTorch's torch.nn.functional.prelu.",
                             .flags = kFunction,
                             .body = prelu_body};
constexpr OpRecord kGlu = {
    .name = "glu",
    .signature = "(x: Tensor, axis: int = -1) -> Tensor",
    .help =
        "The first half along an axis times the sigmoid of the second (Dauphin et al., 2017).\n"
        "Raises ValueError for an odd length.\n"
        "Shapes: x (..., 2 * n, ...); the result is (..., n, ...).\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.nn.functional.glu.",
    .flags = kFunction,
    .body = glu_body};

}  // namespace tw
