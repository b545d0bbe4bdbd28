// Rung split: float32 products from bfloat16 parts. What the driver (split.cpp) and the units that
// are compiled for dot-product instructions (cpu/matmul/loops/split_unit.h) agree on.
#pragma once
#include <cstdint>

#include "core/cpu/matmul/matmul.h"
#include "core/runtime/registry.h"

namespace tw {

// Operands are packed as blocks of 16 lines (rows of A, columns of B) by 32 terms along k, 1 KiB
// for each part: what a tile register of AMX holds. Blocks follow each other along k, panels of 16
// lines behind that.
inline constexpr int kSplitLines = 16, kSplitTerms = 32;
inline constexpr int kSplitBlock = kSplitLines * kSplitTerms;

// Rows of A or columns of B, for one run along k.
struct SplitSource {
  const void* data;
  std::int64_t lines, terms;
  std::int64_t line, term;  // strides in elements
  bool bfloat16;            // else float32
  int parts;                // 3: high, middle, low; exact together
  float scale;              // a power of two that all elements are multiplied by
};

// What packing saw, as bits of magnitudes: infinity and NaN are the largest.
struct SplitRange {
  std::uint32_t largest;
  std::uint32_t below_smallest;  // the smallest one but zero, less one; all bits set where none
};

// C = alpha * sums + beta * C, C float32 or bfloat16; beta == 0 does not read C.
struct SplitResult {
  void* c;
  std::int64_t row, col;  // strides in elements
  bool bfloat16;
  double alpha, beta;
};

// One block of C from packed panels: `blocks` blocks along k.
struct SplitProduct {
  const std::uint16_t *a, *b;
  std::int64_t m, n, blocks;
  int parts;
  SplitResult result;
};

struct SplitTable {
  const char* name;
  int tile_rows, tile_columns;  // of the micro-kernel
  int run_terms[3];             // added up in one go, for one to three parts
  // Each line of a block: 32 terms. Each line of a block of columns: a pair of terms of 16 columns.
  void (*pack_rows)(const SplitSource& source, std::uint16_t* out, SplitRange* range);
  void (*pack_columns)(const SplitSource& source, std::uint16_t* out, SplitRange* range);
  void (*multiply)(const SplitProduct& product);
  void (*store)(std::int64_t m, std::int64_t n, const float* sums, std::int64_t sums_row,
                const SplitResult& result);
};

// The best of the machine for the instruction set in use, or null.
const SplitTable* split_backend();
// Whether this machine's parts are multiplied on tile registers (AMX), else on vectors.
bool splits_on_tiles();
// `parts` 3, 2 or 1: six, three or one partial product. float32 or bfloat16 problems.
void run_split(const SplitTable& backend, int parts, const MatmulProblem& problem);

// bf16x6, bf16x3, bf16.
inline constexpr int kSplitKernels = 3;
extern const Kernel split_kernels[kSplitKernels];

}  // namespace tw
