// Several tensors into one.
#include "core/ops/move/join.h"

#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/axis_order.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

std::vector<Range> all_of(const Shape& shape) {
  std::vector<Range> ranges;
  for (std::int64_t extent : shape) ranges.push_back({0, 1, extent});
  return ranges;
}

void check_alike(const Shape& first, const Shape& x, int axis) {
  bool alike = x.rank() == first.rank();
  for (int i = 0; alike && i < x.rank(); ++i) alike = i == axis || x[i] == first[i];
  if (!alike)
    fail(ErrorKind::value, "concat: shapes differ outside axis ", axis, ": ", first, " and ", x);
}

// Attribute: the axis, or none where all are flattened first.
void infer_concat(Call& call, Result* results) {
  if (call.inputs == 0) fail(ErrorKind::value, "concat: no tensors");
  const Meta& first = call.in[0];
  if (first.rank() == 0)
    fail(ErrorKind::value, "concat: 0-d tensors have no axis to join along; use stack");
  const int axis = normalize_axis(call.attributes[0], first.rank(), "concat");
  DType dtype = first.dtype;
  Shape& shape = results[0].shape = *first.shape;
  shape[axis] = 0;
  for (int i = 0; i < call.inputs; ++i) {
    const Meta& x = call.in[i];
    check_alike(*first.shape, *x.shape, axis);
    dtype = promote(dtype, x.dtype);
    if (__builtin_add_overflow(shape[axis], x.size(axis), &shape[axis]))
      fail(ErrorKind::value, "concat: the result has more elements than 64 bits can count");
  }
  results[0].dtype = dtype;
}

// Attribute: the axis.
void infer_stack(Call& call, Result* results) {
  if (call.inputs == 0) fail(ErrorKind::value, "stack: no tensors");
  const Meta& first = call.in[0];
  const int axis = normalize_axis(call.attributes[0], first.rank() + 1, "stack");
  Result& y = results[0];
  y.dtype = first.dtype;
  for (int i = 0; i < first.rank() + 1; ++i)
    y.shape.push_back(i == axis ? call.inputs : first.size(i - (i > axis)));
  for (int i = 0; i < call.inputs; ++i) {
    const Meta& x = call.in[i];
    if (!(*x.shape == *first.shape))
      fail(ErrorKind::value, "stack: shapes differ: ", *first.shape, " and ", *x.shape);
    y.dtype = promote(y.dtype, x.dtype);
  }
}

// The ranges of one of several tensors along an axis of what they are joined to.
std::vector<Range> part_of(const Shape& shape, int axis, std::int64_t start) {
  std::vector<Range> ranges = all_of(shape);
  ranges[static_cast<std::size_t>(axis)].start = start;
  return ranges;
}

// The strides of a result that lies as all operands do, whose axes follow each other in memory in
// one order; axes of one element, as that of `stack`, are outermost, but for a last one along which
// they are joined: pairs along it stay together. Empty where the order is row-major, or where
// operands differ.
Strides common_layout(const Use& use, const Shape& shape, int joined) {
  const Tensor& first = use.in[0].tensor;
  if (first.contiguous()) return {};
  Strides keys = first.strides();
  for (int i = 0; i < first.rank(); ++i)
    if (first.size(i) == 1) keys[i] = std::numeric_limits<std::int64_t>::max();
  if (joined == first.rank() - 1 && first.size(joined) == 1) keys[joined] = 0;
  const AxisOrder order(keys);
  for (int i = 0; i < use.inputs; ++i) {
    const Tensor& x = use.in[i].tensor;
    if (x.contiguous() || !is_dense(x.shape(), x.strides())) return {};
    std::int64_t widest = std::numeric_limits<std::int64_t>::max();
    for (int k = 0; k < x.rank(); ++k) {
      const int axis = order.at[k];
      if (x.size(axis) == 1) continue;
      if (x.strides()[axis] > widest) return {};
      widest = x.strides()[axis];
    }
  }
  Strides strides = first.strides();
  std::int64_t step = 1;
  for (int k = shape.rank() - 1; k >= 0; --k) {
    strides[order.at[k]] = step;
    step *= shape[order.at[k]];
  }
  return strides;
}

// Each by a copy of its own: what kernels leave over.
void concat_body(const Use& use, Tensor* out) {
  std::vector<Meta> operands(static_cast<std::size_t>(use.inputs));
  for (std::size_t i = 0; i < operands.size(); ++i) describe_operand(use.in[i], operands[i]);
  Call call{&use.op, operands.data(), use.inputs, nullptr, use.attributes};
  Result result;
  infer_concat(call, &result);
  const Shape& shape = result.shape;
  const DType dtype = result.dtype;
  const int axis = normalize_axis(use.attributes[0], shape.rank(), "concat");
  const Strides strides = common_layout(use, shape, axis);
  if (strides.rank() == 0) {
    out[0] = Tensor::empty(shape, dtype);
  } else {
    out[0] = Tensor::fresh(shape, strides, element_count(shape), dtype);
    out[0]->contiguous = false;
  }
  std::int64_t at = 0;
  for (int i = 0; i < use.inputs; ++i) {
    const Tensor& x = use.in[i].tensor;
    copy_into(slice(out[0], part_of(x.shape(), axis, at)), x);
    at += x.size(axis);
  }
}

void concat_vjp(Vjp& v) {
  const int axis = normalize_axis(v.attributes()[0], v.g().rank(), "concat");
  std::int64_t at = 0;
  for (int i = 0; i < v.inputs(); ++i) {
    const Shape shape = v.shape(i);
    if (v.wants(i)) v.give(i, slice(v.g(), part_of(shape, axis, at)));
    at += shape[axis];
  }
}

// PyTorch's programs begin what they gather with tensor([]), which has one axis: beside tensors of
// more axes it is one of theirs without elements.
bool reshape_empty(const Use& use, Tensor* out) {
  const auto is_empty = [](const Tensor& x) { return x.rank() == 1 && x.count() == 0; };
  const Tensor* other = nullptr;
  bool any_empty = false;
  for (int i = 0; i < use.inputs; ++i) {
    const Tensor& x = use.in[i].tensor;
    if (!other && x.rank() > 1) other = &x;
    any_empty |= is_empty(x);
  }
  if (!any_empty || !other) return false;
  Shape shape = other->shape();
  shape[normalize_axis(use.attributes[0], shape.rank(), "concat")] = 0;
  std::vector<Operand> all;
  for (int i = 0; i < use.inputs; ++i) {
    const Tensor& x = use.in[i].tensor;
    all.push_back(is_empty(x) ? reshape(x, shape) : x);
  }
  apply(use.op, all.data(), use.inputs, use.attributes, out);
  return true;
}

// Flat where there is no axis.
bool rewrite_concat(const Use& use, Tensor* out) {
  if (!use.attributes.none(0)) return reshape_empty(use, out);
  std::vector<Operand> flat;
  for (int i = 0; i < use.inputs; ++i) flat.push_back(reshape(use.in[i].tensor, {-1}));
  apply(use.op, flat.data(), use.inputs, AttributeList(1).set(0, 0), out);
  return true;
}

}  // namespace

constexpr OpRecord kConcat = {
    .name = "concat",
    .signature = "(arrays: Sequence[Tensor], axis: int | None = 0) -> Tensor",
    .help =
        "Tensors joined along an existing axis (None: flattened).\n"
        "Shapes: tensors whose extents differ along the axis alone; the result has the sum of "
        "these there.\n"
        "Types: all. Result: the common type.\n"
        "Beside tensors of more axes, those of shape (0,) add nothing but their type, as in "
        "PyTorch.\n"
        "Raises ValueError for no tensors, for 0-d ones and for other extents that differ.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .rewrite = rewrite_concat,
    .infer = infer_concat,
    .body = concat_body,
    .vjp = concat_vjp,
    .shapes = kAllShapes};
constexpr OpRecord kStack = {
    .name = "stack",
    .signature = "(arrays: Sequence[Tensor], axis: int = 0) -> Tensor",
    .help =
        "Tensors joined along a new axis.\n"
        "Shapes: n tensors of one shape; the result has a new axis of extent n.\n"
        "Types: all. Result: the common type.\n"
        "Raises ValueError for no tensors and for shapes that differ.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .infer = infer_stack,
    .body =
        [](const Use& use, Tensor* out) {
          std::vector<Operand> expanded;
          for (int i = 0; i < use.inputs; ++i)
            expanded.push_back(expand_dims(use.in[i].tensor, use.attributes[0]));
          const int axis = normalize_axis(use.attributes[0], use.in[0].tensor.rank() + 1, "stack");
          apply(kConcat, expanded.data(), use.inputs, AttributeList(1).set(0, axis), out);
        },
    .vjp =
        [](Vjp& v) {
          const int axis = normalize_axis(v.attributes()[0], v.g().rank(), "stack");
          std::vector<Range> ranges = all_of(v.g().shape());
          for (int i = 0; i < v.inputs(); ++i) {
            ranges[static_cast<std::size_t>(axis)] = {i, 1, 1};
            if (v.wants(i)) v.give(i, slice(v.g(), ranges, 1u << axis));
          }
        }};

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  const std::vector<Operand> operands(tensors.begin(), tensors.end());
  Tensor y;
  apply(kConcat, operands.data(), static_cast<int>(operands.size()), AttributeList(1).set(0, axis),
        &y);
  return y;
}

}  // namespace tw
