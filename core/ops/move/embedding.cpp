// Rows of a table by their numbers, one by one or summed up in bags.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

void check_table(const Use& use, const Tensor& indices, const Tensor& weight) {
  if (!is_integer(indices.dtype()))
    fail(ErrorKind::type, use.op.name, ": indices must be integers, got ",
         name_of(indices.dtype()));
  if (weight.rank() != 2)
    fail(ErrorKind::value, use.op.name, ": weight must be (rows, features), got ", weight.shape());
}
// A row that counts for nothing, from the end where negative; kNone where there is none.
int64_t checked_padding(const Use& use, int attribute, int64_t rows) {
  if (use.attributes.none(attribute)) return kNone;
  const int64_t padding = use.attributes[attribute];
  if (padding < -rows || padding >= rows)
    fail(ErrorKind::value, use.op.name, ": padding_idx ", padding, " is out of range for ", rows,
         " rows of weight");
  return padding < 0 ? padding + rows : padding;
}
// Where there is padding, all numbers of rows are counted from 0, as its own is.
Tensor rows_from_0(const Tensor& indices, const Tensor& weight, int64_t padding) {
  if (padding == kNone) return indices;
  return checked_indices(indices, weight.size(0), 0, Indexing::index);
}
Tensor rows_at(const Tensor& weight, const Tensor& indices) {
  return apply(kGatherRows, {weight, checked_indices(indices, weight.size(0), 0, Indexing::index)});
}
Tensor counts(const Tensor& indices, int64_t padding) {
  return indices != Operand(Scalar(padding));
}

void embedding_body(const Use& use, Tensor* out) {
  const Tensor& weight = use.in[1].tensor;
  check_table(use, use.in[0].tensor, weight);
  const int64_t padding = checked_padding(use, 0, weight.size(0));
  const Tensor indices = rows_from_0(use.in[0].tensor, weight, padding);
  const Tensor rows = rows_at(weight, indices);
  if (padding == kNone || !rows.requires_grad()) {
    out[0] = rows;
    return;
  }
  // Rows of padding get no gradient.
  out[0] = where(expand_dims(counts(indices, padding), -1), rows, rows.detached());
}

// Attributes: mode, padding_idx. Bags are the rows of indices (bags, length).
enum Mode : Attribute { kSum, kMean, kMax };
void embedding_bag_body(const Use& use, Tensor* out) {
  const Tensor &weight = use.in[1].tensor, &scales = use.in[2].tensor;
  check_table(use, use.in[0].tensor, weight);
  const int64_t padding = checked_padding(use, 1, weight.size(0));
  const Tensor indices = rows_from_0(use.in[0].tensor, weight, padding);
  const Attribute mode = use.attributes[0];
  if (indices.rank() != 2)
    fail(ErrorKind::value, use.op.name, ": indices must be (bags, length), got ", indices.shape());
  if (scales && mode != kSum)
    fail(ErrorKind::value, use.op.name, ": per_sample_weights are for mode='sum'");
  if (scales && !(scales.shape() == indices.shape()))
    fail(ErrorKind::value, use.op.name, ": per_sample_weights ", scales.shape(),
         " must have the shape of the indices ", indices.shape());
  Tensor rows = rows_at(weight, indices);
  if (scales) rows = rows * expand_dims(scales, -1);
  const Tensor counted = padding == kNone ? Tensor() : counts(indices, padding);
  if (mode == kMax) {
    if (indices.size(1) == 0) {
      out[0] = zeros({indices.size(0), weight.size(1)}, weight.dtype());
      return;
    }
    if (!counted) {
      out[0] = max(rows, {1}, false);
      return;
    }
    constexpr double kLowest = -std::numeric_limits<double>::infinity();
    const Tensor highest = max(where(expand_dims(counted, -1), rows, Scalar(kLowest)), {1}, false);
    // A bag of padding alone is empty: 0.
    const Tensor some = expand_dims(any(counted, {1}, false), -1);
    out[0] = where(some, highest, 0);
    return;
  }
  if (counted) rows = where(expand_dims(counted, -1), rows, 0);
  const Tensor sums = sum(rows, {1}, false);
  if (mode == kSum) {
    out[0] = sums;
    return;
  }
  if (!counted) {
    out[0] = sums / Scalar(static_cast<double>(std::max<int64_t>(indices.size(1), 1)));
    return;
  }
  const Tensor lengths = maximum(sum(astype(counted, weight.dtype()), {1}, true), 1);
  out[0] = sums / lengths;
}

}  // namespace

constexpr OpRecord kEmbedding = {
    .name = "embedding",
    .signature = "(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor",
    .help =
        "Rows of weight (rows, features) at the integers of input, of any shape: input.shape + "
        "(features,).\n"
        "The row padding_idx gets no gradient. Negative indices count from the end. Raises "
        "IndexError for indices out of range.\n"
        "Shapes: weight (rows, features), input of any shape; the result is (*input.shape, "
        "features).\n"
        "Types: all. Result: the same type.\n"
        "Raises TypeError for indices that are not integers, ValueError for a weight of other than "
        "2 dimensions and a padding_idx out of range.\n"
        "Source: PyTorch's torch.nn.functional.embedding.",
    .flags = kFunction,
    .body = embedding_body};
constexpr OpRecord kEmbeddingBag = {
    .name = "embedding_bag",
    .signature =
        "(input: Tensor, weight: Tensor, per_sample_weights: Tensor | None = None, "
        "mode: 'sum' | 'mean' | 'max' = 'mean', padding_idx: int | None = None) -> Tensor",
    .help =
        "Rows of weight (rows, features) at the indices of each bag, a row of input (bags, "
        "length), summed up, averaged or their largest: (bags, features).\n"
        "The row padding_idx does not count; per_sample_weights, of the shape of input, scale the "
        "rows of sums. Negative indices count from the end. Raises IndexError for indices out of "
        "range.\n"
        "Shapes: input and per_sample_weights (bags, length), weight (rows, features); the result "
        "is (bags, features).\n"
        "Types: floating, complex; integers and bool become the default floating type. Result: the "
        "same type.\n"
        "Raises ValueError for other shapes and for per_sample_weights of another mode than "
        "'sum'.\n"
        "Source: PyTorch's torch.nn.functional.embedding_bag.",
    .flags = kFunction,
    .body = embedding_bag_body};

}  // namespace tw
