// Padded planes of one channel, for convolutions with pixels in the lanes.
#pragma once
#include <algorithm>

#include "core/cpu/convolution/axis.h"

namespace tw {

// Columns are apart by their place modulo the stride, so that those that one tap reads follow each
// other.
struct PlaneLayout {
  GatherAxis axes[2];
  std::int64_t low[2], size[2];
  std::int64_t phase, row;  // elements from phase to phase, from row to row
  std::int64_t taps, reach[2];

  PlaneLayout(const ConvolutionProblem& p, int lanes)
      : axes{{p, 1}, {p, 2}}, taps(p.kernel[1] * p.kernel[2]) {
    for (int d = 0; d < 2; ++d) {
      std::int64_t high;
      axes[d].bounds(&low[d], &high);
      reach[d] = high - low[d] + 1;
      size[d] = rows_of(d, ceil_div(axes[d].result, axes[d].classes));
    }
    // Room for a vector that begins in the last column.
    phase = round_up(ceil_div(size[1], axes[1].step), lanes) + lanes;
    row = phase * axes[1].step;
  }
  // Places of the source that `count` of the result read along axis d.
  std::int64_t rows_of(int d, std::int64_t count) const {
    return (count - 1) * axes[d].step + reach[d];
  }
  std::int64_t elements() const { return size[0] * row; }
  std::int64_t place(std::int64_t y, std::int64_t x) const {
    return y * row + x % axes[1].step * phase + x / axes[1].step;
  }
};

// Whether pixels belong into the lanes: input channels would leave most of them empty.
inline bool has_few_planes(const ConvolutionProblem& p) {
  constexpr std::int64_t few = 4;
  return p.in / p.groups <= few && spans_one_axis(p, 0) && p.kernel[0] == 1 && p.before[0] == 0;
}

// Where the pixels of each tap of each channel begin, in the order of the weights.
inline void find_taps(const PlaneLayout& at, std::int64_t channels, std::int64_t plane,
                      std::int32_t* taps_at) {
  const GatherAxis* axes = at.axes;
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t y = 0; y < axes[0].taps; ++y)
      for (std::int64_t x = 0; x < axes[1].taps; ++x)
        *taps_at++ =
            static_cast<std::int32_t>(c * plane + at.place(axes[0].offset(y, 0) - at.low[0],
                                                           axes[1].offset(x, 0) - at.low[1]));
}

// Every step-th element. A known step becomes vector code.
template <class T> void every(std::int64_t step, std::int64_t count, const T* from, T* to) {
  if (step == 2) {
    for (std::int64_t j = 0; j < count; ++j) to[j] = from[2 * j];
  } else {
    for (std::int64_t j = 0; j < count; ++j) to[j] = from[step * j];
  }
}

// `count` rows of the padded plane, from `first` on.
template <class T> void fill_plane(const PlaneLayout& at, std::int64_t first, std::int64_t count,
                                   const T* from, T* to) {
  const std::int64_t columns = at.axes[1].source, step = at.axes[1].step;
  const std::int64_t lead = std::clamp<std::int64_t>(-at.low[1], 0, at.size[1]);
  const std::int64_t past = std::clamp(columns - at.low[1], lead, at.size[1]);
  std::fill_n(to, count * at.row, T{0});
  for (std::int64_t y = 0; y < count; ++y) {
    const std::int64_t source = first + y + at.low[0];
    if (source < 0 || source >= at.axes[0].source) continue;
    T* const row = to + y * at.row;
    const T* const x = from + source * columns + at.low[1];
    if (step == 1) {
      std::copy(x + lead, x + past, row + lead);
      continue;
    }
    for (std::int64_t i = 0; i < step; ++i) {
      const std::int64_t j = ceil_div(std::max<std::int64_t>(lead - i, 0), step);
      const std::int64_t end = ceil_div(std::max(past - i, j * step), step);
      every(step, end - j, x + j * step + i, row + i * at.phase + j);
    }
  }
}

// With stride 1, a copy for each column of the kernel whose rows are as long as the result's: rows
// follow each other, so that vectors run on from one into the next.
struct ShiftedPlanes {
  GatherAxis axes[2];
  std::int64_t low, height, width;  // rows of a copy, and their length

  ShiftedPlanes(const PlaneLayout& at, std::int64_t rows)
      : axes{at.axes[0], at.axes[1]},
        low(at.low[0]),
        height(at.rows_of(0, rows)),
        width(at.axes[1].result) {}
  std::int64_t copy() const { return height * width; }
  std::int64_t elements(std::int64_t channels) const { return channels * axes[1].taps * copy(); }

  template <class T> void fill(std::int64_t first, const T* from, T* to) const {
    const std::int64_t columns = axes[1].source;
    for (std::int64_t k = 0; k < axes[1].taps; ++k) {
      const std::int64_t shift = axes[1].offset(k, 0);
      const std::int64_t lead = std::clamp<std::int64_t>(-shift, 0, width);
      const std::int64_t past = std::clamp(columns - shift, lead, width);
      for (std::int64_t y = first + low; y < first + low + height; ++y, to += width) {
        const bool inside = y >= 0 && y < axes[0].source;
        std::fill_n(to, inside ? lead : width, T{0});
        if (!inside) continue;
        const T* const x = from + y * columns + shift;
        std::copy(x + lead, x + past, to + lead);
        std::fill(to + past, to + width, T{0});
      }
    }
  }
  void find_taps(std::int64_t channels, std::int32_t* taps_at) const {
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t y = 0; y < axes[0].taps; ++y)
        for (std::int64_t x = 0; x < axes[1].taps; ++x)
          *taps_at++ = static_cast<std::int32_t>((c * axes[1].taps + x) * copy() +
                                                 (axes[0].offset(y, 0) - low) * width);
  }
};

}  // namespace tw
