// Views: shape arithmetic, and for each the gradient, which is another view or its transpose.
#include "core/ops/shape/view.h"

#include <span>
#include <utility>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"

namespace tw {

Tensor view_of(const Tensor& x, const Shape& shape, const Strides& strides,
               std::int64_t offset_elements) {
  Tensor y = Tensor::over(
      x->storage, x->offset_bytes + offset_elements * static_cast<std::int64_t>(x.item_bytes()),
      shape, strides, x.dtype());
  y->is_view = true;
  if (x->is_view && !x->family) {
    y->recorded_seen = x->recorded_seen;
    y->outside_graph = x->outside_graph;
  } else if (modes.grad && is_differentiable(x.dtype())) {
    ViewFamily::join(*x.get(), *y.get());
  }
  return y;
}

Tensor view_as(const Tensor& x, DType dtype, const Shape& shape, const Strides& strides) {
  Tensor y = Tensor::over(x->storage, x->offset_bytes, shape, strides, dtype);
  y->is_view = true;
  y->recorded_seen = x->storage->recorded_changes;
  y->outside_graph =
      x->storage->in_graph && !x.requires_grad() && (!x->is_view || x->family || x->outside_graph)
          ? x->storage->leaves + 1
          : 0;
  return y;
}

namespace {

// Strides of `x` seen as `shape`, by matching runs of axes with equal element counts; false where a
// run of several old axes is not evenly spaced.
bool strides_as(const Meta& x, const Shape& shape, Strides& out) {
  out = contiguous_strides(shape);
  if (x.contiguous || x.count == 0) return true;
  int from = 0, to = 0;
  const int old_rank = x.rank(), new_rank = shape.rank();
  while (from < old_rank || to < new_rank) {
    std::int64_t old_count = from < old_rank ? x.size(from) : 1;
    std::int64_t new_count = to < new_rank ? shape[to] : 1;
    int old_end = from + 1, new_end = to + 1;
    while (old_count != new_count) {
      if (old_count < new_count)
        old_count *= x.size(old_end++);
      else
        new_count *= shape[new_end++];
    }
    old_end = std::min(old_end, old_rank);
    new_end = std::min(new_end, new_rank);
    std::int64_t step = 0, span = 1;  // of the run's innermost axis that has more than one element
    for (int i = old_end - 1; i >= from; --i) {
      if (x.size(i) == 1) continue;
      if (span == 1)
        step = (*x.strides)[i];
      else if ((*x.strides)[i] != step * span)
        return false;
      span *= x.size(i);
    }
    for (int i = new_end - 1; i >= to; --i) {
      out[i] = step;
      step *= shape[i];
    }
    from = old_end;
    to = new_end;
  }
  return true;
}

Shape resolve(const Meta& x, Shape shape) {
  int open = -1;
  std::int64_t known = 1;
  bool beyond = false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      if (open >= 0) fail(ErrorKind::value, "reshape: only one extent may be -1, got ", shape);
      open = i;
    } else if (shape[i] < 0) {
      fail(ErrorKind::value, "reshape: negative extent in ", shape);
    } else {
      beyond |= __builtin_mul_overflow(known, shape[i], &known);
    }
  }
  if (open >= 0 && !beyond && known > 0 && x.count % known == 0) shape[open] = x.count / known;
  if ((open >= 0 && shape[open] < 0) || element_count(shape) != x.count)
    fail(ErrorKind::value, "reshape: cannot view ", x.count, " elements of shape ", *x.shape,
         " as ", shape);
  return shape;
}

void infer_reshape(Call& call, Result* results) {
  const Meta& x = call.in[0];
  Result& y = results[0];
  y.shape = resolve(x, call.attributes.dims(0));
  y.dtype = x.dtype;
  const Attribute copy = call.attributes[1];
  if (copy != 1 && strides_as(x, y.shape, y.strides)) {
    y.alias = 0;
    return;
  }
  if (copy == 0)
    fail(ErrorKind::value, "reshape: shape ", *x.shape, " with strides ", *x.strides,
         " cannot become ", y.shape, " without a copy");
}

// The axis order of a permutation; raises ValueError.
struct Permutation {
  int from[kMaxRank], inverse[kMaxRank];
  Permutation(const Attributes& attributes, int rank) {
    const List axes = attributes.list(0);
    if (axes.count != rank)
      fail(ErrorKind::value, "permute_dims: ", axes.count, " axes for ", rank, " dimensions");
    std::uint32_t seen = 0;  // bits of axes
    for (int i = 0; i < rank; ++i) {
      from[i] = normalize_axis(axes[i], rank, "permute_dims");
      if (seen >> from[i] & 1)
        fail(ErrorKind::value, "permute_dims: axis ", from[i], " is repeated");
      seen |= 1u << from[i];
      inverse[from[i]] = i;
    }
  }
};

void infer_permute(Call& call, Result* results) {
  const Meta& x = call.in[0];
  const Permutation order(call.attributes, x.rank());
  Result& y = results[0];
  for (int i = 0; i < x.rank(); ++i) {
    y.shape.push_back(x.size(order.from[i]));
    y.strides.push_back((*x.strides)[order.from[i]]);
  }
  y.dtype = x.dtype;
  y.alias = 0;
}

void infer_broadcast(Call& call, Result* results) {
  const Meta& x = call.in[0];
  const Shape shape = call.attributes.dims(0);
  const int lead = shape.rank() - x.rank();
  for (std::int64_t extent : shape)
    if (extent < 0) fail(ErrorKind::value, "broadcast_to: negative extent in ", shape);
  if (lead < 0 || !(broadcast_shapes(*x.shape, shape, "broadcast_to") == shape))
    fail(ErrorKind::value, "broadcast_to: cannot broadcast ", *x.shape, " to ", shape);
  Result& y = results[0];
  y.strides = Strides(shape.rank(), 0);
  for (int i = 0; i < x.rank(); ++i)
    y.strides[lead + i] = x.size(i) == 1 && shape[lead + i] != 1 ? 0 : (*x.strides)[i];
  y.shape = shape;
  y.dtype = x.dtype;
  y.alias = 0;
}

// The stride of every step-th element. Where the product leaves 64 bits there is one at most, and
// the stride means nothing.
std::int64_t stepped(std::int64_t stride, std::int64_t step) {
  std::int64_t product;
  return __builtin_mul_overflow(stride, step, &product) ? stride : product;
}

// Attributes of slices: a list of start, step and count for each axis; bits of axes that are
// dropped.
void describe_slice(const Shape& shape, const Strides& strides, Attributes attributes, Result& y) {
  const List ranges = attributes.list(0);
  for (int i = 0; i < shape.rank(); ++i) {
    const Attribute start = ranges[3 * i], step = ranges[3 * i + 1], count = ranges[3 * i + 2];
    if (count > 0) y.offset += start * strides[i];
    if (attributes[1] >> i & 1) continue;
    y.shape.push_back(count);
    y.strides.push_back(stepped(strides[i], step));
  }
}
void infer_slice(Call& call, Result* results) {
  const Meta& x = call.in[0];
  describe_slice(*x.shape, *x.strides, call.attributes, results[0]);
  results[0].dtype = x.dtype;
  results[0].alias = 0;
}
[[gnu::hot]] bool quick_slice(const OpRecord&, const Operand* in, int, Attributes attributes,
                              Tensor* out) {
  const Tensor& x = in[0].tensor;
  Result y;
  describe_slice(x.shape(), x.strides(), attributes, y);
  out[0] = view_of(x, y.shape, y.strides, y.offset);
  return true;
}

// The ranges' numbers one after the other.
std::span<const std::int64_t> flat(std::span<const Range> ranges) {
  static_assert(sizeof(Range) == 3 * sizeof(std::int64_t));
  return {&ranges.data()->start, 3 * ranges.size()};
}
// The ranges that a slice and its transpose have in their attributes.
std::vector<Range> ranges_of(Attributes attributes) {
  std::vector<Range> ranges;
  const List list = attributes.list(0);
  for (int i = 0; i < list.count; i += 3) ranges.push_back({list[i], list[i + 1], list[i + 2]});
  return ranges;
}

void slice_vjp(Vjp& v) {
  const std::vector<Range> ranges = ranges_of(v.attributes());
  Shape window;
  for (const Range& range : ranges) window.push_back(range.count);
  AttributeList attributes(2);
  v.give(0, kUnslice, {v.attributes()[1] ? reshape(v.g(), window) : v.g()},
         attributes.set_list(0, flat(ranges)).set_list(1, v.shape(0)));
}
// What other slices of a tensor left is kept, so that a loop over its parts costs each part once.
bool add_to_ranges(const Use& use, const Tensor& target) {
  const Tensor& x = use.in[0].tensor;
  if (x.dtype() != target.dtype()) return false;
  Operand operands[] = {slice(target, ranges_of(use.attributes)), x};
  pointwise_in_place(PointwiseOp::add, operands);
  return true;
}

// Zeros of a shape with x in the ranges.
void infer_unslice(Call& call, Result* results) {
  results[0].shape = call.attributes.dims(1);
  results[0].dtype = call.in[0].dtype;
}

}  // namespace

constexpr OpRecord kReshape = {
    .name = "reshape",
    .signature = "(x: Tensor, shape: Shape, *, copy: bool | None = None) -> Tensor",
    .help =
        "The same elements in another shape; one extent may be -1.\n"
        "A view where strides allow it; copy=True always copies, copy=False never does and raises "
        "ValueError instead.\n"
        "Shapes: x of any shape; the result has the shape given.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for a shape of another number of elements and for more than one -1.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .infer = infer_reshape,
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor x = copy(use.in[0].tensor);
          out[0] = owned(reshape(x, use.attributes.dims(0)));
        },
    .vjp = [](Vjp& v) { v.give(0, reshape(v.g(), v.shape(0))); },
    .shapes = 1};
constexpr OpRecord kPermuteDims = {
    .name = "permute_dims",
    .signature = "(x: Tensor, axes: Shape) -> Tensor",
    .help =
        "Axes in another order, as a view.\n"
        "Shapes: x of n dimensions and n axes; the result has x's extents in their order.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for another number of axes and for an axis given twice, IndexError for "
        "axes out of range.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .infer = infer_permute,
    .vjp = [](Vjp& v) {
      const int rank = v.g().rank();
      const Permutation order(v.attributes(), rank);
      v.give(0, permute_dims(v.g(), {order.inverse, order.inverse + rank}));
    }};
constexpr OpRecord kBroadcastTo = {
    .name = "broadcast_to",
    .signature = "(x: Tensor, shape: Shape) -> Tensor",
    .help =
        "Axes of extent 1 repeated, as a view.\n"
        "Shapes: x that broadcasts to the shape given, which the result has.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for another shape.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kBroadcasts,
    .infer = infer_broadcast,
    .vjp = [](Vjp& v) { v.give(0, v.g()); }};
constexpr OpRecord kSlice = {
    .name = "slice",
    .signature = "(x: Tensor, ranges: Shape, dropped: int) -> Tensor",
    .help = "Some positions of each axis, evenly spaced, as a view; some axes may be dropped.",
    .quick = quick_slice,
    .infer = infer_slice,
    .vjp = slice_vjp,
    .shapes = 1};
constexpr OpRecord kUnslice = {
    .name = "unslice",
    .signature = "(x: Tensor, ranges: Shape, shape: Shape) -> Tensor",
    .help = "Zeros with x at the places that a slice takes: its gradient.",
    .infer = infer_unslice,
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor& x = use.in[0].tensor;
          out[0] = zeros(use.attributes.dims(1), x.dtype());
          copy_into(slice(out[0], ranges_of(use.attributes)), x);
        },
    .vjp = [](Vjp& v) { v.give(0, slice(v.g(), ranges_of(v.attributes()))); },
    .add_into = add_to_ranges};
constexpr OpRecord kExpandDims = {
    .name = "expand_dims",
    .signature = "(x: Tensor, axis: int = 0) -> Tensor",
    .help =
        "A new axis of extent 1.\n"
        "Shapes: x of any shape; the result has one axis more, of extent 1.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      Shape shape = x.shape();
      shape.insert(normalize_axis(use.attributes[0], x.rank() + 1, "expand_dims"), 1);
      out[0] = reshape(x, shape);
    }};
constexpr OpRecord kSqueeze = {.name = "squeeze",
                               .signature = "(x: Tensor, axis: Axes = None) -> Tensor",
                               .help =
                                   "Drops axes of extent 1 (all of them by default).\n"
                                   "Shapes: x of any shape; the result has its extents but for "
                                   "those of the axes, which are 1.\n"
                                   "Types: all. Result: the same type.\n"
                                   "Raises ValueError for an axis of another extent than 1.\n"
                                   "Source: Array API standard 2024.12.",
                               .flags = kFunction,
                               .body = [](const Use& use, Tensor* out) {
                                 const Tensor& x = use.in[0].tensor;
                                 const std::uint32_t axes =
                                     use.attributes.axes(0, x.rank(), "squeeze");
                                 Shape shape;
                                 for (int i = 0; i < x.rank(); ++i) {
                                   const bool drops = axes >> i & 1;
                                   if (!drops || (use.attributes.none(0) && x.size(i) != 1))
                                     shape.push_back(x.size(i));
                                   else if (x.size(i) != 1)
                                     fail(ErrorKind::value, "squeeze: axis ", i, " of ", x.shape(),
                                          " has extent ", x.size(i), ", not 1");
                                 }
                                 out[0] = reshape(x, shape);
                               }};
constexpr OpRecord kFlip = {
    .name = "flip",
    .signature = "(x: Tensor, axis: Axes = None) -> Tensor",
    .help =
        "Order reversed along axes (all by default), as a view.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      const std::uint32_t flipped = use.attributes.axes(0, x.rank(), "flip");
      std::vector<Range> ranges;
      for (int i = 0; i < x.rank(); ++i)
        ranges.push_back(flipped >> i & 1 ? Range{x.size(i) - 1, -1, x.size(i)}
                                          : Range{0, 1, x.size(i)});
      out[0] = slice(x, ranges);
    }};
constexpr OpRecord kTranspose = {
    .name = "transpose",
    .signature = "(x: Tensor, axis0: Axes = None, axis1: int | None = None) -> Tensor",
    .help =
        "Two axes swapped, or all axes in another order, as a view.\n"
        "Two numbers are the axes to swap, as in PyTorch. One sequence, or another number of "
        "numbers, is the order of all axes, and none reverses them, as in NumPy: of a matrix "
        "x.transpose(0, 1) is the transpose and x.transpose((0, 1)) is x.\n"
        "Shapes: x of any shape; the result has its extents in the order of the axes.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for an order with another number of axes or with an axis twice, and for "
        "an order beside axis1.\n"
        "Source: PyTorch's torch.transpose and NumPy's transpose.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      const int rank = x.rank();
      if (use.attributes.none(1)) {
        std::vector<std::int64_t> order;
        if (use.attributes.none(0))
          for (int i = rank; i-- > 0;) order.push_back(i);
        else
          order.assign(use.attributes.list(0).begin(), use.attributes.list(0).end());
        out[0] = permute_dims(x, order);
        return;
      }
      if (use.attributes.none(0) || use.attributes.list(0).count != 1)
        fail(ErrorKind::value,
             "transpose: axis1 is swapped with one axis0; the order of all axes "
             "stands alone");
      out[0] = swap_axes(x, normalize_axis(use.attributes.list(0)[0], rank, "transpose"),
                         normalize_axis(use.attributes[1], rank, "transpose"));
    }};
namespace {

// Attributes: axis, size and step of the windows.
struct Windows {
  int axis;
  std::int64_t size, step;
  Windows(Attributes attributes, int rank)
      : axis(normalize_axis(attributes[0], rank, "unfold")),
        size(attributes[1]),
        step(attributes[2]) {}
  std::int64_t count(std::int64_t extent) const { return (extent - size) / step + 1; }
};

void infer_windows(Call& call, Result* results) {
  const Meta& x = call.in[0];
  const Windows windows(call.attributes, x.rank());
  const std::int64_t extent = x.size(windows.axis);
  if (windows.size < 0 || windows.size > extent)
    fail(ErrorKind::value, "unfold: windows of ", windows.size, " along an axis of ", extent);
  if (windows.step < 1)
    fail(ErrorKind::value, "unfold: step must be at least 1, got ", windows.step);
  Result& y = results[0];
  y.shape = *x.shape;
  y.strides = *x.strides;
  y.shape.push_back(windows.size);
  y.strides.push_back(y.strides[windows.axis]);
  y.shape[windows.axis] = windows.count(extent);
  y.strides[windows.axis] = stepped(y.strides[windows.axis], windows.step);
  y.dtype = x.dtype;
  y.alias = 0;
}

// Attributes: those of the windows, and the shape of what they are of.
void infer_sum_windows(Call& call, Result* results) {
  results[0].shape = call.attributes.dims(3);
  results[0].dtype = call.in[0].dtype;
}
// One step for each window, or for each place in windows, whichever are fewer.
void sum_windows(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const Shape shape = use.attributes.dims(3);
  const Windows windows(use.attributes, shape.rank());
  out[0] = zeros(shape, x.dtype());
  std::vector<Range> to, from;
  for (std::int64_t extent : shape) to.push_back({0, 1, extent});
  for (std::int64_t extent : x.shape()) from.push_back({0, 1, extent});
  const std::int64_t count = windows.count(shape[windows.axis]);
  const bool whole = count < windows.size;
  for (std::int64_t i = 0; i < (whole ? count : windows.size); ++i) {
    to[windows.axis] =
        whole ? Range{i * windows.step, 1, windows.size} : Range{i, windows.step, count};
    from[whole ? windows.axis : x.rank() - 1] = {i, 1, 1};
    Tensor part = slice(x, from, 1u << (whole ? windows.axis : x.rank() - 1));
    if (whole) {  // its last axis belongs where the windows lie
      std::vector<std::int64_t> order;
      for (int axis = 0; axis < part.rank() - 1; ++axis) order.push_back(axis);
      order.insert(order.begin() + windows.axis, part.rank() - 1);
      part = permute_dims(part, order);
    }
    Operand operands[] = {slice(out[0], to), part};
    pointwise_in_place(PointwiseOp::add, operands);
  }
}

}  // namespace

constexpr OpRecord kWindowsAlong = {
    .name = "windows_along",
    .signature = "(x: Tensor, axis: int, size: int, step: int) -> Tensor",
    .help = "Windows along an axis, as a view: the last axis of the result goes through each.",
    .infer = infer_windows,
    .vjp =
        [](Vjp& v) {
          AttributeList attributes(4);
          for (int i = 0; i < 3; ++i) attributes.set(i, v.attributes()[i]);
          const Shape shape = v.shape(0);
          v.give(0, kSumWindows, {v.g()}, attributes.set_list(3, shape));
        },
    .shapes = 1};
constexpr OpRecord kSumWindows = {
    .name = "sum_windows",
    .signature = "(x: Tensor, axis: int, size: int, step: int, shape: Shape) -> Tensor",
    .help = "Windows added where windows_along takes them from: its gradient.",
    .infer = infer_sum_windows,
    .body = sum_windows,
    .vjp = [](Vjp& v) {
      AttributeList attributes(3);
      for (int i = 0; i < 3; ++i) attributes.set(i, v.attributes()[i]);
      v.give(0, kWindowsAlong, {v.g()}, attributes);
    }};
Tensor windows_along(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step) {
  return apply(kWindowsAlong, {x}, AttributeList(3).set(0, axis).set(1, size).set(2, step));
}
constexpr OpRecord kFlatten = {
    .name = "flatten",
    .signature = "(x: Tensor, start_axis: int = 0, end_axis: int = -1) -> Tensor",
    .help =
        "Axes merged into one.\n"
        "Shapes: x of any shape; the result has one axis in place of those from start_axis to "
        "end_axis.\n"
        "Types: all. Result: the same type.\n"
        "Raises ValueError for an end in front of the start.\n"
        "Source: PyTorch's torch.flatten.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      if (x.rank() == 0) return static_cast<void>(out[0] = reshape(x, {1}));
      const int first = normalize_axis(use.attributes[0], x.rank(), "flatten"),
                last = normalize_axis(use.attributes[1], x.rank(), "flatten");
      if (first > last)
        fail(ErrorKind::value, "flatten: start axis ", use.attributes[0], " is behind end axis ",
             use.attributes[1]);
      Shape shape;
      for (int i = 0; i < x.rank(); ++i) {
        if (i > first && i <= last)
          shape[first] *= x.size(i);
        else
          shape.push_back(x.size(i));
      }
      out[0] = reshape(x, shape);
    }};

bool can_view_as(const Tensor& x, const Shape& shape) {
  Strides strides;
  Meta meta;
  describe_operand(x, meta);
  return strides_as(meta, resolve(meta, shape), strides);
}

Tensor owned(Tensor view) {
  view->is_view = false;
  view->family = Ref<ViewFamily>();
  return view;
}

Tensor reshape(const Tensor& x, const Shape& shape, bool copy_allowed) {
  return apply(kReshape, {x}, AttributeList(2).set_list(0, shape).set(1, copy_allowed ? kNone : 0));
}
Tensor permute_dims(const Tensor& x, const std::vector<std::int64_t>& axes) {
  return apply(kPermuteDims, {x}, AttributeList(1).set_list(0, axes));
}
Tensor swap_axes(const Tensor& x, int a, int b) {
  std::int64_t order[kMaxRank];
  for (int i = 0; i < x.rank(); ++i) order[i] = i;
  std::swap(order[a], order[b]);
  return apply(kPermuteDims, {x},
               AttributeList(1).set_list(0, std::span(order, static_cast<std::size_t>(x.rank()))));
}
Tensor broadcast_operand(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : broadcast_to(x, shape);
}
Tensor without_repeats(const Tensor& x) {
  Shape once = x.shape();
  for (int axis = 0; axis < x.rank(); ++axis)
    if (once[axis] > 1 && x.strides()[axis] == 0) once[axis] = 1;
  return once == x.shape() ? x : view_of(x, once, x.strides());
}
Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  return apply(kBroadcastTo, {x}, AttributeList(1).set_list(0, shape));
}
Tensor expand_dims(const Tensor& x, std::int64_t axis) {
  return apply(kExpandDims, {x}, AttributeList(1).set(0, axis));
}
Tensor squeeze(const Tensor& x, const std::vector<std::int64_t>& axes) {
  return apply(kSqueeze, {x}, AttributeList(1).set_list(0, axes));
}
Tensor slice(const Tensor& x, std::span<const Range> ranges, std::uint32_t dropped) {
  return apply(kSlice, {x}, AttributeList(2).set_list(0, flat(ranges)).set(1, dropped));
}

}  // namespace tw
