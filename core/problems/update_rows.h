// The rows of updates.inc as numbers, for the tables of every device.
#pragma once

namespace tw {

enum class UpdateOp {
#define TW_UPDATE(name, ...) name,
#include "core/problems/updates.inc"
#undef TW_UPDATE
};
#define TW_UPDATE(...) +1
inline constexpr int kUpdateOps =
#include "core/problems/updates.inc"
    ;
#undef TW_UPDATE

inline constexpr int kMaxFactors = 10;

}  // namespace tw
