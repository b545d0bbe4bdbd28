// The rows of pointwise.inc as data.
#include "core/problems/pointwise_rows.h"

namespace tw {

const PointwiseRow kPointwiseRows[kPointwiseOps] = {
#define TW_UNARY(name, types, result, formula, gradient, help) \
  {#name, 1, kind::types, PointwiseResult::result, #formula, {#gradient, "none", "none"}, help},
#define TW_BINARY(name, types, result, formula, ga, gb, help) \
  {#name, 2, kind::types, PointwiseResult::result, #formula, {#ga, #gb, "none"}, help},
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help) \
  {#name, 3, kind::types, PointwiseResult::result, #formula, {#ga, #gb, #gc}, help},
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};

PointwiseAccuracy accuracy_of(PointwiseOp op) {
  switch (op) {
#define TW_ACCURACY(row, float32, float64) \
  case PointwiseOp::row: return {float32, float64};
#include "core/problems/accuracy.inc"
#undef TW_ACCURACY
    default: return {};
  }
}

}  // namespace tw
