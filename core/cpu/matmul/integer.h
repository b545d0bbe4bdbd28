// The packed rung's functions for whole numbers and bools.
#pragma once
#include "core/base/thresholds.h"
#include "core/cpu/matmul/matmul.h"

namespace tw {

// Terms added up in one go, and the block of B that is packed for them: half of a common L2.
inline constexpr std::int64_t kIntegerRun = thresholds::kChainTerms,
                              kIntegerBlockBytes = thresholds::kBlockBytes;
// A block, and the rows of A beside it; a block's last columns fill up a vector.
inline constexpr std::size_t kIntegerScratchBytes =
    kIntegerBlockBytes + kIntegerRun * (64 + 8 * sizeof(std::uint64_t));

struct MatmulIntegerTable {
  MatmulTable::Run packed[9];  // by dtype: bool, int8 ... uint64
};

}  // namespace tw
