// Missing axes of space come first and have size 1.
#include "core/problems/convolution.h"

namespace tw {
namespace {

using std::int64_t;

void copy_sizes(const Meta& from, int64_t (&to)[3]) {
  const int axes = from.rank() - 2;
  for (int d = 0; d < 3; ++d) to[d] = d < 3 - axes ? 1 : from.size(d + axes - 1);
}
void copy_words(List from, int64_t otherwise, int64_t (&to)[3]) {
  for (int d = 0; d < 3; ++d) to[d] = d < 3 - from.count ? otherwise : from[d + from.count - 3];
}

std::string sizes_text(const int64_t (&sizes)[3]) {
  std::string text;
  for (int d = 0; d < 3; ++d)
    if (sizes[d] != 1 || d == 2 || !text.empty())
      text += (text.empty() ? "" : "x") + std::to_string(sizes[d]);
  return text;
}
}  // namespace

// Attributes: stride, dilation, padding in front, sizes of the result, groups.
void set_up_convolution(const Call& call, ConvolutionPart part, LoweredConvolution& q) {
  static const char present = 0;  // until the address is known
  const bool forward = part == ConvolutionPart::forward;
  const Meta& x = part == ConvolutionPart::input_gradient ? call.out[0] : call.in[0];
  const Meta& w = part == ConvolutionPart::weight_gradient ? call.out[0] : call.in[1];
  const Meta& y = forward ? call.out[0] : call.in[part == ConvolutionPart::weight_gradient];
  q = {};
  ConvolutionProblem& p = q.problem;
  p.dtype = call.in[0].dtype;
  p.part = part;
  p.batch = x.size(0), p.in = x.size(1), p.out = y.size(1);
  p.groups = call.attributes[4];
  copy_sizes(x, p.x);
  copy_sizes(w, p.kernel);
  copy_sizes(y, p.y);
  copy_words(call.attributes.list(0), 1, p.stride);
  copy_words(call.attributes.list(1), 1, p.dilation);
  copy_words(call.attributes.list(2), 0, p.before);
  if (forward && !call.in[2].absent) p.bias = &present;
  q.results = call.out[0].count;
  q.has_terms = call.in[0].count > 0 && call.in[1].count > 0;
}
std::string describe_convolution(const void* lowered) {
  const ConvolutionProblem& p = static_cast<const LoweredConvolution*>(lowered)->problem;
  std::string text = std::string(name_of(p.dtype)) + " " + std::to_string(p.batch) + "x" +
                     std::to_string(p.in) + "x" + sizes_text(p.x) + " to " + std::to_string(p.out) +
                     "x" + sizes_text(p.y) + ", kernel " + sizes_text(p.kernel);
  if (volume(p.stride) != 1) text += ", stride " + sizes_text(p.stride);
  if (p.groups != 1) text += ", " + std::to_string(p.groups) + " groups";
  return p.bias ? text + " + bias" : text;
}

}  // namespace tw
