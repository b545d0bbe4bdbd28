// Evenly spaced numbers: start, start + step, ..., in 64 bits or in double. The last one of a range with
// its end is that. Settings: TW_TO.
#include "prelude.cuh"
#include "arange_parameters.h"

TW_DEVICE TW_TO item(const Sequence& p, int64_t i) {
  if (p.whole) return convert<TW_TO>(int64_t(uint64_t(p.start) + uint64_t(i) * uint64_t(p.step)));
  const bool last = p.ends && i == p.count - 1 && i > 0;
  const double x = last ? p.real_stop : p.real_start + double(i) * p.real_step;
  return convert<TW_TO>(p.floors ? ::floor(x) : x);
}
TW_KERNEL(sequence, Sequence, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step)
    static_cast<TW_TO*>(p.y)[i] = item(p, i);
}
