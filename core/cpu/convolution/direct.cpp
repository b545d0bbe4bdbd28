#include "core/cpu/convolution/direct.h"

#include "core/base/thresholds.h"
#include "core/cpu/convolution/cost.h"

namespace tw {

using std::int64_t;

bool direct_accepts(const ConvolutionProblem& p, std::string* reason) {
  return fits_boxes(p) || refuse_long_rows(reason);
}

namespace {

double pixels_ns(const ConvolutionProblem& p) {
  const double width = double(round_up(p.y[2], lanes_of(p)));
  const double rows = kTileRows / std::min(kTileRows, double(p.out / p.groups));
  const double slow = width > 2 * lanes_of(p) ? 1.1 : 1.4;  // tiles of few vectors
  const double wide = p.dtype == DType::float64 ? 2 : 1;
  return kToLanesNs * elements_of(p, p.x, p.in) +
         slow * rows * wide * width / double(p.y[2]) * flops_of(p) * ns_per_flop();
}
// Two loads of taps that cross lines for each of the tile's vectors leave a tenth unhidden.
double dots_ns(const ConvolutionProblem& p) {
  const double width = double(round_up(p.y[2], lanes_of(p)));
  const double wide = p.dtype == DType::float64 ? 2 : 1;
  return kToLanesNs * elements_of(p, p.x, p.in) +
         1.15 * wide * width / double(p.y[2]) * flops_of(p) * ns_per_flop();
}
double weight_gradient_ns(const ConvolutionProblem& p) {
  const int64_t in = p.in / p.groups, out = p.out / p.groups;
  const double panels = double(Panels(out, lanes_of(p)).count), pixels = double(volume(p.y));
  const double rows = double(in) * double(volume(p.kernel));
  const double lines = double(p.batch) * pixels / double(p.y[2]);
  return lanes_ns(p, out, double(p.groups * p.batch) * pixels * rows) +
         kToLanesNs * (panels * elements_of(p, p.x, p.in) + elements_of(p, p.y, p.out)) +
         kPackWeightNs * weights_of(p) +
         kRunNs * double(p.groups) * panels * lines * rows / kTileRows;
}
double sums_ns(const ConvolutionProblem& p) {
  const bool forward = p.part == ConvolutionPart::forward;
  const int64_t in = p.in / p.groups, out = p.out / p.groups, channels = forward ? out : in;
  const auto& result = forward ? p.y : p.x;
  const double images = double(p.groups * p.batch),
               taps = double(volume(p.kernel)) * double(volume(p.y));
  const double panels = double(Panels(channels, lanes_of(p)).count);
  const double bytes = weights_of(p) * double(size_of(p.dtype));
  return lanes_ns(p, channels, images * taps * double(forward ? in : out)) +
         kToLanesNs * elements_of(p, forward ? p.x : p.y, forward ? p.in : p.out) +
         kFromLanesNs * elements_of(p, result, forward ? p.out : p.in) +
         kPackWeightNs * weights_of(p) + kRunNs * images * panels * taps / kTileRows +
         far_ns(bytes, 2 + double(p.batch) * double(volume(result)) / thresholds::kPiecePixels);
}

}  // namespace

double direct_cost_ns(const ConvolutionProblem& p) {
  const double ns = direct_takes_dots(p)                         ? dots_ns(p)
                    : p.part == ConvolutionPart::weight_gradient ? weight_gradient_ns(p)
                    : direct_takes_pixels(p)                     ? pixels_ns(p)
                                                                 : sums_ns(p);
  return kCallNs + ns;
}

namespace {
template <class T> void run(const ConvolutionProblem& p) {
  if (p.part == ConvolutionPart::weight_gradient)
    return direct_takes_dots(p) ? direct_dots<T>(p) : direct_weights<T>(p);
  direct_takes_pixels(p) ? direct_pixels<T>(p) : direct_sums<T>(p);
}
}  // namespace

void direct_run(const ConvolutionProblem& p) {
  p.dtype == DType::float64 ? run<double>(p) : run<float>(p);
}

}  // namespace tw
