// The text of a record's signature, taken apart once: what frontends read arguments by, and what
// names operands in errors.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/op.h"

namespace tw {

// How a parameter is written in a signature:
//   Tensor   Operand (a tensor or a number)   Number   Sequence[Tensor]     operands
//   int  float  bool  dtype  Shape  Axes (one, several, None for all)       attributes
//   Diagonal: an int of any size, as beyond 64 bits all diagonals are empty
//   'a' | 'b' (the attribute is the place among them; behind a Shape, ~place)  Generator  Device
//   grad: whether the results require grad, and in_place: whether the result takes the place of
//   the first operand; frontends see to both
// with `!` behind what the op writes to, and `| None` where the argument may be None: an absent
// operand, or the attribute kNone.
enum class ParameterKind : std::uint8_t {
  tensor,
  operand,
  number,
  tensors,
  integer,
  diagonal,
  real,
  flag,
  dtype,
  shape,
  axes,
  choice,
  generator,
  device,
  grad,
  in_place
};

struct Parameter {
  std::string name, type, default_text;
  ParameterKind kind;
  bool optional = false;  // takes None
  bool has_default = false;
  bool keyword_only = false;
  bool written = false;  // the op writes to it
  int slot = 0;          // among operands, or among attributes
  std::vector<std::string> choices;
  bool is_attribute() const { return !is_operand() && kind < ParameterKind::grad; }
  bool is_operand() const { return kind <= ParameterKind::tensors; }
};

struct Signature {
  std::vector<Parameter> parameters;
  std::string returns;
  int operands = 0, attributes = 0, sequences = 0;  // sequences: the first operands
};

const Signature& signature_of(const OpRecord& op);

}  // namespace tw
