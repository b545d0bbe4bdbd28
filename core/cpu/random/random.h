// Counter-based random bits (Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011): number i of a stream depends on seed and i alone, not on threads.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/thresholds.h"

namespace tw {

// Words from key[1] on, a multiple of 4, of the stream of seed key[0].
struct RandomProblem {
  DType dtype;
  std::int64_t count;
  int bits;
  std::int64_t low;
  std::uint64_t span;
  double keep, scale;  // of dropout: the probability, and what the kept are multiplied by
  const std::uint64_t* key;
  const void* x;
  void* y;
};
// Numbers whose pairs are made together.
inline constexpr std::int64_t kRandomBlock =
    thresholds::kStageBytes / std::int64_t(sizeof(std::uint32_t));
// Probabilities that can be drawn from.
struct CheckProblem {
  std::int64_t rows, classes, samples;
  bool replacement;
  const double* p;
  double* y;
};
// Classes by their probabilities.
struct DrawnProblem {
  std::int64_t rows, classes, samples;
  const double* p;
  const double* u;  // uniform numbers: one for each sample, or without replacement for each class
  std::int64_t* y;
};

// Loops over the 32-bit words of a stream, in pieces that stay in the first-level cache.
struct RandomTable {
  // out[4 * j ... 4 * j + 3] = the words of block `block` + j.
  void (*blocks)(std::uint64_t seed, std::uint64_t block, std::int64_t blocks, std::uint32_t* out);
  // n numbers in [0, 1): float32 from `bits` bits of a word each, float64 from two words each.
  void (*uniform_float)(const std::uint32_t* words, std::int64_t n, int bits, void* y);
  void (*uniform_double)(const std::uint32_t* words, std::int64_t n, int bits, void* y);
  // n normal numbers from the words of n uniform ones, rounded up to an even number.
  void (*normal_float)(const std::uint32_t* words, std::int64_t n, void* y);
  void (*normal_double)(const std::uint32_t* words, std::int64_t n, void* y);
  // y = x * factor where a word, as a number in [0, 1), lies below `keep`, else 0.
  using Dropout = void (*)(const std::uint32_t* words, std::int64_t n, float keep, double factor,
                           const void* x, void* y);
  Dropout dropout_float, dropout_double;
};

}  // namespace tw
