// Elements by their places along one axis: take, gather, and classes as rows.
#include <algorithm>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/move/scatter.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

// Each other axis is indexed by its own places.
void gather_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &index = use.in[1].tensor;
  const Tensor places = integer_index("gather", index);
  const int rank = x.rank(), axis = normalize_axis(use.attributes[0], std::max(rank, 1), "gather");
  bool fits = index.rank() == rank;
  for (int i = 0; fits && i < rank; ++i) fits = i == axis || index.size(i) <= x.size(i);
  if (!fits)
    fail(ErrorKind::value, "gather: index ", index.shape(), " does not fit ", x.shape(),
         ": it needs as many axes, none but axis ", axis, " longer");
  if (rank)
    out[0] = gather_along(x, places, axis, AlongUser::gather);
  else
    out[0] = reshape(gather_along(reshape(x, {1}), reshape(places, {1}), 0, AlongUser::gather), {});
}

}  // namespace

constexpr OpRecord kTake = {
    .name = "take",
    .signature = "(x: Tensor, indices: Tensor, axis: int | None = None) -> Tensor",
    .help =
        "Elements at integer indices of any shape, which replaces the axis.\n"
        "Only a tensor of one axis needs no `axis`: ValueError for others without.\n"
        "Shapes: x (..., n, ...), indices of any shape, which stands in place of the axis.\n"
        "Types: all. Result: the same type.\n"
        "Negative indices count from the end. Raises IndexError for indices out of range, "
        "TypeError for indices that are not integers.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &x = use.in[0].tensor, &indices = use.in[1].tensor;
      if (use.attributes.none(0) && x.rank() != 1)
        fail(ErrorKind::value, "take: axis is missing for ", x.shape(),
             "; of the flat tensor it is take(reshape(x, -1), indices)");
      const int axis =
          use.attributes.none(0) ? 0 : normalize_axis(use.attributes[0], x.rank(), "take");
      if (!is_integer(indices.dtype()))
        fail(ErrorKind::index, "take: indices must be integers, got ", name_of(indices.dtype()));
      std::vector<IndexItem> items(static_cast<std::size_t>(axis),
                                   {.kind = IndexItem::Kind::slice});
      items.push_back({.kind = IndexItem::Kind::tensor, .tensor = indices});
      out[0] = index(x, items);
    }};

constexpr OpRecord kGather = {
    .name = "gather",
    .signature = "(x: Tensor, axis: int, index: Tensor) -> Tensor",
    .help =
        "y[i, j, k] = x[i, index[i, j, k], k] for axis 1: the index has the shape of the result, "
        "and no axis but this is longer than that of x.\n"
        "Negative indices count from the end. Raises IndexError for indices out of range, "
        "ValueError for other shapes.\n"
        "Shapes: x and index of as many dimensions; the result has index's shape.\n"
        "Types: all. Result: the same type.\n"
        "Raises TypeError for an index that is not integer.\n"
        "Source: PyTorch's torch.gather.",
    .flags = kFunction,
    .body = gather_body};

constexpr OpRecord kOneHot = {
    .name = "one_hot",
    .signature = "(indices: Tensor, num_classes: int, dtype: dtype = float32) -> Tensor",
    .help =
        "1 at each index along a new last axis, else 0.\n"
        "Shapes: indices of any shape; the result is (*indices.shape, num_classes).\n"
        "Types: integer. Result: dtype, by default float32.\n"
        "Raises IndexError for an index out of range, ValueError for a negative num_classes.\n"
        "Source: PyTorch's torch.nn.functional.one_hot.",
    .flags = kFunction | kConstant,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& indices = use.in[0].tensor;
      const Attribute classes = use.attributes[0];
      if (!is_integer(indices.dtype()))
        fail(ErrorKind::type, "one_hot: indices must be integers, got ", name_of(indices.dtype()));
      if (classes < 0) fail(ErrorKind::value, "one_hot: num_classes is negative: ", classes);
      const Tensor wide = checked_indices(indices, classes, kNone, Indexing::one_hot);
      const Tensor places = arange(0, Scalar(classes), 1, DType::int64);
      out[0] = astype(equal(expand_dims(wide, -1), places), use.attributes.dtype(1));
    }};

}  // namespace tw
