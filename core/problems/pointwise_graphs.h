// The formulas of pointwise.inc and their gradients as graphs, known while kernels compile.
#pragma once
#include "core/problems/formula.h"
#include "core/problems/pointwise_rows.h"

namespace tw::formula {

// By row: its formula, `value`, and the gradient by each operand, `gradient[0]` and so on.
template <PointwiseOp> struct PointwiseGraphs;

#define TW_TRACE(formula)                                                          \
  trace<kPointwiseInputs>([]([[maybe_unused]] Traced a, [[maybe_unused]] Traced b, \
                             [[maybe_unused]] Traced c, [[maybe_unused]] Traced y, \
                             [[maybe_unused]] Traced g) {                          \
    [[maybe_unused]] const Traced x = a;                                           \
    return formula;                                                                \
  })
#define TW_UNARY(name, types, result, formula, ga, help)             \
  template <> struct PointwiseGraphs<PointwiseOp::name> {            \
    static constexpr Graph value = TW_TRACE(formula);                \
    static constexpr Graph gradient[kMaxRowInputs] = {TW_TRACE(ga)}; \
  };
#define TW_BINARY(name, types, result, formula, ga, gb, help)                      \
  template <> struct PointwiseGraphs<PointwiseOp::name> {                          \
    static constexpr Graph value = TW_TRACE(formula);                              \
    static constexpr Graph gradient[kMaxRowInputs] = {TW_TRACE(ga), TW_TRACE(gb)}; \
  };
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help)                               \
  template <> struct PointwiseGraphs<PointwiseOp::name> {                                        \
    static constexpr Graph value = TW_TRACE(formula);                                            \
    static constexpr Graph gradient[kMaxRowInputs] = {TW_TRACE(ga), TW_TRACE(gb), TW_TRACE(gc)}; \
  };
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
#undef TW_TRACE

constexpr GradientForm form_of(const Graph& gradient) {
  return gradient.size() == 0          ? GradientForm::none
         : is_number(gradient, 0)      ? GradientForm::zero
         : is_input(gradient, input_g) ? GradientForm::pass
                                       : GradientForm::formula;
}

}  // namespace tw::formula
