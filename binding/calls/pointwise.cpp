// The pointwise table, for those who read it from Python.
#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/ops/pointwise/pointwise.h"

namespace tw::binding {

namespace {

nb::dict describe_row(const PointwiseRow& row) {
  nb::dict out;
  out["name"] = row.name;
  out["arity"] = row.arity;
  out["formula"] = row.formula;
  out["truth"] = row.result == PointwiseResult::truth;
  nb::list kinds, gradients;
  const std::pair<int, const char*> names[] = {
      {kind::b, "bool"}, {kind::i, "integer"}, {kind::f, "floating"}, {kind::c, "complex"}};
  for (const auto& [bit, name] : names)
    if (row.kinds & bit) kinds.append(name);
  for (int i = 0; i < row.arity; ++i) gradients.append(row.gradients[i]);
  out["kinds"] = kinds;
  out["promotes"] = (row.kinds & kind::promotes) != 0;
  out["gradients"] = gradients;
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
