// Rung depthwise: groups of one channel, a plane at a time, with pixels in the lanes.
#pragma once
#include "core/cpu/convolution.h"

namespace tw {

bool depthwise_accepts(const ConvolutionProblem& problem, std::string* reason);
double depthwise_cost_ns(const ConvolutionProblem& problem);
void depthwise_run(const ConvolutionProblem& problem);

}  // namespace tw
