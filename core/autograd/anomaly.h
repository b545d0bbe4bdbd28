// Anomaly mode: nodes note the line of the program that made them, and a pass stops at the first
// gradient with a NaN, naming the op and its line.
#pragma once
#include "core/autograd/node.h"

namespace tw {

// Raises RuntimeError where a gradient of the node's inputs holds a NaN.
void refuse_nan(const Node& node, const Tensor* grads);

}  // namespace tw
