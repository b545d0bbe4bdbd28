// Elements by a mask, and views of a part of one axis and writing to what they show.
#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/move/scatter.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

using std::int64_t;

// ---- masks ----

void check_mask(const char* op, const Tensor& mask) {
  if (!is_bool(mask.dtype()))
    fail(ErrorKind::type, op, ": mask must be bool, got ", name_of(mask.dtype()));
}
void masked_fill_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &mask = use.in[1].tensor;
  const Operand& value = use.in[2];
  check_mask("masked_fill", mask);
  if (value.is_tensor() && value.tensor.rank())
    fail(ErrorKind::value, "masked_fill: value must be a number or a 0-d tensor, got ",
         value.tensor.shape());
  out[0] = where(
      mask, value.is_tensor() ? astype(value.tensor, x.dtype()) : number_like(x, value.scalar), x);
}
void masked_select_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &mask = use.in[1].tensor;
  check_mask("masked_select", mask);
  Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_select");
  if (!shape.rank()) shape = {1};
  out[0] = index(broadcast_to(x, shape), {.kind = IndexItem::Kind::tensor,
                                          .tensor = contiguous(broadcast_to(mask, shape))});
}
// The n-th element of source goes where the n-th true element of the mask is.
void masked_scatter_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &mask = use.in[1].tensor, &given = use.in[2].tensor;
  check_mask("masked_scatter", mask);
  check_same_type("masked_scatter", "source", given, x);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_scatter");
  const Tensor flat = reshape(broadcast_operand(mask, shape), {-1});
  const Tensor rank =
      apply(kCumulativeSum, {flat}, AttributeList(3).set(0, 0).set(1, kNone).set(2, false));
  // An empty source has a place that is not asked for unless the mask selects something.
  const bool empty = given.count() == 0;
  const Tensor source = empty ? zeros({1}, given.dtype()) : reshape(given, {-1});
  const Tensor place = where(flat, empty ? rank : rank - 1, 0);
  const Tensor moved = gather_along(source, place, 0, AlongUser::masked_scatter);
  out[0] = where(flat.shape() == shape ? flat : reshape(flat, shape), reshape(moved, shape), x);
}

// ---- views of one axis, and writing to what they show ----

Tensor part_of(const Tensor& x, int axis, int64_t start, int64_t step, int64_t count) {
  std::vector<Range> ranges;
  for (const int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  ranges[static_cast<std::size_t>(axis)] = {start, step, count};
  return slice(x, ranges);
}

// Attribute 0 is the axis.
int axis_in(const Use& use) {
  const Tensor& x = use.in[0].tensor;
  if (x.rank() == 0) fail(ErrorKind::value, use.op.name, ": a 0-d tensor has no axis");
  return normalize_axis(use.attributes[0], x.rank(), use.op.name);
}
int64_t place_in(const Use& use, int axis, Attribute at) {
  const int64_t extent = use.in[0].tensor.size(axis);
  if (at < -extent || at >= extent)
    fail(ErrorKind::index, use.op.name, ": index ", at, " is out of range for axis ", axis,
         " with size ", extent);
  return at < 0 ? at + extent : at;
}
void select_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const int axis = axis_in(use);
  std::vector<Range> ranges;
  for (const int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  ranges[static_cast<std::size_t>(axis)] = {place_in(use, axis, use.attributes[1]), 1, 1};
  out[0] = slice(x, ranges, 1u << axis);
}
void narrow_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const int axis = axis_in(use);
  const int64_t extent = x.size(axis), start = use.attributes[1], length = use.attributes[2];
  const int64_t first = start < 0 ? start + extent : start;
  if (first < 0 || first > extent)
    fail(ErrorKind::index, "narrow: start ", start, " is out of range for axis ", axis,
         " with size ", extent);
  if (length < 0 || length > extent - first)
    fail(ErrorKind::value, "narrow: length ", length, " from ", first, " on does not fit axis ",
         axis, " with size ", extent);
  out[0] = part_of(x, axis, first, 1, length);
}

// x with src at the places of a range along an axis.
Tensor with_part(const Use& use, int axis, Range range) {
  const Tensor &x = use.in[0].tensor, &src = use.in[1].tensor;
  Shape shape = x.shape();
  shape[axis] = range.count;
  check_same_type(use.op.name, "src", src, x);
  if (!(src.shape() == shape))
    fail(ErrorKind::value, use.op.name, ": src ", src.shape(), " must have shape ", shape);
  Shape column(x.rank(), 1);
  column[axis] = range.count;
  const int64_t end = range.count ? range.start + range.step * (range.count - 1) + 1 : range.start;
  const Tensor places = arange(Scalar(range.start), Scalar(end), Scalar(range.step), DType::int64);
  return scatter_along(x, broadcast_to(reshape(places, column), shape), src, axis,
                       AlongUser::index_copy, true);
}
void select_scatter_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &src = use.in[1].tensor;
  const int axis = axis_in(use);
  const Range range = {place_in(use, axis, use.attributes[1]), 1, 1};
  Shape shape = x.shape();
  shape.erase(axis);
  if (!(src.shape() == shape))
    fail(ErrorKind::value, "select_scatter: src ", src.shape(), " must have shape ", shape);
  const Operand in[] = {x, expand_dims(src, axis)};
  out[0] = with_part({use.op, in, 2, use.attributes}, axis, range);
}
// Attributes: axis, start, end, step.
void slice_scatter_body(const Use& use, Tensor* out) {
  const int axis = axis_in(use);
  const int64_t extent = use.in[0].tensor.size(axis), step = use.attributes[3];
  if (step < 1) fail(ErrorKind::value, "slice_scatter: step must be at least 1, got ", step);
  const auto bound = [&](int attribute, int64_t otherwise) {
    const int64_t at = use.attributes.none(attribute) ? otherwise : use.attributes[attribute];
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  const int64_t start = bound(1, 0), end = std::max(start, bound(2, extent));
  out[0] = with_part(use, axis, {start, step, end > start ? (end - start - 1) / step + 1 : 0});
}

}  // namespace

constexpr OpRecord kMaskedFill = {
    .name = "masked_fill",
    .signature = "(x: Tensor, mask: Tensor, value: Operand) -> Tensor",
    .help =
        "x with one number where the mask is true; both are broadcast, the dtype is that of x.\n"
        "Raises TypeError for a mask that is not bool.\n"
        "Shapes: x and mask broadcast, value (); the result has their common shape.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for other shapes, OverflowError for a number that x's type does not "
        "hold.\n"
        "Source: PyTorch's torch.masked_fill.",
    .flags = kFunction | kInPlace,
    .body = masked_fill_body};
constexpr OpRecord kMaskedSelect = {
    .name = "masked_select",
    .signature = "(x: Tensor, mask: Tensor) -> Tensor",
    .help =
        "A vector of the elements where the mask is true; both are broadcast.\n"
        "Raises TypeError for a mask that is not bool.\n"
        "Shapes: x and mask broadcast; the result is (selected,).\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.masked_select.",
    .flags = kFunction,
    .body = masked_select_body};
constexpr OpRecord kMaskedScatter = {
    .name = "masked_scatter",
    .signature = "(x: Tensor, mask: Tensor, source: Tensor) -> Tensor",
    .help =
        "x with the elements of source, in order, where the mask is true; x and mask are "
        "broadcast.\n"
        "Raises ValueError where the mask selects more elements than source has, TypeError for a "
        "mask that is not bool or a source of another dtype.\n"
        "Shapes: x and mask broadcast, source of any shape; the result has their common shape.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.masked_scatter.",
    .flags = kFunction | kInPlace,
    .body = masked_scatter_body};

constexpr OpRecord kSelect = {
    .name = "select",
    .signature = "(x: Tensor, axis: int, index: int) -> Tensor",
    .help =
        "One place along an axis, which is dropped, as a view. IndexError out of range.\n"
        "Shapes: x (..., n, ...); the result lacks the axis.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for 0 dimensions.\n"
        "Source: PyTorch's torch.select.",
    .flags = kFunction,
    .body = select_body};
constexpr OpRecord kNarrow = {
    .name = "narrow",
    .signature = "(x: Tensor, axis: int, start: int, length: int) -> Tensor",
    .help =
        "`length` places along an axis from start on, as a view.\n"
        "Raises IndexError for a start, ValueError for a length out of range.\n"
        "Shapes: x (..., n, ...); the result is (..., length, ...).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.narrow.",
    .flags = kFunction,
    .body = narrow_body};
constexpr OpRecord kSelectScatter = {
    .name = "select_scatter",
    .signature = "(x: Tensor, src: Tensor, axis: int, index: int) -> Tensor",
    .help =
        "A copy of x with src at one place along an axis: what select shows.\n"
        "Raises IndexError out of range, ValueError where src has not the shape without the axis, "
        "TypeError where it is of another dtype.\n"
        "Shapes: x (..., n, ...), src without the axis; the result has x's shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.select_scatter.",
    .flags = kFunction,
    .body = select_scatter_body};
constexpr OpRecord kSliceScatter = {
    .name = "slice_scatter",
    .signature =
        "(x: Tensor, src: Tensor, axis: int = 0, start: int | None = None, end: int | "
        "None = None, step: int = 1) -> Tensor",
    .help =
        "A copy of x with src at the places start:end:step along an axis.\n"
        "Raises ValueError where src has not the shape of that part or step is below 1, TypeError "
        "where it is of another dtype.\n"
        "Shapes: x (..., n, ...), src of the shape of the part; the result has x's shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.slice_scatter.",
    .flags = kFunction,
    .body = slice_scatter_body};

}  // namespace tw
