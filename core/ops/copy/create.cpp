// Tensors made from nothing but numbers.
#include "core/ops/copy/create.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/memory/events.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

// A shape of the attributes; ValueError where it has a negative extent.
Shape checked_shape(const char* op, Attributes attributes, int i) {
  const Shape shape = attributes.dims(i);
  for (std::int64_t extent : shape)
    if (extent < 0) fail(ErrorKind::value, op, ": shape ", shape, " has a negative extent");
  return shape;
}

// Attributes: shape, dtype.
void infer_zeros(Call& call, Result* results) {
  results[0].shape = checked_shape(call.op->name, call.attributes, 0);
  results[0].dtype = call.attributes.dtype(1, default_dtype());
}
bool quick_zeros(const OpRecord& op, const Operand* in, int inputs, Attributes attributes,
                 Tensor* out) {
  const List shape = attributes.list(0);
  std::int64_t count = 1;
  for (const Attribute extent : shape) {
    if (extent < 0 || extent > thresholds::kQuickZeros ||
        (count *= extent) > thresholds::kQuickZeros)
      return run_in_full(op, in, inputs, attributes, out);
  }
  out[0] = Tensor::fresh({shape.begin(), shape.end()}, count, attributes.dtype(1, default_dtype()));
  Access at;
  std::memset(at(out[0]), 0, static_cast<std::size_t>(count) * out[0].item_bytes());
  return true;
}
void infer_full(Call& call, Result* results) {
  results[0].shape = checked_shape("full", call.attributes, 0);
  results[0].dtype = call.type = call.attributes.dtype(1, call.in[0].dtype);
}
// Attributes: count, dtype, and what core/cpu/copy/convert.cpp says.
void infer_sequence(Call& call, Result* results) {
  results[0].shape = {call.attributes[0]};
  results[0].dtype = call.attributes.dtype(1);
}

// What xs_like ops make is like x, in another type where asked for.
DType like_dtype(const Use& use) { return use.attributes.dtype(0, use.in[0].tensor.dtype()); }

}  // namespace

#define TW_MAKES                                                             \
  "shape: Shape, dtype: dtype | None = None, device: Device | None = None, " \
  "requires_grad: grad = False) -> Tensor"
#define TW_LIKE                                                \
  "dtype: dtype | None = None, device: Device | None = None, " \
  "requires_grad: grad = False) -> Tensor"
constexpr OpRecord kEmpty = {
    .name = "empty",
    .signature = "(" TW_MAKES,
    .help =
        "A tensor with unspecified contents.\n"
        "Shapes: the result has the shape given.\n"
        "Types: all. Result: dtype, by default the default floating type.\n"
        "Raises ValueError for a negative extent.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] = Tensor::empty(checked_shape("empty", use.attributes, 0),
                             use.attributes.dtype(1, default_dtype()));
    }};
constexpr OpRecord kZeros = {
    .name = "zeros",
    .signature = "(" TW_MAKES,
    .help =
        "A tensor of zeros.\n"
        "Shapes: the result has the shape given.\n"
        "Types: all. Result: dtype, by default the default floating type.\n"
        "Raises ValueError for a negative extent.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .quick = quick_zeros,
    .infer = infer_zeros};
constexpr OpRecord kOnes = {.name = "ones",
                            .signature = "(" TW_MAKES,
                            .help =
                                "A tensor of ones.\n"
                                "Shapes: the result has the shape given.\n"
                                "Types: all. Result: dtype, by default the default floating type.\n"
                                "Raises ValueError for a negative extent.\n"
                                "Source: Array API standard 2024.12.",
                            .flags = kFunction,
                            .body = [](const Use& use, Tensor* out) {
                              out[0] = full(checked_shape("ones", use.attributes, 0), 1,
                                            use.attributes.dtype(1, default_dtype()));
                            }};
constexpr OpRecord kFull = {
    .name = "full",
    .signature =
        "(shape: Shape, fill_value: Number, dtype: dtype | None = None, device: Device | "
        "None = None, requires_grad: grad = False) -> Tensor",
    .help =
        "A tensor of one value, of the number's own type by default.\n"
        "Shapes: the result has the shape given.\n"
        "Types: all. Result: dtype, by default bool, int64, the default floating type or complex "
        "of such parts, as fill_value is.\n"
        "Raises ValueError for a negative extent, OverflowError for a number that the type does "
        "not hold.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .infer = infer_full};
constexpr OpRecord kEmptyLike = {.name = "empty_like",
                                 .signature = "(x: Tensor, " TW_LIKE,
                                 .help =
                                     "Like empty, shape and dtype from x.\n"
                                     "Shapes: x of any shape; the result has it.\n"
                                     "Types: all. Result: dtype, by default the same type.\n"
                                     "Source: Array API standard 2024.12.",
                                 .flags = kFunction,
                                 .body = [](const Use& use, Tensor* out) {
                                   out[0] =
                                       Tensor::empty(use.in[0].tensor.shape(), like_dtype(use));
                                 }};
constexpr OpRecord kZerosLike = {.name = "zeros_like",
                                 .signature = "(x: Tensor, " TW_LIKE,
                                 .help =
                                     "Like zeros, shape and dtype from x.\n"
                                     "Shapes: x of any shape; the result has it.\n"
                                     "Types: all. Result: dtype, by default the same type.\n"
                                     "Source: Array API standard 2024.12.",
                                 .flags = kFunction,
                                 .body = [](const Use& use, Tensor* out) {
                                   out[0] = zeros(use.in[0].tensor.shape(), like_dtype(use));
                                 }};
constexpr OpRecord kOnesLike = {.name = "ones_like",
                                .signature = "(x: Tensor, " TW_LIKE,
                                .help =
                                    "Like ones, shape and dtype from x.\n"
                                    "Shapes: x of any shape; the result has it.\n"
                                    "Types: all. Result: dtype, by default the same type.\n"
                                    "Source: Array API standard 2024.12.",
                                .flags = kFunction,
                                .body = [](const Use& use, Tensor* out) {
                                  out[0] = full(use.in[0].tensor.shape(), 1, like_dtype(use));
                                }};
constexpr OpRecord kFullLike = {
    .name = "full_like",
    .signature = "(x: Tensor, fill_value: Number, " TW_LIKE,
    .help =
        "Like full, shape and dtype from x.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: all. Result: dtype, by default the same type.\n"
        "Raises OverflowError for a number that the type does not hold.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] = full(use.in[0].tensor.shape(), use.in[1].scalar, like_dtype(use));
    }};
#undef TW_MAKES
#undef TW_LIKE
constexpr OpRecord kSequence = {
    .name = "sequence",
    .signature =
        "(count: int, dtype: dtype, whole: bool, ends: bool, floors: bool, start: float, "
        "step: float, stop: float) -> Tensor",
    .help = "Evenly spaced numbers.",
    .infer = infer_sequence};

Tensor full(const Shape& shape, const Scalar& value, DType dtype) {
  return apply(kFull, {value},
               AttributeList(3).set_list(0, shape).set(1, attribute_of(dtype)).set(2, kNone));
}

Tensor zeros(const Shape& shape, DType dtype) {
  return apply(kZeros, {},
               AttributeList(3).set_list(0, shape).set(1, attribute_of(dtype)).set(2, kNone));
}

namespace {

// Exact where doubles are not: numbers of up to 64 bits, whose differences have up to 65.
using Wide = __int128;

// Of wider numbers what a double holds, which is enough for the end of a range.
bool is_whole(const Scalar& x) {
  return x.kind <= Scalar::Kind::integer && std::abs(x.re) < 0x1p100;
}
Wide whole(const Scalar& x) {
  if (x.reach == Scalar::Reach::wider) return static_cast<Wide>(x.re);
  return x.reach == Scalar::Reach::uint64 ? Wide(static_cast<std::uint64_t>(x.i)) : Wide(x.i);
}

Scalar number_of(Wide x) {
  if (x >= std::numeric_limits<std::int64_t>::min() &&
      x <= std::numeric_limits<std::int64_t>::max())
    return Scalar(static_cast<std::int64_t>(x));
  if (x > 0 && x <= std::numeric_limits<std::uint64_t>::max())
    return Scalar::of_uint64(static_cast<std::uint64_t>(x));
  return Scalar::of_wider_integer(static_cast<double>(x));
}
// Raises OverflowError where an end, and so a number of the range, does not fit the type.
void check_ends(const Scalar& first, const Scalar& last, DType dtype, const char* op) {
  std::uint64_t unread;
  first.store(dtype, &unread, op);
  last.store(dtype, &unread, op);
}

std::int64_t whole_count(Wide start, Wide stop, Wide step) {
  const Wide span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
  const Wide count = span > 0 ? (span + stride - 1) / stride : 0;
  if (count > std::numeric_limits<std::int64_t>::max())
    fail(ErrorKind::value, "arange: the range has more elements than 64 bits can count");
  return static_cast<std::int64_t>(count);
}

// Of numbers that are whole: start + i * step modulo 2^64, exact for int64 and uint64 alike.
Tensor whole_range(Wide start, Wide stop, Wide step, DType dtype) {
  const std::int64_t count = whole_count(start, stop, step);
  if (count > 0)
    check_ends(number_of(start), number_of(start + (count - 1) * step), dtype, "arange");
  return apply(kSequence, {},
               AttributeList(8)
                   .set(0, count)
                   .set(1, attribute_of(dtype))
                   .set(2, true)
                   .set(3, false)
                   .set(4, false)
                   .set(5, static_cast<Attribute>(start))
                   .set(6, static_cast<Attribute>(step))
                   .set(7, 0));
}

Tensor real_range(double start, double step, std::int64_t count, DType dtype,
                  std::optional<double> stop, bool floors) {
  return apply(kSequence, {},
               AttributeList(8)
                   .set(0, count)
                   .set(1, attribute_of(dtype))
                   .set(2, false)
                   .set(3, stop.has_value())
                   .set(4, floors)
                   .set(5, attribute_of(start))
                   .set(6, attribute_of(step))
                   .set(7, attribute_of(stop.value_or(0))));
}

Tensor spaced(double start, double stop, std::int64_t count, bool endpoint, DType dtype) {
  const std::int64_t gaps = endpoint ? count - 1 : count;
  const auto parts = static_cast<double>(std::max<std::int64_t>(gaps, 1));
  const double span = stop - start;
  const double step = std::isfinite(span) ? span / parts : stop / parts - start / parts;
  if (is_integer(dtype) && count > 0) {
    const double last =
        endpoint && count > 1 ? stop : start + static_cast<double>(count - 1) * step;
    check_ends(std::floor(start), std::floor(last), dtype, "linspace");
  }
  // Whole numbers as NumPy has them: evenly on both sides of 0.
  return real_range(start, step, count, dtype,
                    endpoint ? std::optional<double>(stop) : std::nullopt, is_integer(dtype));
}
// How many numbers lie in front of stop. Ends that are whole are subtracted exactly: as doubles
// they have no digits left for a small difference.
std::int64_t real_count(const Scalar& start, const Scalar& stop, const Scalar& step) {
  if (is_whole(start) && is_whole(stop) && is_whole(step))
    return whole_count(whole(start), whole(stop), whole(step));
  const double span = is_whole(start) && is_whole(stop)
                          ? static_cast<double>(whole(stop) - whole(start))
                          : stop.re - start.re;
  const double length = std::ceil(span / step.re);
  if (!(length < 9.2e18)) fail(ErrorKind::value, "arange: the range is not finite");
  return static_cast<std::int64_t>(std::max(0.0, length));
}
bool is_complex(const Scalar& number) { return number.kind == Scalar::Kind::complex; }

}  // namespace

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, DType dtype) {
  for (const Scalar* x : {&start, &stop, &step})
    if (is_complex(*x)) fail(ErrorKind::type, "arange: complex numbers have no order");
  if (step.re == 0) fail(ErrorKind::value, "arange: step is 0");
  if (is_integer(dtype) && is_whole(start) && is_whole(stop) && is_whole(step))
    return whole_range(whole(start), whole(stop), whole(step), dtype);
  const std::int64_t count = real_count(start, stop, step);
  if (is_integer(dtype) && count > 0)
    check_ends(start.re, start.re + static_cast<double>(count - 1) * step.re, dtype, "arange");
  return real_range(start.re, step.re, count, dtype, {}, false);
}

constexpr OpRecord kArange = {
    .name = "arange",
    .signature =
        "(start: Number, stop: Number | None = None, step: Number = 1, dtype: dtype | None "
        "= None, device: Device | None = None, requires_grad: grad = False) -> Tensor",
    .help =
        "start, start + step, ... up to but without stop.\n"
        "Shapes: the result is (ceil((stop - start) / step),), or (0,) where that is negative.\n"
        "Types: all. Result: dtype, by default int64 for integers, else the default floating "
        "type.\n"
        "Raises ValueError for a step of 0 and for a range that is not finite, OverflowError for "
        "numbers that an integer type does not hold.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const bool from_0 = use.in[1].absent();
      const Scalar first = from_0 ? Scalar(0) : use.in[0].scalar;
      const Scalar last = use.in[from_0 ? 0 : 1].scalar, step = use.in[2].scalar;
      const bool all_whole = first.kind <= Scalar::Kind::integer &&
                             last.kind <= Scalar::Kind::integer &&
                             step.kind <= Scalar::Kind::integer;
      out[0] = arange(first, last, step,
                      use.attributes.dtype(0, all_whole ? DType::int64 : default_dtype()));
    }};
constexpr OpRecord kLinspace = {
    .name = "linspace",
    .signature =
        "(start: Number, stop: Number, num: int, dtype: dtype | None = None, device: Device "
        "| None = None, endpoint: bool = True, requires_grad: grad = False) -> Tensor",
    .help =
        "num evenly spaced numbers from start to stop, which may be complex. Raises ValueError for "
        "a\n"
        "negative num, TypeError for complex ends and a real dtype, OverflowError for ends that an "
        "integer\n"
        "dtype does not hold.\n"
        "Shapes: the result is (num,).\n"
        "Types: all. Result: dtype, by default the default floating type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Scalar &start = use.in[0].scalar, &stop = use.in[1].scalar;
      const std::int64_t count = use.attributes[0];
      const bool endpoint = use.attributes.flag(3),
                 complex_ends = is_complex(start) || is_complex(stop);
      const DType dtype =
          use.attributes.dtype(1, complex_ends ? complex_dtype(default_dtype()) : default_dtype());
      if (count < 0) fail(ErrorKind::value, "linspace: count is negative: ", count);
      if (!complex_ends) {
        out[0] = spaced(start.re, stop.re, count, endpoint, dtype);
        return;
      }
      if (!is_complex(dtype))
        fail(ErrorKind::type, "linspace: complex numbers do not fit ", name_of(dtype));
      const DType part = part_dtype(dtype);
      out[0] = complex(spaced(start.re, stop.re, count, endpoint, part),
                       spaced(start.im, stop.im, count, endpoint, part));
    }};

namespace {

// Column index minus row index, broadcast against the last two axes.
Tensor diagonal_numbers(const Shape& shape) {
  const int rank = shape.rank();
  const Tensor column = arange(0, shape[rank - 1], 1, DType::int64);
  const Tensor row = arange(0, shape[rank - 2], 1, DType::int64);
  return column - expand_dims(row, 1);
}
void infer_triangle(Call& call, Result* results) {
  const Meta& x = call.in[0];
  if (x.rank() < 2)
    fail(ErrorKind::value, call.op->name, ": needs at least 2 dimensions, got ", *x.shape);
  results[0].like = 0;
  results[0].dtype = x.dtype;
}
Estimate estimate_triangle(const Call& call) {
  const Meta& x = call.in[0];
  return {0, 1.5 * static_cast<double>(x.count) * static_cast<double>(size_of(x.dtype))};
}
void triangle_vjp(Vjp& v) { v.give(0, v.record(), {v.g()}, v.attributes()); }

}  // namespace

constexpr OpRecord kTril = {.name = "tril",
                            .signature = "(x: Tensor, k: Diagonal = 0) -> Tensor",
                            .help =
                                "The part of the last two axes on and below diagonal k.\n"
                                "Shapes: x (..., m, n); the result has x's shape.\n"
                                "Types: all. Result: the same type.\n"
                                "Raises ValueError below 2 dimensions.\n"
                                "Source: Array API standard 2024.12.",
                            .flags = kFunction | kInPlace,
                            .infer = infer_triangle,
                            .estimate = estimate_triangle,
                            .body =
                                [](const Use& use, Tensor* out) {
                                  const Tensor& x = use.in[0].tensor;
                                  const Tensor below = diagonal_numbers(x.shape()) <=
                                                       Operand(Scalar(use.attributes[0]));
                                  out[0] = where(below, x, zeros(Shape(), x.dtype()));
                                },
                            .vjp = triangle_vjp};
constexpr OpRecord kTriu = {.name = "triu",
                            .signature = "(x: Tensor, k: Diagonal = 0) -> Tensor",
                            .help =
                                "The part of the last two axes on and above diagonal k.\n"
                                "Shapes: x (..., m, n); the result has x's shape.\n"
                                "Types: all. Result: the same type.\n"
                                "Raises ValueError below 2 dimensions.\n"
                                "Source: Array API standard 2024.12.",
                            .flags = kFunction | kInPlace,
                            .infer = infer_triangle,
                            .estimate = estimate_triangle,
                            .body =
                                [](const Use& use, Tensor* out) {
                                  const Tensor& x = use.in[0].tensor;
                                  const Tensor above = diagonal_numbers(x.shape()) >=
                                                       Operand(Scalar(use.attributes[0]));
                                  out[0] = where(above, x, zeros(Shape(), x.dtype()));
                                },
                            .vjp = triangle_vjp};
constexpr OpRecord kEye = {
    .name = "eye",
    .signature =
        "(n_rows: int, n_cols: int | None = None, k: Diagonal = 0, dtype: dtype | None = None, "
        "device: Device | None = None, requires_grad: grad = False) -> Tensor",
    .help =
        "Ones on the k-th diagonal, zeros elsewhere.\n"
        "Shapes: the result is (n_rows, n_cols), square by default.\n"
        "Types: all. Result: dtype, by default the default floating type.\n"
        "Raises ValueError for a negative extent.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const std::int64_t rows = use.attributes[0],
                         columns = use.attributes.none(1) ? rows : use.attributes[1];
      const DType dtype = use.attributes.dtype(3, default_dtype());
      if (rows < 0 || columns < 0)
        fail(ErrorKind::value, "eye: shape ", Shape{rows, columns}, " has a negative extent");
      const Attribute k = use.attributes[2];
      const std::int64_t row = k < 0 ? -k : 0, column = k > 0 ? k : 0;
      const std::int64_t count = std::min(rows - row, columns - column);
      const Shape shape{rows, columns};
      out[0] = count > 0 ? apply(kDiagonalBackward, {full({count}, 1, dtype)},
                                 AttributeList(4).set(0, k).set(1, 0).set(2, 1).set_list(3, shape))
                         : zeros(shape, dtype);
    }};

}  // namespace tw
