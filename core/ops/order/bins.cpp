// Where elements lie: searches in sorted ones, membership, counts in bins.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

using std::int64_t;

// ---- searches ----

// What elements of two types are compared in: exact, as far as one type is.
DType compared_type(DType a, DType b, const char* op) {
  if (is_complex(a) || is_complex(b)) fail(ErrorKind::type, op, ": complex numbers have no order");
  const DType common = promote(a, b);
  if (is_bool(common)) return DType::uint8;
  if (!is_floating(common)) return common;
  return is_floating(a) && is_floating(b) ? working_dtype(common) : DType::float64;
}
// A number in a type that has all its digits.
Tensor as_tensor(const Operand& x) {
  if (x.is_tensor()) return x.tensor.detached();
  const DType type = x.scalar.natural_dtype();
  return full({}, x.scalar, type == DType::float32 ? DType::float64 : type);
}

Tensor search_rows(const Tensor& rows, const Tensor& values, bool right) {
  return apply(kSearchRows, {rows, values}, AttributeList(1).set(0, right));
}
Tensor searched(const Tensor& sorted, const Operand& given, bool right, const char* op) {
  const Tensor values = as_tensor(given);
  bool fits = sorted.rank() > 0 && (sorted.rank() == 1 || values.rank() == sorted.rank());
  for (int i = 0; fits && sorted.rank() > 1 && i < sorted.rank() - 1; ++i)
    fits = sorted.size(i) == values.size(i);
  if (!fits)
    fail(ErrorKind::value, op,
         ": expected sorted elements (n,) and values of any shape, or (..., n)"
         " and (..., m), got ",
         sorted.shape(), " and ", values.shape());
  const DType type = compared_type(sorted.dtype(), values.dtype(), op);
  return search_rows(astype(sorted.detached(), type), astype(values, type), right);
}

// Attributes: side, right.
void searchsorted_body(const Use& use, Tensor* out) {
  Tensor sorted = use.in[0].tensor;
  const Operand& sorter = use.in[2];
  const Attribute side = use.attributes[0];
  const bool right = use.attributes.flag(1);
  if (side == 0 && right)
    fail(ErrorKind::value, "searchsorted: side='left' and right=True say opposite things");
  if (!sorter.absent()) {
    const Tensor& places = sorter.tensor;
    if (!(places.shape() == sorted.shape()))
      fail(ErrorKind::value, "searchsorted: sorter ", places.shape(), " does not fit ",
           sorted.shape());
    if (sorted.rank())
      sorted =
          apply(kGather, {sorted.detached(), places}, AttributeList(1).set(0, sorted.rank() - 1));
  }
  out[0] = searched(sorted, use.in[1], right || side == 1, "searchsorted");
  if (use.attributes.flag(2)) out[0] = astype(out[0], DType::int32);
}

// Attributes: assume_unique (nothing is faster for it), invert.
void isin_body(const Use& use, Tensor* out) {
  const Tensor x = as_tensor(use.in[0]), test = as_tensor(use.in[1]);
  const DType type = compared_type(x.dtype(), test.dtype(), "isin");
  const bool invert = use.attributes.flag(1);
  if (test.count() == 0) {
    out[0] = full(x.shape(), Scalar(invert), DType::bool_);
    return;
  }
  const Tensor sorted =
      apply(kSortRows, {reshape(astype(test, type), {test.count()})}, AttributeList(1).set(0, 0));
  const Tensor wide = astype(x, type);
  const Tensor places = minimum(search_rows(sorted, wide, false), Scalar(test.count() - 1));
  const Tensor found = apply(kTake, {sorted, places}, AttributeList(1).set(0, 0)) == wide;
  out[0] = invert ? logical_not(found) : found;
}

// ---- counts ----

// Attributes: axes, keepdims.
void count_nonzero_body(const Use& use, Tensor* out) {
  const Tensor x = use.in[0].tensor.detached();
  use.attributes.axes(0, x.rank(), "count_nonzero");
  AttributeList attributes(3);
  if (use.attributes.none(0))
    attributes.set(0, kNone);
  else
    attributes.set_list(0, use.attributes.list(0));
  const Tensor mask = is_bool(x.dtype()) ? x : not_equal(x, 0);
  out[0] = apply(k_sum, {mask}, attributes.set(1, use.attributes[1]).set(2, kNone));
}

// The largest decides the size of memory: nothing is counted in a dry run.
Attribute read_last_bin(const Tensor& x) {
  const HostValues values(apply(kLastBin, {x}), "bincount reads the largest element");
  return modes.dry_run ? -1 : values.as<int64_t>()[0];
}
// Attribute: minlength.
void bincount_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const Operand& weights = use.in[1];
  const Attribute least = use.attributes[0];
  if (x.rank() != 1) fail(ErrorKind::value, "bincount: expected x (n,), got ", x.shape());
  if (!is_integer(x.dtype()))
    fail(ErrorKind::type, "bincount: x must be integers, got ", name_of(x.dtype()));
  if (least < 0) fail(ErrorKind::value, "bincount: minlength is negative: ", least);
  if (!weights.absent() && !(weights.tensor.shape() == x.shape()))
    fail(ErrorKind::value, "bincount: weights ", weights.tensor.shape(), " do not fit x ",
         x.shape());
  if (!weights.absent() && is_complex(weights.tensor.dtype()))
    fail(ErrorKind::type, "bincount: weights must be real, got ", name_of(weights.tensor.dtype()));
  const Attribute bins = std::max(read_last_bin(x) + 1, least);
  if (weights.absent()) {
    out[0] = apply(kCountBins, {x}, AttributeList(1).set(0, bins));
    return;
  }
  const DType given = weights.tensor.dtype();
  const Tensor wide = astype(weights.tensor, is_floating(given) ? given : DType::float64);
  const Operand operands[] = {wide, astype(x, DType::int64)};
  apply(kScatterAddRows, operands, 2, AttributeList(1).set_list(0, Shape{bins}), out);
}

// Attributes: bins, min, max.
void histc_body(const Use& use, Tensor* out) {
  const Tensor x = use.in[0].tensor.detached();
  const Attribute bins = use.attributes[0];
  const double low = use.attributes.real(1), high = use.attributes.real(2);
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, "histc: needs a floating-point input, got ", name_of(x.dtype()));
  if (bins < 1) fail(ErrorKind::value, "histc: bins must be at least 1, got ", bins);
  if (!(low <= high) || std::isinf(low) || std::isinf(high))
    fail(ErrorKind::value, "histc: no bins between min ", low, " and max ", high);
  const Tensor wide = astype(x, working_dtype(x.dtype()));
  Tensor first = full({1}, Scalar(low), wide.dtype()), last = full({1}, Scalar(high), wide.dtype());
  if (low == high && x.count()) {
    first = reshape(min(wide, {}, false), {1});
    last = reshape(max(wide, {}, false), {1});
  }
  const Tensor equal = first == last;  // a bin around the one value that there is
  const Tensor limits = concat({where(equal, first - 1, first), where(equal, last + 1, last)}, 0);
  const Tensor counts =
      apply(kCountEvenBins, {reshape(wide, {wide.count()}), limits}, AttributeList(1).set(0, bins));
  out[0] = astype(counts, x.dtype());
}

}  // namespace

// ---- internal ops ----

constexpr OpRecord kSearchRows = {
    .name = "search_rows",
    .signature = "(x: Tensor, values: Tensor, right: bool) -> Tensor",
    .help = "Where values belong in sorted rows, or in the one that there is.",
    .flags = kConstant,
    .infer = [](Call&, Result* results) {
      results[0].like = 1;
      results[0].dtype = DType::int64;
    }};
constexpr OpRecord kLastBin = {
    .name = "last_bin",
    .signature = "(x: Tensor) -> Tensor",
    .help = "The largest of whole numbers from 0 on, -1 where there are none.",
    .flags = kConstant,
    .infer = [](Call&, Result* results) { results[0].dtype = DType::int64; }};
constexpr OpRecord kCountBins = {.name = "count_bins",
                                 .signature = "(x: Tensor, bins: int) -> Tensor",
                                 .help = "How many elements are 0, 1, ... bins - 1.",
                                 .flags = kConstant,
                                 .infer = [](Call& call, Result* results) {
                                   results[0].shape = {call.attributes[0]};
                                   results[0].dtype = DType::int64;
                                 }};
constexpr OpRecord kCountEvenBins = {
    .name = "count_even_bins",
    .signature = "(x: Tensor, limits: Tensor, bins: int) -> Tensor",
    .help = "How many elements lie in each of so many parts of equal width between two limits.",
    .flags = kConstant,
    .infer = kCountBins.infer};

// ---- functions ----

constexpr OpRecord kSearchsorted = {
    .name = "searchsorted",
    .signature =
        "(x1: Tensor, x2: Operand, *, side: 'left' | 'right' | None = None, sorter: Tensor | None "
        "= None, right: bool = False, out_int32: bool = False) -> Tensor",
    .help =
        "Where elements of x2 belong in the sorted x1 (n,), or rows of x2 (..., m) in those of x1 "
        "(..., n): int64, or int32 with out_int32=True, of x2's shape.\n"
        "In front of equal elements, or behind them with side='right' or right=True; NaN belongs "
        "behind all numbers. sorter has the indices that sort x1. Raises ValueError for shapes "
        "that do not fit and for side='left' with right=True.\n"
        "Shapes: x1 (n,) and x2 of any shape, or (..., n) and (..., m); sorter of x1's shape; the "
        "result has x2's shape.\n"
        "Types: bool, integer, floating. Result: int64, with out_int32 int32.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kConstant,
    .body = searchsorted_body};
constexpr OpRecord kBucketize = {
    .name = "bucketize",
    .signature =
        "(x: Operand, boundaries: Tensor, *, right: bool = False, out_int32: bool = False) -> "
        "Tensor",
    .help =
        "How many of the sorted boundaries (n,) lie below each element, or with right=True below "
        "or at it: int64, or int32 with out_int32=True.\n"
        "Raises ValueError for boundaries of other shapes.\n"
        "Shapes: x of any shape, boundaries (n,); the result has x's shape.\n"
        "Types: bool, integer, floating. Result: int64, with out_int32 int32.\n"
        "Source: PyTorch's torch.bucketize.",
    .flags = kFunction | kConstant,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& boundaries = use.in[1].tensor;
      if (boundaries.rank() != 1)
        fail(ErrorKind::value, "bucketize: expected boundaries (n,), got ", boundaries.shape());
      out[0] = searched(boundaries, use.in[0], use.attributes.flag(0), "bucketize");
      if (use.attributes.flag(1)) out[0] = astype(out[0], DType::int32);
    }};
constexpr OpRecord kIsin = {
    .name = "isin",
    .signature =
        "(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool "
        "= False) -> Tensor",
    .help =
        "Whether each element is among test_elements, or with invert=True is not; NaN never is.\n"
        "assume_unique changes nothing.\n"
        "Shapes: elements and test_elements of any shapes; the result has that of elements.\n"
        "Types: bool, integer, floating. Result: bool.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kConstant,
    .body = isin_body};
constexpr OpRecord kCountNonzero = {
    .name = "count_nonzero",
    .signature = "(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor",
    .help =
        "How many elements are not zero (int64), over all or some axes; NaN is not.\n"
        "Raises ValueError for repeated ones.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: all. Result: int64.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction | kConstant,
    .body = count_nonzero_body};
constexpr OpRecord kBincount = {
    .name = "bincount",
    .signature = "(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor",
    .help =
        "How many elements of x (n,) are 0, 1, ... up to the largest (int64), or the sums of their "
        "weights (n,), in these' floating type or float64.\n"
        "At least minlength bins. Reads the largest element, so a capture refuses it. Raises "
        "ValueError for negative elements and other shapes.\n"
        "Shapes: x and weights (n,); the result is (bins,).\n"
        "Types: integer. Result: int64, with weights their floating type or float64.\n"
        "Raises ValueError for a negative minlength.\n"
        "Source: PyTorch's torch.bincount.",
    .flags = kFunction,
    .body = bincount_body};
constexpr OpRecord kHistc = {
    .name = "histc",
    .signature = "(x: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor",
    .help =
        "How many elements lie in each of so many bins of equal width from min to max, in x's "
        "type; others count for nothing.\n"
        "Where min equals max the bins reach from the smallest to the largest element. Raises "
        "ValueError for no bins and for limits that are not finite or in order.\n"
        "Shapes: x of any shape; the result is (bins,).\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.histc.",
    .flags = kFunction | kConstant,
    .body = histc_body};

}  // namespace tw
