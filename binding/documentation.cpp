// What a record's signature says of the errors that its function raises.
#include "binding/documentation.h"

#include <string_view>

#include "core/runtime/signature.h"

namespace tw::binding {

namespace {

bool names_axis(const Parameter& p) {
  return p.kind == ParameterKind::axes ||
         (p.kind == ParameterKind::integer && p.name.find("axis") != std::string::npos);
}

// "'mean', 'sum' or 'none'"
std::string words_of(const Parameter& p) {
  std::string text = p.kind == ParameterKind::shape ? "numbers, " : p.optional ? "None, " : "";
  for (std::size_t i = 0; i < p.choices.size(); ++i)
    text += (i == 0 ? "'" : i + 1 == p.choices.size() ? " or '" : ", '") + p.choices[i] + "'";
  return text;
}

// Whether help says "Types: all" or names no types at all.
bool takes_all_types(std::string_view help) {
  const std::size_t at = help.find("\nTypes: ");
  return at == help.npos || help.substr(at).starts_with("\nTypes: all");
}

struct Kinds {
  int tensors = 0;
  bool sequence = false, axis = false, axes = false, device = false;
};

Kinds kinds_in(const Signature& signature) {
  Kinds kinds;
  for (const Parameter& p : signature.parameters) {
    kinds.tensors += p.kind == ParameterKind::tensor || p.kind == ParameterKind::operand;
    kinds.sequence |= p.kind == ParameterKind::tensors;
    kinds.axis |= names_axis(p);
    kinds.axes |= p.kind == ParameterKind::axes;
    kinds.device |= p.kind == ParameterKind::device;
  }
  return kinds;
}

}  // namespace

std::string errors_of(const OpRecord& op) {
  const Signature& signature = signature_of(op);
  const Kinds kinds = kinds_in(signature);
  std::string text = "\nRaises TypeError for ";
  if (!takes_all_types(op.help)) text += "other element types and for ";
  text += "arguments that the signature does not take";
  if (kinds.axis) text += ", IndexError for an axis out of range";
  if (kinds.axes) text += ", ValueError for an axis given twice";
  for (const Parameter& p : signature.parameters)
    if (!p.choices.empty()) text += ", ValueError for a " + p.name + " other than " + words_of(p);
  if (kinds.tensors > 1 || kinds.sequence) text += ", ValueError for tensors on different devices";
  if (kinds.device) text += ", ValueError for a device that is not there";
  return text + ".";
}

}  // namespace tw::binding
