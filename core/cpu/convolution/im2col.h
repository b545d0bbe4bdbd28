// Convolution as products: blocks of the input are unfolded, one row for each element of the
// kernel, and multiplied by the matmul ladder (K. Chellapilla et al., "High performance
// convolutional neural networks for document processing", 2006). A block stays in cache; the whole
// unfolded matrix never exists.
#pragma once
#include "core/problems/convolution.h"

namespace tw {

double im2col_cost_ns(const ConvolutionProblem& problem);
void im2col_run(const ConvolutionProblem& problem);

}  // namespace tw
