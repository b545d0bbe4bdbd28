// The norm over all elements of many tensors, by which gradients are clipped.
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/arange.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

void infer(Call& call, Result* results) {
  if (call.inputs == 0) fail(ErrorKind::value, "total_norm: no tensors");
  const double order = call.attributes.real(0);
  if (!(order > 0)) fail(ErrorKind::value, "total_norm: ord must be above 0, got ", order);
  DType type = DType::float32;
  for (int i = 0; i < call.inputs; ++i) {
    if (!is_floating(call.in[i].dtype))
      fail(ErrorKind::type, "total_norm: tensors must be of a floating type, got ",
           name_of(call.in[i].dtype), " ", *call.in[i].shape);
    type = promote(type, working_dtype(call.in[i].dtype));
  }
  results[0].dtype = type;
}

Estimate estimate(const Call& call) {
  Estimate estimate;
  for (int i = 0; i < call.inputs; ++i) {
    const auto count = static_cast<double>(call.in[i].count);
    estimate.flops += 2 * count;
    estimate.bytes += count * static_cast<double>(size_of(call.in[i].dtype));
  }
  return estimate;
}

// Kernels read tensors without gaps; a lowering could ask so of the first 32 alone.
bool make_contiguous(const Use& use, Tensor* out) {
  bool ready = true;
  for (int i = 0; i < use.inputs; ++i) ready &= use.in[i].tensor.contiguous();
  if (ready) return false;
  std::vector<Operand> in;
  for (int i = 0; i < use.inputs; ++i) in.push_back(contiguous(use.in[i].tensor));
  apply(use.op, in.data(), use.inputs, use.attributes, out);
  return true;
}

// Of each tensor alone, and then of these norms, so that no power leaves the range.
void body(const Use& use, Tensor* out) {
  const double order = use.attributes.real(0);
  const bool largest = order == std::numeric_limits<double>::infinity();
  DType type = DType::float32;
  std::vector<Tensor> norms;
  for (int i = 0; i < use.inputs; ++i) {
    type = promote(type, working_dtype(use.in[i].tensor.dtype()));
    if (!use.in[i].tensor.count()) continue;
    const Tensor x = abs(astype(use.in[i].tensor, DType::float64));
    norms.push_back(largest ? max(x, {}, false) : power_norm(x, order, {}, false));
  }
  Tensor total = norms.empty() ? full({}, 0, DType::float64) : norms[0];
  if (norms.size() > 1) {
    std::vector<Tensor> parts;
    for (const Tensor& norm : norms) parts.push_back(reshape(norm, {1}));
    const Tensor all = concat(parts, 0);
    total = largest ? max(all, {}, false) : power_norm(all, order, {}, false);
  }
  out[0] = astype(total, type);
}

}  // namespace

constexpr OpRecord kTotalNorm = {
    .name = "total_norm",
    .signature = "(tensors: Sequence[Tensor], ord: float = 2.0) -> Tensor",
    .help =
        "The norm of all elements of all tensors as one vector, in float32, or in float64 where "
        "one of them is; terms are added up in float64.\n"
        "Shapes: tensors of any shapes; the result has no dimensions.\n"
        "Types: floating. Result: float32, of float64 float64.\n"
        "Raises ValueError for no tensors and for an ord that is not above 0.\n"
        "Source: PyTorch's torch.nn.utils.get_total_norm.",
    .flags = kFunction,
    .rewrite = make_contiguous,
    .infer = infer,
    .estimate = estimate,
    .body = body};

}  // namespace tw
