// What a record's signature says of the errors that its function raises.
#pragma once
#include <string>

#include "core/runtime/op.h"

namespace tw::binding {

// "\nRaises TypeError for ..., IndexError for ...": those that follow from the kinds of the
// parameters and hold for every op that has such. An op's help names its own.
std::string errors_of(const OpRecord& op);

// What a form in place raises beside what its op does.
inline constexpr char kErrorsInPlace[] =
    "\nIn place it also raises RuntimeError for a leaf that requires grad while ops are recorded, "
    "ValueError where the result is larger, TypeError where its type is none that the tensor "
    "takes.";

}  // namespace tw::binding
