// What the rungs that stand on others share with the ladder's table.
#pragma once
#include "core/cpu/matmul.h"

namespace tw {

// The packed rung on any problem of float32 or float64.
void run_packed(const MatmulProblem& p);
// Estimated nanoseconds of the packed rung on one thread.
double packed_ns(const MatmulProblem& p);

// ---- strassen ----
struct StrassenCost {
  double products_ns, sums_ns;
};
StrassenCost strassen_cost(const MatmulProblem& p);
void run_strassen(const MatmulProblem& p);

}  // namespace tw
