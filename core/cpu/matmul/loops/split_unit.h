// Rung 7, split: float32 products from bfloat16 parts, on instructions that multiply bfloat16
// faster than float32. Compiled apart from the other rungs, once for each kind of such
// instructions.
#pragma once
#include <utility>

#include "core/cpu/matmul/split.h"
// clang-format off
#include "core/cpu/matmul/loops/epilogue.h"
#include "core/cpu/matmul/loops/tile.h"
#include "core/cpu/matmul/loops/split.h"
#ifdef TW_SPLIT_TILES
#include "core/cpu/matmul/loops/split_tiles.h"
#else
#include "core/cpu/matmul/loops/split_vectors.h"
#endif
// clang-format on

namespace tw::TW_ISA_NAME {

extern const SplitTable split_table;
const SplitTable split_table = {
    .name = TW_SPLIT_NAME,
    .tile_rows = kSplitTileRows,
    .tile_columns = kSplitTileColumns,
    .run_terms = {kSplitRunOfOne, kSplitRun, kSplitRun},
    .pack_rows = pack_rows,
    .pack_columns = pack_columns,
    .multiply = multiply,
    .store = store_sums,
};

}  // namespace tw::TW_ISA_NAME
