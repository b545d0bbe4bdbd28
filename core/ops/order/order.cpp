// Orders of elements: sorts, the first of them, medians and quantiles.
#include <algorithm>

#include "core/autograd/grad_mode.h"
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

using std::int64_t;

void check_ordered(DType dtype, const char* op) {
  if (is_complex(dtype)) fail(ErrorKind::type, op, ": complex numbers have no order");
}

// ---- an axis as rows ----

// The axis last; of a 0-d tensor one element along any axis; of no axis (None) all elements.
class Rows {
 public:
  Rows(const Tensor& x, Attribute axis, const char* op, bool takes_none = false)
      : shape_(x.shape()) {
    const bool all = takes_none && axis == kNone;
    flat_ = all || x.rank() == 0;
    if (all) return;
    axis_ = normalize_axis(axis, std::max(x.rank(), 1), op);
  }
  Tensor of(const Tensor& x) const {
    if (flat_) return reshape(x, {x.count()});
    return is_last() ? x : swap_axes(x, axis_, shape_.rank() - 1);
  }
  // Results of rows where these were: as long along the axis as those are.
  Tensor back(const Tensor& y) const {
    if (flat_) {
      Shape shape(shape_.rank(), 1);
      if (shape_.rank() == 1) shape[0] = y.count();
      return y.shape() == shape ? y : owned(reshape(y, shape));
    }
    return is_last() ? y : copy(swap_axes(y, axis_, shape_.rank() - 1));
  }
  // The same of one result for each row.
  Tensor back(const Tensor& y, bool keepdims) const {
    Tensor kept = back(y);
    if (keepdims || shape_.rank() == 0) return kept;
    Shape shape;
    for (int i = 0; i < shape_.rank(); ++i)
      if (!flat_ && i != axis_) shape.push_back(shape_[i]);
    return owned(reshape(kept, shape));
  }
  // All of a row is one element of memory.
  bool repeat(const Tensor& x) const {
    return !flat_ && shape_[axis_] > 1 && x.strides()[axis_] == 0;
  }
  // Elements of x at places along the axis, in the graph.
  Tensor at(const Tensor& x, const Tensor& places) const {
    const Tensor rows = of(x);
    const Attribute last = rows.rank() - 1;
    return apply(kGather, {rows, places}, AttributeList(1).set(0, last));
  }

 private:
  bool is_last() const { return axis_ == shape_.rank() - 1; }
  const Shape shape_;
  bool flat_;
  int axis_ = 0;
};

bool is_recorded(const Tensor& x) { return modes.grad && records(x); }

// ---- sorts ----

void infer_like(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}
void infer_sorted(Call& call, Result* results) {
  infer_like(call, results);
  results[1].like = 0;
  results[1].dtype = DType::int64;
}
// A pass over keys for each of their bytes.
Estimate estimate_sort(const Call& call) {
  const auto count = static_cast<double>(call.in[0].count);
  const auto bytes = static_cast<double>(size_of(call.in[0].dtype));
  return {count * bytes, 2 * count * bytes * bytes};
}

struct Sorted {
  Tensor values, places;
};
Sorted sorted_rows(const Tensor& rows, bool descending) {
  Tensor out[2];
  const Operand x = rows;
  apply(kSortRowsWithPlaces, &x, 1, AttributeList(1).set(0, descending), out);
  return {out[0], out[1]};
}

// Attributes: axis, descending, stable (which all are).
void sort_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  check_ordered(x.dtype(), "sort");
  const Rows rows(x, use.attributes[0], "sort");
  const bool descending = use.attributes.flag(1);
  if (!is_recorded(x)) {
    out[0] = rows.repeat(x)
                 ? copy(x)
                 : rows.back(apply(kSortRows, {rows.of(x)}, AttributeList(1).set(0, descending)));
    return;
  }
  out[0] = rows.back(rows.at(x, sorted_rows(rows.of(x.detached()), descending).places));
}
void argsort_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  check_ordered(x.dtype(), "argsort");
  const Rows rows(x, use.attributes[0], "argsort");
  out[0] = rows.back(sorted_rows(rows.of(x), use.attributes.flag(1)).places);
}

// ---- the first of them ----

void infer_topk(Call& call, Result* results) {
  results[0].shape = *call.in[0].shape;
  results[0].shape[call.in[0].rank() - 1] = call.attributes[0];
  results[1].shape = results[0].shape;
  results[0].dtype = call.in[0].dtype;
  results[1].dtype = DType::int64;
}
void infer_kth(Call& call, Result* results) {
  results[0].shape = *call.in[0].shape;
  results[0].shape[call.in[0].rank() - 1] = 1;
  results[1].shape = results[0].shape;
  results[0].dtype = call.in[0].dtype;
  results[1].dtype = DType::int64;
}

// Values and their places along an axis, by an op on rows; the values are in the graph.
Sorted chosen(const OpRecord& op, const Tensor& x, const Rows& rows, Attributes attributes) {
  Tensor out[2];
  const Operand operand = rows.of(x.detached());
  apply(op, &operand, 1, attributes, out);
  if (is_recorded(x)) out[0] = rows.at(x, out[1]);
  return {out[0], out[1]};
}

int64_t size_along(const Tensor& x, Attribute axis) {
  if (axis == kNone) return x.count();
  return x.rank() ? x.size(normalize_axis(axis, x.rank(), "order")) : 1;
}

// Attributes: k, axis, largest, sorted.
void topk_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const Attribute k = use.attributes[0];
  check_ordered(x.dtype(), "topk");
  const Rows rows(x, use.attributes[1], "topk");
  const int64_t size = size_along(x, use.attributes[1]);
  if (k < 0 || k > size)
    fail(ErrorKind::value, "topk: k must be from 0 to ", size, ", the size of axis ",
         use.attributes[1], " of ", x.shape(), ", got ", k);
  const Sorted y =
      chosen(kTopkRows, x, rows,
             AttributeList(3).set(0, k).set(1, use.attributes[2]).set(2, use.attributes[3]));
  if (x.rank() == 0) {  // k may be 0
    out[0] = k ? rows.back(y.values) : y.values;
    out[1] = k ? rows.back(y.places) : y.places;
    return;
  }
  out[0] = rows.back(y.values);
  out[1] = rows.back(y.places);
}

// Attributes: axis, descending, stable (which all are).
void sort_with_indices_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  check_ordered(x.dtype(), use.op.name);
  const Rows rows(x, use.attributes[0], use.op.name);
  const Sorted y = sorted_rows(rows.of(x.detached()), use.attributes.flag(1));
  out[0] = rows.back(is_recorded(x) ? rows.at(x, y.places) : y.values);
  out[1] = rows.back(y.places);
}
// Attributes: axis, keepdims.
template <auto place> void extreme_with_indices_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  check_ordered(x.dtype(), use.op.name);
  const Rows rows(x, use.attributes[0], use.op.name);
  const Tensor row = rows.of(x.detached());
  if (row.size(row.rank() - 1) == 0)
    fail(ErrorKind::value, use.op.name, ": no elements along the axis of ", x.shape());
  const Tensor places = place(row, row.rank() - 1, true);
  out[0] = rows.back(rows.at(x, places), use.attributes.flag(1));
  out[1] = rows.back(places, use.attributes.flag(1));
}

enum class Which : Attribute { nth, median, nanmedian };
Sorted chosen_one(const char* op, const Tensor& x, Attribute axis, Which which, Attribute k,
                  bool keepdims) {
  check_ordered(x.dtype(), op);
  const Rows rows(x, axis, op, true);
  const int64_t size = size_along(x, axis);
  if (size == 0) fail(ErrorKind::value, op, ": no elements along the axis of ", x.shape());
  if (which == Which::nth && (k < 1 || k > size))
    fail(ErrorKind::value, op, ": k must be from 1 to ", size, ", the size of axis ", axis, " of ",
         x.shape(), ", got ", k);
  const Sorted y =
      chosen(kKthRows, x, rows, AttributeList(2).set(0, static_cast<Attribute>(which)).set(1, k));
  return {rows.back(y.values, keepdims), rows.back(y.places, keepdims)};
}

// Of an op whose axis cannot be None.
Attribute axis_of(const Use& use, int attribute) {
  return normalize_axis(use.attributes[attribute], std::max(use.in[0].tensor.rank(), 1),
                        use.op.name);
}

// Attributes: k, axis, keepdims.
void kthvalue_body(const Use& use, Tensor* out) {
  const Sorted y = chosen_one(use.op.name, use.in[0].tensor, axis_of(use, 1), Which::nth,
                              use.attributes[0], use.attributes.flag(2));
  out[0] = y.values;
  out[1] = y.places;
}
// The mean of two numbers, of which each gets half of the gradient, equal ones too. Halves of the
// smallest numbers are rounded: what two equal ones lack is added as a constant.
Tensor middle_of(const Tensor& a, const Tensor& b) {
  const Tensor middle = a * 0.5 + b * 0.5;
  const Tensor one = a.detached(), rounded = middle.detached();
  return middle + where((one == b) & (rounded != one), one - rounded, 0);
}
// The upper median of what is no NaN, whose count each row has for itself: the lower one of -x,
// from the end on, so that of equal elements it is another one than the lower median of x.
Tensor upper_median(const char* op, const Tensor& x, Attribute axis, bool keepdims) {
  AttributeList turned(1);
  if (axis == kNone || x.rank() == 0)
    turned.set(0, kNone);
  else
    turned.set_list(0, Shape{axis});
  const Tensor opposite = negative(apply(kFlip, {x}, turned));
  return negative(chosen_one(op, opposite, axis, Which::nanmedian, 0, keepdims).values);
}
// Attributes of all: axis, keepdims. The mean of the lower and the upper of the two in the middle.
template <Which which> void median_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const char* const op = use.op.name;
  const Attribute axis = use.attributes[0];
  const bool keepdims = use.attributes.flag(1), floats = is_floating(x.dtype());
  const DType type = floats ? x.dtype() : default_dtype();
  const Tensor lower = chosen_one(op, x, axis, which, 0, keepdims).values;
  const int64_t n = size_along(x, axis);
  const bool among_nan = which == Which::nanmedian && floats;
  if (n == 1 || (n % 2 && !among_nan)) {
    out[0] = astype(lower, type);
    return;
  }
  const Tensor upper = among_nan ? upper_median(op, x, axis, keepdims)
                                 : chosen_one(op, x, axis, Which::nth, n / 2 + 1, keepdims).values;
  const DType wide = floats ? working_dtype(type) : DType::float64;
  out[0] = astype(middle_of(astype(lower, wide), astype(upper, wide)), type);
}
template <Which which> void median_with_indices_body(const Use& use, Tensor* out) {
  const Sorted y =
      chosen_one(use.op.name, use.in[0].tensor, axis_of(use, 0), which, 0, use.attributes.flag(1));
  out[0] = y.values;
  out[1] = y.places;
}

// ---- quantiles ----

enum class Between : Attribute { linear, lower, higher, midpoint, nearest };

// One number, or several along an axis.
Tensor shares_of(const Use& use) {
  const Operand& q = use.in[1];
  const char* const op = use.op.name;
  if (!q.is_tensor()) {
    if (!(q.scalar.re >= 0 && q.scalar.re <= 1) || q.scalar.kind == Scalar::Kind::complex)
      fail(ErrorKind::value, op, ": q must be from 0 to 1, got ", q.scalar.re);
    return full({1}, q.scalar, DType::float64);
  }
  if (q.tensor.rank() > 1)
    fail(ErrorKind::value, op, ": q must be a number or have one axis, got ", q.tensor.shape());
  if (!is_floating(q.tensor.dtype()))
    fail(ErrorKind::type, op, ": q must be floating-point, got ", name_of(q.tensor.dtype()));
  const Tensor wide = astype(q.tensor.detached(), DType::float64);
  return apply(kCheckedShares, {reshape(wide, {wide.count()})});
}

// What lies at places of sorted rows, which may be fractions. Attributes: as kGather's.
Tensor between(const Tensor& rows, const Tensor& places, Between how) {
  const AttributeList last = AttributeList(1).set(0, rows.rank() - 1);
  const auto at = [&](const Tensor& whole) {
    return apply(kGather, {rows, astype(whole, DType::int64)}, last);
  };
  if (how == Between::lower) return at(floor(places));
  if (how == Between::higher) return at(ceil(places));
  if (how == Between::nearest) return at(round(places));
  const Tensor a = at(floor(places)), b = at(ceil(places));
  if (how == Between::midpoint) return middle_of(a, b);
  const Tensor part = astype(places - floor(places), rows.dtype());
  // Of one infinity twice the difference is NaN, but the weighted sum is that infinity; where the
  // part is 0, a and b are one element.
  const Tensor endless = isinf(a) & (a == b), share = where(part == 0, 0.5, part);
  const Tensor step = where(endless, 0, b - a);
  const Tensor finite = where(part < 0.5, a + step * part, b - step * (1 - part));
  return where(endless, a * (1 - share) + b * share, finite);
}

// Attributes: axes, keepdims, how. The axes are joined to the last one, the shares come first.
template <bool ignores_nan> void quantile_body(const Use& use, Tensor* out) {
  const char* const op = use.op.name;
  const Tensor& x_in = use.in[0].tensor;
  if (!is_floating(x_in.dtype()))
    fail(ErrorKind::type, op, ": needs a floating-point input, got ", name_of(x_in.dtype()),
         "; convert with astype(float32)");
  const Tensor x = x_in.rank() ? x_in : reshape(x_in, {1});
  const std::uint32_t axes = use.attributes.axes(0, x.rank(), op);
  const bool keepdims = use.attributes.flag(1);
  const Tensor q = shares_of(use);
  std::vector<int64_t> order;
  Shape rows_shape, reduced;
  int64_t n = 1;
  for (const bool joined : {false, true})
    for (int i = 0; i < x.rank(); ++i) {
      if ((axes >> i & 1) != joined) continue;
      order.push_back(i);
      if (joined)
        n *= x.size(i);
      else
        rows_shape.push_back(x.size(i));
    }
  for (int i = 0; i < x_in.rank(); ++i)
    if (!(axes >> i & 1))
      reduced.push_back(x.size(i));
    else if (keepdims)
      reduced.push_back(1);
  if (n == 0) fail(ErrorKind::value, op, ": no elements along the axis of ", x_in.shape());
  const int last = rows_shape.rank();
  rows_shape.push_back(n);
  const Tensor given =
      reshape(permute_dims(astype(x, working_dtype(x.dtype())), order), rows_shape);
  const Tensor rows = apply(kSort, {given}, AttributeList(3).set(0, -1).set(1, 0).set(2, 1));
  Shape shape = rows.shape();
  shape[last] = q.count();
  Tensor places;
  if (ignores_nan) {
    const Tensor numbers = sum(logical_not(isnan(rows.detached())), {-1}, true);
    places = q * maximum(astype(numbers, DType::float64) - 1.0, 0.0);
  } else {
    places = q * static_cast<double>(n - 1);
  }
  Tensor y = between(rows, broadcast_to(places, shape), static_cast<Between>(use.attributes[2]));
  if (!ignores_nan) {  // NaN is last
    std::vector<Range> ranges;
    for (const int64_t extent : rows.shape()) ranges.push_back({0, 1, extent});
    ranges.back() = {n - 1, 1, 1};
    const Tensor largest = slice(rows, ranges);
    y = where(isnan(largest.detached()), largest, y);
  }
  std::vector<int64_t> shares_first = {last};
  for (int i = 0; i < last; ++i) shares_first.push_back(i);
  y = permute_dims(y, shares_first);
  if (use.in[1].is_tensor() && use.in[1].tensor.rank() == 1) reduced.insert(0, q.count());
  out[0] = owned(reshape(copy(astype(y, x.dtype())), reduced));
}

}  // namespace

// ---- internal ops, on rows ----

constexpr OpRecord kSortRows = {
    .name = "sort_rows",
    .signature = "(x: Tensor, descending: bool) -> Tensor",
    .help = "The last axis in order, stable, NaN behind all others or before them.",
    .flags = kConstant,
    .infer = infer_like,
    .estimate = estimate_sort};
constexpr OpRecord kSortRowsWithPlaces = {
    .name = "sort_rows_with_places",
    .signature = "(x: Tensor, descending: bool) -> tuple[Tensor, Tensor]",
    .help = "The last axis in order, and where in it the elements come from.",
    .flags = kConstant,
    .results = 2,
    .infer = infer_sorted,
    .estimate = estimate_sort};
constexpr OpRecord kTopkRows = {
    .name = "topk_rows",
    .signature = "(x: Tensor, k: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]",
    .help = "The k largest or smallest along the last axis, and their places.",
    .flags = kConstant,
    .results = 2,
    .infer = infer_topk};
constexpr OpRecord kKthRows = {
    .name = "kth_rows",
    .signature =
        "(x: Tensor, which: 'nth' | 'median' | 'nanmedian', k: int) -> tuple[Tensor, Tensor]",
    .help = "The element at one place of the order along the last axis, and its place.",
    .flags = kConstant,
    .results = 2,
    .infer = infer_kth};
constexpr OpRecord kCheckedShares = {.name = "checked_shares",
                                     .signature = "(q: Tensor) -> Tensor",
                                     .help = "Numbers from 0 to 1.",
                                     .flags = kConstant,
                                     .infer = infer_like};

// ---- functions ----

#define TW_ORDER_WORDS \
  "(x: Tensor, *, axis: int = -1, descending: bool = False, stable: bool = True)"

constexpr OpRecord kSort = {
    .name = "sort",
    .signature = TW_ORDER_WORDS " -> Tensor",
    .help =
        "The elements along an axis in order: values alone, argsort has their places.\n"
        "NaN is last, or first where it descends; equal elements keep their order, whatever stable "
        "says.\n"
        "Shapes: x (..., n, ...); the result has x's shape.\n"
        "Types: bool, integer, floating. Result: the same type.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = sort_body};
constexpr OpRecord kArgsort = {
    .name = "argsort",
    .signature =
        "(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor",
    .help =
        "The indices (int64) that put the elements along an axis in order.\n"
        "NaN is last, or first where it descends; equal elements keep their order, whatever stable "
        "says.\n"
        "Shapes: x (..., n, ...); the result has x's shape.\n"
        "Types: bool, integer, floating. Result: int64.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kConstant,
    .body = argsort_body};
constexpr OpRecord kTopk = {
    .name = "topk",
    .signature =
        "(x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> "
        "ValuesAndIndices",
    .help =
        "The k largest elements along an axis, or the smallest, and their indices (int64).\n"
        "In order unless sorted is False; of equal elements the first are taken; NaN counts as "
        "larger than all numbers. Raises ValueError for k beyond the axis.\n"
        "Shapes: x (..., n, ...); values and indices are (..., k, ...).\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.topk.",
    .flags = kFunction,
    .results = 2,
    .body = topk_body};
constexpr OpRecord kKthvalue = {
    .name = "kthvalue",
    .signature = "(x: Tensor, k: int, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices",
    .help =
        "The k-th smallest element along an axis, from 1 on, and its index (int64).\n"
        "Of equal elements the index is that in stable order; NaN counts as larger than all "
        "numbers. Raises ValueError for k beyond the axis.\n"
        "Shapes: x (..., n, ...); values and indices lack the axis, or have it with extent 1 where "
        "keepdims.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.kthvalue.",
    .flags = kFunction,
    .results = 2,
    .body = kthvalue_body};
#define TW_MEDIAN_HELP                                                                      \
  "of all elements or along an axis: of an even number the mean of the two in the middle, " \
  "as in NumPy; dim= gives PyTorch's, the lower of the two, and its index.\n"
#define TW_MEDIAN_TYPES                                                                    \
  "Types: floating; integers and bool become the default floating type. Result: the same " \
  "type.\n"
constexpr OpRecord kMedian = {
    .name = "median",
    .signature = "(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor",
    .help = "Median " TW_MEDIAN_HELP
            "NaN where there is one. Raises ValueError over no elements.\n"
            "Shapes: x (..., n, ...); the result lacks the axis, or has it with extent 1 where "
            "keepdims.\n" TW_MEDIAN_TYPES "Source: NumPy's numpy.median.",
    .flags = kFunction,
    .body = median_body<Which::median>};
constexpr OpRecord kNanmedian = {
    .name = "nanmedian",
    .signature = "(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor",
    .help = "Median without NaN " TW_MEDIAN_HELP
            "NaN where there is nothing else. Raises ValueError over no elements.\n"
            "Shapes: x (..., n, ...); the result lacks the axis, or has it with extent 1 where "
            "keepdims.\n" TW_MEDIAN_TYPES "Source: NumPy's numpy.nanmedian.",
    .flags = kFunction,
    .body = median_body<Which::nanmedian>};

// What PyTorch's functions of these names give for dim=.
#define TW_ALONG "(x: Tensor, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices"
#define TW_ALONG_RAISES                                                                     \
  "Raises ValueError over no elements, IndexError for an axis out of range, TypeError for " \
  "complex "                                                                                \
  "numbers."
constexpr OpRecord kSortWithIndices = {
    .name = "sort_with_indices",
    .signature = TW_ORDER_WORDS " -> ValuesAndIndices",
    .help =
        "What sort gives, and the indices (int64) that argsort gives.\n"
        "Shapes: x (..., n, ...); values and indices have x's shape.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.sort.",
    .flags = kFunction,
    .results = 2,
    .body = sort_with_indices_body};
constexpr OpRecord kMaxWithIndices = {
    .name = "max_with_indices",
    .signature = TW_ALONG,
    .help =
        "The largest element along an axis, and its index (int64): of equal ones the first, which "
        "has the gradient.\n"
        "NaN where there is one. " TW_ALONG_RAISES
        "\n"
        "Shapes: x (..., n, ...); values and indices lack the axis, or have it with extent 1 where "
        "keepdims.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.max.",
    .flags = kFunction,
    .results = 2,
    .body = extreme_with_indices_body<argmax>};
constexpr OpRecord kMinWithIndices = {
    .name = "min_with_indices",
    .signature = TW_ALONG,
    .help =
        "The smallest element along an axis, and its index (int64): of equal ones the first, which "
        "has the gradient.\n"
        "NaN where there is one. " TW_ALONG_RAISES
        "\n"
        "Shapes: x (..., n, ...); values and indices lack the axis, or have it with extent 1 where "
        "keepdims.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.min.",
    .flags = kFunction,
    .results = 2,
    .body = extreme_with_indices_body<argmin>};
constexpr OpRecord kMedianWithIndices = {
    .name = "median_with_indices",
    .signature = TW_ALONG,
    .help =
        "The median along an axis, of an even number the lower of the two in the middle, and its "
        "index (int64): of equal ones that in stable order. NaN where there is "
        "one.\n" TW_ALONG_RAISES
        "\n"
        "Shapes: x (..., n, ...); values and indices lack the axis, or have it with extent 1 where "
        "keepdims.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.median.",
    .flags = kFunction,
    .results = 2,
    .body = median_with_indices_body<Which::median>};
constexpr OpRecord kNanmedianWithIndices = {
    .name = "nanmedian_with_indices",
    .signature = TW_ALONG,
    .help =
        "The median without NaN along an axis, of an even number the lower of the two in the "
        "middle, and its index (int64): of equal ones that in stable order. NaN where there is "
        "nothing else.\n" TW_ALONG_RAISES
        "\n"
        "Shapes: x (..., n, ...); values and indices lack the axis, or have it with extent 1 where "
        "keepdims.\n"
        "Types: bool, integer, floating. Result: values of the same type, indices of int64.\n"
        "Source: PyTorch's torch.nanmedian.",
    .flags = kFunction,
    .results = 2,
    .body = median_with_indices_body<Which::nanmedian>};

#define TW_QUANTILE_WORDS                                                              \
  "(x: Tensor, q: Operand, axis: Axes = None, keepdims: bool = False, *, "             \
  "interpolation: 'linear' | 'lower' | 'higher' | 'midpoint' | 'nearest' = 'linear') " \
  "-> Tensor"
#define TW_QUANTILE_HELP                                                                          \
  "q is a number, or several (k,) that become the first axis of the result. interpolation "       \
  "says what is taken between two elements. Gradients go to x. Raises ValueError for q outside "  \
  "0 to 1 and over no elements, TypeError for an x that is not floating, IndexError for an axis " \
  "out of range."
constexpr OpRecord kQuantile = {
    .name = "quantile",
    .signature = TW_QUANTILE_WORDS,
    .help =
        "The element at the place q * (n - 1) of the n elements in order, of all or along axes; "
        "NaN where there is one.\n" TW_QUANTILE_HELP
        "\n"
        "Shapes: x of any shape, q () or (k,); the result lacks the axes, or has them with extent "
        "1 where keepdims, behind an axis of k.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for a q of more than 1 dimension.\n"
        "Source: PyTorch's torch.quantile.",
    .flags = kFunction,
    .body = quantile_body<false>};
constexpr OpRecord kNanquantile = {
    .name = "nanquantile",
    .signature = TW_QUANTILE_WORDS,
    .help =
        "The element at the place q * (n - 1) of the n elements that are not NaN in order, of all "
        "or along axes; NaN where there are none.\n" TW_QUANTILE_HELP
        "\n"
        "Shapes: x of any shape, q () or (k,); the result lacks the axes, or has them with extent "
        "1 where keepdims, behind an axis of k.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for a q of more than 1 dimension.\n"
        "Source: PyTorch's torch.nanquantile.",
    .flags = kFunction,
    .body = quantile_body<true>};

}  // namespace tw
