// Convolutions: the loops under the rungs direct, winograd and depthwise.
#pragma once
#include "core/cpu/convolution/tiles.h"
#include "core/cpu/kernels/lanes.h"
// clang-format off
#include "core/cpu/kernels/convolution/tile.h"
#include "core/cpu/kernels/convolution/dots.h"
#include "core/cpu/kernels/convolution/winograd.h"
#include "core/cpu/kernels/convolution/depthwise.h"
// clang-format on

namespace tw::TW_ISA_NAME {
namespace {
template <class T> constexpr ConvolutionLoops convolution_loops = {
    multiply<T>,          to_lanes<T>, from_lanes<T>, depthwise<T>,
    depthwise_weights<T>, add_dots<T>, fold_dots<T>,  kLanes<T>};
}  // namespace

extern const ConvolutionTable convolution_table;
const ConvolutionTable convolution_table = {
    .float32 = convolution_loops<float>,
    .float64 = convolution_loops<double>,
    .winograd2 = winograd_loops<2>,
    .winograd4 = winograd_loops<4>,
    .tile_vectors = kTileVectors,
};

}  // namespace tw::TW_ISA_NAME
