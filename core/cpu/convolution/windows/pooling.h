// Pooling on raw pointers: windows of planes of up to three axes of space.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// One window along one axis: elements first, first + dilation, ... below past, of which a mean
// counts `counted`, padding included where it does.
struct PoolingWindow {
  std::int64_t first, past, counted;
};

// Missing axes come first and have size 1. All arrays are row-major; x and y are the sizes of the
// image and of the windows' results, whatever is read and written.
struct PoolingProblem {
  DType dtype;
  std::int64_t planes;
  std::int64_t x[3], kernel[3], y[3];
  std::int64_t stride[3];  // 0: the windows share the axis out (adaptive pooling)
  std::int64_t dilation[3], before[3];
  bool indexed, include_padding;
  std::int64_t divisor;  // 0: the number of elements
  const void* from;
  const std::int32_t* places;
  void* to;
  std::int32_t* indices;

  // Made before the loops run.
  const PoolingWindow* windows[3];
  std::int64_t padded[3];  // sizes of an image with its padding, where it is not x
  bool pads;
  bool gaps;   // some window has no element: dilation jumps from padding to padding
  bool lanes;  // a window's result a lane, else windows are taken one by one
};

// Of element i of the results' axis d.
PoolingWindow window_of(const PoolingProblem& p, int d, std::int64_t i);

// Elements of planes by their places, of which those below 0 stand for none.
struct PlaceProblem {
  DType dtype;
  std::int64_t planes, size, places;  // elements and places of a plane
  const void* from;
  const std::int32_t* at;
  void* to;
};

// The loops over one element type, over the planes from `first` to `past`. `scratch`: for max the
// padded copy of a plane; for mean a scale for each window of a row, and a row with its padding;
// for spread the same scales, a row, and a row of windows with zeros around it.
struct PoolingLoops {
  using Loop = void (*)(const PoolingProblem& problem, std::int64_t first, std::int64_t past,
                        void* scratch);
  Loop max, mean, spread;
};
struct PoolingTable {
  PoolingLoops float32, float64;
};

}  // namespace tw
