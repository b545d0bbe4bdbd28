// Images of another size on raw pointers: each axis is a band matrix, a few neighbouring elements
// for each element of the result.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/dtype.h"
#include "core/problems/attribute_values.h"

namespace tw {

// Element j along an axis is the sum over t of weights[t * to + j] times element first[j] + t, all
// of which exist. What has weight 0 does not count, whatever it is.
struct ResampleAxis {
  std::int64_t from, to;
  int taps;
  bool same;  // nothing changes along this axis
  const std::int32_t* first;
  const void* weights;  // of the problem's type
};

// Missing axes come first and have size 1.
struct ResampleProblem {
  DType dtype;
  std::int64_t planes;
  std::int64_t image[3], size[3];
  double scale[3];  // elements of the image to one of the size; 0: as the sizes say
  ResampleMethod method;
  bool align_corners, antialias, transposed;
  const void* from;
  void* to;

  // Made before the loops run.
  ResampleAxis axes[3];
};

// The band matrix of an axis: row j is weights[j * taps + t] for element first[j] + t.
struct ResampleBands {
  std::int64_t from = 0, to = 0;
  std::int64_t taps = 1;
  std::vector<std::int64_t> first;
  std::vector<double> weights;

  ResampleBands(std::int64_t from, std::int64_t to, std::int64_t taps)
      : from(from),
        to(to),
        taps(taps),
        first(static_cast<std::size_t>(to)),
        weights(static_cast<std::size_t>(to * taps)) {}
  double& weight(std::int64_t j, std::int64_t t) {
    return weights[static_cast<std::size_t>(j * taps + t)];
  }
  double weight(std::int64_t j, std::int64_t t) const {
    return weights[static_cast<std::size_t>(j * taps + t)];
  }
  std::int64_t& start(std::int64_t j) { return first[static_cast<std::size_t>(j)]; }
  std::int64_t start(std::int64_t j) const { return first[static_cast<std::size_t>(j)]; }
};
ResampleBands bands_of(const ResampleProblem& p, int axis);

// Sums of elements of planes at places, each times a weight: y[n, c, i] is the sum over k of
// weights[n, k, i] * x[n, c, places[n, k, i]], where a place below 0 stands for none. The three
// loops each make one of y, x and weights from the two others. All arrays are row-major.
struct TapsProblem {
  DType dtype;
  std::int64_t batch, channels, size, taps, points;
  const void *first, *second;  // in the order of y, x, weights, less what is made
  const std::int32_t* places;
  void* made;
};

// `rows`: over the rows of the result from `first` to `past`, of all planes. `scratch`: a pointer
// and a weight for each pair of taps of the first two axes, and a row of the image.
// `sums`, `products`: of one sample, the points from `first` to `past`. `spread`: the planes from
// `first` to `past`.
struct ResampleLoops {
  using Loop = void (*)(const ResampleProblem& problem, std::int64_t first, std::int64_t past,
                        void* scratch);
  using TapsLoop = void (*)(const TapsProblem& problem, std::int64_t sample, std::int64_t first,
                            std::int64_t past);
  Loop rows;
  TapsLoop sums, products;
  void (*spread)(const TapsProblem& problem, std::int64_t first, std::int64_t past);
};
struct ResampleTable {
  ResampleLoops float32, float64;
};

}  // namespace tw
