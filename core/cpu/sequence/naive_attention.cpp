// The definition of attention: of each query its score with every key, softmax over the scores, and
// the sum of the values by these weights. Backward, the weights once more, then the chain rule.
#include <vector>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/pointwise/plain.h"
#include "core/cpu/sequence/attention.h"
#include "core/problems/key_value_cache.h"

namespace tw {
namespace {

using std::int64_t;

template <class T> const T* row_of(const AttentionRows& x, int64_t i) {
  return static_cast<const T*>(x.at) + i * x.row;
}
template <class T> Wider<T> dot(int64_t n, const T* a, const T* b) {
  Wider<T> sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += Wider<T>(a[i]) * b[i];
  return sum;
}
int64_t keys_of(const AttentionShape& s, int64_t query) {
  return s.causal && query + 1 < s.keys ? query + 1 : s.keys;
}

template <class T>
Wider<T> score(const AttentionShape& s, const AttentionHead& h, int64_t query, int64_t key) {
  const Wider<T> product = dot(s.size, row_of<T>(h.q, query), row_of<T>(h.k, key)) * s.scale;
  if (!s.has_mask) return product;
  const int64_t at = query * s.mask_row + key * s.mask_column;
  if (!s.bool_mask) return product + static_cast<const T*>(h.mask)[at];
  return static_cast<const bool*>(h.mask)[at] ? product : product - __builtin_inf();
}

template <class T> void attend(const AttentionShape& s, const AttentionHead& h) {
  for (int64_t query = 0; query < s.queries; ++query) {
    const int64_t keys = keys_of(s, query);
    std::vector<Wider<T>> scores(keys);
    T top = -__builtin_inf();
    for (int64_t key = 0; key < keys; ++key) {
      scores[key] = score<T>(s, h, query, key);
      if (scores[key] > top) top = static_cast<T>(scores[key]);
    }
    if (top == -__builtin_inf()) top = 0;  // no key counts

    std::vector<double> weights(keys);
    Wider<T> sum = 0;
    for (int64_t key = 0; key < keys; ++key) weights[key] = double(scores[key] - top);
    apply_plainly(PointwiseOp::exp, keys, weights.data());
    for (int64_t key = 0; key < keys; ++key) sum += weights[key];

    for (int64_t i = 0; i < s.value_size; ++i) {
      Wider<T> y = 0;
      for (int64_t key = 0; key < keys; ++key) y += weights[key] * row_of<T>(h.v, key)[i];
      static_cast<T*>(h.y)[query * s.value_size + i] = sum == 0 ? T(0) : static_cast<T>(y / sum);
    }
    if (!h.y_log_sums) continue;
    T* const log_sums = static_cast<T*>(h.y_log_sums);
    log_sums[query] = top;
    log_sums[s.queries + query] = static_cast<T>(
        sum == 0 ? __builtin_inf() : plain_value(PointwiseOp::log, static_cast<double>(sum)));
  }
}

// With weights w and dw = g . v: dv = sum of w g, and of the scores' gradients
// w (dw - g . y) scale: dq sums them times keys, dk times queries.
template <class T> void differentiate(const AttentionShape& s, const AttentionHead& h) {
  std::vector<Wider<T>> dq(s.queries * s.size), dk(s.keys * s.size), dv(s.keys * s.value_size);
  const auto* const log_sums = static_cast<const T*>(h.log_sums);
  for (int64_t query = 0; query < s.queries; ++query) {
    const int64_t keys = keys_of(s, query);
    const T* const g = row_of<T>(h.g, query);
    const Wider<T> g_y = dot(s.value_size, g, static_cast<const T*>(h.out) + query * s.value_size);
    std::vector<double> weights(keys);
    for (int64_t key = 0; key < keys; ++key)
      weights[key] =
          double(score<T>(s, h, query, key) - log_sums[query] - log_sums[s.queries + query]);
    apply_plainly(PointwiseOp::exp, keys, weights.data());
    for (int64_t key = 0; key < keys; ++key) {
      const Wider<T> dw = dot(s.value_size, g, row_of<T>(h.v, key));
      const Wider<T> dscore = weights[key] * (dw - g_y) * s.scale;
      for (int64_t i = 0; i < s.value_size; ++i)
        dv[key * s.value_size + i] += Wider<T>(weights[key]) * g[i];
      for (int64_t i = 0; i < s.size; ++i) {
        dq[query * s.size + i] += dscore * row_of<T>(h.k, key)[i];
        dk[key * s.size + i] += dscore * row_of<T>(h.q, query)[i];
      }
    }
  }
  const auto write = [](const std::vector<Wider<T>>& from, void* to) {
    for (std::size_t i = 0; i < from.size(); ++i) static_cast<T*>(to)[i] = static_cast<T>(from[i]);
  };
  write(dq, h.dq);
  write(dk, h.dk);
  write(dv, h.dv);
}

template <class T> void attend_with_cache(const AttentionCacheProblem& p) {
  const int64_t filled = *p.filled, room = p.shape.keys;
  check_cache_room(filled, p.rows, room);
  using Steps = AttentionCacheProblem::Steps;
  const auto row = [](const char* x, const Steps& step, int64_t n, int64_t head, int64_t r) {
    return reinterpret_cast<const T*>(x) + n * step.batch + head * step.head + r * step.row;
  };
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t head = 0; head < p.heads; ++head) {
      T* const keys = reinterpret_cast<T*>(p.keys) + (n * p.heads + head) * room * p.shape.size;
      T* const values =
          reinterpret_cast<T*>(p.values) + (n * p.heads + head) * room * p.shape.value_size;
      for (int64_t r = 0; r < p.rows; ++r) {
        for (int64_t i = 0; i < p.shape.size; ++i)
          keys[(filled + r) * p.shape.size + i] = row(p.key, p.k, n, head, r)[i];
        for (int64_t i = 0; i < p.shape.value_size; ++i)
          values[(filled + r) * p.shape.value_size + i] = row(p.value, p.v, n, head, r)[i];
      }
      for (int64_t of_head = 0; of_head < p.groups; ++of_head)
        for (int64_t r = 0; r < p.rows; ++r) {
          const int64_t h = head * p.groups + of_head;
          AttentionShape shape = p.shape;
          shape.keys = filled + r + 1;
          AttentionHead one = {};
          one.q = {row(p.query, p.q, n, h, r), 0};
          one.k = {keys, p.shape.size};
          one.v = {values, p.shape.value_size};
          one.y = reinterpret_cast<T*>(p.y) +
                  ((n * p.heads * p.groups + h) * p.rows + r) * p.shape.value_size;
          attend<T>(shape, one);
        }
    }
}

void run(const void* problem) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  for (int64_t head = 0; head < p.heads; ++head)
    p.shape.dtype == DType::float64 ? attend<double>(p.shape, head_of(p, head))
                                    : attend<float>(p.shape, head_of(p, head));
}
void run_backward(const void* problem) {
  const auto& p = *static_cast<const AttentionProblem*>(problem);
  for (int64_t head = 0; head < p.heads; ++head)
    p.shape.dtype == DType::float64 ? differentiate<double>(p.shape, head_of(p, head))
                                    : differentiate<float>(p.shape, head_of(p, head));
}
void run_cache(const void* problem) {
  const auto& p = *static_cast<const AttentionCacheProblem*>(problem);
  p.shape.dtype == DType::float64 ? attend_with_cache<double>(p) : attend_with_cache<float>(p);
}

}  // namespace

void register_naive_attention_kernels() {
  add_definition("attention", run);
  add_definition("attention_backward", run_backward);
  add_definition("attend_with_cache", run_cache);
}

}  // namespace tw
