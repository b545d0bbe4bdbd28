// Products of two vectors with a matrix for each number of the result.
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

void bilinear_body(const Use& use, Tensor* out) {
  const Tensor &a = use.in[0].tensor, &b = use.in[1].tensor, &weight = use.in[2].tensor;
  if (weight.rank() != 3)
    fail(ErrorKind::value, "bilinear: weight must be (out, in1, in2), got ", weight.shape());
  bool fits = a.rank() >= 1 && a.rank() == b.rank() && a.size(a.rank() - 1) == weight.size(1) &&
              b.size(b.rank() - 1) == weight.size(2);
  for (int i = 0; fits && i < a.rank() - 1; ++i) fits = a.size(i) == b.size(i);
  if (!fits)
    fail(ErrorKind::value, "bilinear: inputs ", a.shape(), " and ", b.shape(),
         " do not fit weight ", weight.shape(), ": expected (..., ", weight.size(1), ") and (..., ",
         weight.size(2), ") of one batch");
  if (use.in[3].is_tensor()) {
    const Tensor& bias = use.in[3].tensor;
    if (bias.rank() != 1 || bias.size(0) != weight.size(0))
      fail(ErrorKind::value, "bilinear: bias ", bias.shape(), " does not fit weight ",
           weight.shape());
  }
  const std::int64_t outputs = weight.size(0), first = weight.size(1), second = weight.size(2);
  Shape shape = a.shape();
  std::int64_t rows = 1;
  for (int i = 0; i < a.rank() - 1; ++i) rows *= a.size(i);
  shape[a.rank() - 1] = outputs;
  const Tensor matrix =
      reshape(contiguous(permute_dims(weight, {1, 0, 2})), {first, outputs * second});
  const Tensor half = reshape(matmul(reshape(a, {rows, first}), matrix), {rows, outputs, second});
  const Tensor y = reshape(matmul(half, reshape(b, {rows, second, 1})), shape);
  out[0] = use.in[3].is_tensor() ? y + use.in[3] : y;
}

}  // namespace

constexpr OpRecord kBilinear = {
    .name = "bilinear",
    .signature =
        "(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor",
    .help =
        "input1 @ weight[k] @ input2 + bias[k] for each k: inputs (..., in1) and (..., in2) of one "
        "batch, weight (out, in1, in2), result (..., out).\n"
        "Raises ValueError for shapes that do not fit.\n"
        "Shapes: input1 (..., in1), input2 (..., in2), weight (out, in1, in2), bias (out,); the "
        "result is (..., out).\n"
        "Types: integer, floating, complex. Result: the common type.\n"
        "Source: PyTorch's torch.nn.functional.bilinear.",
    .flags = kFunction,
    .body = bilinear_body,
    .autocast = Autocast::narrow};

}  // namespace tw
