// Rungs winograd and winograd4: F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3), 2.25 and 4 times fewer
// multiplications, for kernels of 3 x 3 with stride 1. The larger tile loses a digit or two
// (docs/notes/networks-convolution.md).
#pragma once
#include "core/problems/convolution.h"

namespace tw {

bool winograd_accepts(const ConvolutionProblem& problem, std::string* reason);
double winograd_cost_ns(const ConvolutionProblem& problem);
void winograd_run(const ConvolutionProblem& problem);

bool winograd4_accepts(const ConvolutionProblem& problem, std::string* reason);
double winograd4_cost_ns(const ConvolutionProblem& problem);
void winograd4_run(const ConvolutionProblem& problem);

}  // namespace tw
