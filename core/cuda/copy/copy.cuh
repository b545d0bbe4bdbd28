// Copies, conversions and what fills memory. Settings: TW_FROM, TW_TO (types; to truth where TW_TRUTH),
// TW_PACK (elements a thread takes at once), TW_APART (1: operands are strided, one at a time).
#include "prelude.cuh"
#include "copy_parameters.h"

template <class M> struct alignas(sizeof(M) * TW_PACK) Pack {
  M at[TW_PACK];
};

TW_DEVICE TW_TO converted(TW_FROM x) {
#if TW_TRUTH
  return is_true(x);
#else
  return convert<TW_TO>(x);
#endif
}

TW_DEVICE void copy_pack(const Copy& p, int64_t pack) {
  int64_t from = pack, to = pack;
#if TW_APART
  from = place(p.extents, p.x_strides, pack);
  to = place(p.extents, p.y_strides, pack);
#endif
  Pack<TW_FROM> x;
  if (p.x)
    x = static_cast<const Pack<TW_FROM>*>(p.x)[from];
  else
    for (int k = 0; k < TW_PACK; ++k) x.at[k] = *reinterpret_cast<const TW_FROM*>(p.number);
  Pack<TW_TO> y;
#pragma unroll
  for (int k = 0; k < TW_PACK; ++k) y.at[k] = converted(x.at[k]);
  static_cast<Pack<TW_TO>*>(p.y)[to] = y;
}

TW_KERNEL(copy, Copy, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step)
    copy_pack(p, i);
}

// Squares go through shared memory, so that both are read and written in whole lines.
TW_KERNEL(transpose, Transpose, kBlockThreads) {
  constexpr int kSide = kTransposed, kLines = kBlockThreads / kSide;
  __shared__ TW_FROM square[kSide][kSide + 1];  // a column more: its elements lie in different banks
  const TW_FROM* x = static_cast<const TW_FROM*>(p.x) + blockIdx.z * p.x_batch;
  TW_TO* y = static_cast<TW_TO*>(p.y) + blockIdx.z * p.y_batch;
  const int64_t i0 = int64_t(blockIdx.x) * kSide, j0 = int64_t(blockIdx.y) * kSide;
  const int lane = threadIdx.x % kSide, line = threadIdx.x / kSide;
  for (int j = line; j < kSide; j += kLines)
    if (i0 + lane < p.rows && j0 + j < p.columns)
      square[j][lane] = x[i0 + lane + (j0 + j) * p.x_step];
  __syncthreads();
  for (int i = line; i < kSide; i += kLines)
    if (i0 + i < p.rows && j0 + lane < p.columns)
      y[j0 + lane + (i0 + i) * p.y_step] = converted(square[lane][i]);
}
