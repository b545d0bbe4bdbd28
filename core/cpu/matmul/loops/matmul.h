// Matrix products: the ladder of kernels, from the definition to what runs at the machine's limit.
// Each rung is one file and adds one idea; read them in the order of the includes.
#pragma once
#include <utility>

#include "core/cpu/simd/lane_sums.h"
#include "core/cpu/matmul/matmul.h"
// clang-format off
#include "core/cpu/matmul/loops/epilogue.h"
#include "core/cpu/matmul/loops/naive.h"
#include "core/cpu/matmul/loops/tiled.h"
#include "core/cpu/matmul/loops/tile.h"
#include "core/cpu/matmul/loops/pack.h"
#include "core/cpu/matmul/loops/simd.h"
#include "core/cpu/matmul/loops/packed.h"
#include "core/cpu/matmul/loops/few_terms.h"
#include "core/cpu/matmul/loops/tile_column.h"
#include "core/cpu/matmul/loops/direct.h"
#include "core/cpu/matmul/loops/strassen.h"
#include "core/cpu/matmul/loops/complex.h"
// clang-format on

namespace tw::TW_ISA_NAME {

extern const MatmulTable matmul_table;
const MatmulTable matmul_table = {
    .naive =
        {
#define TW_ROW(type, id, text) naive<type>,
            TW_DTYPES(TW_ROW)
#undef TW_ROW
        },
    .floating = {{tiled<float>, simd<float>, packed<float>, direct<float>,
                  epilogue_of_result<float>},
                 {tiled<double>, simd<double>, packed<double>, direct<double>,
                  epilogue_of_result<double>}},
    .complex = {{twice_rows<float>, complex_rows<float>, part_rows<float>, join_rows<float>,
                 complex_products<float>},
                {twice_rows<double>, complex_rows<double>, part_rows<double>, join_rows<double>,
                 complex_products<double>}},
    .sums32 = {sum_rows<float, 1>, sum_rows<float, -1>, join_rows<float>, blend_rows<float>,
               finite_rows<float>},
    .sums64 = {sum_rows<double, 1>, sum_rows<double, -1>, join_rows<double>, blend_rows<double>,
               finite_rows<double>},
    .lanes = {kLanes<float>, kLanes<double>},
    .tile_rows = kTileRows[kTileVectors - 1],
    .tile_vectors = kTileVectors,
    .max_tile_rows = kMaxTileRows,
    .long_row_terms = kLongRowTerms,
    .short_row_terms = kShortRowTerms,
    .masked_access = kMaskedAccess,
};

}  // namespace tw::TW_ISA_NAME
