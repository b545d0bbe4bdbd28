// Softmax, log-softmax, log-sum-exp, their gradients, and cross-entropy over class indices.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// All arrays are contiguous [outer, n, inner] of float32 or float64 and the op runs over n; the
// same array may be input and output. Per-group arrays are [outer, inner]. Exponentials below the
// smallest normal number count as 0. n == 0: nothing is written, except that logsumexp gives -inf.
// A group of -inf only gives NaN (logsumexp: -inf), as does one with +inf (logsumexp: +inf); NaN
// makes its whole group NaN.
struct SoftmaxShape {
  DType dtype;
  std::int64_t outer, n, inner;
  bool are_rows = inner == 1;  // else columns
};

void softmax(const SoftmaxShape& shape, const void* x, void* y);
void log_softmax(const SoftmaxShape& shape, const void* x, void* y);
void logsumexp(const SoftmaxShape& shape, const void* x, void* y);
// dx = softmax(x) * g with one g a group: from x, as the sum of y's two parts has fewer digits.
void logsumexp_backward(const SoftmaxShape& shape, const void* x, const void* g, void* dx);
// From the op's result y and the gradient g: dx = y * (g - sum(y * g)), and dx = g - exp(y) *
// sum(g). `repeated`: g is one element.
void softmax_backward(const SoftmaxShape& shape, const void* y, const void* g, bool repeated,
                      void* dx);
void log_softmax_backward(const SoftmaxShape& shape, const void* y, const void* g, bool repeated,
                          void* dx);

// Cross-entropy of logits x [rows, classes] with one class index a row; rows whose target is
// `ignore_index` give loss 0 and gradient 0. Targets must be checked first.
struct CrossEntropyProblem {
  DType dtype;
  std::int64_t rows, classes;
  const void* x;
  const std::int64_t* targets;
  std::int64_t ignore_index;
};
// Raises IndexError for a target that is neither in [0, classes) nor ignored.
void check_targets(const CrossEntropyProblem& problem);
// norms[row] = {top, log_sum}: the largest logit, and log sum exp(x[row] - top). Kept apart, since
// their sum would lose the digits of log_sum beside a large top.
// loss[row] = log_sum - (x[row][target] - top). Arrays of dtype: [rows] and [rows, 2].
void cross_entropy(const CrossEntropyProblem& problem, void* loss, void* norms);
// dx = (exp(x - top - log_sum) - onehot(target)) * g[row * g_step]; g_step 0: one gradient for all.
void cross_entropy_backward(const CrossEntropyProblem& problem, const void* norms, const void* g,
                            std::int64_t g_step, void* dx);

// The ops' calls.
struct SoftmaxProblem {
  SoftmaxShape shape;
  bool repeated;  // the gradient is one element
  void* at[3];    // inputs, then the result
};
struct LossProblem {
  CrossEntropyProblem rows;
  const void *norms, *g;
  void *loss, *norms_out, *counted, *dx;
  std::int64_t g_step;
};

// The loops over one element type. Rows are contiguous; columns are `inner` elements apart down n,
// and `width` of them are taken. `stream`: y is too large for the caches and its rows are 64-byte
// aligned.
struct SoftmaxLoops {
  using Row = void (*)(std::int64_t rows, std::int64_t n, const void* x, void* y, bool stream);
  using Column = void (*)(std::int64_t n, std::int64_t width, std::int64_t inner, const void* x,
                          void* y);
  Row log_softmax, logsumexp;
  Column log_softmax_columns, logsumexp_columns;
  // Times one slope a row or column; null: 1.
  void (*softmax)(std::int64_t rows, std::int64_t n, const void* x, const void* slopes, void* y,
                  bool stream);
  void (*softmax_columns)(std::int64_t n, std::int64_t width, std::int64_t inner, const void* x,
                          const void* slopes, void* y);
  // `one_row`: g is a single row of n, or of `width` columns, which serves all.
  using RowBackward = void (*)(std::int64_t rows, std::int64_t n, const void* y, const void* g,
                               bool one_row, void* dx);
  using ColumnBackward = void (*)(std::int64_t n, std::int64_t width, std::int64_t inner,
                                  const void* y, const void* g, bool one_row, void* dx);
  RowBackward softmax_backward, log_softmax_backward;
  ColumnBackward softmax_backward_columns, log_softmax_backward_columns;
  void (*cross_entropy_norms)(std::int64_t rows, std::int64_t n, const void* x, void* norms);
  void (*cross_entropy_backward)(const CrossEntropyProblem& problem, std::int64_t first,
                                 std::int64_t past, const void* norms, const void* g,
                                 std::int64_t g_step, void* dx);
};
struct SoftmaxTable {
  SoftmaxLoops float32, float64;
};

}  // namespace tw
