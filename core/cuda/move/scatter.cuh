// Elements by an index for each of them along one axis. Settings: TW_ITEM (elements), TW_JOIN (a
// ScatterJoin), TW_SUM (what is added up in).
#include "prelude.cuh"
#include "scatter_parameters.h"
using M = TW_ITEM;

// -1, and told, where an index is outside.
TW_DEVICE int64_t inside(const Along& p, int64_t index) {
  const int64_t at = index < 0 ? index + p.extent : index;
  if (at >= 0 && at < p.extent) return at;
  report(p.fault, p.code, p.user, index, 0, p.extent, p.axis);
  return -1;
}

TW_KERNEL(gather_along, Along, kBlockThreads) {
  const int64_t all = p.count * p.length, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
    const int64_t line = i / p.length, k = i - line * p.length;
    const int64_t at =
        inside(p, p.places[place(p.extents, p.index, line) + k * p.index_step]);
    if (at < 0) continue;
    static_cast<M*>(p.y)[place(p.extents, p.other, line) + k * p.other_step] =
        static_cast<const M*>(p.x)[place(p.extents, p.indexed, line) + at * p.axis_step];
  }
}

TW_DEVICE M joined(M a, M b) {
#if TW_JOIN == TW_JOIN_LATER
  return b;
#else
  const TW_SUM l = convert<TW_SUM>(a), r = convert<TW_SUM>(b);
#if TW_JOIN == TW_JOIN_PRODUCT
  return convert<M>(l * r);
#elif TW_JOIN == TW_JOIN_LARGEST
  return r != r || r > l ? b : a;
#elif TW_JOIN == TW_JOIN_SMALLEST
  return r != r || r < l ? b : a;
#else
  return convert<M>(l + r);
#endif
#endif
}

// What meets in one place is joined in the order of the index, whatever runs first. A thread a line:
TW_KERNEL(scatter_lines, Along, kBlockThreads) {
  const int64_t line = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (line >= p.count) return;
  M* y = static_cast<M*>(p.y) + place(p.extents, p.indexed, line);
  const int64_t* places = p.places + place(p.extents, p.index, line);
  const M* src = static_cast<const M*>(p.src) + place(p.extents, p.other, line);
  for (int64_t k = 0; k < p.length; ++k) {
    const int64_t at = inside(p, places[k * p.index_step]);
    if (at >= 0) y[at * p.axis_step] = joined(y[at * p.axis_step], src[k * p.other_step]);
  }
}
// or a thread a place, which looks through its line's index.
TW_KERNEL(scatter_places, Along, kBlockThreads) {
  __shared__ int64_t found[kBlockThreads];
  const int64_t line = blockIdx.y, mine = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x;
  M* y = static_cast<M*>(p.y) + place(p.extents, p.indexed, line);
  const int64_t* places = p.places + place(p.extents, p.index, line);
  const M* src = static_cast<const M*>(p.src) + place(p.extents, p.other, line);
  const bool is_place = mine < p.extent;
  M value = y[(is_place ? mine : 0) * p.axis_step];
  for (int64_t first = 0; first < p.length; first += kBlockThreads) {
    __syncthreads();
    if (first + threadIdx.x < p.length)
      found[threadIdx.x] = inside(p, places[(first + threadIdx.x) * p.index_step]);
    __syncthreads();
    const int some = p.length - first < kBlockThreads ? int(p.length - first) : kBlockThreads;
    for (int k = 0; k < some; ++k)
      if (found[k] == mine) value = joined(value, src[(first + k) * p.other_step]);
  }
  if (is_place) y[mine * p.axis_step] = value;
}
