// Counts: of whole numbers, of numbers in even bins, of true elements, and what runs of repeats are
// made of. Settings: TW_TYPE.
#include "prelude.cuh"
#include "bins_parameters.h"
using T = TW_TYPE;
using Bins = BinsOf<T>;

#define TW_FOR_EACH(i, n)                                                          \
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x,                 \
               tw_step = int64_t(gridDim.x) * blockDim.x; i < (n); i += tw_step)
using Counter = unsigned long long;

// One block.
TW_KERNEL(last_bin, Bins, kBlockThreads) {
  __shared__ int64_t tops[kBlockThreads];
  int64_t top = -1;
  for (int64_t i = threadIdx.x; i < p.n; i += kBlockThreads) {
    const int64_t value = int64_t(p.x[i]);
    if (value < 0 || value > int64_t(1) << 62)
      report(p.fault, p.code,
             T(-1) < T(0) && p.x[i] < T(0) ? kNegativeElement : kTooLargeElement, value, i, 0, 0);
    else if (value > top)
      top = value;
  }
  tops[threadIdx.x] = top;
  __syncthreads();
  for (int half_of = kBlockThreads / 2; half_of > 0; half_of /= 2) {
    if (int(threadIdx.x) < half_of && tops[threadIdx.x + half_of] > tops[threadIdx.x])
      tops[threadIdx.x] = tops[threadIdx.x + half_of];
    __syncthreads();
  }
  if (threadIdx.x == 0) *p.y = tops[0];
}
TW_KERNEL(clear_bins, Bins, kBlockThreads) {
  TW_FOR_EACH(i, p.bins) p.y[i] = 0;
}
TW_KERNEL(count_bins, Bins, kBlockThreads) {
  TW_FOR_EACH(i, p.n) {
    const uint64_t bin = uint64_t(p.x[i]);
    if (bin < uint64_t(p.bins)) atomicAdd(reinterpret_cast<Counter*>(p.y) + bin, Counter(1));
  }
}
TW_KERNEL(count_even_bins, Bins, kBlockThreads) {
  const T low = p.limits[0], high = p.limits[1], width = high - low;
  const T all = width * T(p.bins);
  if (!(all - all == T(0)) || width < T(0)) {
    if (blockIdx.x == 0 && threadIdx.x == 0) report(p.fault, p.code, kNoBins, 0, 0, 0, 0);
    return;
  }
  TW_FOR_EACH(i, p.n) {
    const T x = p.x[i];
    if (!(x >= low && x <= high)) continue;
    const int64_t bin = int64_t((x - low) * T(p.bins) / width);
    atomicAdd(reinterpret_cast<Counter*>(p.y) + (bin < p.bins ? bin : p.bins - 1), Counter(1));
  }
}

// ---- true elements, by pieces of a mask ----

TW_KERNEL(count_pieces, Nonzero, kBlockThreads) {
  TW_FOR_EACH(i, p.pieces) {
    const int64_t begin = i * p.piece, end = begin + p.piece < p.count ? begin + p.piece : p.count;
    int64_t count = 0;
    for (int64_t k = begin; k < end; ++k) count += p.x[k] != 0;
    p.y[i + 1] = count;
  }
}
// One block: counts become where pieces start. A segment of them a thread.
TW_KERNEL(add_counts, Nonzero, kBlockThreads) {
  __shared__ int64_t sums[kBlockThreads];
  const int64_t each = (p.pieces + kBlockThreads - 1) / kBlockThreads, begin = threadIdx.x * each;
  const int64_t end = begin + each < p.pieces ? begin + each : p.pieces;
  int64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += p.y[i + 1];
  sums[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < int(threadIdx.x); ++i) sum += sums[i];
  if (threadIdx.x == 0) p.y[0] = 0;
  for (int64_t i = begin; i < end; ++i) p.y[i + 1] = sum += p.y[i + 1];
}
TW_KERNEL(find_positions, Nonzero, kBlockThreads) {
  TW_FOR_EACH(i, p.pieces) {
    int64_t column = p.counts[i];
    const int64_t stop = p.counts[i + 1];
    const int64_t end = (i + 1) * p.piece < p.count ? (i + 1) * p.piece : p.count;
    for (int64_t k = i * p.piece; k < end && column < stop; ++k) {
      if (!p.x[k]) continue;
      int64_t rest = k;
      for (int64_t axis = p.rank - 1; axis >= 0; --axis) {
        p.y[axis * p.found + column] = rest % p.extents[axis];
        rest /= p.extents[axis];
      }
      ++column;
    }
  }
}

// ---- runs: to each element the number of its run, or its place in it ----

// One thread, which also finds what is wrong.
TW_KERNEL(start_runs, Runs, kBlockThreads) {
  if (threadIdx.x) return;
  int64_t at = 0;
  for (int64_t i = 0; i < p.count; ++i) {
    p.starts[i] = at;
    const int64_t n = p.counts[i];
    if (n < 0) {
      report(p.fault, p.code, kNegativeRun, n, i, p.total, 0);
      p.starts[0] = -1;
      return;
    }
    at += n;
  }
  p.starts[p.count] = at;
  if (at == p.total) return;
  report(p.fault, p.code, at > p.total ? kLongerRuns : kShorterRuns, at, 0, p.total, 0);
  p.starts[0] = -1;
}
TW_KERNEL(write_runs, Runs, kBlockThreads) {
  if (p.starts[0] < 0) return;
  TW_FOR_EACH(i, p.total) {
    int64_t low = 0, high = p.count;  // the last run that starts at i or before
    while (high - low > 1) {
      const int64_t half_way = (low + high) / 2;
      if (p.starts[half_way] <= i)
        low = half_way;
      else
        high = half_way;
    }
    p.y[i] = p.within ? i - p.starts[low] : low;
  }
}
