// Moving elements by an index along one axis.
#include "core/ops/move/scatter.h"

#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"
#include "core/problems/attribute_values.h"

namespace tw {

namespace {

using std::int64_t;

// ---- internal ops. Attributes: axis, user; then what each has of its own ----

enum Reduce : Attribute { kSum, kProd, kMean, kAmax, kAmin };

AttributeList along_attributes(int count, int axis, AlongUser user) {
  return AttributeList(count).set(0, axis).set(1, static_cast<Attribute>(user));
}

void infer_gather(Call& call, Result* results) {
  results[0].like = 1;
  results[0].dtype = call.in[0].dtype;
}
void infer_scatter(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}
Estimate estimate_gather(const Call& call) {
  const auto count = double(call.in[1].count);
  return {0, count * (8 + 2 * double(size_of(call.in[0].dtype)))};
}
Estimate estimate_scatter(const Call& call) {
  const auto size = double(size_of(call.in[0].dtype)), count = double(call.in[1].count);
  return {count, 2 * double(call.in[0].count) * size + count * (8 + 3 * size)};
}

AlongUser user_of(const Vjp& v) { return static_cast<AlongUser>(v.attributes()[1]); }
int axis_of(const Vjp& v) { return static_cast<int>(v.attributes()[0]); }

// Kernels copy what they add to; of one number they need not read as much as they write.
Tensor number(double value, const Tensor& like, const Shape& shape) {
  return broadcast_to(full({}, value, like.dtype()), shape);
}

void gather_vjp(Vjp& v) {
  const Tensor& g = v.g();
  v.give(0, scatter_add_along(number(0, g, v.shape(0)), v.in(1).tensor, g, axis_of(v), user_of(v)));
}
void scatter_add_vjp(Vjp& v) {
  if (v.wants(0)) v.give(0, v.g());
  if (v.wants(2)) v.give(2, gather_along(v.g(), v.in(1).tensor, axis_of(v), user_of(v)));
}
// Which elements of src are still there: of those at one place the last.
Tensor stays(const Tensor& index, const Shape& shape, int axis, AlongUser user) {
  const Tensor order = reshape(arange(0, Scalar(index.count()), 1, DType::int64), index.shape());
  const Tensor last = scatter_along(zeros(shape, DType::int64), index, order, axis, user, false);
  return gather_along(last, index, axis, user) == order;
}
void scatter_vjp(Vjp& v) {
  const Tensor& g = v.g();
  const Tensor index = v.in(1).tensor;
  const int axis = axis_of(v);
  const AlongUser user = user_of(v);
  if (v.wants(0)) v.give(0, scatter_along(g, index, number(0, g, index.shape()), axis, user, true));
  if (!v.wants(2)) return;
  const Tensor read = gather_along(g, index, axis, user);
  v.give(2, v.attributes().flag(2) ? read : where(stays(index, g.shape(), axis, user), read, 0));
}

// The product of all that went into each place but one is the product of those that are not 0
// over the one; beside one 0 it is 0 for all others, beside two for all.
void scatter_product_vjp(Vjp& v) {
  const DType type = working_dtype(v.g().dtype());  // products of 16 bits end early
  const auto wide = [&](const Tensor& t) { return astype(t, type); };
  const Tensor x = wide(v.in(0).tensor), src = wide(v.in(2).tensor), g = wide(v.g());
  const Tensor index = v.in(1).tensor;
  const int axis = axis_of(v);
  const AlongUser user = user_of(v);
  const auto at_index = [&](const Tensor& t) { return gather_along(t, index, axis, user); };
  const Tensor x_none = x == Operand(0), src_none = src == Operand(0);
  const Tensor x_some = where(x_none, 1, x), src_some = where(src_none, 1, src);
  const Tensor product =
      apply(kScatterReduceAlong, {x_some, index, src_some},
            along_attributes(3, axis, user).set(2, static_cast<Attribute>(ScatterJoin::product)));
  const Tensor zeros_there = scatter_add_along(astype(x_none, DType::int64), index,
                                               astype(src_none, DType::int64), axis, user);
  const Tensor without = zeros_there == Operand(0), one = zeros_there == Operand(1);
  // To what is not 0, and to the only 0.
  const Tensor to_some = where(without, g * product, 0), to_zero = where(one, g * product, 0);
  if (v.wants(0)) v.give(0, where(x_none, to_zero, to_some / x_some));
  if (v.wants(2)) v.give(2, where(src_none, at_index(to_zero), at_index(to_some) / src_some));
}
// All that are equal to the result share its gradient.
void scatter_extreme_vjp(Vjp& v) {
  const Tensor x = v.in(0).tensor, index = v.in(1).tensor, src = v.in(2).tensor, y = v.out();
  const Tensor& g = v.g();
  const int axis = axis_of(v);
  const AlongUser user = user_of(v);
  const Tensor x_wins = x == y, src_wins = src == gather_along(y, index, axis, user);
  const DType type = working_dtype(g.dtype());
  const Tensor winners =
      scatter_add_along(astype(x_wins, type), index, astype(src_wins, type), axis, user);
  const Tensor share = astype(g / winners, g.dtype());
  if (v.wants(0)) v.give(0, where(x_wins, share, 0));
  if (v.wants(2)) v.give(2, where(src_wins, gather_along(share, index, axis, user), 0));
}
void scatter_reduce_vjp(Vjp& v) {
  v.attributes()[2] == static_cast<Attribute>(ScatterJoin::product) ? scatter_product_vjp(v)
                                                                    : scatter_extreme_vjp(v);
}

// ---- what public calls have in common ----

// A number has one axis here.
Tensor as_vector(const Tensor& x) { return x.rank() ? x : reshape(x, {1}); }

// The first elements along every axis.
Tensor corner(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  std::vector<Range> ranges;
  for (const int64_t extent : shape) ranges.push_back({0, 1, extent});
  return slice(x, ranges);
}

// A call of (x, axis, index, src).
struct Scatter {
  Tensor x, index, src;
  int axis;
  Shape shape;

  explicit Scatter(const Use& use) : shape(use.in[0].tensor.shape()) {
    const char* const op = use.op.name;
    x = as_vector(use.in[0].tensor);
    axis = normalize_axis(use.attributes[0], x.rank(), op);
    index = as_vector(integer_index(op, use.in[1].tensor));
    check_index(op);
    if (!use.in[2].is_tensor()) {
      src = broadcast_to(number_like(x, use.in[2].scalar), index.shape());
      return;
    }
    const Tensor given = as_vector(use.in[2].tensor);
    check_same_type(op, "src", given, x);
    bool fits = given.rank() == index.rank();
    for (int i = 0; fits && i < index.rank(); ++i) fits = index.size(i) <= given.size(i);
    if (!fits)
      fail(ErrorKind::value, op, ": index ", index.shape(), " does not fit src ", given.shape(),
           ": it needs as many axes, none longer");
    src = corner(given, index.shape());
  }
  Tensor result(const Tensor& y) const { return shape.rank() ? y : reshape(y, shape); }

 private:
  void check_index(const char* op) const {
    bool fits = index.rank() == x.rank();
    for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.size(i) <= x.size(i);
    if (!fits)
      fail(ErrorKind::value, op, ": index ", index.shape(), " does not fit x ", x.shape(),
           ": it needs as many axes, none but axis ", axis, " longer");
  }
};

Tensor reduced(const Scatter& in, const Tensor& x, ScatterJoin join, AlongUser user) {
  return apply(kScatterReduceAlong, {x, in.index, in.src},
               along_attributes(3, in.axis, user).set(2, static_cast<Attribute>(join)));
}

// ---- scatter, scatter_add, scatter_reduce ----

// Attributes: axis, reduce.
void scatter_body(const Use& use, Tensor* out) {
  const Scatter in(use);
  constexpr AlongUser user = AlongUser::scatter;
  if (use.attributes.none(1))
    out[0] = in.result(scatter_along(in.x, in.index, in.src, in.axis, user, false));
  else if (use.attributes[1] == 0)
    out[0] = in.result(scatter_add_along(in.x, in.index, in.src, in.axis, user));
  else
    out[0] = in.result(reduced(in, in.x, ScatterJoin::product, user));
}
void scatter_add_body(const Use& use, Tensor* out) {
  const Scatter in(use);
  out[0] = in.result(scatter_add_along(in.x, in.index, in.src, in.axis, AlongUser::scatter_add));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What changes nothing that it is joined with.
Tensor neutral(const Tensor& x, Attribute reduce) {
  if (reduce == kProd) return number_like(x, 1);
  if (reduce != kAmax && reduce != kAmin) return number_like(x, 0);
  const bool lowest = reduce == kAmax;
  const DType type = x.dtype();
  if (is_bool(type)) return number_like(x, !lowest);
  if (!is_integer(type)) return number_like(x, lowest ? -kInfinity : kInfinity);
  const int bits = 8 * static_cast<int>(size_of(type)) - is_signed_int(type);
  const auto top = ~std::uint64_t{0} >> (64 - bits);
  if (!lowest) return number_like(x, Scalar::of_uint64(top));
  return number_like(x, is_signed_int(type) ? Scalar(-static_cast<int64_t>(top) - 1) : Scalar(0));
}

DType wide_integer(DType type) { return type == DType::uint64 ? DType::uint64 : DType::int64; }

// Attributes: axis, reduce, include_self.
void scatter_reduce_body(const Use& use, Tensor* out) {
  const Scatter in(use);
  const Attribute reduce = use.attributes[1];
  const bool includes = use.attributes.flag(2);
  constexpr AlongUser user = AlongUser::scatter_reduce;
  if (is_complex(in.x.dtype()) && (reduce == kAmax || reduce == kAmin))
    fail(ErrorKind::type, "scatter_reduce: complex numbers have no order");
  if (is_bool(in.x.dtype()) && reduce == kMean)
    fail(ErrorKind::type, "scatter_reduce: truth values have no mean");
  Tensor x = in.x;
  if (!includes)
    x = scatter_along(x, in.index, broadcast_to(neutral(x, reduce), in.index.shape()), in.axis,
                      user, true);
  if (reduce == kProd) {
    out[0] = in.result(reduced(in, x, ScatterJoin::product, user));
    return;
  }
  if (reduce == kAmax || reduce == kAmin) {
    out[0] = in.result(
        reduced(in, x, reduce == kAmax ? ScatterJoin::largest : ScatterJoin::smallest, user));
    return;
  }
  if (reduce == kSum) {
    out[0] = in.result(scatter_add_along(x, in.index, in.src, in.axis, user));
    return;
  }
  const DType type = is_integer(x.dtype()) ? wide_integer(x.dtype()) : working_dtype(x.dtype());
  const Tensor ones = broadcast_to(full({}, 1, type), in.index.shape());
  const Tensor before = full(x.shape(), includes ? 1 : 0, type);
  const Tensor counts = maximum(scatter_add_along(before, in.index, ones, in.axis, user), 1);
  const Tensor total =
      scatter_add_along(astype(x, type), in.index, astype(in.src, type), in.axis, user);
  const Tensor mean = is_integer(type) ? floor_divide(total, counts) : total / counts;
  out[0] = in.result(astype(mean, x.dtype()));
}

// ---- index_select, index_add, index_copy, index_fill ----

// A call of (x, axis, index) whose index is a vector; the index has the shape of what it moves.
struct Indexed {
  Tensor x, index;
  int axis;
  Shape shape, moved;  // of x, and of what is read or written

  Indexed(const Use& use, const Tensor& given) : shape(use.in[0].tensor.shape()) {
    const char* const op = use.op.name;
    x = as_vector(use.in[0].tensor);
    axis = normalize_axis(use.attributes[0], x.rank(), op);
    const Tensor vector = as_vector(integer_index(op, given));
    if (vector.rank() != 1)
      fail(ErrorKind::value, op, ": index must have one axis, got ", vector.shape());
    moved = x.shape();
    moved[axis] = vector.size(0);
    Shape column(x.rank(), 1);
    column[axis] = vector.size(0);
    index = broadcast_to(reshape(vector, column), moved);
  }
  Tensor result(const Tensor& y) const { return shape.rank() ? y : reshape(y, shape); }
  Tensor source(const Use& use) const {
    const Tensor source = as_vector(use.in[2].tensor);
    check_same_type(use.op.name, "source", source, x);
    if (!(source.shape() == moved))
      fail(ErrorKind::value, use.op.name, ": source ", source.shape(), " must have shape ", moved);
    return source;
  }
};

void index_select_body(const Use& use, Tensor* out) {
  const Indexed in(use, use.in[1].tensor);
  const Tensor y = gather_along(in.x, in.index, in.axis, AlongUser::index_select);
  out[0] = in.shape.rank() ? y : reshape(y, {});
}
void index_add_body(const Use& use, Tensor* out) {
  const Indexed in(use, use.in[1].tensor);
  Tensor source = in.source(use);
  const Scalar& alpha = use.in[3].scalar;
  if (alpha.re != 1 || alpha.im != 0) source = source * number_like(in.x, alpha);
  out[0] = in.result(scatter_add_along(in.x, in.index, source, in.axis, AlongUser::index_add));
}
void index_copy_body(const Use& use, Tensor* out) {
  const Indexed in(use, use.in[1].tensor);
  out[0] = in.result(
      scatter_along(in.x, in.index, in.source(use), in.axis, AlongUser::index_copy, false));
}
void index_fill_body(const Use& use, Tensor* out) {
  const Indexed in(use, use.in[1].tensor);
  const Operand& value = use.in[2];
  if (value.is_tensor() && value.tensor.rank())
    fail(ErrorKind::value, "index_fill: value must be a number or a 0-d tensor, got ",
         value.tensor.shape());
  const Tensor one =
      value.is_tensor() ? astype(value.tensor, in.x.dtype()) : number_like(in.x, value.scalar);
  out[0] = in.result(scatter_along(in.x, in.index, broadcast_to(one, in.moved), in.axis,
                                   AlongUser::index_fill, false));
}

}  // namespace

Tensor integer_index(const char* op, const Tensor& index) {
  if (!is_integer(index.dtype()))
    fail(ErrorKind::index, op, ": index must be integers, got ", name_of(index.dtype()));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  // What int64 does not hold is out of range there as well.
  return astype(index.dtype() == DType::uint64 ? minimum(index, Scalar(kMost)) : index,
                DType::int64);
}
void check_same_type(const char* op, const char* name, const Tensor& src, const Tensor& x) {
  if (src.dtype() != x.dtype())
    fail(ErrorKind::type, op, ": ", name, " is ", name_of(src.dtype()), ", but x is ",
         name_of(x.dtype()), "; convert one of them with astype");
}
Tensor number_like(const Tensor& x, const Scalar& value) { return full({}, value, x.dtype()); }

Tensor gather_along(const Tensor& x, const Tensor& index, int axis, AlongUser user) {
  return apply(kGatherAlong, {x, index}, along_attributes(2, axis, user));
}
Tensor scatter_add_along(const Tensor& x, const Tensor& index, const Tensor& src, int axis,
                         AlongUser user) {
  return apply(kScatterAddAlong, {x, index, src}, along_attributes(2, axis, user));
}

Tensor scatter_along(const Tensor& x, const Tensor& index, const Tensor& src, int axis,
                     AlongUser user, bool distinct) {
  return apply(kScatterAlong, {x, index, src}, along_attributes(3, axis, user).set(2, distinct));
}

constexpr OpRecord kGatherAlong = {
    .name = "gather_along",
    .signature = "(x: Tensor, index: Tensor, axis: int, " TW_ALONG_USER ") -> Tensor",
    .help = "Elements of x at an index for each along one axis.",
    .infer = infer_gather,
    .estimate = estimate_gather,
    .vjp = gather_vjp,
    .reads = {{.inputs = 2}},
    .shapes = 1};
constexpr OpRecord kScatterAlong = {
    .name = "scatter_along",
    .signature = "(x: Tensor, index: Tensor, src: Tensor, axis: int, " TW_ALONG_USER
                 ", distinct: bool) -> Tensor",
    .help = "x with src written at an index for each along one axis; of one place's the last.",
    .infer = infer_scatter,
    .estimate = estimate_scatter,
    .vjp = scatter_vjp,
    .reads = {{.inputs = 2}, {}, {.inputs = 2}}};
constexpr OpRecord kScatterAddAlong = {
    .name = "scatter_add_along",
    .signature = "(x: Tensor, index: Tensor, src: Tensor, axis: int, " TW_ALONG_USER ") -> Tensor",
    .help = "x with src added at an index for each along one axis, in the order of the index.",
    .infer = infer_scatter,
    .estimate = estimate_scatter,
    .vjp = scatter_add_vjp,
    .reads = {{}, {}, {.inputs = 2}}};
constexpr OpRecord kScatterReduceAlong = {
    .name = "scatter_reduce_along",
    .signature = "(x: Tensor, index: Tensor, src: Tensor, axis: int, " TW_ALONG_USER
                 ", kind: 'product' | 'largest' | 'smallest') -> Tensor",
    .help = "x with src joined to it at an index for each along one axis.",
    .infer = infer_scatter,
    .estimate = estimate_scatter,
    .vjp = scatter_reduce_vjp,
    .reads = {{.inputs = 7, .results = 1}, {}, {.inputs = 7, .results = 1}}};

constexpr OpRecord kTakeAlongAxis = {
    .name = "take_along_axis",
    .signature = "(x: Tensor, indices: Tensor, axis: int = -1) -> Tensor",
    .help =
        "y[i, j, k] = x[i, indices[i, j, k], k] for axis 1; the other axes are broadcast.\n"
        "Negative indices count from the end. Raises IndexError for indices out of range or that "
        "are no integers, ValueError for other shapes.\n"
        "Shapes: x (..., n, ...), indices of as many dimensions; the result has indices' extent "
        "along the axis, what the others broadcast to elsewhere.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &x = use.in[0].tensor, &indices = use.in[1].tensor;
      if (x.rank() == 0 || indices.rank() != x.rank())
        fail(ErrorKind::value, "take_along_axis: indices ", indices.shape(),
             " must have as many axes as x ", x.shape(), ", at least one");
      const int axis = normalize_axis(use.attributes[0], x.rank(), "take_along_axis");
      Shape x_rest = x.shape(), rest = indices.shape();
      x_rest[axis] = rest[axis] = 1;
      Shape shape = broadcast_shapes(x_rest, rest, "take_along_axis"), x_shape = shape;
      shape[axis] = indices.size(axis);
      x_shape[axis] = x.size(axis);
      const Tensor index = integer_index("take_along_axis", indices);
      out[0] = gather_along(broadcast_operand(x, x_shape), broadcast_operand(index, shape), axis,
                            AlongUser::take_along_axis);
    }};

#define TW_SCATTER_RULES                                                                       \
  "The index has as many axes as x and src, and is no longer than them, than x but along the " \
  "axis; negative indices count from the end. src may be a number.\n"                          \
  "Raises IndexError for indices out of range, ValueError for other shapes, TypeError where "  \
  "src is of another dtype than x."
constexpr OpRecord kScatter = {
    .name = "scatter",
    .signature =
        "(x: Tensor, axis: int, index: Tensor, src: Operand, *, reduce: 'add' | "
        "'multiply' | None = None) -> Tensor",
    .help =
        "A copy y of x with y[i, index[i, j, k], k] = src[i, j, k] for axis 1; of several for one "
        "place the last stays, and alone gets a gradient.\n" TW_SCATTER_RULES
        "\n"
        "Shapes: x, index and src of as many dimensions; the result has x's shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.scatter.",
    .flags = kFunction | kInPlace,
    .body = scatter_body};
constexpr OpRecord kScatterAdd = {
    .name = "scatter_add",
    .signature = "(x: Tensor, axis: int, index: Tensor, src: Operand) -> Tensor",
    .help =
        "A copy y of x with y[i, index[i, j, k], k] += src[i, j, k] for axis 1, in the order of "
        "the index whatever the number of threads.\n" TW_SCATTER_RULES
        "\n"
        "Shapes: x, index and src of as many dimensions; the result has x's shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.scatter_add.",
    .flags = kFunction | kInPlace,
    .body = scatter_add_body};
constexpr OpRecord kScatterReduce = {
    .name = "scatter_reduce",
    .signature =
        "(x: Tensor, axis: int, index: Tensor, src: Operand, reduce: 'sum' | 'prod' | "
        "'mean' | 'amax' | 'amin', *, include_self: bool = True) -> Tensor",
    .help =
        "A copy y of x with all src[i, j, k] joined to y[i, index[i, j, k], k] for axis 1, with "
        "include_self=False without x where there are some.\n" TW_SCATTER_RULES
        "\n"
        "Shapes: x, index and src of as many dimensions; the result has x's shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.scatter_reduce.",
    .flags = kFunction | kInPlace,
    .body = scatter_reduce_body};

#define TW_INDEX_RULES                                                                        \
  " index is a vector, or a number; negative indices count from the end.\n"                   \
  "Raises IndexError for indices out of range or that are no integers, ValueError for other " \
  "shapes"
constexpr OpRecord kIndexSelect = {
    .name = "index_select",
    .signature = "(x: Tensor, axis: int, index: Tensor) -> Tensor",
    .help = "The parts of x at indices along an axis, a copy." TW_INDEX_RULES
            ".\n"
            "Shapes: x (..., n, ...), index (m,); the result is (..., m, ...).\n"
            "Types: all. Result: the same type.\n"
            "Source: PyTorch's torch.index_select.",
    .flags = kFunction,
    .body = index_select_body};
constexpr OpRecord kIndexAdd = {
    .name = "index_add",
    .signature =
        "(x: Tensor, axis: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor",
    .help =
        "A copy of x with the parts of alpha * source added at indices along an axis, in "
        "order." TW_INDEX_RULES
        ", TypeError where source is of another dtype than x.\n"
        "Shapes: x (..., n, ...), index (m,), source (..., m, ...); the result has x's shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.index_add.",
    .flags = kFunction | kInPlace,
    .body = index_add_body};
constexpr OpRecord kIndexCopy = {
    .name = "index_copy",
    .signature = "(x: Tensor, axis: int, index: Tensor, source: Tensor) -> Tensor",
    .help =
        "A copy of x with the parts of source at indices along an axis; of several for one the "
        "last stays." TW_INDEX_RULES
        ", TypeError where source is of another dtype than x.\n"
        "Shapes: x (..., n, ...), index (m,), source (..., m, ...); the result has x's shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.index_copy.",
    .flags = kFunction | kInPlace,
    .body = index_copy_body};
constexpr OpRecord kIndexFill = {
    .name = "index_fill",
    .signature = "(x: Tensor, axis: int, index: Tensor, value: Operand) -> Tensor",
    .help = "A copy of x with one number at indices along an axis." TW_INDEX_RULES
            ".\n"
            "Shapes: x (..., n, ...), index (m,), value (); the result has x's shape.\n"
            "Types: all. Result: the same type.\n"
            "Raises OverflowError for a number that x's type does not hold.\n"
            "Source: PyTorch's torch.index_fill.",
    .flags = kFunction | kInPlace,
    .body = index_fill_body};

}  // namespace tw
