// Rung depthwise: groups of one channel. Planes lie in the lanes of vectors, transposed to pixels
// and back: no row is too short for that, and a stride costs nothing.
#pragma once
#include "core/problems/convolution.h"

namespace tw {

bool depthwise_accepts(const ConvolutionProblem& problem, std::string* reason);
double depthwise_cost_ns(const ConvolutionProblem& problem);
void depthwise_run(const ConvolutionProblem& problem);

}  // namespace tw
