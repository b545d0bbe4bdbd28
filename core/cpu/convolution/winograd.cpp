#include "core/cpu/convolution/winograd.h"

#include "core/cpu/convolution/cost.h"
#include "core/cpu/convolution/winograd_tiles.h"

namespace tw {
namespace {

bool accepts(const ConvolutionProblem& p, std::string* reason) {
  const auto refuse = [&](const char* why) {
    if (reason) *reason = why;
    return false;
  };
  if (p.dtype != DType::float32) return refuse("for float32 only");
  if (p.kernel[0] != 1 || p.kernel[1] != 3 || p.kernel[2] != 3 || !spans_one_axis(p, 0) ||
      p.before[0] != 0)
    return refuse("for kernels of 3 x 3 only");
  for (int d = 0; d < 3; ++d)
    if (p.stride[d] != 1 || p.dilation[d] != 1) return refuse("for stride 1 and dilation 1 only");
  return fits_boxes(p) || refuse_long_rows(reason);
}
void run(const ConvolutionProblem& p, int m) {
  p.part == ConvolutionPart::weight_gradient ? winograd_weights(p, m) : winograd_sums(p, m);
}
// A channel of a tile transformed, and all planes of a weight from or to its nine taps.
struct TransformNs {
  double source, result, gradient, weight;
};
constexpr TransformNs kTransforms2 = {1.1, 0.5, 1.2, 4.0};
constexpr TransformNs kTransforms4 = {4.9, 2.6, 4.1, 5.0};

double cost_ns(const ConvolutionProblem& p, int m) {
  if (flops_of(p) == 0) return 2 * kCallNs;
  const WinogradShape s(p, m);
  const TransformNs& each = m == 2 ? kTransforms2 : kTransforms4;
  const bool weights = p.part == ConvolutionPart::weight_gradient;
  const double tiles = double(p.batch * p.groups) * double(s.rows) * double(s.columns);
  const double pairs = double(p.groups) * double(s.in) * double(s.out);
  const double bytes = pairs * s.planes * sizeof(float);
  const WeightPasses passes = weights ? passes_of_weights(p, m) : passes_of_sums(p, m);
  const double lanes = weights ? 2 * kToLanesNs : kToLanesNs + kFromLanesNs;
  const double panels = double(Panels(s.out, lanes_of(p)).count);
  const double tiles_of_sums =
      weights ? double(s.in) * double(p.groups) * std::max(1.0, passes.far / 2) : tiles;
  const double ns = lanes_ns(p, s.out, tiles * s.planes * double(s.in), kOneVectorEvenRows) +
                    kTileNs * s.planes * panels * tiles_of_sums / kTileRows +
                    tiles * (double(s.in) * each.source +
                             double(s.out) * (weights ? each.gradient : each.result)) +
                    tiles * m * m * lanes * double(s.in + s.out) / 2 +
                    pairs * passes.transforms * each.weight + far_ns(bytes, passes.far);
  return 2 * kCallNs + ns;
}

}  // namespace

bool winograd_accepts(const ConvolutionProblem& p, std::string* reason) {
  return accepts(p, reason);
}
double winograd_cost_ns(const ConvolutionProblem& p) { return cost_ns(p, 2); }
void winograd_run(const ConvolutionProblem& p) { run(p, 2); }

bool winograd4_accepts(const ConvolutionProblem& p, std::string* reason) {
  return accepts(p, reason);
}
double winograd4_cost_ns(const ConvolutionProblem& p) { return cost_ns(p, 4); }
void winograd4_run(const ConvolutionProblem& p) { run(p, 4); }

}  // namespace tw
