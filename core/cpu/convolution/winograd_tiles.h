// What the parts of rung winograd share: tiles of m x m of the output, read from a box of the
// source.
#pragma once
#include "core/base/cpu_info.h"
#include "core/cpu/convolution/layout.h"

namespace tw {

// Beyond this, transformed weights come back from memory: half of the last-level cache, of which
// one core of many has no more than a few tens of MiB to itself.
inline double far_weight_bytes() {
  constexpr std::int64_t kMost = 32 << 20;
  const std::int64_t bytes = cpu_info().l3_bytes;
  return double(bytes > 0 ? std::min(bytes, kMost) : kMost) / 2;
}

// A convolution of 3 x 3 and stride 1 from a source to a result: forward and weight gradient from x
// to y, the input's gradient from g to dx with the kernel turned.
struct WinogradShape {
  int m, n, planes;      // results and elements along an edge of a tile; n * n
  std::int64_t in, out;  // channels of a group
  std::int64_t source[3], result[3], low[3];
  std::int64_t rows, columns;  // of tiles

  WinogradShape(const ConvolutionProblem& p, int m) : m(m), n(m + 2), planes(n * n) {
    const bool back = p.part == ConvolutionPart::input_gradient;
    in = (back ? p.out : p.in) / p.groups;
    out = (back ? p.in : p.out) / p.groups;
    for (int d = 0; d < 3; ++d) {
      source[d] = back ? p.y[d] : p.x[d];
      result[d] = back ? p.x[d] : p.y[d];
      low[d] = d == 0 ? 0 : back ? p.before[d] - 2 : -p.before[d];
    }
    rows = ceil_div(result[1], m);
    columns = ceil_div(result[2], m);
  }
  // The source of rows [first, past) of tiles of some images.
  SourceBox box(std::int64_t images, std::int64_t first, std::int64_t past,
                std::int64_t pitch) const {
    return {{0, low[1] + first * m, low[2]},
            {1, (past - first) * m + 2, columns * m + 2},
            images,
            pitch};
  }
  // The same of the result.
  SourceBox result_box(std::int64_t images, std::int64_t first, std::int64_t past,
                       std::int64_t pitch) const {
    return {{0, first * m, 0}, {1, (past - first) * m, columns * m}, images, pitch};
  }
};

// Where the tiles of a box begin, from `step` squares on to the next.
inline std::int64_t place_tiles(const WinogradShape& s, const SourceBox& box, std::int64_t rows,
                                std::int32_t* at) {
  std::int64_t tiles = 0;
  for (std::int64_t i = 0; i < box.images; ++i)
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < s.columns; ++x)
        at[tiles++] =
            static_cast<std::int32_t>(i * box.image_step() + box.place(0, y * s.m, x * s.m));
  return tiles;
}

// From plane to plane: a power of two would put the same place of all planes into one set of the
// cache.
constexpr std::int64_t kPlanePadding = 48;

inline const WinogradLoops& winograd_loops(int m) {
  return m == 2 ? convolution_table().winograd2 : convolution_table().winograd4;
}

void winograd_sums(const ConvolutionProblem& problem, int m);
void winograd_weights(const ConvolutionProblem& problem, int m);

// How often all weights are transformed, or turned back, and how often they then pass between a
// core and what is behind its second-level cache.
struct WeightPasses {
  double transforms, far;
};
WeightPasses passes_of_sums(const ConvolutionProblem& p, int m);
WeightPasses passes_of_weights(const ConvolutionProblem& p, int m);

}  // namespace tw
