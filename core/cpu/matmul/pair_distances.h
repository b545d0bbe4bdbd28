// Distances of all rows of one matrix from all rows of another: what its kernels are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// How differences become a distance, by its order.
enum class Metric { count, magnitudes, squares, largest, powers };
inline constexpr int kMetrics = 5;

// Distances: y[i, j] from x1[i] and x2[j], terms along k. Gradients: y[i, k] from x1[i, k], w[i, j]
// and x2[j, k], terms along j. All arrays are row-major but for the distances y, whose steps are
// given.
struct PairProblem {
  DType dtype;
  Metric metric;
  bool swapped;  // x1 is the op's second operand
  double p;
  std::int64_t batches, n, m, k;
  std::int64_t row_step, column_step;
  const void *x1, *x2, *w;
  void* y;
};

}  // namespace tw
