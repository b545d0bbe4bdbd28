// Rung strassen: recursion over the packed rung, which the driver (strassen.cpp) puts together.
#pragma once
#include "core/cpu/matmul.h"

namespace tw {

// Estimated nanoseconds of the packed rung on one thread.
double packed_ns(const MatmulProblem& p);

struct StrassenCost {
  double products_ns, sums_ns;
};
StrassenCost strassen_cost(const MatmulProblem& p);
void run_strassen(const MatmulProblem& p);

}  // namespace tw
