// The pointwise table, for those who read it from Python.
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/ops/pointwise/pointwise.h"

namespace tw::binding {

namespace {

// Steps: (function, indices of its operands), ("input", its name), ("number", its value).
nb::list describe_graph(const formula::Formula& graph, int arity) {
  const char* const names[kPointwiseInputs] = {arity == 1 ? "x" : "a", "b", "c", "y", "g"};
  nb::list steps;
  for (int at = 0; at < graph.size; ++at) {
    const formula::Node& node = graph.nodes[at];
    nb::list step;
    step.append(formula::facts(node).name);
    if (node.function == formula::Function::input) step.append(names[node.of[0]]);
    if (node.function == formula::Function::number) step.append(node.number);
    for (int i = 0; i < formula::operands_of(node); ++i) step.append(node.of[i]);
    steps.append(nb::tuple(step));
  }
  return steps;
}

nb::dict describe_row(const PointwiseRow& row) {
  nb::dict out;
  out["name"] = row.name;
  out["arity"] = row.arity;
  out["formula"] = row.text;
  out["truth"] = row.result == PointwiseResult::truth;
  out["graph"] = describe_graph(row.graph, row.arity);
  nb::list kinds, gradients, graphs;
  const std::pair<int, const char*> names[] = {
      {kind::b, "bool"}, {kind::i, "integer"}, {kind::f, "floating"}, {kind::c, "complex"}};
  for (const auto& [bit, name] : names)
    if (row.kinds & bit) kinds.append(name);
  for (int i = 0; i < row.arity; ++i) {
    gradients.append(row.gradients[i].text);
    graphs.append(describe_graph(row.gradients[i].graph, row.arity));
  }
  out["kinds"] = kinds;
  out["promotes"] = (row.kinds & kind::promotes) != 0;
  out["gradients"] = gradients;
  out["gradient_graphs"] = graphs;
  out["help"] = row.help;
  const PointwiseAccuracy accuracy = accuracy_of(static_cast<PointwiseOp>(&row - kPointwiseRows));
  if (accuracy.float32 > 0) out["ulp"] = nb::make_tuple(accuracy.float32, accuracy.float64);
  return out;
}

}  // namespace

void bind_pointwise(nb::module_& m) {
  m.def(
      "pointwise_table",
      [] {
        nb::list rows;
        for (const PointwiseRow& row : kPointwiseRows) rows.append(describe_row(row));
        return rows;
      },
      "The rows of the pointwise op table, as dictionaries.");
}

}  // namespace tw::binding
