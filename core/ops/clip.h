// Limits that may be left out.
#pragma once
#include <optional>

#include "core/tensor/operand.h"

namespace tw {

// The row `clip` with the end of the type's range in place of a missing bound. Of integers, a
// number beyond the type's range bounds nothing where it lies outside the wanted side.
Tensor clip_between(const Tensor& x, const std::optional<Operand>& low,
                    const std::optional<Operand>& high);

}  // namespace tw
