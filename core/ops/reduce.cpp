// Reductions: the rows of reductions.inc as records, and the ops that are made of them.
#include "core/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/apply.h"
#include "core/ops/complex.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/join.h"
#include "core/ops/pointwise.h"
#include "core/ops/records.h"
#include "core/ops/view.h"

namespace tw {

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

std::uint32_t axes_of(const OpRecord& op, Words words, int rank) {
  return reduction_row(op).parameters == Parameters::position ? words.axis(0, rank, op.name)
                                                              : words.axes(0, rank, op.name);
}
Shape kept_shape(const Shape& shape, std::uint32_t axes, bool keepdims) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i)
    if (!(axes >> i & 1))
      out.push_back(shape[i]);
    else if (keepdims)
      out.push_back(1);
  return out;
}
// Elements that go into one result.
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

void check_floating(DType dtype, const char* op, bool or_complex = true) {
  if (!is_floating(dtype) && !(or_complex && is_complex(dtype)))
    fail(ErrorKind::type, op, ": needs a floating-point input, got ", name_of(dtype),
         "; convert with astype(float32)");
}

void check_ordered(DType dtype, const char* op) {
  if (is_complex(dtype)) fail(ErrorKind::type, op, ": complex numbers have no order");
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
  const bool converts = row.parameters == Parameters::terms && !call.words.none(2);
  if (row.types == types::floating) check_floating(x.dtype, op.name, false);
  if (row.types == types::inexact && !converts) check_floating(x.dtype, op.name);
  if (row.types == types::ordered) check_ordered(x.dtype, op.name);
  const std::uint32_t axes = axes_of(op, call.words, x.rank());
  if (!row.of_none && count_of(*x.shape, axes) == 0)
    fail(ErrorKind::value, op.name, ": no elements along the reduced axes of ", *x.shape);
  results[0].dtype = outcome_of(row, x.dtype);
  if (converts) {
    const DType dtype = results[0].dtype = call.words.dtype(2);
    const bool holds = is_floating(dtype) || (row.types == types::inexact && is_complex(dtype));
    if ((row.types == types::inexact || row.types == types::floating) && !holds)
      fail(ErrorKind::type, op.name, ": dtype ", name_of(dtype),
           " cannot hold it; use a floating one");
    if (is_bool(dtype))
      fail(ErrorKind::type, op.name, ": dtype bool cannot hold it; use any or all");
  }
  results[0].shape = kept_shape(*x.shape, axes, call.words.flag(1));
}

Estimate estimate(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  return {count, count * static_cast<double>(size_of(call.in[0].dtype))};
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
  const std::uint32_t axes = use.words.axes(0, x.rank(), use.op.name);
  out[0] = astype(g * product_of_others(x, axes), x.dtype());
}
void infer_like_first(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}

}  // namespace

constexpr OpRecord kProdBackward = {
    .name = "prod_backward",
    .signature = "(x: Tensor, g: Tensor, axis: Axes) -> Tensor",
    .help = "The gradient of prod: g times the product of the other elements along the axes.",
    .flags = kAlongAxes,
    .infer = infer_like_first,
    .estimate = estimate,
    .body = prod_backward_body};
// g for the one element that the result is, shared where several are; where none is, beside NaN,
// NaN.
constexpr OpRecord kExtremumBackward = {
    .name = "extremum_backward",
    .signature = "(x: Tensor, y: Tensor, g: Tensor, axis: Axes) -> Tensor",
    .help = "The gradient of max and min: g shared by the elements along the axes that equal y.",
    .flags = kAlongAxes,
    .infer = infer_like_first,
    .estimate = estimate,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &x = use.in[0].tensor, &y = use.in[1].tensor, &g = use.in[2].tensor;
      const std::uint32_t axes = use.words.axes(0, x.rank(), use.op.name);
      const Tensor equal = x == y;
      const Tensor count = sum(astype(equal, working_dtype(x.dtype())), list_of(axes), true);
      const Tensor other = where(count == 0, std::numeric_limits<double>::quiet_NaN(), 0.0);
      out[0] = astype(where(equal, g / count, other), x.dtype());
    }};

namespace {

Tensor product_gradient(const Tensor& g, const Tensor& x, std::uint32_t axes) {
  if (is_complex(x.dtype()) || is_complex(g.dtype())) return g * product_of_others(x, axes);
  WordList words(1);
  words.set_list(0, list_of(axes).list);
  return apply(kProdBackward, {astype(x, g.dtype()), g}, words);
}

Tensor extremum_gradient(const Tensor& g, const Tensor& x, const Tensor& y, std::uint32_t axes) {
  WordList words(1);
  words.set_list(0, list_of(axes).list);
  return apply(kExtremumBackward, {astype(x, g.dtype()), astype(y, g.dtype()), g}, words);
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
  const std::uint32_t axes = axes_of(op, v.words(), shape.rank());
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

constexpr Reads reads_of(std::string_view gradient) {
  return {static_cast<std::uint16_t>(mentions(gradient, "x")),
          static_cast<std::uint16_t>(mentions(gradient, "y"))};
}

// Before what is NaN becomes a number of a type that has none.
bool settle_numbers(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  if (use.words.none(2) || !is_floating(x.dtype()) || is_floating(use.words.dtype(2))) return false;
  const std::uint32_t axes = use.words.axes(0, x.rank(), use.op.name);
  out[0] = sum(where(isnan(x), 0, x), list_of(axes), use.words.flag(1), use.words.dtype(2));
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
#include "core/ops/reductions.inc"
#undef TW_REDUCTION
};

enum class Place {
#define TW_REDUCTION(name, ...) name,
#include "core/ops/reductions.inc"
#undef TW_REDUCTION
};

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
#define TW_REDUCTION(op, parameters, kinds, outcome, of_none, combination, finish, formula, text) \
  constexpr OpRecord k_##op = {                                                                   \
      .name = #op,                                                                                \
      .signature = kSignatures[static_cast<int>(Parameters::parameters)],                         \
      .help = text TW_REDUCED                                                                     \
          TW_TYPES_##kinds TW_RESULT_##outcome TW_GIVEN_##parameters TW_OF_NONE_##of_none,        \
      .flags = kFunction | (std::string_view(#formula) == "none" ? kConstant : 0),                \
      .settle = std::string_view(#op) == "nansum" ? settle_numbers : nullptr,                     \
      .infer = infer,                                                                             \
      .estimate = estimate,                                                                       \
      .vjp = vjp,                                                                                 \
      .reads = {reads_of(#formula)},                                                              \
      .shapes = 1,                                                                                \
      .row = &kRows[static_cast<int>(Place::op)]};
#include "core/ops/reductions.inc"
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

// The axes are the first attribute.
Tensor reduced_by(const OpRecord& op, const Tensor& x, const Axes& axes, WordList& words) {
  if (axes.all)
    words.set(0, kNone);
  else
    words.set_list(0, axes.list);
  return apply(op, {x}, words);
}
Tensor reduced(const OpRecord& op, const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced_by(op, x, axes, WordList(2).set(1, keepdims));
}
Tensor reduced(const OpRecord& op, const Tensor& x, const Axes& axes, bool keepdims,
               std::optional<DType> dtype) {
  return reduced_by(op, x, axes,
                    WordList(3).set(1, keepdims).set(2, dtype ? word_of(*dtype) : kNone));
}
Tensor deviating(const OpRecord& op, const Tensor& x, const Axes& axes, double correction,
                 bool keepdims) {
  return reduced_by(op, x, axes,
                    WordList(4).set(1, word_of(correction)).set(2, keepdims).set(3, kNone));
}

Tensor position(const OpRecord& op, const Tensor& x, std::optional<std::int64_t> axis,
                bool keepdims) {
  return apply(op, {x}, WordList(2).set(0, axis.value_or(kNone)).set(1, keepdims));
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
Tensor sum_of_products(const Tensor& x, const Tensor& y, const Axes& axes) {
  WordList words(1);
  if (axes.all)
    words.set(0, kNone);
  else
    words.set_list(0, axes.list);
  return apply(kSumOfProducts, {x, y}, words);
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

// ---- ops made of others ----

namespace {

Tensor squared_magnitude(const Tensor& x) {
  return is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : x * x;
}

struct Spread {
  const std::uint32_t axes;
  const double degrees;  // of freedom
  Spread(const Shape& shape, Words words, const char* op)
      : axes(words.axes(0, shape.rank(), op)),
        degrees(std::max(static_cast<double>(count_of(shape, axes)) - words.real(1), 0.0)) {}
};

// The type that x counts in: its own, or that which was asked for.
DType spread_dtype(const Tensor& x, Words words) {
  return words.none(3) ? x.dtype() : words.dtype(3);
}

// x where it has the type that it counts in, else x in a type that kernels compute in: of 16 bits
// that type would round the terms.
Tensor spread_terms(const Tensor& x, Words words) {
  const DType dtype = spread_dtype(x, words);
  return dtype == x.dtype() ? x : astype(x, working_dtype(dtype));
}

// The mean, of 16-bit types in float32.
Tensor centre_of(const Tensor& x, std::uint32_t axes) {
  return reduced(k_mean, x, list_of(axes), true, working_dtype(x.dtype()));
}

// The root, with gradient 0 instead of NaN where all elements are equal, as in PyTorch.
Tensor deviation(const Tensor& variance) {
  const Tensor zero = variance == 0;
  return where(zero, 0, sqrt(where(zero, 1, variance)));
}

}  // namespace

constexpr OpRecord kSquaresAbout = {
    .name = "squares_about",
    .signature = "(x: Tensor, centre: Tensor, axis: Axes) -> Tensor",
    .help =
        "Sum of the squares of distances from a centre, which has extent 1 along the axes, in "
        "float64: where a kernel sums them, squares of float32 do not overflow.",
    .infer =
        [](Call& call, Result* results) {
          const Shape& shape = *call.in[0].shape;
          const std::uint32_t axes = call.words.axes(0, shape.rank(), call.op->name);
          results[0].dtype = DType::float64;
          results[0].shape = kept_shape(shape, axes, true);
        },
    .estimate = estimate,
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor &x = use.in[0].tensor, &centre = use.in[1].tensor;
          const std::uint32_t axes = use.words.axes(0, x.rank(), use.op.name);
          const Tensor squares = sum(squared_magnitude(x - centre), list_of(axes), true);
          out[0] = astype(squares, DType::float64);
        }};
constexpr OpRecord kSumOfProducts = {
    .name = "sum_of_products",
    .signature = "(x: Tensor, y: Tensor, axis: Axes = None) -> Tensor",
    .help =
        "Sum of x * y over all or some axes of what they broadcast to.\n"
        "Shapes: x and y broadcast; the result lacks the axes.\n"
        "Types: floating. Result: the common type; 16-bit ones are multiplied in float32.\n"
        "Raises TypeError for other types, ValueError for shapes that do not broadcast, IndexError "
        "for an axis out of range.\n"
        "Source: definition.",
    .flags = kFunction,
    .infer =
        [](Call& call, Result* results) {
          const char* const name = call.op->name;
          for (int i = 0; i < 2; ++i) check_floating(call.in[i].dtype, name, false);
          const Shape shape = broadcast_shapes(*call.in[0].shape, *call.in[1].shape, name);
          results[0].dtype = promote(call.in[0].dtype, call.in[1].dtype);
          results[0].shape = kept_shape(shape, call.words.axes(0, shape.rank(), name), false);
        },
    .estimate =
        [](const Call& call) {
          Estimate work = estimate(call);
          work.flops *= 2;
          work.bytes += static_cast<double>(call.in[1].count * size_of(call.in[1].dtype));
          return work;
        },
    .body =
        [](const Use& use, Tensor* out) {
          const DType type = promote(use.in[0].tensor.dtype(), use.in[1].tensor.dtype());
          const Tensor products = astype(use.in[0].tensor, working_dtype(type)) *
                                  astype(use.in[1].tensor, working_dtype(type));
          const std::uint32_t axes = use.words.axes(0, products.rank(), use.op.name);
          out[0] = astype(sum(products, list_of(axes), false), type);
        },
    .vjp =
        [](Vjp& v) {
          const Shape shape = broadcast_shapes(v.shape(0), v.shape(1), v.record().name);
          const std::uint32_t axes = v.words().axes(0, shape.rank(), v.record().name);
          const Tensor g = reshape(v.g(), kept_shape(shape, axes, true));
          for (const int i : {0, 1})
            if (v.wants(i)) v.give(i, broadcast_operand(g * v.in(1 - i).tensor, shape));
        },
    .reads = {{.inputs = 2}, {.inputs = 1}},
    .shapes = 3};
constexpr OpRecord kVariance = {
    .name = "variance",
    .signature =
        "(x: Tensor, axis: Axes = None, correction: float = 0.0, keepdims: bool = False, "
        "dtype: dtype | None = None) -> Tensor",
    .help = "What var gives, in float64.",
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor& x_in = use.in[0].tensor;
          const Spread spread(x_in.shape(), use.words, "var");
          const Tensor x = spread_terms(x_in, use.words);
          WordList words(1);
          words.set_list(0, list_of(spread.axes).list);
          const Tensor centre = centre_of(x, spread.axes);
          const Tensor y = apply(kSquaresAbout, {x, centre}, words) / spread.degrees;
          const Shape shape = kept_shape(x.shape(), spread.axes, use.words.flag(2));
          out[0] = owned(reshape(y, shape));
        },
    .vjp =
        [](Vjp& v) {
          const Tensor x = spread_terms(v.in(0).tensor, v.words());
          const DType type = working_dtype(x.dtype());
          const Spread spread(x.shape(), v.words(), "var");
          const Shape keepdims = kept_shape(x.shape(), spread.axes, true);
          const Tensor g = reshape(astype(v.g(), part_dtype(type)), keepdims);
          if (modes.grad || is_complex(type)) {  // in steps that are differentiated again
            const Tensor wide = astype(x, type);
            const Tensor centre = mean(wide, list_of(spread.axes), true);
            return v.give(0, g * (2 / spread.degrees) * (wide - centre));
          }
          v.give(0, gradient_of(PointwiseOp::square_distance, 0,
                                broadcast_to(g / spread.degrees, x.shape()),
                                {x, centre_of(x, spread.axes)}));
        },
    .reads = {{.inputs = 1}}};
namespace {
Tensor variance_of(const Use& use) {
  Tensor y;
  apply(kVariance, use.in, 1, use.words, &y);
  return y;
}
}  // namespace
constexpr OpRecord kVar = {
    .name = "var",
    .signature =
        "(x: Tensor, axis: Axes = None, correction: float = 0.0, keepdims: bool = False, "
        "dtype: dtype | None = None) -> Tensor",
    .help =
        "Variance; correction is taken off the number of elements.\n"
        "Of complex numbers: of their distances from the mean, a real number.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating, complex. Result: the same type, of complex numbers that of their parts; "
        "dtype where given, which x of any type is turned into first.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const DType dtype = spread_dtype(use.in[0].tensor, use.words);
      check_floating(dtype, "var");
      out[0] = astype(variance_of(use), part_dtype(dtype));
    }};
constexpr OpRecord kStd = {
    .name = "std",
    .signature =
        "(x: Tensor, axis: Axes = None, correction: float = 0.0, keepdims: bool = False, "
        "dtype: dtype | None = None) -> Tensor",
    .help =
        "Standard deviation; correction is taken off the number of elements.\n"
        "Its gradient is 0 where it is 0.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating, complex. Result: the same type, of complex numbers that of their parts; "
        "dtype where given, which x of any type is turned into first.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      const DType dtype = spread_dtype(x, use.words);
      check_floating(dtype, "std");
      use.words.axes(0, x.rank(), "std");  // which speaks for itself
      out[0] = astype(deviation(variance_of(use)), part_dtype(dtype));
    }};

namespace {
// What is taken off before exponentials, so that they stay in range: any shift gives the same
// result, so that it needs no gradient.
Tensor shift_of(const Tensor& x, std::uint32_t axes) {
  if (count_of(x.shape(), axes) == 0) return zeros(Shape(), x.dtype());  // log(0) is -infinity
  const GradModeGuard off(false);
  const Tensor largest = max(x, list_of(axes), true);
  return where(isfinite(largest), largest, 0.0);
}
void infer_along(Call& call, Result* results) {
  const Meta& x = call.in[0];
  results[0].dtype = x.dtype;
  results[0].shape = kept_shape(*x.shape, call.words.axes(0, x.rank(), call.op->name), true);
}
}  // namespace
constexpr OpRecord kLogsumexpBackward = {
    .name = "logsumexp_backward",
    .signature = "(x: Tensor, g: Tensor, axis: Axes) -> Tensor",
    .help = "The gradient of logsumexp: g * softmax(x).",
    .flags = kAlongAxes,
    .infer = infer_like_first,
    .estimate = estimate,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &x = use.in[0].tensor, &g = use.in[1].tensor;
      const std::uint32_t axes = use.words.axes(0, x.rank(), use.op.name);
      const Tensor terms = exp(x - shift_of(x, axes));
      out[0] = terms * (g / sum(terms, list_of(axes), true));
    }};
constexpr OpRecord kLogsumexpAlong = {
    .name = "logsumexp_along",
    .signature = "(x: Tensor, axis: Axes) -> Tensor",
    .help = "What logsumexp gives, with extent 1 along the axes.",
    .flags = kAlongAxes,
    .infer = infer_along,
    .estimate = estimate,
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor& x = use.in[0].tensor;
          const std::uint32_t axes = use.words.axes(0, x.rank(), use.op.name);
          const Tensor shift = shift_of(x, axes);
          out[0] = log(sum(exp(x - shift), list_of(axes), true)) + shift;
        },
    .vjp = [](Vjp& v) { v.give(0, apply(kLogsumexpBackward, {v.in(0), v.g()}, v.words())); },
    .reads = {{.inputs = 1}}};
constexpr OpRecord kLogsumexp = {
    .name = "logsumexp",
    .signature = "(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor",
    .help =
        "log(sum(exp(x))) without overflow.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.logsumexp.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      check_ordered(use.in[0].tensor.dtype(), "logsumexp");
      const DType result = floating_dtype(use.in[0].tensor.dtype());
      const Tensor x = astype(use.in[0].tensor, working_dtype(result));
      const std::uint32_t bits = use.words.axes(0, x.rank(), "logsumexp");
      WordList words(1);
      words.set_list(0, list_of(bits).list);
      const Tensor y = apply(kLogsumexpAlong, {x}, words);
      out[0] = astype(owned(reshape(y, kept_shape(x.shape(), bits, use.words.flag(1)))), result);
    }};

Tensor var(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  return deviating(kVar, x, axes, correction, keepdims);
}
Tensor standard_deviation(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  return deviating(kStd, x, axes, correction, keepdims);
}
Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduced_by(kLogsumexp, x, axes, WordList(2).set(1, keepdims));
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
