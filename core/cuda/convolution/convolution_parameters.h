// What the kernels of convolution.cuh are given, and what their blocks have.
#pragma once
#include "core/cuda/prelude/parameters.h"

namespace tw::cuda {

// n / d is a multiplication and a shift for 0 <= n < 2^31 (T. Granlund, P. Montgomery, 1994).
struct Divisor {
  uint32_t factor, shift;
};

// How an index, row-major over (outer, three axes), becomes a place in `right`, and in the other
// array that it leads to: k in `left`, j in the result.
struct Walk {
  int64_t count, size[3];
  Divisor by[3];
  // In `right`: a step of outer, and of an axis the coordinate first + c * scale.
  int64_t outer, first[3], scale[3];
  int64_t other_outer, other_first, other_scale[3];
};

// Phases of a launch.
constexpr int kPhases = 4;

// Of T, the elements' type; void on the host.
template <class T> struct ConvolutionOf {
  const T *left, *right, *bias;
  T *result, *partial;  // partial: the sums of pieces of k, each as large as the result
  int64_t results, channels, rows;
  int64_t left_row, result_row, left_group, right_group, result_group;
  int64_t bounds[3], steps[3];  // of `right`
  int64_t pieces, terms;        // so many of k each
  Walk columns[kPhases], along[kPhases];
};

// Of rung implicit: terms of a tile, tiles that are in shared memory at once, and elements behind
// each row, which keep rows on different banks.
constexpr int kConvolutionDepth = 8, kConvolutionStages = 4, kConvolutionGap = 4;

// Where an index leads to, ready to be added up with the other index's.
template <int axes> struct alignas(16) ConvolutionPlace {
  int32_t other, offset, at[axes];
};
constexpr int place_bytes(int axes) {
  return axes == 3 ? sizeof(ConvolutionPlace<3>) : sizeof(ConvolutionPlace<2>);
}
// Of a block that has high x wide elements of the result, of so many axes and bytes of an element.
constexpr int convolution_shared_bytes(int high, int wide, int axes, int element_bytes) {
  return kConvolutionStages * kConvolutionDepth * (high + wide + 2 * kConvolutionGap) *
             element_bytes +
         place_bytes(axes) * (kConvolutionStages * kConvolutionDepth + wide);
}

}  // namespace tw::cuda
