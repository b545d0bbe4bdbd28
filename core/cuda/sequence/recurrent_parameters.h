// What the kernels of recurrent.cuh are given.
#pragma once
#include "core/cuda/prelude/parameters.h"
#include "core/problems/attribute_values.h"

namespace tw::cuda {

// Rows of the batch and units that a block of threads has.
constexpr int kStepRows = 32, kStepUnits = 16;

// Arrays of one step are row-major: (batch, blocks of hidden numbers); null where there are none.
struct Recurrent {
  int64_t batch, hidden;
  const void *weight, *bias;
  // Forward: the inputs' products, and the states before the step.
  const void *x, *h_before, *c_before;
  void *y, *c, *kept;
  // Backward: the gradient of the later step's products, null at the last one; those that are
  // given; what they give.
  const void* later;
  const void *dy, *dc, *dkept;
  void *dx, *dproducts, *dh, *dcell;
  int64_t only_states;  // no step is left: the product alone, which is the first states' gradient
};

}  // namespace tw::cuda
