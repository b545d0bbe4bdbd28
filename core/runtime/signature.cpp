// A parser for the few forms that signatures have.
#include "core/runtime/signature.h"

#include <string_view>

#include "core/base/error.h"

namespace tw {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Cuts at a separator that is in no bracket.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (depth == 0 && text[i] == separator)) {
      const std::string_view part = trimmed(text.substr(start, i - start));
      if (!part.empty()) parts.push_back(part);
      start = i + 1;
    } else {
      depth += (text[i] == '[' || text[i] == '(') - (text[i] == ']' || text[i] == ')');
    }
  }
  return parts;
}

ParameterKind kind_of(std::string_view type) {
  constexpr std::pair<const char*, ParameterKind> kKinds[] = {
      {"Tensor", ParameterKind::tensor},    {"Operand", ParameterKind::operand},
      {"Number", ParameterKind::number},    {"Sequence[Tensor]", ParameterKind::tensors},
      {"int", ParameterKind::integer},      {"Diagonal", ParameterKind::diagonal},
      {"float", ParameterKind::real},       {"bool", ParameterKind::flag},
      {"dtype", ParameterKind::dtype},      {"Shape", ParameterKind::shape},
      {"Axes", ParameterKind::axes},        {"Generator", ParameterKind::generator},
      {"Device", ParameterKind::device},    {"grad", ParameterKind::grad},
      {"in_place", ParameterKind::in_place}};
  for (const auto& [name, kind] : kKinds)
    if (type == name) return kind;
  if (type.front() == '\'') return ParameterKind::choice;
  fail(ErrorKind::value, "signature: no type '", std::string(type), "'");
}

Parameter parse_parameter(std::string_view text, bool keyword_only) {
  Parameter out;
  out.keyword_only = keyword_only;
  const std::size_t colon = text.find(':');
  out.name = trimmed(text.substr(0, colon));
  std::string_view type = text.substr(colon + 1);
  const std::size_t equals = type.find('=');
  if (equals != type.npos) {
    out.has_default = true;
    out.default_text = trimmed(type.substr(equals + 1));
    type = type.substr(0, equals);
  }
  for (std::string_view part : split(type, '|')) {
    if (part.back() == '!') {
      out.written = true;
      part.remove_suffix(1);
    }
    if (part == "None") {
      out.optional = true;
      continue;
    }
    const ParameterKind kind = kind_of(part);
    if (kind == ParameterKind::choice) out.choices.emplace_back(part.substr(1, part.size() - 2));
    if (out.type.empty()) out.kind = kind;
    out.type += (out.type.empty() ? "" : " | ") + std::string(part);
  }
  return out;
}

Signature parse(const char* signature) {
  Signature out;
  const std::string_view text = signature;
  const std::size_t arrow = text.rfind("->");
  out.returns = trimmed(text.substr(arrow + 2));
  const std::string_view inside = text.substr(1, text.rfind(')', arrow) - 1);
  bool keyword_only = false;
  for (const std::string_view part : split(inside, ',')) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Parameter& parameter = out.parameters.emplace_back(parse_parameter(part, keyword_only));
    parameter.slot = parameter.is_operand()     ? out.operands++
                     : parameter.is_attribute() ? out.attributes++
                                                : 0;
    out.sequences += parameter.kind == ParameterKind::tensors;
  }
  return out;
}

}  // namespace

const Signature& signature_of(const OpRecord& op) {
  const Signature* parsed = op.parsed.load(std::memory_order_acquire);
  if (parsed) [[likely]]
    return *parsed;
  auto* const made = new Signature(parse(op.signature));  // as long as the record lives
  if (op.parsed.compare_exchange_strong(parsed, made)) return *made;
  delete made;
  return *parsed;
}

const char* parameter_name(const OpRecord& op, int operand) {
  for (const Parameter& parameter : signature_of(op).parameters)
    if (parameter.is_operand() && parameter.slot == operand) return parameter.name.c_str();
  return "input";
}

}  // namespace tw
