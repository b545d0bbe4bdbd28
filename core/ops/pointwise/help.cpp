// What the documentation of the rows of pointwise.inc says.
#include <cstdio>

#include "core/problems/complex_rows.h"
#include "core/ops/pointwise/pointwise.h"

namespace tw {

namespace {
std::string bound_of(double ulp) {
  if (ulp == 0.5) return "correctly rounded";
  char text[32];
  std::snprintf(text, sizeof text, "at most %g ulp", ulp);
  return text;
}
std::string error_of(const PointwiseRow& row) {
  const auto [single, wide] = accuracy_of(static_cast<PointwiseOp>(&row - kPointwiseRows));
  if (single == 0) return "";
  return "\nError on the CPU: " + bound_of(single) + " (float32), " + bound_of(wide) +
         " (float64).";
}
std::string types_of(const PointwiseRow& row) {
  const auto op = static_cast<PointwiseOp>(&row - kPointwiseRows);
  const int kinds = row.kinds | (is_complex_row(op) || differs_for_complex(op) ? kind::c : 0);
  if ((kinds & kind::any) == kind::any) return "\nTypes: all.";
  std::string text;
  constexpr std::pair<int, const char*> kNames[] = {
      {kind::b, "bool"}, {kind::i, "integer"}, {kind::f, "floating"}, {kind::c, "complex"}};
  for (const auto& [bit, name] : kNames)
    if (kinds & bit) text += (text.empty() ? "\nTypes: " : ", ") + std::string(name);
  if (kinds & kind::promotes) text += "; integers and bool become the default floating type";
  return text + ".";
}
std::string shapes_of(int tensors) {
  return tensors == 1 ? "\nShapes: x of any shape; the result has it."
                      : "\nShapes: operands broadcast; the result has their common shape.";
}
constexpr char kCommonType[] = " Result: the common type.";
// Numbers beside tensors take on their type.
std::string raises_of(const PointwiseRow& row, int tensors) {
  if (tensors == 1) return "";
  const auto op = static_cast<PointwiseOp>(&row - kPointwiseRows);
  const bool compares = op >= PointwiseOp::equal && op <= PointwiseOp::greater_equal;
  const bool stores =
      row.kinds & kind::i && !(row.kinds & kind::promotes) && !compares && op != PointwiseOp::clip;
  const char* overflow =
      ", OverflowError for a number that the integer type of the tensors does not hold";
  return std::string("\nRaises ValueError for shapes that do not broadcast") +
         (stores ? overflow : "") + ".";
}
}  // namespace

std::string help_of(const PointwiseRow& row, int tensors) {
  const bool truth = row.result == PointwiseResult::truth;
  std::string text = std::string(row.help) + "\n\nFormula: " + row.text + shapes_of(tensors) +
                     types_of(row) + (truth ? " Result: bool." : kCommonType) + error_of(row);
  text += raises_of(row, tensors);
  if (truth) return text;
  constexpr const char* kNames[] = {"x", "a", "b", "c"};
  for (int i = 0; i < row.arity; ++i)
    if (row.gradients[i].form != GradientForm::none)
      text += std::string("\nGradient of ") + kNames[row.arity == 1 ? 0 : i + 1] + ": " +
              row.gradients[i].text;
  return text;
}

}  // namespace tw
