// Tensors made from nothing but numbers.
#include "core/ops/create.h"

#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/cpu/convert.h"
#include "core/ops/copy.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"

namespace tw {

namespace {

void check_extents(const Shape& shape) {
  for (std::int64_t extent : shape)
    if (extent < 0) fail(ErrorKind::value, "shape ", shape, " has a negative extent");
}

// Fills by index in float64 or int64, converted to the type asked for.
template <class T, class F> Tensor filled(std::int64_t count, DType dtype, F value) {
  Tensor values = Tensor::empty({count}, DTypeOf<T>::value);
  T* const out = values.data<T>();
  for (std::int64_t i = 0; i < count; ++i) out[i] = value(i);
  return astype(values, dtype);
}

}  // namespace

Tensor full(const Shape& shape, const Scalar& value, DType dtype) {
  check_extents(shape);
  alignas(8) char item[16];
  value.store(dtype, item, "full");
  Tensor y = Tensor::empty(shape, dtype);
  launch([&] {
    copy_strided(dtype, dtype, shape, item, Strides(shape.rank(), 0), y.bytes(), y.strides());
  });
  return y;
}

Tensor zeros(const Shape& shape, DType dtype) {
  check_extents(shape);
  Tensor y = Tensor::empty(shape, dtype);
  launch([&] { std::memset(y.bytes(), 0, static_cast<std::size_t>(y.count()) * y.item_bytes()); });
  return y;
}

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, DType dtype) {
  if (step.re == 0) fail(ErrorKind::value, "arange: step is 0");
  const double length = std::ceil((stop.re - start.re) / step.re);
  if (!(length < 9.2e18)) fail(ErrorKind::value, "arange: the range is not finite");
  const auto count = static_cast<std::int64_t>(std::max(0.0, length));
  if (is_integer(dtype) && start.kind == Scalar::Kind::integer &&
      step.kind == Scalar::Kind::integer)
    return filled<std::int64_t>(count, dtype, [&](std::int64_t i) { return start.i + i * step.i; });
  return filled<double>(
      count, dtype, [&](std::int64_t i) { return start.re + static_cast<double>(i) * step.re; });
}

Tensor linspace(double start, double stop, std::int64_t count, bool endpoint, DType dtype) {
  if (count < 0) fail(ErrorKind::value, "linspace: count is negative: ", count);
  const std::int64_t gaps = endpoint ? count - 1 : count;
  const double step = gaps > 0 ? (stop - start) / static_cast<double>(gaps) : 0;
  return filled<double>(count, dtype, [&](std::int64_t i) {
    return endpoint && i == count - 1 && i > 0 ? stop : start + static_cast<double>(i) * step;
  });
}

Tensor eye(std::int64_t rows, std::int64_t columns, std::int64_t k, DType dtype) {
  Tensor y = zeros({rows, columns}, dtype);
  const Scalar one = 1;
  for (std::int64_t i = std::max<std::int64_t>(0, -k); i < rows && i + k < columns; ++i)
    one.store(dtype, y.bytes() + (i * columns + i + k) * static_cast<std::int64_t>(y.item_bytes()),
              "eye");
  return y;
}

namespace {

// Column index minus row index, broadcast against the last two axes.
Tensor diagonal_numbers(const Tensor& x, const char* op) {
  if (x.rank() < 2) fail(ErrorKind::value, op, ": needs at least 2 dimensions, got ", x.shape());
  const Tensor column = arange(0, x.size(x.rank() - 1), 1, DType::int64);
  const Tensor row = arange(0, x.size(x.rank() - 2), 1, DType::int64);
  return column - expand_dims(row, 1);
}

}  // namespace

Tensor tril(const Tensor& x, std::int64_t k) {
  return where(diagonal_numbers(x, "tril") <= Operand(Scalar(k)), x, zeros(Shape(), x.dtype()));
}
Tensor triu(const Tensor& x, std::int64_t k) {
  return where(diagonal_numbers(x, "triu") >= Operand(Scalar(k)), x, zeros(Shape(), x.dtype()));
}

}  // namespace tw
