// Tensors made from nothing but numbers.
#include "core/ops/create.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/cpu/convert.h"
#include "core/ops/copy.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

void check_extents(const Shape& shape) {
  for (std::int64_t extent : shape)
    if (extent < 0) fail(ErrorKind::value, "shape ", shape, " has a negative extent");
}

// Fills by index in float64 or int64, converted to the type asked for.
template <class T, class F> Tensor filled(std::int64_t count, DType dtype, F value) {
  Tensor values = Tensor::empty({count}, DTypeOf<T>::value);
  {
    Access at;
    T* const out = at.as<T>(values);
    for (std::int64_t i = 0; i < count; ++i) out[i] = value(i);
  }
  return astype(values, dtype);
}

}  // namespace

Tensor full(const Shape& shape, const Scalar& value, DType dtype) {
  check_extents(shape);
  alignas(8) char item[16];
  value.store(dtype, item, "full");
  Tensor y = Tensor::empty(shape, dtype);
  Access at;
  char* const to = at(y);
  launch(
      [&] { copy_strided(dtype, dtype, shape, item, Strides(shape.rank(), 0), to, y.strides()); });
  return y;
}

Tensor zeros(const Shape& shape, DType dtype) {
  check_extents(shape);
  Tensor y = Tensor::empty(shape, dtype);
  Access at;
  char* const to = at(y);
  launch([&] { std::memset(to, 0, static_cast<std::size_t>(y.count()) * y.item_bytes()); });
  return y;
}

namespace {

// Exact where doubles are not: numbers of up to 64 bits, whose differences have up to 65.
using Wide = __int128;

bool is_whole(const Scalar& x) {
  return x.kind <= Scalar::Kind::integer && x.reach != Scalar::Reach::wider;
}
Wide whole(const Scalar& x) {
  return x.reach == Scalar::Reach::uint64 ? Wide(static_cast<std::uint64_t>(x.i)) : Wide(x.i);
}

Tensor whole_range(Wide start, Wide stop, Wide step, DType dtype) {
  const Wide span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
  const Wide count = span > 0 ? (span + stride - 1) / stride : 0;
  if (count > std::numeric_limits<std::int64_t>::max())
    fail(ErrorKind::value, "arange: the range has more elements than 64 bits can count");
  // Modulo 2^64, which is exact for int64 and uint64 alike.
  const auto value = [&](std::int64_t i) { return static_cast<std::int64_t>(start + i * step); };
  if (dtype != DType::uint64)
    return filled<std::int64_t>(static_cast<std::int64_t>(count), dtype, value);
  return filled<std::uint64_t>(static_cast<std::int64_t>(count), dtype, [&](std::int64_t i) {
    return static_cast<std::uint64_t>(value(i));
  });
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, DType dtype) {
  for (const Scalar* x : {&start, &stop, &step})
    if (x->kind == Scalar::Kind::complex)
      fail(ErrorKind::type, "arange: complex numbers have no order");
  if (step.re == 0) fail(ErrorKind::value, "arange: step is 0");
  if (is_integer(dtype) && is_whole(start) && is_whole(stop) && is_whole(step))
    return whole_range(whole(start), whole(stop), whole(step), dtype);
  const double length = std::ceil((stop.re - start.re) / step.re);
  if (!(length < 9.2e18)) fail(ErrorKind::value, "arange: the range is not finite");
  const auto count = static_cast<std::int64_t>(std::max(0.0, length));
  return filled<double>(
      count, dtype, [&](std::int64_t i) { return start.re + static_cast<double>(i) * step.re; });
}

Tensor linspace(double start, double stop, std::int64_t count, bool endpoint, DType dtype) {
  if (count < 0) fail(ErrorKind::value, "linspace: count is negative: ", count);
  const std::int64_t gaps = endpoint ? count - 1 : count;
  const auto parts = static_cast<double>(std::max<std::int64_t>(gaps, 1));
  const double span = stop - start;
  const double step = std::isfinite(span) ? span / parts : stop / parts - start / parts;
  return filled<double>(count, dtype, [&](std::int64_t i) {
    const bool last = endpoint && i == count - 1 && i > 0;
    const double x = last ? stop : start + static_cast<double>(i) * step;
    return is_integer(dtype) ? std::floor(x) : x;  // as NumPy: evenly on both sides of 0
  });
}

Tensor eye(std::int64_t rows, std::int64_t columns, std::int64_t k, DType dtype) {
  Tensor y = zeros({rows, columns}, dtype);
  Access at;
  char* const to = at(y);
  const Scalar one = 1;
  k = std::clamp(k, -rows, columns);  // beyond, -k and i + k could overflow
  for (std::int64_t i = std::max<std::int64_t>(0, -k); i < rows && i + k < columns; ++i)
    one.store(dtype, to + (i * columns + i + k) * static_cast<std::int64_t>(y.item_bytes()), "eye");
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
