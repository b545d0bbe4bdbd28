// How the operands of a product lie in memory, and which way round it is best computed.
#pragma once
#include "core/cpu/isa/isa.h"
#include "core/cpu/matmul/matmul.h"

namespace tw {

inline const MatmulProblem& problem_of(const void* problem) {
  return *static_cast<const MatmulProblem*>(problem);
}
inline bool is_vectorised(DType t) { return t == DType::float32 || t == DType::float64; }
inline const MatmulTable::Ladder& ladder_of(DType t) {
  return active_kernels().matmul->floating[t == DType::float64];
}
inline int lanes_of(DType t) { return active_kernels().matmul->lanes[t == DType::float64]; }

// A stride along an extent of one element is never used: it may as well be the convenient one.
inline bool is_unit(std::int64_t stride, std::int64_t extent) { return stride == 1 || extent <= 1; }
// The micro-kernel reads rows of B as vectors where they lie.
inline bool reads_b_rows(const MatmulProblem& p) { return is_unit(p.b_col, p.n); }
inline bool packs_rows(const MatmulProblem& p) { return p.a_col != 1 && p.k > 1; }

// Cycles per element, measured on AVX-512: to copy rows of B into panels, to do so from columns, to
// gather strided rows of A.
inline constexpr double kPackRows = 0.4, kPackColumns = 0.5, kPackStrided = 0.8;

// Whether B's columns are copied one after the other, for dot products: a few of them would leave
// vectors of C mostly empty, long ones make up for adding lanes, and some rows for the copy, of
// which eight columns take twice as many.
inline bool copies_for_dots(std::int64_t m, std::int64_t n, std::int64_t k, int lanes) {
  if (n == 1) return true;
  const bool masked = active_kernels().matmul->masked_access;
  const bool fills = masked ? 4 * n >= 3 * lanes : n == lanes;
  return n <= 8 && k >= 16 * n && m >= (n == 8 ? 16 : 8) && !fills;
}

// C^T = B^T A^T.
MatmulProblem transposed(const MatmulProblem& p);
// Whether C^T = B^T A^T is the better way round: it may spare packing, pack the smaller matrix, or
// fill vectors that narrow rows of C would leave empty. The bits of the result are the same.
bool flips(const MatmulProblem& p);
inline MatmulProblem oriented(const MatmulProblem& p) { return flips(p) ? transposed(p) : p; }
// f(oriented problem), without a copy in the usual case: the choice asks this for every product.
template <class F> auto with_orientation(const void* problem, F f) {
  const MatmulProblem& p = problem_of(problem);
  return flips(p) ? f(transposed(p)) : f(p);
}

// Whole rows of a batch that shares B become rows of one product.
void fold_batch(MatmulProblem& p);

}  // namespace tw
