// What the estimates of the fast rungs are made of, in ns, for a core at 3.8 GHz as the matmul
// ladder's are: times of the stages of 1x64x56x56 and 1x256x14x14 to as many channels, taken apart
// on AVX-512, relative to the arithmetic's.
#pragma once
#include "core/cpu/convolution/layout.h"
#include "core/cpu/matmul/tuning.h"

namespace tw {

inline constexpr double kCallNs = 1500;
// An element between planes and lanes of channels, and of weights, which lie apart.
inline constexpr double kToLanesNs = 0.34, kFromLanesNs = 0.26, kPackWeightNs = 0.5;
// The row pointers of a tile for one run.
inline constexpr double kRunNs = 2.7, kTileRows = 6;
// A tile's sums stored, and the call for it, which short sums do not hide.
inline constexpr double kTileNs = 11;
// A byte of weights that every piece reads anew from behind the second-level cache, which the other
// arrays of a piece half fill.
inline constexpr double kFarByteNs = 0.03, kNearBytes = 512 << 10;
// Beside im2col's estimate, which takes all products to run at the packed rung's best rate: over
// random shapes these sums of stages come out too high by this.
inline constexpr double kBesideProducts = 0.8;

inline double far_ns(double bytes, double times) {
  return bytes > kNearBytes ? bytes * times * kFarByteNs : 0;
}
inline int lanes_of(const ConvolutionProblem& p) {
  const ConvolutionTable& table = convolution_table();
  return p.dtype == DType::float64 ? table.float64.lanes : table.float32.lanes;
}
// A multiplication and an addition for each lane of whole vectors of `channels`. Tiles of one
// vector wait for their sums or for loads most of the time, those of two do at times.
constexpr double kOneVector = 2.2, kOneVectorEvenRows = 1.3;
inline double lanes_ns(const ConvolutionProblem& p, std::int64_t channels, double terms,
                       double one_vector = kOneVector) {
  const int lanes = lanes_of(p);
  const Panels panels(channels, lanes);
  const double slow = panels.width == lanes ? one_vector : panels.width == 2 * lanes ? 1.05 : 1;
  const double wide = p.dtype == DType::float64 ? 2 : 1;
  return 2 * matmul_tuning().packed_ns_per_flop * terms * double(round_up(channels, lanes)) * slow *
         wide;
}
inline double elements_of(const ConvolutionProblem& p, const std::int64_t (&sizes)[3],
                          std::int64_t channels) {
  return double(p.batch) * double(channels) * double(volume(sizes));
}
inline double weights_of(const ConvolutionProblem& p) {
  return double(p.out) * double(p.in / p.groups) * double(volume(p.kernel));
}

}  // namespace tw
