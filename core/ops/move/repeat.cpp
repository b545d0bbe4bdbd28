// Elements again and again: tiles, repeats by a number or by counts, and what counts enumerate.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

using Wide = __int128;

std::int64_t product(const Shape& shape, int from, int to) {
  std::int64_t product = 1;
  for (int i = from; i < to; ++i)
    product = static_cast<std::int64_t>(static_cast<std::uint64_t>(product) *
                                        static_cast<std::uint64_t>(shape[i]));
  return product;
}

std::int64_t counted(Wide count, const char* op) {
  if (count > std::numeric_limits<std::int64_t>::max())
    fail(ErrorKind::value, op, ": the result has more elements than 64 bits can count");
  return static_cast<std::int64_t>(count);
}

// Each of `outer` runs of elements `times` in a row, in fresh memory.
Tensor repeated_runs(const Tensor& x, std::int64_t outer, std::int64_t times, std::int64_t run) {
  const bool by_doubling = run == 1 && (times == 2 || times == 4);
  if (!by_doubling) return copy(broadcast_to(reshape(x, {outer, 1, run}), {outer, times, run}));
  // Two columns side by side have a kernel, which is up to ten times as fast as short rows of
  // stride 0.
  Tensor y = x;
  for (; times > 1; times /= 2, outer *= 2) {
    const Tensor column = reshape(y, {outer, 1});
    y = concat({column, column}, 1);
  }
  return y;
}

// ---- tile ----

void tile_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const Shape given = use.attributes.dims(0);
  for (const std::int64_t times : given)
    if (times < 0) fail(ErrorKind::value, "tile: negative repetitions in ", given);
  Shape shape = x.shape(), times = given;
  while (shape.rank() < times.rank()) shape.insert(0, 1);
  while (times.rank() < shape.rank()) times.insert(0, 1);
  Shape tiled = shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    tiled[axis] = counted(Wide(shape[axis]) * times[axis], "tile");
  element_count(tiled);  // raises before anything is copied
  Tensor y = x;
  // The outermost axis last: what is copied most lies in the longest runs.
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (times[axis] == 1) continue;
    y = repeated_runs(y, product(shape, 0, axis), times[axis], product(shape, axis, shape.rank()));
    shape[axis] = tiled[axis];
  }
  if (y.is(x)) y = copy(x);
  out[0] = y.shape() == shape ? y : owned(reshape(y, shape));
}

// ---- runs ----

// For counts of runs, one behind the other: which run each of `total` elements is in or, `within`,
// its place in that.
Tensor runs(const Tensor& counts, std::int64_t total, bool within) {
  return apply(kRuns, {counts}, AttributeList(2).set(0, total).set(1, within));
}

// x[indices[0], indices[1], ...] for int64 indices in range.
Tensor rows_at(const Tensor& x, const std::vector<Tensor>& indices) {
  std::vector<Operand> operands = {x};
  operands.insert(operands.end(), indices.begin(), indices.end());
  Tensor y;
  apply(kGatherRows, operands.data(), static_cast<int>(operands.size()), {}, &y);
  return y;
}

Tensor numbers(std::int64_t count) { return arange(0, Scalar(count), 1, DType::int64); }

// ---- repeat ----

std::int64_t read_total(const Tensor& counts) {
  const Tensor total = sum(counts, {}, false);
  const HostValues value(total, "repeat reads how many elements there will be");
  return modes.dry_run ? 0 : *value.as<std::int64_t>();
}

Tensor repeat_each(const char* op, const Tensor& x, std::int64_t times, int axis) {
  if (times < 0) fail(ErrorKind::value, op, ": repeats is negative: ", times);
  Shape shape = x.shape();
  shape[axis] = counted(Wide(shape[axis]) * times, op);
  element_count(shape);  // raises before anything is copied
  const Tensor y = repeated_runs(x, product(x.shape(), 0, axis + 1), times,
                                 product(shape, axis + 1, shape.rank()));
  return y.shape() == shape ? y : owned(reshape(y, shape));
}

Tensor repeat_by_counts(const Tensor& x, const Tensor& counts, std::int64_t total, int axis) {
  Shape shape = x.shape();
  const std::int64_t outer = product(shape, 0, axis);
  const std::int64_t inner = product(shape, axis + 1, shape.rank());
  const Tensor places = runs(counts, total, false);
  const Tensor y = outer == 1 ? rows_at(reshape(x, {shape[axis], inner}), {places})
                              : rows_at(reshape(x, {outer, shape[axis], inner}),
                                        {expand_dims(numbers(outer), 1), expand_dims(places, 0)});
  shape[axis] = total;
  return owned(reshape(y, shape));
}

// Attribute `axis` may be none; `size`: of the axis then, where the caller knows it.
Tensor repeated(const Use& use, Attribute axis_attribute, Attribute size) {
  const char* const op = use.op.name;
  const Tensor& given = use.in[0].tensor;
  const Operand& repeats = use.in[1];
  const bool flat = axis_attribute == kNone;
  const Tensor x = flat ? reshape(given, {-1}) : given;
  const int axis = flat ? 0 : normalize_axis(axis_attribute, x.rank(), op);
  if (!repeats.is_tensor()) {
    if (repeats.scalar.kind != Scalar::Kind::integer)
      fail(ErrorKind::type, op, ": repeats must be whole numbers");
    if (repeats.scalar.reach != Scalar::Reach::int64) counted(Wide(1) << 64, op);
    return repeat_each(op, x, repeats.scalar.i, axis);
  }
  const Tensor& counts = repeats.tensor;
  if (!is_integer(counts.dtype()))
    fail(ErrorKind::type, op, ": repeats must be whole numbers, got ", name_of(counts.dtype()));
  if (counts.rank() > 1 || (counts.count() != 1 && counts.count() != x.size(axis)))
    fail(ErrorKind::value, op, ": repeats of shape ", counts.shape(), " for ", x.size(axis),
         " elements");
  const Tensor wide = reshape(astype(counts, DType::int64), {-1});
  if (wide.count() == 1 && x.size(axis) != 1) return repeat_each(op, x, read_total(wide), axis);
  if (size == kNone) size = read_total(wide);
  if (size < 0) fail(ErrorKind::value, op, ": the repeats add up to ", size);
  return repeat_by_counts(x, wide, size, axis);
}

// The repeats alone: so often each of their places.
Tensor repeated_places(const Tensor& counts, Attribute size) {
  const char* const op = "repeat_interleave";
  if (counts.rank() != 1 || !is_integer(counts.dtype()))
    fail(ErrorKind::type, op, ": repeats alone must be whole numbers along one axis, got ",
         name_of(counts.dtype()), " of shape ", counts.shape());
  const Tensor wide = astype(counts, DType::int64);
  if (size == kNone) size = read_total(wide);
  if (size < 0) fail(ErrorKind::value, op, ": the repeats add up to ", size);
  const Tensor places = arange(0, counts.size(0), 1, DType::int64);
  return repeat_by_counts(places, wide, size, 0);
}

// ---- what counts enumerate ----

// How many choices of k among n there are.
std::int64_t choices(Wide n, Wide k) {
  Wide count = 1;
  k = std::min(k, n - k);
  if (k < 0) return 0;
  for (Wide i = 0; i < k; ++i) count = counted(count * (n - i) / (i + 1), "combinations");
  return static_cast<std::int64_t>(count);
}

// Each beginning of a choice becomes those that have one element more. Without replacement the last
// of k elements leaves as many behind it as there are to come.
void combinations_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const Attribute size = use.attributes[0];
  const bool again = use.attributes.flag(1);
  if (x.rank() != 1) fail(ErrorKind::value, "combinations: needs 1 dimension, got ", x.shape());
  if (size < 0) fail(ErrorKind::value, "combinations: r is negative: ", size);
  const std::int64_t n = x.size(0);
  if (size == 0 || (!again && size > n)) {
    const Shape none = size ? Shape{0, size} : Shape{0};
    out[0] = rows_at(x, {zeros(none, DType::int64)});
    return;
  }
  if (size > std::numeric_limits<int>::max())
    fail(ErrorKind::value, "combinations: r must be below 2^31, got ", size);
  counted(Wide(choices(again ? Wide(n) + size - 1 : n, size)) * size, "combinations");
  std::vector<Tensor> columns = {numbers(again ? n : n - size + 1)};
  for (Attribute k = 2; k <= size; ++k) {
    const std::int64_t end = again ? n : n - size + k;
    const std::int64_t total = choices(again ? Wide(n) + k - 1 : end, k);
    const Tensor& last = columns.back();
    const Tensor counts = Operand(Scalar(again ? end : end - 1)) - last;
    const Tensor from = runs(counts, total, false), place = runs(counts, total, true);
    const Tensor next = rows_at(last, {from}) + place + (again ? 0 : 1);
    for (Tensor& column : columns) column = rows_at(column, {from});
    columns.push_back(next);
  }
  const std::vector<Operand> all(columns.begin(), columns.end());
  Tensor places;
  apply(kStack, all.data(), static_cast<int>(all.size()), AttributeList(1).set(0, 1), &places);
  out[0] = rows_at(x, {places});
}

// The sum of clamp(i, 0, most) for i up to `last`.
Wide sum_of_clamped(Wide last, Wide most) {
  if (last <= 0) return 0;
  const Wide slope = std::min(last, most);
  return slope * (slope + 1) / 2 + (last - slope) * most;
}

// Attributes: rows, columns, offset, dtype. Each row has the elements up to or from the diagonal.
void triangle(const Use& use, bool lower, Tensor* out) {
  const char* const op = use.op.name;
  const Attribute rows = use.attributes[0], columns = use.attributes[1];
  const DType dtype = use.attributes.dtype(3);
  if (rows < 0 || columns < 0)
    fail(ErrorKind::value, op, ": shape ", Shape{rows, columns}, " has a negative extent");
  if (!is_integer(dtype))
    fail(ErrorKind::type, op, ": dtype must be an integer type, got ", name_of(dtype));
  // Elements of row i left of the diagonal, the diagonal itself included for `lower`: first + i,
  // from 0 to columns, said so that no sum leaves 64 bits.
  const Attribute first = std::clamp(use.attributes[2], -rows - lower, columns - lower) + lower;
  const Attribute behind = std::max<Attribute>(first, 0), before = first - behind;
  const Tensor left = minimum(maximum(numbers(rows) + Operand(Scalar(before)), 0),
                              Operand(Scalar(columns - behind))) +
                      Operand(Scalar(behind));
  const Wide below =
      sum_of_clamped(Wide(first) + rows - 1, columns) - sum_of_clamped(Wide(first) - 1, columns);
  const std::int64_t total = counted(lower ? below : Wide(rows) * columns - below, op);
  const Tensor counts = lower ? left : Operand(Scalar(columns)) - left;
  const Tensor row = runs(counts, total, false), place = runs(counts, total, true);
  const Tensor column = lower ? place : rows_at(left, {row}) + place;
  out[0] = astype(apply(kStack, {row, column}, AttributeList(1).set(0, 0)), dtype);
}

}  // namespace

constexpr OpRecord kTile = {
    .name = "tile",
    .signature = "(x: Tensor, repetitions: Shape) -> Tensor",
    .help =
        "Copies of x side by side: so many along each axis. What has fewer axes, x or the "
        "repetitions, gets leading ones of 1.\n"
        "PyTorch's method `repeat` is this one. Raises ValueError for negative repetitions.\n"
        "Shapes: x of any shape; the result has the products of its extents and the repetitions.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = tile_body};
constexpr OpRecord kRuns = {
    .name = "runs",
    .signature = "(counts: Tensor, total: int, within: bool) -> Tensor",
    .help =
        "Of the elements of runs, one behind the other: which run each is in, or its place there.",
    .flags = kConstant,
    .infer = [](Call& call, Result* results) {
      results[0].shape = {call.attributes[0]};
      results[0].dtype = DType::int64;
    }};
#define TW_REPEAT_HELP                                                                             \
  "Each position of an axis (None: of all elements in row-major order) `repeats` times in a "      \
  "row: a number, or an integer tensor of one for each position.\nRaises ValueError for negative " \
  "repeats and another number of them, TypeError for other types."
constexpr OpRecord kRepeat = {
    .name = "repeat",
    .signature = "(x: Tensor, repeats: Operand, axis: int | None = None) -> Tensor",
    .help = TW_REPEAT_HELP
    " Values of a tensor of repeats are read. There is no method of this name: PyTorch's is tile.\n"
    "Shapes: x (..., n, ...), repeats a number or (n,); the result is (..., sum of the repeats, "
    "...).\n"
    "Types: all. Result: the same type.\n"
    "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) { out[0] = repeated(use, use.attributes[0], kNone); }};
constexpr OpRecord kRepeatInterleave = {
    .name = "repeat_interleave",
    .signature =
        "(x: Tensor, repeats: Operand | None = None, axis: int | None = None, *, output_size: "
        "int | None = None) -> Tensor",
    .help = TW_REPEAT_HELP
    " With output_size, the sum of the repeats, a tensor of them is not read for it; ValueError "
    "where it is another. One tensor alone holds the repeats of 0, 1, 2 and so on.\n"
    "Shapes: x (..., n, ...), repeats a number or (n,); the result is (..., sum of the repeats, "
    "...).\n"
    "Types: all. Result: the same type.\n"
    "Source: PyTorch's torch.repeat_interleave.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] = use.in[1].absent() ? repeated_places(use.in[0].tensor, use.attributes[1])
                                  : repeated(use, use.attributes[0], use.attributes[1]);
    }};
#undef TW_REPEAT_HELP
constexpr OpRecord kCombinations = {
    .name = "combinations",
    .signature = "(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor",
    .help =
        "All choices of r elements of x (n,), each in the order of x, as rows (choices, r); with "
        "replacement an element may be chosen again.\n"
        "Raises ValueError for other shapes and a negative r.\n"
        "Shapes: x (n,); the result is (choices, r).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.combinations.",
    .flags = kFunction,
    .body = combinations_body};
#define TW_TRIANGLE                                                                    \
  "(row: int, col: int, offset: int = 0, dtype: dtype = int64, device: Device | None " \
  "= None) -> Tensor"
constexpr OpRecord kTrilIndices = {
    .name = "tril_indices",
    .signature = TW_TRIANGLE,
    .help =
        "Places of the elements on and below a diagonal of a matrix (row, col), in row-major "
        "order: their rows, then their columns (2, n).\n"
        "Raises ValueError for negative extents.\n"
        "Shapes: the result is (2, n).\n"
        "Types: integer. Result: dtype.\n"
        "Raises TypeError for a dtype that is not an integer type.\n"
        "Source: PyTorch's torch.tril_indices.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) { triangle(use, true, out); }};
constexpr OpRecord kTriuIndices = {
    .name = "triu_indices",
    .signature = TW_TRIANGLE,
    .help =
        "Places of the elements on and above a diagonal of a matrix (row, col), in row-major "
        "order: their rows, then their columns (2, n).\n"
        "Raises ValueError for negative extents.\n"
        "Shapes: the result is (2, n).\n"
        "Types: integer. Result: dtype.\n"
        "Raises TypeError for a dtype that is not an integer type.\n"
        "Source: PyTorch's torch.triu_indices.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) { triangle(use, false, out); }};
#undef TW_TRIANGLE

}  // namespace tw
