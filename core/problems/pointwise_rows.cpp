// The rows of pointwise.inc as data.
#include "core/problems/pointwise_rows.h"

#include "core/problems/pointwise_graphs.h"

namespace tw {

namespace {

template <PointwiseOp op> constexpr formula::Formula kValue =
    formula::kept<formula::PointwiseGraphs<op>::value>;

template <PointwiseOp op, int input> constexpr PointwiseGradient gradient_of(const char* text) {
  constexpr const formula::Graph& graph = formula::PointwiseGraphs<op>::gradient[input];
  constexpr auto reads = static_cast<std::uint8_t>(formula::inputs_of(graph) & ~(1u << input_g));
  return {formula::form_of(graph), reads, formula::kept<graph>, text};
}

}  // namespace

const PointwiseRow kPointwiseRows[kPointwiseOps] = {
#define TW_ROW(name, arity, types, result, formula) \
  #name, arity, kind::types, PointwiseResult::result, #formula, kValue<PointwiseOp::name>
#define TW_GRADIENT(name, input, text) gradient_of<PointwiseOp::name, input>(#text)
#define TW_UNARY(name, types, result, formula, ga, help) \
  {TW_ROW(name, 1, types, result, formula), {TW_GRADIENT(name, 0, ga)}, help},
#define TW_BINARY(name, types, result, formula, ga, gb, help) \
  {TW_ROW(name, 2, types, result, formula),                   \
   {TW_GRADIENT(name, 0, ga), TW_GRADIENT(name, 1, gb)},      \
   help},
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help)                 \
  {TW_ROW(name, 3, types, result, formula),                                        \
   {TW_GRADIENT(name, 0, ga), TW_GRADIENT(name, 1, gb), TW_GRADIENT(name, 2, gc)}, \
   help},
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
#undef TW_ROW
#undef TW_GRADIENT
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
