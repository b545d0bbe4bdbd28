// A checked GEMM call and its solution by the kernels that the engine uses.
#pragma once
#include "core/cpu/matmul/matmul.h"

namespace tw::blas {

// C = alpha A B + beta C. A and B are not read where alpha or k is zero, C not where beta is. Never
// throws: where the wanted rung cannot run, another does, and standard error tells once.
void solve(const MatmulProblem& problem) noexcept;

}  // namespace tw::blas
