// What the estimates of the fast rungs are made of, in ns: arithmetic at the packed rung's rate,
// and the other stages, of 1x64x56x56 and 1x256x14x14 to as many channels, as they were taken apart
// on AVX-512 at 3.7 GHz.
#pragma once
#include "core/base/cpu_info.h"
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
// Weights that every piece reads anew. In the second-level cache, which the other arrays of a piece
// half fill, that is hidden; a byte from behind it takes what it takes the direct rung of products.
inline double far_ns(double bytes, double times) {
  constexpr double kL2Bytes = 1 << 20;  // where unknown
  const double l2 = cpu_info().l2_bytes > 0 ? double(cpu_info().l2_bytes) : kL2Bytes;
  return bytes > l2 / 2 ? bytes * times * matmul_tuning().cold_ns / sizeof(float) : 0;
}
inline int lanes_of(const ConvolutionProblem& p) {
  const ConvolutionTable& table = convolution_table();
  return p.dtype == DType::float64 ? table.float64.lanes : table.float32.lanes;
}
// How much longer arithmetic takes than at the default rate of the packed rung, where no tuning has
// measured that: narrower vectors, or a data path that takes wide ones in two steps.
inline double narrowness() {
  if (matmul_tuning().packed_ns_per_flop != kPackedNsPerFlop) return 1;
  const int path = cpu_info().vector_path_bits, bits = convolution_table().float32.lanes * 32;
  return 512.0 / std::min(path > 0 ? path : 512, bits);
}
inline double ns_per_flop() { return narrowness() * matmul_tuning().packed_ns_per_flop; }
// A multiplication and an addition for each lane of whole vectors of `channels`. Tiles of one
// vector wait for their sums or for loads most of the time, those of two do at times.
constexpr double kOneVector = 2.2, kOneVectorEvenRows = 1.3;
inline double lanes_ns(const ConvolutionProblem& p, std::int64_t channels, double terms,
                       double one_vector = kOneVector) {
  const int lanes = lanes_of(p);
  const Panels panels(channels, lanes);
  const double slow = panels.width == lanes ? one_vector : panels.width == 2 * lanes ? 1.05 : 1;
  const double wide = p.dtype == DType::float64 ? 2 : 1;
  return 2 * ns_per_flop() * terms * double(round_up(channels, lanes)) * slow * wide;
}
inline double elements_of(const ConvolutionProblem& p, const std::int64_t (&sizes)[3],
                          std::int64_t channels) {
  return double(p.batch) * double(channels) * double(volume(sizes));
}
inline double weights_of(const ConvolutionProblem& p) {
  return double(p.out) * double(p.in / p.groups) * double(volume(p.kernel));
}

}  // namespace tw
