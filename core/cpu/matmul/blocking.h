// How a product is cut: blocks that fit the caches, and parts for the threads. Neither changes a
// bit of the result.
#pragma once
#include "core/cpu/matmul/matmul.h"

namespace tw {

// Terms added up in one go. Depends on k alone, so that neither threads nor a batch change the
// order of additions.
std::int64_t run_of(std::int64_t k, std::int64_t element_bytes);
// Columns of a full tile.
std::int64_t tile_columns(DType t);
// Whether C is best written around the caches: it is large, and with few terms a sum writing it is
// all that takes time.
bool streams_result(const MatmulProblem& p);
// For the packed rung: the blocks, and the scratch one part needs.
MatmulBlocks blocks_of(const MatmulProblem& p);
std::size_t scratch_bytes(const MatmulProblem& p, const MatmulBlocks& blocks);
// Runs `run` on every part of the product, on all threads where that pays, each part with scratch
// of its own.
void run_parts(const MatmulProblem& p, const MatmulBlocks& blocks, MatmulTable::Run run,
               std::size_t scratch);

// The epilogue on a C that lacks nothing else, on all threads.
void apply_epilogue(const MatmulProblem& p);

// The packed rung on a MatmulProblem of float32 or float64, for rungs that leave some to it.
void run_packed(const MatmulProblem& problem);

}  // namespace tw
