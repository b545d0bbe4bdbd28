// Rows by index. Settings: TW_ITEM (elements as bytes: their type, for sums), TW_ARRAYS.
#include "prelude.cuh"
#include "gather_parameters.h"
using M = TW_ITEM;
using Rows = IndexedRows<TW_ARRAYS>;

TW_DEVICE int64_t offset_of(const Rows& p, int64_t row) {
  int64_t offset = 0;
#pragma unroll
  for (int k = 0; k < TW_ARRAYS; ++k)
    offset += p.at[k][place(p.index, p.steps[k], row)] * p.row_step[k];
  return offset;
}

TW_KERNEL(gather_rows, Rows, kBlockThreads) {
  const int64_t count = p.rows * p.row_count, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t row = i / p.row_count;
    static_cast<M*>(p.y)[i] =
        static_cast<const M*>(p.x)[offset_of(p, row) + (i - row * p.row_count)];
  }
}
TW_KERNEL(scatter_rows, Rows, kBlockThreads) {
  const int64_t count = p.rows * p.row_count, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t row = i / p.row_count;
    static_cast<M*>(p.y)[offset_of(p, row) + (i - row * p.row_count)] =
        static_cast<const M*>(p.x)[i];
  }
}

#ifdef TW_SUM
// Rows that meet in one place are added in the order of their index, whatever ran first: a block has
// 32 elements of y and looks through all rows for those that go there.
using S = TW_SUM;
TW_KERNEL(scatter_add_rows, Rows, kBlockThreads) {
  __shared__ int64_t offsets[kBlockThreads];
  const int64_t first = int64_t(blockIdx.x) * kBlockThreads, mine = first + threadIdx.x;
  S sum = S(0);
  for (int64_t row0 = 0; row0 < p.rows; row0 += kBlockThreads) {
    __syncthreads();
    if (row0 + threadIdx.x < p.rows) offsets[threadIdx.x] = offset_of(p, row0 + threadIdx.x);
    __syncthreads();
    const int rows = p.rows - row0 < kBlockThreads ? int(p.rows - row0) : kBlockThreads;
    for (int i = 0; i < rows; ++i) {
      const int64_t within = mine - offsets[i];
      if (within >= 0 && within < p.row_count)
        sum += convert<S>(static_cast<const M*>(p.x)[(row0 + i) * p.row_count + within]);
    }
  }
  if (mine < p.count) static_cast<M*>(p.y)[mine] = convert<M>(sum);
}
#endif

// ---- indices that must lie within an axis ----

TW_KERNEL(check_indices, Indices, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step) {
    const int64_t index = p.x[i];
    const bool inside = index >= p.low && index < p.extent;
    if (!inside) report(p.fault, p.code, p.user, index, i, p.extent, p.axis);
    p.y[i] = !inside ? 0 : index < 0 ? index + p.extent : index;
  }
}
