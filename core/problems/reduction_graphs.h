// The formulas of reductions.inc as graphs: how a result is finished, and the gradient.
#pragma once
#include "core/problems/formula.h"

namespace tw {

enum class ReductionRow {
#define TW_REDUCTION(name, ...) name,
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
};

// What the formulas speak of, by number: the combination or the result, how many elements go into
// one, the operand, the gradient of the result.
enum ReductionInput : std::uint8_t { reduction_y, reduction_count, reduction_x, reduction_g };
inline constexpr int kReductionInputs = 4;

namespace formula {

// The reduced axes: known to a call, no value.
struct ReducedAxes {};
constexpr Traced magnitude_gradient(const Traced& g, const Traced& x) {
  return Traced::of(Function::magnitude_gradient, g, x);
}
constexpr Traced norm_gradient(const Traced& g, const Traced& x, const Traced& y) {
  return Traced::of(Function::norm_gradient, g, x, y);
}
constexpr Traced product_gradient(const Traced& g, const Traced& x, ReducedAxes) {
  return Traced::of(Function::product_gradient, g, x);
}
constexpr Traced extremum_gradient(const Traced& g, const Traced& x, const Traced& y, ReducedAxes) {
  return Traced::of(Function::extremum_gradient, g, x, y);
}

struct ReductionGraphs {
  Graph finish, gradient;
};
inline constexpr ReductionGraphs kReductionGraphs[] = {
#define TW_TRACE(formula)                                                              \
  trace<kReductionInputs>([]([[maybe_unused]] Traced y, [[maybe_unused]] Traced count, \
                             [[maybe_unused]] Traced x, [[maybe_unused]] Traced g) {   \
    [[maybe_unused]] const ReducedAxes axes;                                           \
    return formula;                                                                    \
  })
#define TW_REDUCTION(name, parameters, types, result, of_none, combination, finish, gradient, \
                     help)                                                                    \
  {TW_TRACE(finish), TW_TRACE(gradient)},
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
#undef TW_TRACE
};

constexpr const ReductionGraphs& graphs_of(ReductionRow row) {
  return kReductionGraphs[static_cast<int>(row)];
}

}  // namespace formula
}  // namespace tw
