// The table of optimizations, and which of them are off.
#include "binding/module.h"
#include "binding/tensor/casters.h"
#include "core/base/error.h"
#include "core/base/optimizations.h"
#include "core/runtime/mode_changes.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

const OptimizationRow& row_of(const std::string& name) {
  if (const OptimizationRow* const row = find_optimization(name)) return *row;
  fail(ErrorKind::value, "no optimization '", name, "'");
}

nb::list describe_rows() {
  nb::list out;
  for (const OptimizationRow& row : kOptimizationRows) {
    nb::dict entry;
    entry["name"] = row.name;
    entry["reason"] = kReasonNames[static_cast<int>(row.reason)];
    entry["scope"] = kScopeNames[static_cast<int>(row.scope)];
    entry["same_bits"] = row.bits == Bits::same;
    entry["families"] = row.families;
    entry["how"] = row.how;
    entry["source"] = row.source;
    entry["on"] = !is_off(id_of(row));
    out.append(entry);
  }
  return out;
}

void enter_off(nb::handle block, const std::vector<std::string>& names) {
  ModeChanges changes;
  for (const std::string& name : names) changes.off.push_back(&row_of(name));
  enter_modes(block.ptr(), changes);
}

void set_off(const std::vector<std::string>& names, bool off) {
  OptimizationSet rows = rows_off_for_all();
  for (const std::string& name : names) {
    const Optimization row = id_of(row_of(name));
    off ? rows.add(row) : rows.remove(row);
  }
  turn_off_for_all(rows);
}

}  // namespace

void bind_optimizations(nb::module_& m) {
  m.def("_optimization_reasons",
        [] { return std::vector<std::string>(std::begin(kReasonNames), std::end(kReasonNames)); });
  m.def("_optimization_rows", describe_rows,
        "The rows of the table of optimizations, and whether each is on for this thread.");
  m.def("_enter_optimizations_off", enter_off, "block"_a, "names"_a);
  m.def("_set_optimizations_off", set_off, "names"_a, "off"_a);
  m.def("_unknown_optimizations", [] {
    std::vector<std::string> names;
    for (const std::string_view name : unknown_in_environment()) names.emplace_back(name);
    return names;
  });
}

}  // namespace tw::binding
