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

// An operand along the axes in front of the matrices: steps in bytes.
struct AttentionWalk {
  const char* at;
  std::int64_t row;
  std::int64_t stride[kAttentionAxes];
};
struct AttentionProblem {
  static constexpr int kOperands = 5;  // q, k, v, mask, g
  AttentionShape shape;
  int axes;
  std::int64_t heads;
  std::int64_t extent[kAttentionAxes];
  AttentionWalk in[kOperands];
  const char *out, *log_sums;
  char *y, *y_log_sums, *dq, *dk, *dv;
};
AttentionHead head_of(const AttentionProblem& p, std::int64_t head);

// attend_with_cache: rows that are appended to keys and values, and the queries of these rows.
struct AttentionCacheProblem {
  struct Steps {  // in elements
    std::int64_t batch, head, row;
  };
  AttentionShape shape;                     // of one query; keys: the room
  std::int64_t rows, batch, heads, groups;  // of the memory; heads of queries that share one of it
  Steps q, k, v;
  const char *query, *key, *value;
  char *keys, *values;
  const std::int64_t* filled;
  char* y;
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
