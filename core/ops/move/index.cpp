// Indexing: basic parts become a view; index arrays then gather from it, or scatter into it.
#include "core/ops/move/index.h"

#include <algorithm>
#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/copy/in_place.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"

namespace tw {

namespace {

using Kind = IndexItem::Kind;

Range resolve_slice(const IndexItem& item, std::int64_t extent) {
  // The smallest step, which has no opposite, reaches no further than the next one.
  const std::int64_t step =
      std::max(item.step.value_or(1), -std::numeric_limits<std::int64_t>::max());
  if (step == 0) fail(ErrorKind::value, "index: slice step is 0");
  const auto clamp = [&](std::int64_t i, std::int64_t low, std::int64_t high) {
    return std::clamp(i < 0 ? i + extent : i, low, high);
  };
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const std::int64_t start = item.start ? clamp(*item.start, low, high) : (step > 0 ? low : high);
  const std::int64_t stop = item.stop ? clamp(*item.stop, low, high) : (step > 0 ? high : low);
  const std::int64_t span = step > 0 ? stop - start : start - stop;
  const std::int64_t stride = step > 0 ? step : -step;
  if (span <= 0) return {start, step, 0};
  return {start, step, stride == 1 ? span : (span - 1) / stride + 1};
}

std::int64_t resolve_integer(std::int64_t i, std::int64_t extent, int axis) {
  if (i < -extent || i >= extent)
    fail(ErrorKind::index, "index: ", i, " is out of range for axis ", axis, " with size ", extent);
  return i < 0 ? i + extent : i;
}

// A 0-d tensor where x is.
Tensor number_beside(const Tensor& x, const Scalar& value, DType dtype) {
  const DeviceGuard device(x.device());
  return full(Shape(), value, dtype);
}

// What an index comes down to: ranges for every axis of x, then dropped and new axes, then arrays,
// those of the axes that single bools add included.
struct Plan {
  std::vector<Range> ranges;
  Shape view_shape;            // after dropping integer axes and adding new ones
  std::vector<int> axes;       // of the view that arrays index
  std::vector<Tensor> arrays;  // int64
  bool split = false;          // by an ellipsis, which counts also where it stands for no axis
};

bool any_array(const std::vector<IndexItem>& items) {
  return std::any_of(items.begin(), items.end(),
                     [](const IndexItem& item) { return item.kind >= Kind::truth; });
}

int consumed_axes(const IndexItem& item) {
  if (item.kind == Kind::ellipsis || item.kind == Kind::new_axis || item.kind == Kind::truth)
    return 0;
  return item.kind == Kind::tensor && is_bool(item.tensor.dtype()) ? item.tensor.rank() : 1;
}

class Planner {
 public:
  Planner(const Tensor& x, const std::vector<IndexItem>& items)
      : x_(x), arrays_present_(any_array(items)) {
    int consumed = 0, ellipses = 0;
    for (const IndexItem& item : items) {
      consumed += consumed_axes(item);
      ellipses += item.kind == Kind::ellipsis;
    }
    if (ellipses > 1) fail(ErrorKind::index, "index: more than one ellipsis");
    if (consumed > x.rank())
      fail(ErrorKind::index, "index: ", consumed, " indices for ", x.rank(), " dimension",
           x.rank() == 1 ? "" : "s");
    std::size_t before = 0;
    for (const IndexItem& item : items) {
      if (item.kind == Kind::ellipsis) {
        before = plan.arrays.size();
        keep(x.rank() - consumed);
      } else {
        add(item);
      }
    }
    plan.split = before > 0 && before < plan.arrays.size();
    keep(x.rank() - axis_);
  }
  Plan plan;

 private:
  void keep(int axes) {
    for (int i = 0; i < axes; ++i) push_range({0, 1, x_.size(axis_)});
  }
  void push_range(Range range) {
    plan.ranges.push_back(range);
    plan.view_shape.push_back(range.count);
    ++axis_;
  }
  void push_array(const Tensor& indices) {
    plan.axes.push_back(plan.view_shape.rank());
    plan.arrays.push_back(indices);
    push_range({0, 1, x_.size(axis_)});
  }
  // Of a single bool: a new axis, of which it takes the one position or none.
  void push_truth(const Tensor& positions) {
    plan.axes.push_back(plan.view_shape.rank());
    plan.arrays.push_back(positions);
    plan.view_shape.push_back(1);
  }
  void add(const IndexItem& item) {
    switch (item.kind) {
      case Kind::new_axis: return plan.view_shape.push_back(1);
      case Kind::slice: return push_range(resolve_slice(item, x_.size(axis_)));
      case Kind::integer: return add_integer(item.integer);
      case Kind::truth: return add_truth(item.integer);
      case Kind::tensor: return add_tensor(item.tensor);
      case Kind::ellipsis: return;
    }
  }
  void add_integer(std::int64_t i) {
    const std::int64_t at = resolve_integer(i, x_.size(axis_), axis_);
    if (arrays_present_) return push_array(number_beside(x_, Scalar(at), DType::int64));
    plan.ranges.push_back({at, 1, 1});
    ++axis_;
  }
  void add_truth(std::int64_t count) {
    const DeviceGuard device(x_.device());
    push_truth(zeros({count}, DType::int64));
  }
  void add_tensor(const Tensor& indices) {
    if (is_integer(indices.dtype())) return push_array(wrap(indices));
    if (!is_bool(indices.dtype()))
      fail(ErrorKind::index, "index: arrays must be integer or bool, got ",
           name_of(indices.dtype()));
    for (int i = 0; i < indices.rank(); ++i)  // an extent of 0 takes nothing, of any axis
      if (indices.size(i) != x_.size(axis_ + i) && indices.size(i) != 0)
        fail(ErrorKind::index, "index: mask of shape ", indices.shape(), " does not match ",
             x_.shape(), " at axis ", axis_ + i);
    if (indices.rank() == 0) return push_truth(nonzero(reshape(indices, {1}))[0]);
    for (const Tensor& positions : nonzero(indices)) push_array(positions);
  }
  // Checked, negative indices counted from the end.
  Tensor wrap(const Tensor& indices) const {
    return checked_indices(indices, x_.size(axis_), axis_, Indexing::index);
  }

  const Tensor& x_;
  bool arrays_present_;
  int axis_ = 0;
};

bool takes_everything(const Tensor& x, const std::vector<Range>& ranges) {
  for (int i = 0; i < x.rank(); ++i) {
    const Range& r = ranges[static_cast<std::size_t>(i)];
    if (r.start != 0 || r.step != 1 || r.count != x.size(i)) return false;
  }
  return true;
}

Tensor basic_view(const Tensor& x, const Plan& plan) {
  const Tensor window = takes_everything(x, plan.ranges) ? x : slice(x, plan.ranges);
  return window.shape() == plan.view_shape ? window : reshape(window, plan.view_shape, false);
}

Shape index_shape(const std::vector<Tensor>& arrays) {
  Shape shape;
  for (const Tensor& a : arrays) shape = broadcast_shapes(shape, a.shape(), "index");
  return shape;
}

std::vector<Operand> with_arrays(std::initializer_list<Tensor> first,
                                 const std::vector<Tensor>& arrays) {
  std::vector<Operand> operands(first.begin(), first.end());
  operands.insert(operands.end(), arrays.begin(), arrays.end());
  return operands;
}

// The shape that the index arrays of a call broadcast to, from input `first` on.
Shape index_shape(const Call& call, int first) {
  Shape shape;
  for (int i = first; i < call.inputs; ++i)
    shape = broadcast_shapes(shape, *call.in[i].shape, "index");
  return shape;
}

void infer_gather(Call& call, Result* results) {
  const Meta& x = call.in[0];
  Shape shape = index_shape(call, 1);
  for (int i = call.inputs - 1; i < x.rank(); ++i) shape.push_back(x.size(i));
  results[0].shape = shape;
  results[0].dtype = x.dtype;
}
// Attribute: the axis.
void infer_take(Call& call, Result* results) {
  const Meta &x = call.in[0], &index = call.in[1];
  const int axis = static_cast<int>(call.attributes[0]);
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.size(i));
  for (const std::int64_t extent : *index.shape) shape.push_back(extent);
  for (int i = axis + 1; i < x.rank(); ++i) shape.push_back(x.size(i));
  results[0].shape = shape;
  results[0].dtype = x.dtype;
}
void infer_scatter_add(Call& call, Result* results) {
  results[0].shape = call.attributes.dims(0);
  results[0].dtype = call.in[0].dtype;
}
void infer_scatter(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}
Estimate estimate_rows(const Call& call) {
  const Meta& y = call.out[0];
  return {0, 2 * static_cast<double>(y.count) * static_cast<double>(size_of(y.dtype))};
}

std::vector<Tensor> arrays_of(const Vjp& v) {
  std::vector<Tensor> arrays;
  for (int i = 1; i < v.inputs(); ++i) arrays.push_back(v.in(i).tensor);
  return arrays;
}

// x[arrays[0], arrays[1], ...] on the leading axes; result: broadcast index shape, then the rest.
Tensor gather(const Tensor& x, const std::vector<Tensor>& arrays) {
  const std::vector<Operand> operands = with_arrays({x}, arrays);
  Tensor y;
  apply(kGatherRows, operands.data(), static_cast<int>(operands.size()), {}, &y);
  return y;
}

// zeros(shape) with the rows of g added at the indices: the gradient of gather.
Tensor scatter_add(const Tensor& g, const std::vector<Tensor>& arrays, const Shape& shape) {
  const std::vector<Operand> operands = with_arrays({g}, arrays);
  Tensor y;
  apply(kScatterAddRows, operands.data(), static_cast<int>(operands.size()),
        AttributeList(1).set_list(0, shape), &y);
  return y;
}

// Axis order with the axes that arrays index in front.
std::vector<std::int64_t> indexed_first(int rank, const std::vector<int>& axes) {
  std::vector<std::int64_t> order(axes.begin(), axes.end());
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i);
  return order;
}
// NumPy: adjacent index axes are replaced in place by the index shape, others move it to the front.
bool are_adjacent(const Plan& plan) {
  const auto& axes = plan.axes;
  return !plan.split && axes.back() - axes.front() + 1 == static_cast<int>(axes.size());
}

// The inverse of an axis order.
std::vector<std::int64_t> undone(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return back;
}

// Axis order that puts the index shape (first `index_rank` axes) at position `at`.
std::vector<std::int64_t> index_moved_to(int rank, int index_rank, int at) {
  std::vector<std::int64_t> order;
  for (int i = 0; i < at; ++i) order.push_back(index_rank + i);
  for (int i = 0; i < index_rank; ++i) order.push_back(i);
  for (int i = index_rank + at; i < rank; ++i) order.push_back(i);
  return order;
}

// Index arrays that do not fit one another are an IndexError, as in NumPy.
Plan plan_of(const Tensor& x, const std::vector<IndexItem>& items) {
  Plan plan = Planner(x, items).plan;
  try {
    index_shape(plan.arrays);
  } catch (const Error& error) {
    fail(ErrorKind::index, error.message);
  }
  return plan;
}

Tensor front(const Tensor& view, const Plan& plan) {
  return plan.axes.front() == 0 && are_adjacent(plan)
             ? view
             : permute_dims(view, indexed_first(view.rank(), plan.axes));
}

// y, whose first axes are the index's, with these at position `at`.
Tensor index_in_place(const Tensor& y, int index_rank, int at) {
  return at ? owned(permute_dims(y, index_moved_to(y.rank(), index_rank, at))) : y;
}

// Whether rows of `x` are contiguous behind the indexed axes: the condition of the row kernels.
bool rows_contiguous(const Tensor& x, std::size_t indexed) {
  if (x.contiguous()) return true;  // also where an extent is 0
  std::int64_t step = 1;
  for (int i = x.rank() - 1; i >= static_cast<int>(indexed); --i) {
    if (x.size(i) != 1 && x.strides()[i] != step) return false;
    step *= x.size(i);
  }
  return true;
}

Tensor read(const Tensor& x, const Plan& plan) {
  const Tensor view = basic_view(x, plan);
  if (plan.arrays.empty()) return view.is(x) ? reshape(x, x.shape()) : view;
  const Tensor leading = front(view, plan);
  const int at = are_adjacent(plan) ? plan.axes.front() : 0;
  if (at && plan.arrays.size() == 1 && !leading.contiguous() &&
      rows_contiguous(view, static_cast<std::size_t>(at + 1)))
    return apply(kTakeRows, {view, plan.arrays[0]}, AttributeList(1).set(0, at));
  return index_in_place(gather(leading, plan.arrays), index_shape(plan.arrays).rank(), at);
}

// Writes `value` (of the shape of x[arrays]) into the memory of x.
void scatter(const Tensor& x, const std::vector<Tensor>& arrays, const Tensor& value) {
  const bool direct = rows_contiguous(x, arrays.size());
  const Tensor target = direct ? x : copy(x);
  const std::vector<Operand> operands = with_arrays({target, value}, arrays);
  apply_into(kScatterRows, operands.data(), static_cast<int>(operands.size()), {}, target);
  if (!direct) copy_into(x, target);
}

// The part of x[items] that `value` must fill, as a shape.
Shape target_shape(const Tensor& view, const Plan& plan) {
  if (plan.arrays.empty()) return view.shape();
  Shape rest;
  for (int i = 0; i < view.rank(); ++i)
    if (std::find(plan.axes.begin(), plan.axes.end(), i) == plan.axes.end())
      rest.push_back(view.size(i));
  const Shape indices = index_shape(plan.arrays);
  const int at = are_adjacent(plan) ? plan.axes.front() : 0;
  Shape shape;
  for (int i = 0; i < at; ++i) shape.push_back(rest[i]);
  for (std::int64_t extent : indices) shape.push_back(extent);
  for (int i = at; i < rest.rank(); ++i) shape.push_back(rest[i]);
  return shape;
}

// Whether `value` is x[plan] itself: what `y[0] += 1` assigns in the end, when its change of the
// view y[0] has been made.
bool is_own_part(const Tensor& x, const Plan& plan, const Tensor& value, bool recorded) {
  if (value->storage != x->storage || !plan.arrays.empty()) return false;
  if (recorded && !(value->family && value->family == x->family)) return false;
  GradModeGuard off(false);
  const Tensor part = basic_view(x, plan);
  return value.dtype() == x.dtype() && value->offset_bytes == part->offset_bytes &&
         value.shape() == part.shape() && value.strides() == part.strides();
}

// The same for an x whose elements share memory, as a broadcast one's do. It may not be assigned
// to, but its part may have been changed by now if that does not share memory within itself.
bool is_changed_part(const Tensor& x, const Plan& plan, const Operand& value) {
  if (!value.is_tensor() || !plan.arrays.empty() || value.tensor->storage != x->storage)
    return false;
  const Tensor part = basic_view(x, plan);
  return InPlaceChange("index assignment", part, value.tensor).changes_nothing(value.tensor);
}

void write(const Tensor& x, const Plan& plan, const Tensor& value) {
  GradModeGuard off(false);
  Tensor view = basic_view(x, plan);
  const Shape shape = target_shape(view, plan);
  Tensor source = value;
  while (source.rank() > shape.rank() && source.size(0) == 1) source = squeeze(source, {0});
  if (source.rank() > shape.rank() ||
      !(broadcast_shapes(source.shape(), shape, "index assignment") == shape))
    fail(ErrorKind::value, "index assignment: shape ", source.shape(), " does not fit ", shape);
  if (plan.arrays.empty()) return assign(view, source);
  source = broadcast_operand(astype(source, x.dtype()), shape);
  const int index_rank = index_shape(plan.arrays).rank();
  const int at = are_adjacent(plan) ? plan.axes.front() : 0;
  std::vector<std::int64_t> order;  // brings the index axes to the front
  for (int i = 0; i < index_rank; ++i) order.push_back(at + i);
  for (int i = 0; i < at; ++i) order.push_back(i);
  for (int i = at + index_rank; i < source.rank(); ++i) order.push_back(i);
  source = copy(permute_dims(source, order));
  for (const Tensor& array : plan.arrays)
    if (array.device() != x.device())
      fail(ErrorKind::value, "index assignment: operands are on different devices: ", describe(x),
           " and ", describe(array), "; move one of them with to(device)");
  x.touch("index assignment");
  scatter(front(view, plan), plan.arrays, source);
}

}  // namespace

Tensor checked_indices(const Tensor& indices, std::int64_t extent, Attribute axis, Indexing user) {
  const bool is_uint64 = indices.dtype() == DType::uint64;  // beyond int64 they look negative
  AttributeList attributes(4);
  attributes.set(0, extent).set(1, axis).set(2, is_uint64).set(3, static_cast<Attribute>(user));
  return apply(kCheckedIndices, {astype(indices, DType::int64)}, attributes);
}

Tensor index(const Tensor& x, const IndexItem& item) {
  if (x.rank() == 0 || (item.kind != Kind::integer && item.kind != Kind::slice))
    return index(x, std::vector<IndexItem>{item});
  Range ranges[kMaxRank];
  for (int i = 1; i < x.rank(); ++i) ranges[i] = {0, 1, x.size(i)};
  const bool is_integer = item.kind == Kind::integer;
  ranges[0] = is_integer ? Range{resolve_integer(item.integer, x.size(0), 0), 1, 1}
                         : resolve_slice(item, x.size(0));
  return slice(x, std::span(ranges, static_cast<std::size_t>(x.rank())), is_integer);
}

Tensor index(const Tensor& x, const std::vector<IndexItem>& items) {
  return read(x, plan_of(x, items));
}

namespace {

// x[plan] = value; the plan's arrays are copies of the caller's, who may change those later.
void assign_planned(Tensor& x, const Plan& plan, const Operand& value) {
  if (shares_elements(x) && is_changed_part(x, plan, value)) return;
  const InPlaceChange change("index assignment", x, value.tensor);
  Tensor v = value.is_tensor() ? value.tensor : number_beside(x, value.scalar, x.dtype());
  if (is_complex(v.dtype()) && !is_complex(x.dtype()))
    fail(ErrorKind::type, "index assignment: ", name_of(v.dtype()), " into ", name_of(x.dtype()));
  if (is_own_part(x, plan, v, change.recorded())) return;
  v = change.before(v);
  write(x, plan, v);
  if (!change.recorded()) return;
  change.join_graph(x, [&](const Tensor& y) {
    record(
        y, "index assignment",
        [plan, shape = v.shape(), dtype = v.dtype()](Node& node, const Tensor& g, Tensor* dx) {
          if (node.wants(0)) {
            dx[0] = copy(g);
            assign_planned(dx[0], plan, Scalar(0));
          }
          if (node.wants(1)) dx[1] = astype(sum_to(read(g, plan), shape), dtype);
        },
        x, v);
  });
}

}  // namespace

void index_assign(Tensor& x, const std::vector<IndexItem>& items, const Operand& value) {
  assign_planned(x, plan_of(x, items), value);
}

// What the gradients of rows read: all inputs but the first.
constexpr std::uint64_t kAllArrays = ~std::uint64_t{1};

constexpr OpRecord kGatherRows = {
    .name = "gather_rows",
    .signature = "(x: Tensor, indices: Sequence[Tensor]) -> Tensor",
    .help = "x[indices[0], indices[1], ...] for index tensors in range.",
    .infer = infer_gather,
    .estimate = estimate_rows,
    .vjp = [](Vjp& v) { v.give(0, scatter_add(v.g(), arrays_of(v), v.shape(0))); },
    .reads = {{.inputs = kAllArrays}},
    .shapes = 1};
constexpr OpRecord kTakeRows = {
    .name = "take_rows",
    .signature = "(x: Tensor, indices: Tensor, axis: int) -> Tensor",
    .help = "x[:, ..., indices] along an axis behind others, for indices in range.",
    .infer = infer_take,
    .estimate = estimate_rows,
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor &x = use.in[0].tensor, &index = use.in[1].tensor;
          const int axis = static_cast<int>(use.attributes[0]);
          const Tensor y = gather(permute_dims(x, indexed_first(x.rank(), {axis})), {index});
          out[0] = index_in_place(y, index.rank(), axis);
        },
    .vjp =
        [](Vjp& v) {
          const Tensor index = v.in(1).tensor;
          const int axis = static_cast<int>(v.attributes()[0]), rank = v.g().rank();
          const auto order = undone(index_moved_to(rank, index.rank(), axis));
          const Shape shape = v.shape(0);
          const auto first = indexed_first(shape.rank(), {axis});
          Shape moved;
          for (const std::int64_t i : first) moved.push_back(shape[static_cast<int>(i)]);
          const Tensor g = scatter_add(permute_dims(v.g(), order), {index}, moved);
          v.give(0, permute_dims(g, undone(first)));
        },
    .reads = {{.inputs = kAllArrays}},
    .shapes = 1};
constexpr OpRecord kScatterAddRows = {
    .name = "scatter_add_rows",
    .signature = "(g: Tensor, indices: Sequence[Tensor], shape: Shape) -> Tensor",
    .help = "Zeros with rows added at indices: the gradient of gather_rows.",
    .infer = infer_scatter_add,
    .estimate = estimate_rows,
    .vjp = [](Vjp& v) { v.give(0, gather(v.g(), arrays_of(v))); },
    .reads = {{.inputs = kAllArrays}}};
constexpr OpRecord kScatterRows = {
    .name = "scatter_rows",
    .signature = "(target: Tensor, value: Tensor, indices: Sequence[Tensor]) -> Tensor",
    .help = "Writes rows at indices of the target; of repeated ones the last stays.",
    .infer = infer_scatter,
    .estimate = estimate_rows};
constexpr OpRecord kCheckedIndices = {
    .name = "checked_indices",
    .signature = "(indices: Tensor, extent: int, axis: int | None, is_uint64: bool, " TW_INDEX_USER
                 ") -> Tensor",
    .help = "Indices within the extent of an axis.",
    .flags = kConstant,
    .infer = [](Call&, Result* results) {
      results[0].like = 0;
      results[0].dtype = DType::int64;
    }};

}  // namespace tw
