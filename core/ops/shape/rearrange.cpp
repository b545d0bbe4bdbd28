// Elements in other places: axes moved, turned and split, elements rolled, tensors side by side.
#include <algorithm>
#include <limits>
#include <span>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

// The axes of a list, in its order. Raises ValueError for repeated ones.
std::vector<int> listed_axes(const List& axes, int rank, const char* op) {
  std::vector<int> out;
  for (const Attribute given : axes) {
    const int axis = normalize_axis(given, rank, op);
    if (std::find(out.begin(), out.end(), axis) != out.end())
      fail(ErrorKind::value, op, ": axis ", axis, " is repeated");
    out.push_back(axis);
  }
  return out;
}

void need_rank(const Tensor& x, int least, const char* op) {
  if (x.rank() < least)
    fail(ErrorKind::value, op, ": needs at least ", least, " dimension", least == 1 ? "" : "s",
         ", got ", x.shape());
}

// x with one axis cut.
Tensor cut(const Tensor& x, int axis, Range range) {
  std::vector<Range> ranges;
  for (const std::int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  ranges[static_cast<std::size_t>(axis)] = range;
  return slice(x, ranges);
}
Tensor flipped(const Tensor& x, int axis) {
  return cut(x, axis, {x.size(axis) - 1, -1, x.size(axis)});
}
// Another handle of the same elements.
Tensor view(const Tensor& x) { return reshape(x, x.shape(), false); }

// ---- axes ----

Tensor with_axes_at(const Tensor& x, const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(x.rank()), -1);
  for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  int next = 0;
  for (std::int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    axis = next++;
  }
  return permute_dims(x, order);
}

void moveaxis_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const std::vector<int> from = listed_axes(use.attributes.list(0), x.rank(), "moveaxis");
  const std::vector<int> to = listed_axes(use.attributes.list(1), x.rank(), "moveaxis");
  if (from.size() != to.size())
    fail(ErrorKind::value, "moveaxis: source has ", from.size(), " axes, destination ", to.size());
  out[0] = with_axes_at(x, from, to);
}

// Extents that one axis is split into; one of them may be -1.
Shape parts_of_axis(const Shape& sizes, std::int64_t extent, int axis) {
  Shape out = sizes;
  int open = -1;
  std::int64_t known = 1;
  bool fits = sizes.rank() > 0;
  for (int i = 0; i < sizes.rank(); ++i) {
    if (sizes[i] == -1 && open < 0)
      open = i;
    else
      fits = fits && sizes[i] >= 0 && !__builtin_mul_overflow(known, sizes[i], &known);
  }
  if (fits && open >= 0) {
    fits = known > 0 && extent % known == 0;
    if (fits) out[open] = extent / known;
  } else {
    fits = fits && known == extent;
  }
  if (!fits)
    fail(ErrorKind::value, "unflatten: sizes ", sizes, " do not divide axis ", axis, " of extent ",
         extent);
  return out;
}

void unflatten_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const int axis = normalize_axis(use.attributes[0], x.rank(), "unflatten");
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.size(i));
  for (const std::int64_t size : parts_of_axis(use.attributes.dims(1), x.size(axis), axis))
    shape.push_back(size);
  for (int i = axis + 1; i < x.rank(); ++i) shape.push_back(x.size(i));
  out[0] = reshape(x, shape);
}

void rot90_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  constexpr Attribute kFirstTwo[] = {0, 1};
  const List given = use.attributes.none(1) ? List{kFirstTwo, 2} : use.attributes.list(1);
  if (given.count != 2) fail(ErrorKind::value, "rot90: axes must be two, got ", given.count);
  need_rank(x, 2, "rot90");
  const std::vector<int> axes = listed_axes(given, x.rank(), "rot90");
  switch ((use.attributes[0] % 4 + 4) % 4) {
    case 0: out[0] = view(x); break;
    case 1: out[0] = swap_axes(flipped(x, axes[1]), axes[0], axes[1]); break;
    case 2: out[0] = flipped(flipped(x, axes[0]), axes[1]); break;
    case 3: out[0] = flipped(swap_axes(x, axes[0], axes[1]), axes[1]);
  }
}

// ---- rolled ----

Tensor rolled(const Tensor& x, int axis, Attribute shift) {
  const std::int64_t extent = x.size(axis);
  const std::int64_t rest = extent ? shift % extent : 0, by = rest < 0 ? rest + extent : rest;
  if (by == 0) return x;
  return concat({cut(x, axis, {extent - by, 1, by}), cut(x, axis, {0, 1, extent - by})}, axis);
}

void roll_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const List shifts = use.attributes.list(0);
  Tensor y = x;
  if (use.attributes.none(1)) {
    if (shifts.count != 1)
      fail(ErrorKind::value, "roll: ", shifts.count, " shifts need as many axes");
    y = rolled(reshape(x, {-1}), 0, shifts[0]);
  } else {
    const std::vector<int> axes = listed_axes(use.attributes.list(1), x.rank(), "roll");
    if (shifts.count != 1 && shifts.count != static_cast<int>(axes.size()))
      fail(ErrorKind::value, "roll: ", shifts.count, " shifts for ", axes.size(), " axes");
    for (std::size_t i = 0; i < axes.size(); ++i)
      y = rolled(y, axes[i], shifts[shifts.count == 1 ? 0 : static_cast<int>(i)]);
  }
  if (y->storage == x->storage) y = copy(x);
  out[0] = y.shape() == x.shape() ? y : owned(reshape(y, x.shape()));
}

// ---- side by side ----

// With as many axes as NumPy's functions of these names give.
Tensor at_least(const Tensor& x, int rank) {
  if (x.rank() >= rank) return x;
  if (rank == 3 && x.rank() == 2) return reshape(x, {x.size(0), x.size(1), 1});
  if (rank == 3) return reshape(x, {1, x.count(), 1});
  return rank == 2 ? reshape(x, {1, x.count()}) : reshape(x, {1});
}

void join(const Use& use, int rank, int axis, Tensor* out) {
  if (use.inputs == 0) fail(ErrorKind::value, use.op.name, ": no tensors");
  std::vector<Tensor> parts;
  for (int i = 0; i < use.inputs; ++i) parts.push_back(at_least(use.in[i].tensor, rank));
  out[0] = concat(parts, axis);
}

void column_stack_body(const Use& use, Tensor* out) {
  if (use.inputs == 0) fail(ErrorKind::value, "column_stack: no tensors");
  std::vector<Tensor> parts;
  for (int i = 0; i < use.inputs; ++i) {
    const Tensor& x = use.in[i].tensor;
    parts.push_back(x.rank() < 2 ? reshape(x, {x.count(), 1}) : x);
  }
  out[0] = concat(parts, 1);
}

// Powers by products, one after the other: for any type, and as NumPy rounds them.
void vander_body(const Use& use, Tensor* out) {
  const Tensor& given = use.in[0].tensor;
  if (given.rank() != 1) fail(ErrorKind::value, "vander: needs 1 dimension, got ", given.shape());
  const std::int64_t count = use.attributes.none(0) ? given.size(0) : use.attributes[0];
  if (count < 0) fail(ErrorKind::value, "vander: N is negative: ", count);
  if (count > std::numeric_limits<int>::max())
    fail(ErrorKind::value, "vander: N must be below 2^31, got ", count);
  const bool whole = is_integer(given.dtype()) || is_bool(given.dtype());
  const bool wide = !whole || given.dtype() == DType::uint64;
  const Tensor x = astype(given, wide ? given.dtype() : DType::int64);
  if (count == 0) {
    out[0] = copy(cut(expand_dims(x, 1), 1, {0, 1, 0}));
    return;
  }
  std::vector<Operand> powers = {
      apply(kOnesLike, {x}, AttributeList(2).set(0, kNone).set(1, kNone))};
  while (static_cast<std::int64_t>(powers.size()) < count)
    powers.push_back(powers.size() == 1 ? x : powers.back().tensor * x);
  if (!use.attributes.flag(1)) std::reverse(powers.begin(), powers.end());
  apply(kStack, powers.data(), static_cast<int>(powers.size()), AttributeList(1).set(0, 1), out);
}

}  // namespace

constexpr OpRecord kMoveaxis = {
    .name = "moveaxis",
    .signature = "(x: Tensor, source: Shape, destination: Shape) -> Tensor",
    .help =
        "The axes `source` at the places `destination`, the others in their order, as a view.\n"
        "Raises IndexError for axes out of range, ValueError for repeated ones and for lists of "
        "different "
        "lengths.\n"
        "Shapes: x of any shape; the result has its extents in the new order.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = moveaxis_body};
constexpr OpRecord kMatrixTranspose = {
    .name = "matrix_transpose",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "The last two axes swapped, as a view. Raises ValueError below 2 dimensions.\n"
        "Shapes: x (..., m, n); the result is (..., n, m).\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      need_rank(x, 2, "matrix_transpose");
      out[0] = swap_axes(x, x.rank() - 2, x.rank() - 1);
    }};
constexpr OpRecord kUnstack = {
    .name = "unstack",
    .signature = "(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]",
    .help =
        "The parts at each position of an axis, without that axis, as views.\n"
        "Shapes: x (..., n, ...); n results without that axis.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      out[0] = with_axes_at(x, {normalize_axis(use.attributes[0], x.rank(), "unstack")}, {0});
    }};
constexpr OpRecord kUnflatten = {
    .name = "unflatten",
    .signature = "(x: Tensor, axis: int, sizes: Shape) -> Tensor",
    .help =
        "One axis as several of these extents, one of which may be -1; a view where strides allow "
        "it.\n"
        "Raises ValueError where the extents do not multiply to that of the axis.\n"
        "Shapes: x of any shape; the result has the sizes in place of the axis.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.unflatten.",
    .flags = kFunction,
    .body = unflatten_body};
constexpr OpRecord kRavel = {
    .name = "ravel",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "All elements along one axis, in row-major order; a view where strides allow it.\n"
        "Shapes: x of any shape; the result is (elements,).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.ravel.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) { out[0] = reshape(use.in[0].tensor, {-1}); }};
constexpr OpRecord kRot90 = {
    .name = "rot90",
    .signature = "(x: Tensor, k: int = 1, axes: Axes = None) -> Tensor",
    .help =
        "Turned k times by 90 degrees from the first of two axes towards the second, as a view; "
        "None: axes (0, 1).\n"
        "Raises ValueError for fewer than 2 dimensions and axes that are not two different ones.\n"
        "Shapes: x of at least 2 dimensions; the result has its shape, the extents of the axes "
        "swapped for an odd k.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.rot90.",
    .flags = kFunction,
    .body = rot90_body};
constexpr OpRecord kFliplr = {
    .name = "fliplr",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "The order along axis 1 reversed, as a view. Raises ValueError below 2 dimensions.\n"
        "Shapes: x of at least 2 dimensions; the result has its shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.fliplr.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      need_rank(use.in[0].tensor, 2, "fliplr");
      out[0] = flipped(use.in[0].tensor, 1);
    }};
constexpr OpRecord kFlipud = {
    .name = "flipud",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "The order along axis 0 reversed, as a view. Raises ValueError for 0 dimensions.\n"
        "Shapes: x of at least 1 dimension; the result has its shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.flipud.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      need_rank(use.in[0].tensor, 1, "flipud");
      out[0] = flipped(use.in[0].tensor, 0);
    }};
constexpr OpRecord kRoll = {
    .name = "roll",
    .signature = "(x: Tensor, shift: Shape, axis: Axes = None) -> Tensor",
    .help =
        "Elements moved by `shift` places along axes; what leaves at the end comes in at the "
        "start.\n"
        "One shift is for all the axes, several are for one axis each; None: the elements in "
        "row-major order. Raises ValueError for repeated axes and another number of shifts.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = roll_body};

constexpr OpRecord kHstack = {.name = "hstack",
                              .signature = "(arrays: Sequence[Tensor]) -> Tensor",
                              .help =
                                  "Tensors joined along axis 1, of up to 1 dimension along axis 0. "
                                  "Raises ValueError as concat.\n"
                                  "Shapes: tensors whose extents differ along the joined axis "
                                  "alone; the result has the sum of these there.\n"
                                  "Types: all. Result: the common type.\n"
                                  "Source: PyTorch's torch.hstack.",
                              .flags = kFunction,
                              .body = [](const Use& use, Tensor* out) {
                                join(use, 1, use.inputs && use.in[0].tensor.rank() > 1, out);
                              }};
constexpr OpRecord kVstack = {.name = "vstack",
                              .signature = "(arrays: Sequence[Tensor]) -> Tensor",
                              .help =
                                  "Tensors joined along axis 0; those of up to 1 dimension are "
                                  "rows. Raises ValueError as concat.\n"
                                  "Shapes: tensors whose extents differ along the joined axis "
                                  "alone; the result has the sum of these there.\n"
                                  "Types: all. Result: the common type.\n"
                                  "Source: PyTorch's torch.vstack.",
                              .flags = kFunction,
                              .body = [](const Use& use, Tensor* out) { join(use, 2, 0, out); }};
constexpr OpRecord kDstack = {.name = "dstack",
                              .signature = "(arrays: Sequence[Tensor]) -> Tensor",
                              .help =
                                  "Tensors joined along axis 2; a matrix (m, n) is (m, n, 1), a "
                                  "vector (1, n, 1). Raises ValueError as concat.\n"
                                  "Shapes: tensors whose extents differ along the joined axis "
                                  "alone; the result has the sum of these there.\n"
                                  "Types: all. Result: the common type.\n"
                                  "Source: PyTorch's torch.dstack.",
                              .flags = kFunction,
                              .body = [](const Use& use, Tensor* out) { join(use, 3, 2, out); }};
constexpr OpRecord kColumnStack = {.name = "column_stack",
                                   .signature = "(arrays: Sequence[Tensor]) -> Tensor",
                                   .help =
                                       "Tensors joined along axis 1; those of up to 1 dimension "
                                       "are columns. Raises ValueError as concat.\n"
                                       "Shapes: tensors whose extents differ along the joined axis "
                                       "alone; the result has the sum of these there.\n"
                                       "Types: all. Result: the common type.\n"
                                       "Source: PyTorch's torch.column_stack.",
                                   .flags = kFunction,
                                   .body = column_stack_body};
constexpr OpRecord kVander = {
    .name = "vander",
    .signature = "(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor",
    .help =
        "The powers of each element of x (n,) as rows of N columns (None: n), from N - 1 down to 0 "
        "or, increasing, from 0 up.\n"
        "Whole numbers become int64, uint64 stays. Raises ValueError for other shapes and a "
        "negative N.\n"
        "Shapes: x (n,); the result is (n, N).\n"
        "Types: all. Result: the same type, of bool and integers int64, of uint64 uint64.\n"
        "Source: PyTorch's torch.vander.",
    .flags = kFunction,
    .body = vander_body};

}  // namespace tw
