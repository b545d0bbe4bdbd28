// Forward convolution and the input's gradient as one thing: each element of a result is a sum over
// taps of a source. With a stride the gradient's elements fall into classes, by their place modulo
// the stride, each with taps of its own.
#pragma once
#include <algorithm>

#include "core/cpu/convolution/layout.h"

namespace tw {

// Along one axis: the result's element q = residue + j * classes reads source element
// j * step + offset(tap, residue), for those taps that reach the residue.
struct GatherAxis {
  std::int64_t source, result, classes, step;
  std::int64_t taps, dilation, before, stride;
  bool forward;  // or the weights' gradient, which reads as forward does

  GatherAxis(const ConvolutionProblem& p, int d)
      : forward(p.part != ConvolutionPart::input_gradient) {
    taps = p.kernel[d], dilation = p.dilation[d], before = p.before[d], stride = p.stride[d];
    source = forward ? p.x[d] : p.y[d];
    result = forward ? p.y[d] : p.x[d];
    classes = forward ? 1 : std::min(stride, result);
    step = forward ? stride : 1;
  }
  bool reaches(std::int64_t tap, std::int64_t residue) const {
    return forward || (residue + before - tap * dilation) % stride == 0;
  }
  std::int64_t offset(std::int64_t tap, std::int64_t residue) const {
    return forward ? tap * dilation - before : (residue + before - tap * dilation) / stride;
  }
  // Elements of a class with j in [from, to).
  std::int64_t count(std::int64_t residue, std::int64_t from, std::int64_t to) const {
    return std::max<std::int64_t>(0, std::min(to, ceil_div(result - residue, classes)) - from);
  }
  // The bounds of all offsets; both 0 where no tap reaches anything.
  void bounds(std::int64_t* low, std::int64_t* high) const {
    *low = INT64_MAX, *high = INT64_MIN;
    for (std::int64_t r = 0; r < classes; ++r)
      for (std::int64_t k = 0; k < taps; ++k)
        if (reaches(k, r)) {
          *low = std::min(*low, offset(k, r));
          *high = std::max(*high, offset(k, r));
        }
    if (*low > *high) *low = *high = 0;
  }
};

}  // namespace tw
