// Rung strassen: recursion over the packed rung, which the driver (strassen.cpp) puts together.
#pragma once
#include "core/cpu/matmul/matmul.h"

namespace tw {

struct StrassenCost {
  double products_ns, sums_ns;
};
StrassenCost strassen_cost(const MatmulProblem& p);
void run_strassen(const MatmulProblem& p);

}  // namespace tw
