// Convolutions as kernels of every device see them: the problem that each rung of their ladders
// solves, and the way from calls to it.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "core/runtime/op.h"

namespace tw {

enum class ConvolutionPart : std::uint8_t { forward, input_gradient, weight_gradient };

// One convolution (cross-correlation) of 1 to 3 axes as kernels see it: missing axes come first and
// have size 1. All arrays are row-major (batch, channels, depth, height, width); w is
// (out, in / groups, kernel...). No array is empty, and the result overlaps no other.
struct ConvolutionProblem {
  DType dtype;  // float32 or float64
  ConvolutionPart part;
  std::int64_t batch, groups, in, out;             // channels of all groups
  std::int64_t x[3], kernel[3], y[3];              // sizes of the input, the kernel, the output
  std::int64_t stride[3], dilation[3], before[3];  // `before`: padding in front; behind it follows
                                                   // from y, and may cut rows of x off
  // forward: x, w. input_gradient: g (shape of y), w. weight_gradient: x, g.
  const void *a, *b;
  const void* bias;  // forward: one number an output channel, or null
  void* result;      // forward: y. input_gradient: dx. weight_gradient: dw.
};

inline std::int64_t volume(const std::int64_t (&sizes)[3]) {
  return sizes[0] * sizes[1] * sizes[2];
}
// Multiplications and additions, those with padding included: each part has as many.
inline double flops_of(const ConvolutionProblem& p) {
  return 2 * double(p.batch) * double(p.out) * double(volume(p.y)) * double(p.in / p.groups) *
         double(volume(p.kernel));
}

// The ops, by part.
inline constexpr const char* kConvolutionOps[] = {"convolution", "convolution_input_gradient",
                                                  "convolution_weight_gradient"};

// A problem with what a result without terms needs: its elements, and whether there are terms.
struct LoweredConvolution {
  ConvolutionProblem problem;
  std::int64_t results;
  bool has_terms;
};
void set_up_convolution(const Call& call, ConvolutionPart part, LoweredConvolution& lowered);
template <ConvolutionPart part> void set_up_convolution(const Call& call, void* problem) {
  set_up_convolution(call, part, *static_cast<LoweredConvolution*>(problem));
}
template <int inputs> void bind_convolution(void* problem, void* const* at) {
  ConvolutionProblem& p = static_cast<LoweredConvolution*>(problem)->problem;
  p.a = at[0];
  p.b = at[1];
  if (p.bias) p.bias = at[2];
  p.result = at[inputs];
}
std::string describe_convolution(const void* lowered);

}  // namespace tw
