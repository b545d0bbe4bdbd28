// Losses made of other ops.
#include "core/base/error.h"
#include "core/ops/copy.h"
#include "core/ops/pointwise.h"
#include "core/ops/records.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"

namespace tw {

constexpr OpRecord kMseLoss = {
    .name = "mse_loss",
    .signature = "(x: Tensor, y: Tensor, reduction: 'mean' | 'sum' | 'none' = 'mean') -> Tensor",
    .help =
        "Squared differences, averaged by default.\n"
        "16-bit numbers are squared and added up in float32.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &x = use.in[0].tensor, &y = use.in[1].tensor;
      const auto reduction = static_cast<Reduction>(use.words[0]);
      if (!(x.shape() == y.shape()))
        fail(ErrorKind::value, "mse_loss: shapes differ: ", x.shape(), " and ", y.shape());
      const DType type = promote(x.dtype(), y.dtype());
      if (!is_floating(type))
        fail(ErrorKind::type, "mse_loss: needs floating-point inputs, got ", name_of(x.dtype()),
             " and ", name_of(y.dtype()), "; convert with astype(float32)");
      if (reduction == Reduction::none) {
        out[0] = square(x - y);
        return;
      }
      const DType wide = working_dtype(type);
      const Tensor squares = square(astype(x, wide) - astype(y, wide));
      out[0] = astype(
          reduction == Reduction::mean ? mean(squares, {}, false) : sum(squares, {}, false), type);
    }};

}  // namespace tw
