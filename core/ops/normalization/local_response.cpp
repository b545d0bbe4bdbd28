// Normalisation by neighbouring channels.
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/arange.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

Tensor mean_of_squares(const Tensor& x, std::int64_t size) {
  const Tensor squares = square(x);
  if (size == 1 || x.count() == 0) return squares;
  const std::int64_t channels = x.size(1), before = size / 2, behind = (size - 1) / 2;
  const Tensor planes = reshape(squares, {x.size(0), 1, channels, -1});
  const Tensor padded = apply(kPad, {planes, Operand::none()},
                              AttributeList(2).set_list(0, Shape{0, 0, before, behind}).set(1, 0));
  const Shape window = {size, 1}, step = {1, 1};
  AttributeList attributes(6);
  attributes.set_list(0, window).set_list(1, step).set_list(2, Shape{0, 0});
  const Tensor pooled = apply(kAvgPool2d, {padded}, attributes.set(3, 0).set(4, 1).set(5, kNone));
  return reshape(pooled, x.shape());
}

struct Response {
  std::int64_t size;
  double alpha, beta, k;

  Tensor operator()(const Tensor& x) const {
    const bool is_double = x.dtype() == DType::float64;
    // Above it squares may overflow, and slopes underflow on the way.
    const double most = is_double ? 1e240 : 1e27;
    const Tensor total = mean_of_squares(x, size) * alpha + k;
    if (!any_outside(total, {-std::numeric_limits<double>::infinity(), most}))
      return x / pow(total, beta);
    const Tensor large = total.detached() > Operand(most);
    return where(large, scaled(x, large, is_double ? 0x1p-800 : 0x1p-95),
                 x / pow(where(large, 1, total), beta));
  }

  // Of the numbers times a scale, the power of which that is left over goes to the end.
  Tensor scaled(const Tensor& x, const Tensor& large, double scale) const {
    const Tensor small = x * scale;
    const Tensor total = mean_of_squares(small, size) * alpha + k * scale * scale;
    return small / pow(where(large, total, 1), beta) * std::pow(scale, 2 * beta - 1);
  }
};

// Attributes: size, alpha, beta, k.
void local_response_body(const Use& use, Tensor* out) {
  const Tensor& given = use.in[0].tensor;
  const std::int64_t size = use.attributes[0];
  if (given.rank() < 3)
    fail(ErrorKind::value,
         "local_response_norm: input must be (batch, channels, length, ...), got ", given.shape());
  if (size < 1) fail(ErrorKind::value, "local_response_norm: size must be above 0, got ", size);
  if (!is_floating(given.dtype()))
    fail(ErrorKind::type, "local_response_norm: floating point only, got ", name_of(given.dtype()));
  const Response response = {size, use.attributes.real(1), use.attributes.real(2),
                             use.attributes.real(3)};
  out[0] = astype(response(astype(given, working_dtype(given.dtype()))), given.dtype());
}

}  // namespace

constexpr OpRecord kLocalResponseNorm = {
    .name = "local_response_norm",
    .signature =
        "(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> "
        "Tensor",
    .help =
        "input / (k + alpha * mean of the squares of size neighbouring channels) ** beta, of "
        "(batch, channels, length, ...) (Krizhevsky et al., 2012); channels beyond the ends count "
        "as 0.\n"
        "Raises ValueError for fewer dimensions and a size below 1.\n"
        "Shapes: input (batch, channels, length, ...); the result has its shape.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.local_response_norm.",
    .flags = kFunction,
    .body = local_response_body};

}  // namespace tw
