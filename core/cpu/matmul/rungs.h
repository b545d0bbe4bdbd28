// What the rungs that stand on others share with the ladder's table.
#pragma once
#include <cstdint>

#include "core/cpu/matmul.h"

namespace tw {

// The packed rung on any problem of float32 or float64.
void run_packed(const MatmulProblem& p);
// Estimated nanoseconds of the packed rung on one thread.
double packed_ns(const MatmulProblem& p);

// ---- strassen ----
// A level is taken where no extent is smaller: halves of 1024 still run at the packed rung's full
// rate, and moving their sums costs less than the eighth of the multiplications it spares.
extern std::int64_t strassen_extent;
double strassen_ns(const MatmulProblem& p);
void run_strassen(const MatmulProblem& p);

}  // namespace tw
