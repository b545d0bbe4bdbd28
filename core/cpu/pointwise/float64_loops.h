// The pointwise rows and their gradients in float64.
#pragma once
#include "core/cpu/pointwise/pointwise_loops.h"

namespace tw::TW_ISA_NAME {

extern const PointwiseTable pointwise_float64_table;
constexpr PointwiseTable pointwise_float64_table = make_pointwise_table<double>();

}  // namespace tw::TW_ISA_NAME
