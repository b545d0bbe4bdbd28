// Reductions: the rows of reductions.inc as records, and what is summed to undo broadcasting.
#include "core/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduction_records.h"
#include "core/ops/shape/view.h"
#include "core/problems/reduction_graphs.h"

namespace tw {

// ---- what records of reductions share ----

Shape kept_shape(const Shape& shape, std::uint32_t axes, bool keepdims) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i)
    if (!(axes >> i & 1))
      out.push_back(shape[i]);
    else if (keepdims)
      out.push_back(1);
  return out;
}
std::int64_t count_of(const Shape& shape, std::uint32_t axes) {
  std::int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (axes >> i & 1) count *= shape[i];
  return count;
}
Axes list_of(std::uint32_t axes) {
  std::vector<std::int64_t> list;
  for (int i = 0; i < kMaxRank; ++i)
    if (axes >> i & 1) list.push_back(i);
  return list;
}

void check_floating(DType dtype, const char* op, bool or_complex) {
  if (!is_floating(dtype) && !(or_complex && is_complex(dtype)))
    fail(ErrorKind::type, op, ": needs a floating-point input, got ", name_of(dtype),
         "; convert with astype(float32)");
}

void check_ordered(DType dtype, const char* op) {
  if (is_complex(dtype)) fail(ErrorKind::type, op, ": complex numbers have no order");
}

void infer_like_first(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}
Estimate estimate_reduction(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  return {count, count * static_cast<double>(size_of(call.in[0].dtype))};
}

Tensor reduced_by(const OpRecord& op, const Tensor& x, const Axes& axes,
                  AttributeList& attributes) {
  if (axes.all)
    attributes.set(0, kNone);
  else
    attributes.set_list(0, axes.list);
  return apply(op, {x}, attributes);
}

namespace {

// ---- the table's rows ----

enum class Parameters : std::uint8_t { terms, axes, position };
enum class Outcome : std::uint8_t { same, wide, truth, position };
namespace types {
enum : std::uint8_t { any, ordered, floating, inexact };
}

struct Row {
  Parameters parameters;
  std::uint8_t types;
  Outcome outcome;
  bool of_none;
  Tensor (*gradient)(const Tensor& g, const Tensor& x, const Tensor& y, std::uint32_t axes,
                     double count);
};
const Row& reduction_row(const OpRecord& op) { return *static_cast<const Row*>(op.row); }

std::uint32_t axes_of(const OpRecord& op, Attributes attributes, int rank) {
  return reduction_row(op).parameters == Parameters::position ? attributes.axis(0, rank, op.name)
                                                              : attributes.axes(0, rank, op.name);
}

DType outcome_of(const Row& row, DType in) {
  switch (row.outcome) {
    case Outcome::same: return in;
    case Outcome::truth: return DType::bool_;
    case Outcome::position: return DType::int64;
    case Outcome::wide: break;
  }
  if (is_bool(in) || is_signed_int(in)) return DType::int64;
  return is_unsigned_int(in) ? DType::uint64 : in;
}

void infer(Call& call, Result* results) {
  const OpRecord& op = *call.op;
  const Row& row = reduction_row(op);
  const Meta& x = call.in[0];
  const bool converts = row.parameters == Parameters::terms && !call.attributes.none(2);
  if (row.types == types::floating) check_floating(x.dtype, op.name, false);
  if (row.types == types::inexact && !converts) check_floating(x.dtype, op.name);
  if (row.types == types::ordered) check_ordered(x.dtype, op.name);
  const std::uint32_t axes = axes_of(op, call.attributes, x.rank());
  if (!row.of_none && count_of(*x.shape, axes) == 0)
    fail(ErrorKind::value, op.name, ": no elements along the reduced axes of ", *x.shape);
  results[0].dtype = outcome_of(row, x.dtype);
  if (converts) {
    const DType dtype = results[0].dtype = call.attributes.dtype(2);
    const bool holds = is_floating(dtype) || (row.types == types::inexact && is_complex(dtype));
    if ((row.types == types::inexact || row.types == types::floating) && !holds)
      fail(ErrorKind::type, op.name, ": dtype ", name_of(dtype),
           " cannot hold it; use a floating one");
    if (is_bool(dtype))
      fail(ErrorKind::type, op.name, ": dtype bool cannot hold it; use any or all");
  }
  results[0].shape = kept_shape(*x.shape, axes, call.attributes.flag(1));
}

// ---- what gradients are made of: of x's rank, with extent 1 along the reduced axes ----

Tensor part_of(const Tensor& x, std::int64_t start, std::int64_t count) {
  std::vector<Range> ranges;
  for (std::int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  ranges.back() = {start, 1, count};
  return slice(x, ranges);
}

// For each element of the last axis, the product of the others: of pairs, then within each pair.
// No division, so zeros, infinities and products out of range need no care, in any derivative.
Tensor products_of_others(const Tensor& x) {
  const std::int64_t count = x.size(x.rank() - 1), half = count / 2;
  if (count < 2) return full(x.shape(), 1, x.dtype());
  const Tensor a = part_of(x, 0, half), b = part_of(x, half, half);
  const Tensor odd = part_of(x, 2 * half, count % 2);
  const Tensor others = products_of_others(concat({a * b, odd}, -1));
  const Tensor of_pairs = part_of(others, 0, half);
  return concat({of_pairs * b, of_pairs * a, part_of(others, half, count % 2)}, -1);
}

// The type whose range holds every partial product that the forward kernel's accumulators hold.
DType product_dtype(DType dtype) {
  return dtype == DType::float32 ? DType::float64 : working_dtype(dtype);
}

Tensor product_of_others(const Tensor& x, std::uint32_t axes) {
  std::vector<std::int64_t> order;  // kept axes, then reduced ones
  for (const bool reduced : {false, true})
    for (int i = 0; i < x.rank(); ++i)
      if ((axes >> i & 1) == reduced) order.push_back(i);
  std::vector<std::int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const Tensor moved = permute_dims(astype(x, product_dtype(x.dtype())), order);
  Shape rows = kept_shape(x.shape(), axes, false);
  rows.push_back(count_of(x.shape(), axes));
  const Tensor others = reshape(products_of_others(reshape(moved, rows)), moved.shape());
  return permute_dims(others, back);
}

void prod_backward_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &g = use.in[1].tensor;
  const std::uint32_t axes = use.attributes.axes(0, x.rank(), use.op.name);
  out[0] = astype(g * product_of_others(x, axes), x.dtype());
}

}  // namespace

constexpr OpRecord kProdBackward = {
    .name = "prod_backward",
    .signature = "(x: Tensor, g: Tensor, axis: Axes) -> Tensor",
    .help = "The gradient of prod: g times the product of the other elements along the axes.",
    .flags = kAlongAxes,
    .infer = infer_like_first,
    .estimate = estimate_reduction,
    .body = prod_backward_body};
// g for the one element that the result is, shared where several are; where none is, beside NaN,
// NaN.
constexpr OpRecord kExtremumBackward = {
    .name = "extremum_backward",
    .signature = "(x: Tensor, y: Tensor, g: Tensor, axis: Axes) -> Tensor",
    .help = "The gradient of max and min: g shared by the elements along the axes that equal y.",
    .flags = kAlongAxes,
    .infer = infer_like_first,
    .estimate = estimate_reduction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &x = use.in[0].tensor, &y = use.in[1].tensor, &g = use.in[2].tensor;
      const std::uint32_t axes = use.attributes.axes(0, x.rank(), use.op.name);
      const Tensor equal = x == y;
      const Tensor count = sum(astype(equal, working_dtype(x.dtype())), list_of(axes), true);
      const Tensor other = where(count == 0, std::numeric_limits<double>::quiet_NaN(), 0.0);
      out[0] = astype(where(equal, g / count, other), x.dtype());
    }};

namespace {

Tensor product_gradient(const Tensor& g, const Tensor& x, std::uint32_t axes) {
  if (is_complex(x.dtype()) || is_complex(g.dtype())) return g * product_of_others(x, axes);
  AttributeList attributes(1);
  attributes.set_list(0, list_of(axes).list);
  return apply(kProdBackward, {astype(x, g.dtype()), g}, attributes);
}

Tensor extremum_gradient(const Tensor& g, const Tensor& x, const Tensor& y, std::uint32_t axes) {
  AttributeList attributes(1);
  attributes.set_list(0, list_of(axes).list);
  return apply(kExtremumBackward, {astype(x, g.dtype()), astype(y, g.dtype()), g}, attributes);
}

Tensor magnitude_gradient(const Tensor& g, const Tensor& x) {
  return gradient_of(PointwiseOp::abs, 0, broadcast_to(g, x.shape()), {x});
}
// g * (x / y), which is xlogy's by its second input, in one pass whatever the range of g / y; 0
// where y is 0.
Tensor norm_gradient(const Tensor& g, const Tensor& x, const Tensor& y) {
  const Tensor zero = y == 0;
  const Tensor slope = broadcast_to(where(zero, 0, g), x.shape());
  return gradient_of(PointwiseOp::xlogy, 1, slope, {x, where(zero, 1, y)});
}

struct None {};
constexpr None none;
[[maybe_unused]] Tensor operator*(const Tensor&, None) { return Tensor(); }
Tensor as_tensor(const Tensor& x) { return x; }
Tensor as_tensor(None) { return Tensor(); }

void vjp(Vjp& v) {
  const OpRecord& op = v.record();
  const Shape shape = v.shape(0);
  const std::uint32_t axes = axes_of(op, v.attributes(), shape.rank());
  const Shape keepdims = kept_shape(shape, axes, true);
  const Tensor g = reshape(astype(v.g(), working_dtype(v.g().dtype())), keepdims);
  const Reads& reads = op.reads[0];
  const Tensor x = reads.inputs ? v.in(0).tensor : Tensor();
  const Tensor y = reads.results ? reshape(v.out(), keepdims) : Tensor();
  // Of no elements nothing is shared; 1 / 0 would make NaN of the gradient's own gradient.
  const auto count = static_cast<double>(std::max<std::int64_t>(count_of(shape, axes), 1));
  // g times the conjugate of the derivative.
  const Tensor dx = conj(reduction_row(op).gradient(conj(g), x, y, axes, count));
  v.give(0, broadcast_operand(astype(dx, v.g().dtype()), shape));
}

constexpr Reads reads_of(const formula::Graph& gradient) {
  const std::uint32_t inputs = formula::inputs_of(gradient);
  return {static_cast<std::uint16_t>(inputs >> reduction_x & 1),
          static_cast<std::uint16_t>(inputs >> reduction_y & 1)};
}

// Before what is NaN becomes a number of a type that has none.
bool rewrite_numbers(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  if (use.attributes.none(2) || !is_floating(x.dtype()) || is_floating(use.attributes.dtype(2)))
    return false;
  const std::uint32_t axes = use.attributes.axes(0, x.rank(), use.op.name);
  out[0] =
      sum(where(isnan(x), 0, x), list_of(axes), use.attributes.flag(1), use.attributes.dtype(2));
  return true;
}

constexpr const char* kSignatures[] = {
    "(x: Tensor, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = None) -> Tensor",
    "(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor",
    "(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor"};

constexpr Row kRows[] = {
#define TW_REDUCTION(name, parameters, kinds, outcome, of_none, combination, finish, formula, \
                     help)                                                                    \
  {Parameters::parameters, types::kinds, Outcome::outcome, of_none,                           \
   []([[maybe_unused]] const Tensor& g, [[maybe_unused]] const Tensor& x,                     \
      [[maybe_unused]] const Tensor& y, [[maybe_unused]] std::uint32_t axes,                  \
      [[maybe_unused]] double count) { return as_tensor(formula); }},
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
};

constexpr const formula::Graph& gradient_graph(ReductionRow row) {
  return formula::graphs_of(row).gradient;
}

}  // namespace

#define TW_REDUCED \
  "\nShapes: x of any shape; the result lacks the axes, or has them with extent 1 where keepdims."
#define TW_TYPES_any "\nTypes: all."
#define TW_TYPES_ordered "\nTypes: bool, integer, floating."
#define TW_TYPES_floating "\nTypes: floating."
#define TW_TYPES_inexact "\nTypes: floating, complex."
#define TW_RESULT_same " Result: the same type"
#define TW_RESULT_wide " Result: the same type, of integers int64 or uint64, of bool int64"
#define TW_RESULT_truth " Result: bool"
#define TW_RESULT_position " Result: int64"
#define TW_GIVEN_terms "; dtype where given."
#define TW_GIVEN_axes "."
#define TW_GIVEN_position "."
#define TW_OF_NONE_true ""
#define TW_OF_NONE_false "\nRaises ValueError where no elements are reduced."
#define TW_REDUCTION(op, parameters, kinds, outcome, of_none, combination, finish, gradient, text) \
  constexpr OpRecord k_##op = {                                                                    \
      .name = #op,                                                                                 \
      .signature = kSignatures[static_cast<int>(Parameters::parameters)],                          \
      .help = text TW_REDUCED                                                                      \
          TW_TYPES_##kinds TW_RESULT_##outcome TW_GIVEN_##parameters TW_OF_NONE_##of_none,         \
      .flags = kFunction | (gradient_graph(ReductionRow::op).size() ? 0 : kConstant),              \
      .rewrite = std::string_view(#op) == "nansum" ? rewrite_numbers : nullptr,                    \
      .infer = infer,                                                                              \
      .estimate = estimate_reduction,                                                              \
      .vjp = vjp,                                                                                  \
      .reads = {reads_of(gradient_graph(ReductionRow::op))},                                       \
      .shapes = 1,                                                                                 \
      .row = &kRows[static_cast<int>(ReductionRow::op)]};
#include "core/problems/reductions.inc"
#undef TW_REDUCED
#undef TW_TYPES_any
#undef TW_TYPES_ordered
#undef TW_TYPES_floating
#undef TW_TYPES_inexact
#undef TW_RESULT_same
#undef TW_RESULT_wide
#undef TW_RESULT_truth
#undef TW_RESULT_position
#undef TW_GIVEN_terms
#undef TW_GIVEN_axes
#undef TW_GIVEN_position
#undef TW_OF_NONE_true
#undef TW_OF_NONE_false
#undef TW_REDUCTION

namespace {

Tensor reduced(const OpRecord& op, const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced_by(op, x, axes, AttributeList(2).set(1, keepdims));
}
Tensor reduced(const OpRecord& op, const Tensor& x, const Axes& axes, bool keepdims,
               std::optional<DType> dtype) {
  return reduced_by(op, x, axes,
                    AttributeList(3).set(1, keepdims).set(2, dtype ? attribute_of(*dtype) : kNone));
}

Tensor position(const OpRecord& op, const Tensor& x, std::optional<std::int64_t> axis,
                bool keepdims) {
  return apply(op, {x}, AttributeList(2).set(0, axis.value_or(kNone)).set(1, keepdims));
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keepdims, std::optional<DType> dtype) {
  return reduced(k_sum, x, axes, keepdims, dtype);
}
Tensor prod(const Tensor& x, const Axes& axes, bool keepdims, std::optional<DType> dtype) {
  return reduced(k_prod, x, axes, keepdims, dtype);
}
Tensor mean(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced(k_mean, x, axes, keepdims, std::nullopt);
}
Tensor nansum(const Tensor& x, const Axes& axes, bool keepdims, std::optional<DType> dtype) {
  return reduced(k_nansum, x, axes, keepdims, dtype);
}
Tensor l1_norm(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced(k_l1_norm, x, axes, keepdims, std::nullopt);
}
Tensor l2_norm(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced(k_l2_norm, x, axes, keepdims, std::nullopt);
}
Tensor max(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced(k_max, x, axes, keepdims);
}
Tensor min(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced(k_min, x, axes, keepdims);
}
Tensor any(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced(k_any, x, axes, keepdims);
}
Tensor all(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced(k_all, x, axes, keepdims);
}
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return position(k_argmax, x, axis, keepdims);
}
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return position(k_argmin, x, axis, keepdims);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int lead = x.rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (int i = 0; i < x.rank(); ++i)
    if (i < lead || (shape[i - lead] == 1 && x.size(i) != 1)) axes.push_back(i);
  if (axes.empty()) return reshape(x, shape);
  // How often a number repeats along these axes: such sums are products. Along the others the sums
  // repeat as the numbers do.
  double times = 1;
  for (const std::int64_t axis : axes)
    if (x.size(static_cast<int>(axis)) > 1 && x.strides()[static_cast<int>(axis)] == 0)
      times *= static_cast<double>(x.size(static_cast<int>(axis)));
  // A complex infinity times a real number would gain NaN.
  if (times == 1 || is_complex(x.dtype()) || modes.grad) return reshape(sum(x, axes, true), shape);
  const Tensor terms = astype(without_repeats(x), working_dtype(x.dtype()));
  Shape repeated = x.shape();
  for (const std::int64_t axis : axes) repeated[static_cast<int>(axis)] = 1;
  const Tensor once = astype(sum(terms, axes, true) * Scalar(times), x.dtype());
  return reshape(broadcast_operand(once, repeated), shape);
}

}  // namespace tw
