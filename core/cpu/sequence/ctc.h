// Connectionist temporal classification: what its kernels are given.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

struct TargetsProblem {
  std::int64_t batch, width, steps, classes, blank;
  const std::int64_t *targets, *input_lengths, *target_lengths;
  std::int64_t* y;
};
// Sizes: log_probs (steps, batch, classes), targets (batch, width), beginnings (batch, steps, 2 *
// width + 1).
struct PathsProblem {
  DType dtype;
  std::int64_t steps, batch, classes, width, blank;
  const void* g;
  const void* log_probs;
  const std::int64_t *targets, *input_lengths, *target_lengths;
  void *losses, *beginnings;
  void* dx;
};

}  // namespace tw
