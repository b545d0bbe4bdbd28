// Formulas as text.
#include "core/problems/formula.h"

#include <cmath>
#include <cstdio>

namespace tw::formula {

namespace {

std::string text_of(double number) {
  char text[32];
  const bool whole = std::fabs(number) < 1e9 && number == std::trunc(number);
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.17g", number);
  return number < 0 ? "(" + std::string(text) + ")" : text;
}

}  // namespace

Text text_of(const Formula& formula, const char* const* names) {
  Text text;
  std::vector<std::string>& values = text.values;
  for (int at = 0; at < formula.size; ++at) {
    const Node& node = formula.nodes[at];
    if (node.function == Function::input) {
      values.push_back(names[node.of[0]]);
      continue;
    }
    if (node.function == Function::number) {
      values.push_back(text_of(node.number));
      continue;
    }
    const FunctionFacts& known = facts(node);
    const auto operand = [&](int i) -> const std::string& { return values[node.of[i]]; };
    std::string call;
    if (known.symbol) {
      call = operand(0) + " " + known.symbol + " " + operand(1);
    } else if (node.function == Function::negative) {
      call = "-" + operand(0);
    } else {
      for (int i = 0; i < known.arity; ++i) call += (i ? ", " : "") + operand(i);
      call = std::string(known.name) + "(" + call + ")";
    }
    values.push_back("t" + std::to_string(at));
    text.steps += "const auto " + values.back() + " = " + call + "; ";
  }
  return text;
}

}  // namespace tw::formula
