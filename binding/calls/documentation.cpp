// What a record's signature says of the errors that its function raises.
#include "binding/calls/documentation.h"

#include <string_view>
#include <vector>

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
  std::string text = "\nRaises TypeError ";
  if (!takes_all_types(op.help)) text += "for other element types and ";
  text += "for arguments that the signature does not take";
  if (kinds.axis) text += ", IndexError for an axis out of range";
  std::vector<std::string> values;
  if (kinds.axes) values.emplace_back("for an axis given twice");
  for (const Parameter& p : signature.parameters)
    if (!p.choices.empty()) values.push_back("for a " + p.name + " other than " + words_of(p));
  if (kinds.tensors > 1 || kinds.sequence) values.emplace_back("for tensors on different devices");
  if (kinds.device) values.emplace_back("for a device that is not there");
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? ", ValueError " : i + 1 == values.size() ? " and " : ", ") + values[i];
  return text + ".";
}

std::string errors_in_place(bool takes_others) {
  return std::string(
             "\nIn place it also raises RuntimeError for a leaf that requires grad while ops are "
             "recorded, ") +
         (takes_others ? "ValueError where the result is larger, " : "") +
         "TypeError where its type is none that the tensor takes.";
}

}  // namespace tw::binding
