// Rung direct: sums over the kernel's taps in registers, with output channels in the lanes. The
// input is copied once, as pixels of channels with its padding; nothing is unfolded.
#pragma once
#include "core/problems/convolution.h"

namespace tw {

bool direct_accepts(const ConvolutionProblem& problem, std::string* reason);
double direct_cost_ns(const ConvolutionProblem& problem);
void direct_run(const ConvolutionProblem& problem);

// Parts of it: forward and input gradient; forward from few channels; weight gradient, and that of
// few input channels.
template <class T> void direct_sums(const ConvolutionProblem& problem);
bool direct_takes_pixels(const ConvolutionProblem& problem);
template <class T> void direct_pixels(const ConvolutionProblem& problem);
template <class T> void direct_weights(const ConvolutionProblem& problem);
bool direct_takes_dots(const ConvolutionProblem& problem);
template <class T> void direct_dots(const ConvolutionProblem& problem);

}  // namespace tw
