// The list of all ops.
#pragma once
#include <vector>

#include "core/runtime/op.h"

namespace tw {

#define TW_REDUCTION(name, ...) extern const OpRecord k_##name;
#include "core/problems/reductions.inc"
#undef TW_REDUCTION
#define TW_UPDATE(name, ...) extern const OpRecord k_##name;
#include "core/problems/updates.inc"
#undef TW_UPDATE
#define TW_OP(record) extern const OpRecord record;
#include "core/ops/engine/ops.inc"
#undef TW_OP

// In the order of the tables, then of ops.inc. Made on first use, not as modules load: the tables
// may come later. From then on the registry knows the ops' bodies.
const std::vector<const OpRecord*>& op_records();

}  // namespace tw
