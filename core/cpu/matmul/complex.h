// Complex products as real ones, for every rung that multiplies real numbers.
#pragma once
#include "core/cpu/matmul/matmul.h"

namespace tw {

// How a complex product becomes a real one of the same value.
struct RealProduct {
  MatmulProblem complex;  // the product itself, transposed where that moves less
  MatmulProblem real;     // what a rung multiplies: no addresses, one matrix of the batch
  // Rows [Re A; Im A] times B as it lies, joined afterwards; else A as it lies times each row of B
  // twice.
  bool by_parts;
  bool copies;      // what is taken as it lies has no contiguous rows
  double moved_ns;  // to write what is rearranged, for one matrix
};
RealProduct as_real(const MatmulProblem& p);
// By a kernel's `run` on real problems.
void run_complex(const MatmulProblem& p, void (*run)(const void* problem));
// Of one row and one column, whose numbers lie one after the other; `conjugate`: of the row's
// conjugate.
void multiply_vectors(const MatmulProblem& p, bool conjugate);

}  // namespace tw
