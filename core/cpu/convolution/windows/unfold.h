// Between an input and its unfolded form: one line for each channel and element of the kernel, one
// column for each place of the output.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/problems/convolution.h"
#include "core/memory/scratch.h"

namespace tw {

// Places of the output that lie in one row of it, as one element of the kernel reads them: `lead`
// columns of padding, `inside` elements of one row of the input, `tail` columns of padding.
struct UnfoldedRun {
  std::int64_t to;    // first column of the unfolded form
  std::int64_t from;  // first element of the input, from the first image's channel on
  std::int32_t lead, inside, tail;
};

// The runs of places [first, first + count), counted through the whole batch: all of the kernel's
// first element, then all of its second one. They are the same for all channels.
class UnfoldedRuns {
 public:
  UnfoldedRuns(const ConvolutionProblem& p, std::int64_t first, std::int64_t count)
      : taps_(volume(p.kernel)),
        runs_((first + count - 1) / p.y[2] - first / p.y[2] + 1),
        memory_(taps_ * runs_ * sizeof(UnfoldedRun)) {
    for (std::int64_t tap = 0; tap < taps_; ++tap) find(p, first, count, tap);
  }
  // f(line, run, channel) for all lines of some channels, in order.
  template <class F> void each(std::int64_t channels, F f) const {
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t tap = 0; tap < taps_; ++tap)
        for (const UnfoldedRun* run = of(tap); run < of(tap + 1); ++run)
          f(c * taps_ + tap, *run, c);
  }

 private:
  UnfoldedRun* of(std::int64_t tap) const { return memory_.as<UnfoldedRun>() + tap * runs_; }
  void find(const ConvolutionProblem& p, std::int64_t first, std::int64_t count, std::int64_t tap) {
    const std::int64_t step = p.stride[2], image = p.in * volume(p.x);
    const std::int64_t z0 = tap / (p.kernel[1] * p.kernel[2]) * p.dilation[0] - p.before[0];
    const std::int64_t y0 = tap / p.kernel[2] % p.kernel[1] * p.dilation[1] - p.before[1];
    const std::int64_t x0 = tap % p.kernel[2] * p.dilation[2] - p.before[2];
    // Columns of the output that read within a row of the input.
    const std::int64_t low = x0 < 0 ? (step - 1 - x0) / step : 0;
    const std::int64_t high = p.x[2] > x0 ? (p.x[2] - x0 - 1) / step + 1 : 0;
    UnfoldedRun* run = of(tap);
    for (std::int64_t at = 0; at < count; ++run) {
      const std::int64_t row = (first + at) / p.y[2], column = (first + at) % p.y[2];
      const std::int64_t end = std::min(p.y[2], column + count - at);
      const std::int64_t z = row / p.y[1] % p.y[0] * p.stride[0] + z0;
      const std::int64_t y = row % p.y[1] * p.stride[1] + y0;
      const bool exists = z >= 0 && z < p.x[0] && y >= 0 && y < p.x[1];
      const std::int64_t begin = exists ? std::clamp(low, column, end) : end;
      const std::int64_t past = std::clamp(high, begin, end);
      const std::int64_t from =
          row / (p.y[0] * p.y[1]) * image + (z * p.x[1] + y) * p.x[2] + begin * step + x0;
      *run = {at, from, std::int32_t(begin - column), std::int32_t(past - begin),
              std::int32_t(end - past)};
      at += end - column;
    }
  }
  std::int64_t taps_, runs_;  // of a tap
  const Scratch memory_;
};

// lines[line * width + column], from x.
template <class T> void unfold(const ConvolutionProblem& p, const UnfoldedRuns& runs,
                               std::int64_t channels, const T* x, T* lines, std::int64_t width) {
  const std::int64_t step = p.stride[2], x_size = volume(p.x);
  runs.each(channels, [=](std::int64_t line, const UnfoldedRun& run, std::int64_t channel) {
    T* to = lines + line * width + run.to;
    const T* const from = x + channel * x_size + run.from;
    for (int i = 0; i < run.lead; ++i) *to++ = 0;
    if (step == 1)
      std::memcpy(to, from, run.inside * sizeof(T));
    else
      for (int i = 0; i < run.inside; ++i) to[i] = from[i * step];
    to += run.inside;
    for (int i = 0; i < run.tail; ++i) *to++ = 0;
  });
}

// Its transpose: adds every element of the lines to what it was read from.
template <class T> void fold(const ConvolutionProblem& p, const UnfoldedRuns& runs,
                             std::int64_t channels, const T* lines, std::int64_t width, T* x) {
  const std::int64_t step = p.stride[2], x_size = volume(p.x);
  runs.each(channels, [=](std::int64_t line, const UnfoldedRun& run, std::int64_t channel) {
    const T* const from = lines + line * width + run.to + run.lead;
    T* const to = x + channel * x_size + run.from;
    if (step == 1)
      for (int i = 0; i < run.inside; ++i) to[i] += from[i];
    else
      for (int i = 0; i < run.inside; ++i) to[i * step] += from[i];
  });
}

}  // namespace tw
