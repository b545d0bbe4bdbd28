// Running sums, products, log-sums, extremes and recurrences along one axis of [outer, n, inner]: each
// is a combination that may be bracketed anyhow. A block a line, a segment of it a thread. Settings:
// TW_TYPE (in memory), TW_STATE (what is combined in), TW_KIND.
#include "prelude.cuh"
#include "scan_parameters.h"
using T = TW_TYPE;
using S = TW_STATE;
using Scan = ScanOf<T>;

// Two numbers suffice: a log-sum's largest exponent and sum; y = first * before + second of a
// recurrence.
struct State {
  S first, second;
  int64_t index;  // of an extreme; negative: of nothing yet
};
TW_DEVICE State nothing() {
#if TW_KIND == TW_SCAN_PRODUCT || TW_KIND == TW_SCAN_RECURRENCE
  return {S(1), S(0), -1};
#elif TW_KIND == TW_SCAN_LOG_SUM
  return {-S(TW_INFINITY), S(0), -1};
#elif TW_KIND == TW_SCAN_SUM
  return {-S(0), S(0), -1};
#else
  return {S(0), S(0), -1};
#endif
}
TW_DEVICE State combine(State a, State b) {
#if TW_KIND == TW_SCAN_SUM
  return {S(a.first + b.first), S(0), 0};
#elif TW_KIND == TW_SCAN_PRODUCT
  return {S(a.first * b.first), S(0), 0};
#elif TW_KIND == TW_SCAN_RECURRENCE
  return {b.first * a.first, b.first * a.second + b.second, 0};
#elif TW_KIND == TW_SCAN_LOG_SUM
  if (a.first != a.first) return a;
  if (b.first != b.first) return b;
  const S top = a.first > b.first ? a.first : b.first;
  // Both the same infinity: the exponent of what is as large is 0.
  const S low = a.first > b.first ? b.first : a.first;
  const S ratio = low == top ? S(1) : ::exp(low - top);
  return {top, a.first > b.first ? a.second + b.second * ratio : a.second * ratio + b.second, 0};
#else
  if (a.index < 0) return b;
  if (b.index < 0) return a;
  // Of equal ones the last; a NaN stays, and a later one takes its place.
  const bool larger = TW_KIND == TW_SCAN_CUMMAX ? b.first >= a.first : b.first <= a.first;
  return b.first != b.first || (a.first == a.first && larger) ? b : a;
#endif
}
TW_DEVICE State state_of(const Scan& p, int64_t at, int64_t i) {
#if TW_KIND == TW_SCAN_RECURRENCE
  return {convert<S>(p.x[at]), convert<S>(p.b[at]), i};
#elif TW_KIND == TW_SCAN_LOG_SUM
  return {convert<S>(p.x[at]), S(1), i};
#else
  return {convert<S>(p.x[at]), S(0), i};
#endif
}
TW_DEVICE void put(const Scan& p, int64_t at, State s) {
#if TW_KIND == TW_SCAN_RECURRENCE
  p.y[at] = convert<T>(s.second);
#elif TW_KIND == TW_SCAN_LOG_SUM
  p.y[at] = convert<T>(s.first + ::log(s.second));
#else
  p.y[at] = convert<T>(s.first);
#endif
#if TW_KIND == TW_SCAN_CUMMAX || TW_KIND == TW_SCAN_CUMMIN
  p.places[at] = s.index;
#endif
}
TW_DEVICE int64_t address(const Scan& p, int64_t line, int64_t i) {
  const int64_t outer = line / p.inner;
  return (outer * p.n + (p.reverse ? p.n - 1 - i : i)) * p.inner + (line - outer * p.inner);
}

// A thread a line: many lines, or short ones.
TW_KERNEL(scan_lines, Scan, kBlockThreads) {
  const int64_t line = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (line >= p.lines) return;
  State s = nothing();
  for (int64_t i = 0; i < p.n; ++i) {
    const int64_t at = address(p, line, i);
    s = i ? combine(s, state_of(p, at, i)) : state_of(p, at, i);
    put(p, at, s);
  }
}

// A block a line: first what each segment comes to, then what stands before it, then its elements.
TW_KERNEL(scan_blocks, Scan, kBlockThreads) {
  __shared__ State segments[kBlockThreads];
  const int64_t line = blockIdx.x, each = (p.n + kBlockThreads - 1) / kBlockThreads;
  const int64_t begin = threadIdx.x * each, end = begin + each < p.n ? begin + each : p.n;
  State s = nothing();
  for (int64_t i = begin; i < end; ++i) s = combine(s, state_of(p, address(p, line, i), i));
  segments[threadIdx.x] = s;
  __syncthreads();
  for (int by = 1; by < kBlockThreads; by *= 2) {
    const State before = threadIdx.x >= by ? segments[threadIdx.x - by] : nothing();
    const State own = segments[threadIdx.x];
    __syncthreads();
    segments[threadIdx.x] = combine(before, own);
    __syncthreads();
  }
  s = threadIdx.x ? segments[threadIdx.x - 1] : nothing();
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = address(p, line, i);
    s = combine(s, state_of(p, at, i));
    put(p, at, s);
  }
}
