// The definition of a convolution and of its gradients: one sum an element, in double.
#pragma once
#include "core/problems/convolution.h"

namespace tw {

double naive_cost_ns(const ConvolutionProblem& problem);
void naive_run(const ConvolutionProblem& problem);

}  // namespace tw
