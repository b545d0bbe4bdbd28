// Softmax, log-softmax and their gradients over [outer, n, inner]; cross-entropy over class indices.
// One launch. Settings: TW_IN (type in memory), TW_TYPE (what is computed in), TW_WIDTH (threads that
// share a row: 32, 256 or 1), TW_LOG (1: the logarithms).
#include "real_functions.cuh"
#include "softmax_parameters.h"
using T = TW_TYPE;
using M = TW_IN;

TW_DEVICE T larger(T a, T b) { return a != a || a > b ? a : b; }

struct Largest { static TW_DEVICE T combine(T a, T b) { return larger(a, b); } };
struct Sum { static TW_DEVICE T combine(T a, T b) { return a + b; } };

// Of all threads that share a row, in each of them.
template <class Op> TW_DEVICE T combined(T value) {
#if TW_WIDTH >= 32
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2)
    value = Op::combine(value, __shfl_xor_sync(TW_ALL_LANES, value, bits));
#endif
#if TW_WIDTH > 32
  __shared__ T warps[8];
  __syncthreads();  // the last use of them is over
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = warps[0];
#pragma unroll
  for (int i = 1; i < 8; ++i) value = Op::combine(value, warps[i]);
#endif
  return value;
}

struct Row {
  int64_t start, step;
  int lane;
  bool inside;
};
// inner > 1: threads side by side take neighbouring columns (TW_WIDTH 1).
TW_DEVICE Row row_of(int64_t outer, int64_t n, int64_t inner) {
  const int64_t row = (int64_t(blockIdx.x) * kBlockThreads + threadIdx.x) / TW_WIDTH;
  const bool inside = row < outer * inner;
  const int64_t at = inside ? row : 0;
  return {at / inner * n * inner + at % inner, inner, int(threadIdx.x % TW_WIDTH), inside};
}

// What is kept of a row in registers: read once where it fits.
#define TW_KEPT (TW_WIDTH == 1 ? 1 : 16)

struct Norm {
  T top, sum;
};
TW_DEVICE Norm norm_of(const M* x, const Row& r, int64_t n) {
  T top = -T(TW_INFINITY);
  for (int64_t i = r.lane; i < n; i += TW_WIDTH)
    top = larger(top, convert<T>(x[r.start + i * r.step]));
  top = combined<Largest>(top);
  T sum = 0;
  for (int64_t i = r.lane; i < n; i += TW_WIDTH)
    sum += exponential(convert<T>(x[r.start + i * r.step]) - top);
  return {top, combined<Sum>(sum)};
}

TW_KERNEL(softmax, Softmax, kBlockThreads) {
  const Row r = row_of(p.outer, p.n, p.inner);
  const M* x = static_cast<const M*>(p.x);
  M* y = static_cast<M*>(p.y);
#if TW_WIDTH > 1
  // Rows of up to so many elements are read once.
  if (p.n <= TW_WIDTH * TW_KEPT) {
    T kept[TW_KEPT], top = -T(TW_INFINITY), sum = 0;
#pragma unroll
    for (int k = 0; k < TW_KEPT; ++k) {
      const int64_t i = r.lane + k * TW_WIDTH;
      kept[k] = i < p.n ? convert<T>(x[r.start + i * r.step]) : -T(TW_INFINITY);
      top = larger(top, kept[k]);
    }
    top = combined<Largest>(top);
#pragma unroll
    for (int k = 0; k < TW_KEPT; ++k) {
      const int64_t i = r.lane + k * TW_WIDTH;
      const T power = i < p.n ? exponential(kept[k] - top) : T(0);
      sum += power;
#if TW_LOG
      kept[k] -= top;
#else
      kept[k] = power;
#endif
    }
    sum = combined<Sum>(sum);
    const T scale = TW_LOG ? logarithm(sum) : 1 / sum;
#pragma unroll
    for (int k = 0; k < TW_KEPT; ++k) {
      const int64_t i = r.lane + k * TW_WIDTH;
      if (i < p.n && r.inside)
        y[r.start + i * r.step] = convert<M>(TW_LOG ? kept[k] - scale : kept[k] * scale);
    }
    return;
  }
#endif
  const Norm norm = norm_of(x, r, p.n);
  const T scale = TW_LOG ? logarithm(norm.sum) : 1 / norm.sum;
  if (!r.inside) return;
  for (int64_t i = r.lane; i < p.n; i += TW_WIDTH) {
    const T moved = convert<T>(x[r.start + i * r.step]) - norm.top;
    y[r.start + i * r.step] = convert<M>(TW_LOG ? moved - scale : exponential(moved) * scale);
  }
}

// dx = y (g - sum(y g)), of logarithms g - exp(y) sum(g).
TW_KERNEL(softmax_backward, Softmax, kBlockThreads) {
  const Row r = row_of(p.outer, p.n, p.inner);
  const M *y = static_cast<const M*>(p.x), *g = static_cast<const M*>(p.g);
  T sum = 0;
  for (int64_t i = r.lane; i < p.n; i += TW_WIDTH) {
    const int64_t at = r.start + i * r.step;
    sum += TW_LOG ? convert<T>(g[at]) : convert<T>(y[at]) * convert<T>(g[at]);
  }
  sum = combined<Sum>(sum);
  if (!r.inside) return;
  for (int64_t i = r.lane; i < p.n; i += TW_WIDTH) {
    const int64_t at = r.start + i * r.step;
    const T v = convert<T>(y[at]), slope = convert<T>(g[at]);
    static_cast<M*>(p.y)[at] = convert<M>(TW_LOG ? slope - exponential(v) * sum : v * (slope - sum));
  }
}

// ---- cross-entropy: loss[row] = log sum exp(x - top) - (x[target] - top) ----

struct RowLoss {
  T value;
  bool counts;
};
// Of a row, by its first thread, which writes the row's norms as well.
TW_DEVICE RowLoss loss_of(const CrossEntropy& p, const Row& r, int64_t row, const Norm& norm) {
  const int64_t target = p.targets[row];
  const T log_sum = logarithm(norm.sum);
  static_cast<M*>(p.norms_out)[2 * row] = convert<M>(norm.top);
  static_cast<M*>(p.norms_out)[2 * row + 1] = convert<M>(log_sum);
  if (target == p.ignore_index) return {T(0), false};
  if (target < 0 || target >= p.classes) {
    report(p.fault, p.code, 0, target, row, p.classes, 0);
    return {T(0), false};
  }
  const T picked = convert<T>(static_cast<const M*>(p.x)[r.start + target]);
  return {log_sum - (picked - norm.top), true};
}

TW_KERNEL(cross_entropy, CrossEntropy, kBlockThreads) {
  const Row r = row_of(p.rows, p.classes, 1);
  const Norm norm = norm_of(static_cast<const M*>(p.x), r, p.classes);
  if (!r.inside || r.lane != 0) return;
  const int64_t row = r.start / p.classes;
  static_cast<M*>(p.loss)[row] = convert<M>(loss_of(p, r, row, norm).value);
}

struct Total {
  double sum;
  int64_t count;
};
// Of a block's threads, in the first.
TW_DEVICE Total total_of(Total mine) {
  __shared__ double sums[kBlockThreads];
  __shared__ int64_t counts[kBlockThreads];
  __syncthreads();  // the last use of them is over
  sums[threadIdx.x] = mine.sum;
  counts[threadIdx.x] = mine.count;
  __syncthreads();
  for (int half = kBlockThreads / 2; half > 0; half /= 2) {
    if (int(threadIdx.x) < half) {
      sums[threadIdx.x] += sums[threadIdx.x + half];
      counts[threadIdx.x] += counts[threadIdx.x + half];
    }
    __syncthreads();
  }
  return {sums[0], counts[0]};
}
// By one block, in the order of the blocks: the bits do not depend on which was the last.
TW_DEVICE void finish(const CrossEntropy& p) {
  const volatile double* sums = p.sums;  // other blocks', past this one's cache
  const volatile int64_t* counts = p.counts;
  Total mine = {0, 0};
  for (int64_t i = threadIdx.x; i < p.blocks; i += kBlockThreads) {
    mine.sum += sums[i];
    mine.count += counts[i];
  }
  const Total all = total_of(mine);
  if (threadIdx.x != 0) return;
  *static_cast<M*>(p.counted) = convert<M>(all.count);
  *static_cast<M*>(p.loss) = convert<M>(p.is_mean ? all.sum / double(all.count) : all.sum);
}

TW_KERNEL(cross_entropy_total, CrossEntropy, kBlockThreads) {
  __shared__ int is_last;
  const Row r = row_of(p.rows, p.classes, 1);
  const Norm norm = norm_of(static_cast<const M*>(p.x), r, p.classes);
  Total mine = {0, 0};
  if (r.inside && r.lane == 0) {
    const int64_t row = r.start / p.classes;
    const RowLoss loss = loss_of(p, r, row, norm);
    p.targets_out[row] = p.targets[row];
    mine = {double(loss.value), loss.counts};
  }
  const Total total = total_of(mine);
  if (threadIdx.x == 0) {
    p.sums[blockIdx.x] = total.sum;
    p.counts[blockIdx.x] = total.count;
    __threadfence();  // they are there before this block counts as done
    is_last = p.done && atomicAdd(p.done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  finish(p);
  if (threadIdx.x == 0) *p.done = 0;
}
TW_KERNEL(cross_entropy_finish, CrossEntropy, kBlockThreads) { finish(p); }

// How many rows count, by one block.
TW_KERNEL(count_targets, CrossEntropy, kBlockThreads) {
  __shared__ int64_t counts[kBlockThreads];
  int64_t count = 0;
  for (int64_t i = threadIdx.x; i < p.rows; i += kBlockThreads) count += p.targets[i] != p.ignore_index;
  counts[threadIdx.x] = count;
  __syncthreads();
  for (int half = kBlockThreads / 2; half > 0; half /= 2) {
    if (int(threadIdx.x) < half) counts[threadIdx.x] += counts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *static_cast<M*>(p.counted) = convert<M>(counts[0]);
}

TW_KERNEL(cross_entropy_backward, CrossEntropy, kBlockThreads) {
  const Row r = row_of(p.rows, p.classes, 1);
  if (!r.inside) return;
  const M *x = static_cast<const M*>(p.x), *norms = static_cast<const M*>(p.norms);
  const int64_t row = r.start / p.classes, target = p.targets[row];
  const T top = convert<T>(norms[2 * row]), log_sum = convert<T>(norms[2 * row + 1]);
  const bool counts = target != p.ignore_index;
  T g = counts ? convert<T>(static_cast<const M*>(p.g)[row * p.g_step]) : T(0);
  if (p.total) g /= convert<T>(*static_cast<const M*>(p.total));
  for (int64_t i = r.lane; i < p.classes; i += TW_WIDTH) {
    const T share = exponential(convert<T>(x[r.start + i]) - top - log_sum) - T(i == target);
    static_cast<M*>(p.dx)[r.start + i] = convert<M>(counts ? share * g : T(0));
  }
}
