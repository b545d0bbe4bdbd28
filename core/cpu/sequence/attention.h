// Scaled dot-product attention and its gradient, one head at a time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// Axes in front of the matrices that one call walks; neighbours that can be one are merged.
inline constexpr int kAttentionAxes = 8;
// Queries of a piece of work, and keys whose scores are held at once. Forward, long sums of values
// and few blocks to join count more than that scores leave the first-level cache; backward, scores
// of 64 x 64 in float32 and the same of their gradients take 32 KiB.
inline constexpr std::int64_t kAttentionQueries = 64;
inline constexpr std::int64_t kAttentionKeys = 256;
inline constexpr std::int64_t kAttentionBackwardKeys = 64;

// Rows of one head: elements of a row are neighbours.
struct AttentionRows {
  const void* at;
  std::int64_t row;  // elements between rows
};
// One head. What the call does not have is null; results are row-major.
struct AttentionHead {
  AttentionRows q, k, v, g;
  const void* mask;
  const void* out;
  const void* log_sums;
  void *y, *y_log_sums, *dq, *dk, *dv;
};
// What heads have in common. Query i attends to key j where j <= i, if causal. A row of bool masks
// says which keys count, other masks are added to the scores. log_sums[i]: what the exponentials of
// row i are taken relative to; log_sums[queries + i]: the logarithm of their sum, +inf where no key
// counts, so that its weights are 0.
struct AttentionShape {
  DType dtype;
  std::int64_t queries, keys, size, value_size;
  std::int64_t mask_row, mask_column;  // strides in elements
  bool bool_mask, has_mask, causal;
  double scale;
};

// The loops over one element type, float32 or float64.
struct AttentionLoops {
  // Rows [first, first + kAttentionQueries) of the result, as far as there are so many.
  void (*forward)(const AttentionShape& shape, const AttentionHead& head, std::int64_t first,
                  void* scratch);
  // All rows of the result, one by one: for few queries. Scratch for one number a key.
  void (*forward_few)(const AttentionShape& shape, const AttentionHead& head, void* scratch);
  void (*backward)(const AttentionShape& shape, const AttentionHead& head, void* scratch);
};
struct AttentionTable {
  AttentionLoops float32, float64;
};

}  // namespace tw
