// Layer, group, instance and batch normalisation: one mechanism over [outer, groups, channels,
// inner], whose statistics are those of a row (outer, group) or of a channel.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// Arrays are contiguous, of `dtype` (float32 or float64). A *set* is what is normalised together:
// of rows the channels x inner elements of one (outer, group), of channels (groups == 1) the outer
// x inner elements of one channel. weight and bias are [groups * channels] or null, for 1 and 0;
// mean, rstd and variance are [sets], and mean is 0 where the op is not centered.
struct NormProblem {
  DType dtype;
  std::int64_t outer, groups, channels, inner;
  double eps;
  bool centered;
  bool affine;  // of gradients: whether the sums are asked for
  const void *x, *weight, *bias, *g;
  void *y, *mean, *rstd, *variance;  // variance: of channels alone
  void *dx, *dweight, *dbias;
};

// y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(variance + eps).
void normalize_rows(const NormProblem& p);
void normalize_channels(const NormProblem& p);
// From g, x, mean, rstd and weight: dx, dweight = sum(g * (x - mean) * rstd), dbias = sum(g).
void normalize_rows_backward(const NormProblem& p);
void normalize_channels_backward(const NormProblem& p);

// The loops over sets [first, past). `stream`: y (dx) is too large for the caches, and its runs of
// inner elements (of rows whose inner is 1: of channels) are 64-byte aligned.
struct NormLoops {
  using Loop = void (*)(const NormProblem& p, std::int64_t first, std::int64_t past, bool stream);
  // Rows of inner == 1, whose elements have a scale each; rows that are runs of inner elements, a
  // scale a run; channels that are such runs; channels of inner == 1, [first, past) of them in the
  // lanes.
  Loop rows, runs, channels, columns;
  // With sums for weight and bias, where those are not null: of plain rows added to
  // [2][groups * channels], with `room` for as many elements of the type, which are 0 before and
  // after; of rows of runs each run's own, [2][outer, groups, channels].
  using SummingLoop = void (*)(const NormProblem& p, std::int64_t first, std::int64_t past,
                               bool stream, double* sums, void* room);
  SummingLoop rows_backward, runs_backward;
  // Their sums are whole: they go to dweight and dbias.
  Loop channels_backward, columns_backward;
};
struct NormTable {
  NormLoops float32, float64;
};

}  // namespace tw
