// Running sums, products, log-sums and extremes along an axis, and differences.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/move/scatter.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

using std::int64_t;

// ---- internal ops. Attributes: axis, reverse ----

void infer_same(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}

Tensor scanned(const OpRecord& op, const Tensor& x, int axis, bool reverse) {
  return apply(op, {x}, AttributeList(2).set(0, axis).set(1, reverse));
}
Tensor recurrence(const Tensor& a, const Tensor& b, int axis, bool reverse) {
  return apply(kLinearRecurrence, {a, b}, AttributeList(2).set(0, axis).set(1, reverse));
}

Tensor part_of(const Tensor& x, int axis, int64_t start, int64_t count) {
  std::vector<Range> ranges;
  for (const int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
  ranges[static_cast<std::size_t>(axis)] = {start, 1, count};
  return slice(x, ranges);
}
Tensor edge_of(const Tensor& x, int axis, const Scalar& value) {
  Shape shape = x.shape();
  shape[axis] = 1;
  return full(shape, value, x.dtype());
}
// All elements one place further, or one place back, with `fill` where none comes from.
Tensor moved(const Tensor& x, int axis, bool back, double fill) {
  const int64_t n = x.size(axis);
  if (n == 0) return x;
  const Tensor edge = edge_of(x, axis, fill), rest = part_of(x, axis, back, n - 1);
  return back ? concat({rest, edge}, axis) : concat({edge, rest}, axis);
}

struct ScanVjp {
  explicit ScanVjp(Vjp& v)
      : axis(static_cast<int>(v.attributes()[0])), reverse(v.attributes().flag(1)), g(v.g()) {}
  // What lies before, or behind, each element in the order of the scan.
  Tensor before(const Tensor& x, double fill) const { return moved(x, axis, reverse, fill); }
  Tensor behind(const Tensor& x, double fill) const { return moved(x, axis, !reverse, fill); }
  int axis;
  bool reverse;
  const Tensor& g;
};

void running_sum_vjp(Vjp& v) {
  const ScanVjp s(v);
  v.give(0, scanned(kRunningSum, s.g, s.axis, !s.reverse));
}
// Of x[i]: the product before it, times r[i] = g[i] + x[i + 1] * r[i + 1]. Nothing is divided by.
void running_product_vjp(Vjp& v) {
  const ScanVjp s(v);
  const Tensor rest = recurrence(conj(s.behind(v.in(0).tensor, 0)), s.g, s.axis, !s.reverse);
  v.give(0, conj(s.before(v.out(), 1)) * rest);
}
// e^(a - b) for a <= b, `among` where both are the same infinity.
Tensor share(const Tensor& a, const Tensor& b, const Tensor& among) {
  const Tensor same = isinf(a) & (a == b);
  return where(same, among, exp(where(same, 0, a - b)));
}
// With r[i] = g[i] + e^(y[i] - y[i + 1]) * r[i + 1], the gradient of x[i] is e^(x[i] - y[i]) *
// r[i]: no exponent is above 0.
void running_log_sum_vjp(Vjp& v) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const ScanVjp s(v);
  const Tensor y = v.out();
  // How many elements have been y since it is that: infinite ones have the gradient in equal parts.
  const Tensor &x = v.in(0).tensor, stays = astype(y == s.before(y, kNan), y.dtype());
  const Tensor equals = recurrence(stays, astype(x == y, y.dtype()), s.axis, s.reverse);
  const Tensor factor = share(y, s.behind(y, kInfinity), equals / s.behind(equals, 1));
  v.give(0, share(x, y, 1 / equals) * recurrence(factor, s.g, s.axis, !s.reverse));
}
void linear_recurrence_vjp(Vjp& v) {
  const ScanVjp s(v);
  const Tensor db = recurrence(conj(s.behind(v.in(0).tensor, 0)), s.g, s.axis, !s.reverse);
  if (v.wants(0)) v.give(0, db * conj(s.before(v.out(), 0)));
  if (v.wants(1)) v.give(1, db);
}

// ---- public calls ----

// x with at least one axis, and the one that is scanned: the attribute, None for the only one.
struct Scanned {
  Tensor x;
  int axis;

  explicit Scanned(const Use& use) : x(use.in[0].tensor) {
    const char* const op = use.op.name;
    if (use.attributes.none(0) && x.rank() > 1)
      fail(ErrorKind::type, op, ": axis is needed for ", x.rank(), " dimensions");
    axis =
        use.attributes.none(0) ? 0 : normalize_axis(use.attributes[0], std::max(x.rank(), 1), op);
    if (!x.rank()) x = reshape(x, {1});
  }
};
Tensor in_shape(const Tensor& y, const Tensor& x) { return x.rank() ? y : reshape(y, {}); }

// The standard's default: whole numbers count in 64 bits.
DType sum_dtype(DType dtype) {
  if (is_bool(dtype) || is_signed_int(dtype)) return DType::int64;
  return is_unsigned_int(dtype) ? DType::uint64 : dtype;
}

// Attributes: axis, dtype, include_initial.
template <int initial> void cumulative_body(const Use& use, Tensor* out) {
  const Tensor& given = use.in[0].tensor;
  const DType dtype = use.attributes.dtype(1, sum_dtype(given.dtype()));
  const bool includes_initial = use.attributes.flag(2);
  if (is_bool(dtype)) fail(ErrorKind::type, use.op.name, ": dtype bool cannot hold it");
  if (includes_initial && given.rank() == 0)
    fail(ErrorKind::value, use.op.name, ": include_initial needs at least one dimension");
  const Scanned in(use);
  // Of fewer bits than 64 are the last ones the same.
  const Tensor x = astype(astype(in.x, dtype), is_integer(dtype) ? sum_dtype(dtype) : dtype);
  Tensor y = scanned(initial ? kRunningProduct : kRunningSum, x, in.axis, false);
  if (includes_initial) y = concat({edge_of(y, in.axis, initial), y}, in.axis);
  out[0] = in_shape(astype(y, dtype), given);
}

void logcumsumexp_body(const Use& use, Tensor* out) {
  const Tensor& given = use.in[0].tensor;
  if (is_complex(given.dtype()))
    fail(ErrorKind::type, "logcumsumexp: no kernel for ", name_of(given.dtype()));
  const Scanned in(use);
  const Tensor x = astype(in.x, floating_dtype(given.dtype()));
  out[0] = in_shape(scanned(kRunningLogSum, x, in.axis, false), given);
}

void infer_extremes(Call& call, Result* results) {
  const Meta& x = call.in[0];
  if (is_complex(x.dtype)) fail(ErrorKind::type, call.op->name, ": complex numbers have no order");
  normalize_axis(call.attributes[0], std::max(x.rank(), 1), call.op->name);
  results[0].like = results[1].like = 0;
  results[0].dtype = x.dtype;
  results[1].dtype = DType::int64;
}
void extremes_vjp(Vjp& v) {
  const Tensor& g = v.g();
  if (!g.rank()) return v.give(0, g);
  const int axis = normalize_axis(v.attributes()[0], g.rank(), v.record().name);
  const Tensor nothing = broadcast_to(full({}, 0, g.dtype()), g.shape());
  v.give(0, scatter_add_along(nothing, v.out(1), g, axis, AlongUser::scatter_add));
}

// Attributes: n, axis.
void diff_body(const Use& use, Tensor* out) {
  Tensor x = use.in[0].tensor;
  const Attribute n = use.attributes[0];
  if (n < 0) fail(ErrorKind::value, "diff: n is negative: ", n);
  if (!x.rank()) fail(ErrorKind::value, "diff: needs at least one dimension");
  const int axis = normalize_axis(use.attributes[1], x.rank(), "diff");
  std::vector<Tensor> parts = {use.in[1].tensor, x, use.in[2].tensor};
  for (const int i : {0, 2}) {
    if (!parts[static_cast<std::size_t>(i)]) continue;
    Shape shape = parts[static_cast<std::size_t>(i)].shape();
    if (shape.rank() == x.rank()) shape[axis] = x.size(axis);
    if (!(shape == x.shape()))
      fail(ErrorKind::value, "diff: ", i ? "append " : "prepend ",
           parts[static_cast<std::size_t>(i)].shape(), " does not fit x ", x.shape(),
           " along axis ", axis);
  }
  std::erase_if(parts, [](const Tensor& part) { return !part; });
  if (n > 0 && parts.size() > 1) x = concat(parts, axis);
  for (Attribute i = 0; i < n && x.size(axis); ++i) {
    const int64_t count = x.size(axis) - 1;
    const Tensor later = part_of(x, axis, 1, count), earlier = part_of(x, axis, 0, count);
    x = is_bool(x.dtype()) ? later != earlier : later - earlier;
  }
  out[0] = n ? x : copy(x);
}

}  // namespace

constexpr OpRecord kRunningSum = {
    .name = "running_sum",
    .signature = "(x: Tensor, axis: int, reverse: bool) -> Tensor",
    .help = "Sums of all elements up to each along an axis, from the end on where reverse.",
    .flags = kAlongAxis,
    .infer = infer_same,
    .vjp = running_sum_vjp};
constexpr OpRecord kRunningProduct = {
    .name = "running_product",
    .signature = kRunningSum.signature,
    .help = "Products of all elements up to each along an axis, from the end on where reverse.",
    .flags = kAlongAxis,
    .infer = infer_same,
    .vjp = running_product_vjp,
    .reads = {{.inputs = 1, .results = 1}}};
constexpr OpRecord kRunningLogSum = {
    .name = "running_log_sum",
    .signature = kRunningSum.signature,
    .help =
        "log(sum(exp(x))) of all elements up to each along an axis, from the end on where "
        "reverse.",
    .flags = kAlongAxis,
    .infer = infer_same,
    .vjp = running_log_sum_vjp,
    .reads = {{.inputs = 1, .results = 1}}};
constexpr OpRecord kLinearRecurrence = {
    .name = "linear_recurrence",
    .signature = "(a: Tensor, b: Tensor, axis: int, reverse: bool) -> Tensor",
    .help = "y[i] = a[i] * y[i - 1] + b[i] along an axis, y[i + 1] where reverse.",
    .flags = kAlongAxis,
    .infer = infer_same,
    .vjp = linear_recurrence_vjp,
    .reads = {{.inputs = 1, .results = 1}, {.inputs = 1}}};

#define TW_CUMULATIVE                                                                         \
  "(x: Tensor, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = " \
  "False) -> Tensor"
#define TW_CUMULATIVE_RULES                                                                   \
  " The axis may be left out where there is one.\n"                                           \
  "x is converted to dtype first: by default int64 for bool and signed, uint64 for unsigned " \
  "integers. float32 is accumulated in float64. Raises TypeError where an axis is needed."
constexpr OpRecord kCumulativeSum = {
    .name = "cumulative_sum",
    .signature = TW_CUMULATIVE,
    .help =
        "Sums of all elements up to each along an axis; include_initial puts a 0 before "
        "them." TW_CUMULATIVE_RULES
        "\n"
        "Shapes: x of any shape; the result has it, one longer along the axis with "
        "include_initial.\n"
        "Types: all. Result: the same type, of integers int64 or uint64, of bool int64.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kInPlace,
    .body = cumulative_body<0>};
constexpr OpRecord kCumulativeProd = {
    .name = "cumulative_prod",
    .signature = TW_CUMULATIVE,
    .help =
        "Products of all elements up to each along an axis; include_initial puts a 1 before "
        "them." TW_CUMULATIVE_RULES
        "\n"
        "Shapes: x of any shape; the result has it, one longer along the axis with "
        "include_initial.\n"
        "Types: all. Result: the same type, of integers int64 or uint64, of bool int64.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kInPlace,
    .body = cumulative_body<1>};
constexpr OpRecord kLogcumsumexp = {
    .name = "logcumsumexp",
    .signature = "(x: Tensor, axis: int) -> Tensor",
    .help =
        "log(sum(exp(x))) of all elements up to each along an axis, whatever their range.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.logcumsumexp.",
    .flags = kFunction,
    .body = logcumsumexp_body,
    .autocast = Autocast::wide};

constexpr OpRecord kCummax = {
    .name = "cummax",
    .signature = "(x: Tensor, axis: int) -> ValuesAndIndices",
    .help =
        "The largest of all elements up to each along an axis, and where it is (int64): of equal "
        "ones the last. A NaN stays.\n"
        "Shapes: x of any shape; values and indices have it.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.cummax.",
    .flags = kFunction | kAlongAxis,
    .results = 2,
    .infer = infer_extremes,
    .vjp = extremes_vjp,
    .reads = {{.results = 2}}};
constexpr OpRecord kCummin = {
    .name = "cummin",
    .signature = kCummax.signature,
    .help =
        "The smallest of all elements up to each along an axis, and where it is (int64): of equal "
        "ones the last. A NaN stays.\n"
        "Shapes: x of any shape; values and indices have it.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.cummin.",
    .flags = kFunction | kAlongAxis,
    .results = 2,
    .infer = infer_extremes,
    .vjp = extremes_vjp,
    .reads = {{.results = 2}}};

constexpr OpRecord kDiff = {
    .name = "diff",
    .signature =
        "(x: Tensor, n: int = 1, axis: int = -1, prepend: Tensor | None = None, append: "
        "Tensor | None = None) -> Tensor",
    .help =
        "Differences of neighbours along an axis, n times, of bool whether they differ; prepend "
        "and append are joined to x first.\n"
        "Raises ValueError for a negative n, for numbers alone and for shapes that do not fit.\n"
        "Shapes: x (..., m, ...), prepend and append of its shape but for the axis; the result is "
        "(..., m - n, ...), of the joined m.\n"
        "Types: all. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = diff_body};

}  // namespace tw
