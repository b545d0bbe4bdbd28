// What a record's signature says of the errors that its function raises.
#pragma once
#include <string>

#include "core/runtime/op.h"

namespace tw::binding {

// "\nRaises TypeError for ..., IndexError for ...": those that follow from the kinds of the
// parameters and hold for every op that has such. An op's help names its own.
std::string errors_of(const OpRecord& op);

// What a form in place raises beside what its op does, which takes other tensors or does not.
std::string errors_in_place(bool takes_others);

}  // namespace tw::binding
