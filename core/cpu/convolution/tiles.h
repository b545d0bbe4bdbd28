// What the drivers of the fast convolutions and the loops compiled for each instruction set agree
// on. Channels lie in the lanes of vectors: arrays are kept as pixels of channels while they are
// worked on.
#pragma once
#include <cstdint>

namespace tw {

// Terms that follow each other at fixed steps: offsets into a and b, and how many.
struct ConvolutionRun {
  std::int64_t a, b, length;
};

// c[i][0:columns] = or += the sum over runs and their terms l of
//   a[run.a + rows_at[i] + l * a_col] * b[run.b + l * b_row + 0:columns].
// With a_row, which is faster, it is the sum over l < run_count of a[i * a_row + l * a_col] *
// b[l * b_row + 0:columns]; with taps_at that of a[rows_at[i] + l] * b[taps_at[l] + 0:columns].
// b is readable in whole vectors. So for each of `planes` such products, whose operands lie at even
// steps.
struct ConvolutionBlock {
  const void *a, *b;
  void* c;
  const std::int32_t* rows_at = nullptr;
  std::int64_t rows;
  int columns;  // at most tile_vectors vectors
  std::int64_t a_row = 0, a_col, b_row, c_row;
  const ConvolutionRun* runs = nullptr;
  std::int64_t run_count;
  bool adds = false;
  const std::int32_t* taps_at = nullptr;
  std::int64_t planes = 1, a_plane = 0, b_plane = 0, c_plane = 0;
};

// Pixels [0, count) of channels that are `plane` apart, and where each begins in an array of pixels
// of channels, which has room for whole vectors: lanes without a channel become zero.
struct ConvolutionLanes {
  std::int64_t plane, channels, count;
  const std::int32_t* places;
};

// One Winograd transform of `tiles` tiles of vectors of channels. A square of the tile is at
// at[tile] + row * row_step + column * column_step, a plane of the transformed tiles at
// plane * plane_step + tile * tile_step.
struct WinogradTiles {
  std::int64_t tiles, channels;
  const std::int32_t* at;
  std::int64_t row_step, column_step;
  std::int64_t plane_step, tile_step;
};
struct WinogradLoops {
  // x's tiles to planes, for the product; its result to y's tiles.
  void (*input)(const WinogradTiles& tiles, const float* x, float* planes);
  void (*output)(const WinogradTiles& tiles, const float* planes, float* y);
  // Kernels of 3 x 3 to planes.
  void (*weights)(const WinogradTiles& tiles, const float* w, float* planes);
  // The transposes of the last two, for the weights' gradient.
  void (*output_gradient)(const WinogradTiles& tiles, const float* g, float* planes);
  void (*weights_gradient)(const WinogradTiles& tiles, const float* planes, float* dw);
};

// Rows and columns of one class of a depthwise convolution's result, as pixels of planes: elements
// from row to row, and pixels from column to column, of what is read and of the result.
struct DepthwisePixels {
  std::int64_t rows, columns;
  std::int64_t x_row, x_step, y_row, y_step;
};
// What each tap of the class reads, and where its weights are.
struct DepthwiseTaps {
  std::int64_t taps;
  const std::int32_t *at, *weights;
};

// For each channel and tap the products of pixels of `rows` rows of g, which follow each other, and
// those of x, `x_row` apart, added to the vector sums[channel][tap] lane by lane.
struct ConvolutionDots {
  const void *g, *x;
  const std::int32_t* taps_at;  // where the pixels of a tap begin in x
  void* sums;
  std::int64_t channels, taps, rows, columns;
  std::int64_t g_plane, x_row;
};

struct ConvolutionLoops {
  void (*multiply)(const ConvolutionBlock& block);
  void (*to_lanes)(const ConvolutionLanes& lanes, const void* from, void* to);
  // With `bias`, one number a channel, or null.
  void (*from_lanes)(const ConvolutionLanes& lanes, const void* from, const void* bias, void* to);
  // y = the sum over taps of w * x.
  void (*depthwise)(const DepthwisePixels& p, const DepthwiseTaps& taps, const void* x,
                    const void* w, void* y);
  // sums[tap] += the sum over pixels of g * x, where g lies as y does.
  void (*depthwise_weights)(const DepthwisePixels& p, const DepthwiseTaps& taps, const void* x,
                            const void* g, void* sums);
  void (*add_dots)(const ConvolutionDots& dots);
  // to[i] = the sum of the lanes of vector i.
  void (*fold_dots)(std::int64_t count, const void* sums, void* to);
  int lanes;
};

struct ConvolutionTable {
  ConvolutionLoops float32, float64;
  WinogradLoops winograd2, winograd4;
  int tile_vectors;
};

}  // namespace tw
