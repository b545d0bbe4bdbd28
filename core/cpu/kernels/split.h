// Rung 7, split: float32 products from bfloat16 parts, on instructions that multiply bfloat16
// faster than float32. Compiled apart from the other rungs, once for each kind of such
// instructions.
#pragma once
#include <utility>

#include "core/cpu/matmul/split.h"
// clang-format off
#include "core/cpu/kernels/matmul/epilogue.h"
#include "core/cpu/kernels/matmul/tile.h"
#include "core/cpu/kernels/matmul/split.h"
#ifdef TW_SPLIT_TILES
#include "core/cpu/kernels/matmul/split_tiles.h"
#else
#include "core/cpu/kernels/matmul/split_vectors.h"
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
