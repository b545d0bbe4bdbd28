// Losses made of other ops.
#include "core/ops/loss.h"

#include "core/base/error.h"
#include "core/ops/copy.h"
#include "core/tensor/operand.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"

namespace tw {

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  if (!(x.shape() == y.shape()))
    fail(ErrorKind::value, "mse_loss: shapes differ: ", x.shape(), " and ", y.shape());
  const DType type = promote(x.dtype(), y.dtype());
  if (!is_floating(type))
    fail(ErrorKind::type, "mse_loss: needs floating-point inputs, got ", name_of(x.dtype()),
         " and ", name_of(y.dtype()), "; convert with astype(float32)");
  if (reduction == Reduction::none) return square(x - y);
  const DType wide = working_dtype(type);
  const Tensor squares = square(astype(x, wide) - astype(y, wide));
  const Axes all;
  return astype(reduction == Reduction::mean ? mean(squares, all, false) : sum(squares, all, false),
                type);
}

}  // namespace tw
