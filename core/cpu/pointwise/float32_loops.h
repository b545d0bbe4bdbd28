// The pointwise rows and their gradients in float32.
#pragma once
#include "core/cpu/pointwise/pointwise_loops.h"

namespace tw::TW_ISA_NAME {

extern const PointwiseTable pointwise_float32_table;
constexpr PointwiseTable pointwise_float32_table = make_pointwise_table<float>();

}  // namespace tw::TW_ISA_NAME
