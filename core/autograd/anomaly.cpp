#include "core/autograd/anomaly.h"

#include <string>

#include "core/autograd/backward.h"
#include "core/autograd/origins.h"

namespace tw {

void refuse_nan(const Node& node, const Tensor* grads) {
  for (int i = 0; i < node.inputs; ++i)
    if (grads[i] && gradient_arithmetic().has_nan(grads[i]))
      fail(ErrorKind::runtime, "backward: the gradient of ", node.op, " by its input ", i,
           " has a NaN; the op ran ",
           *origin_of(node).line ? std::string("at ") + origin_of(node).line
                                 : "outside detect_anomaly, which notes the line");
}

}  // namespace tw
