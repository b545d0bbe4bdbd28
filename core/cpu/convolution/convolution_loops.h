// Convolutions: the loops under the rungs direct, winograd and depthwise.
#pragma once
#include "core/cpu/convolution/tiles.h"
#include "core/cpu/simd/rows.h"
// clang-format off
#include "core/cpu/convolution/tile_loops.h"
#include "core/cpu/convolution/dots_loops.h"
#include "core/cpu/convolution/winograd_loops.h"
#include "core/cpu/convolution/depthwise_loops.h"
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
