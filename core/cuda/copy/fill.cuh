// One value. Settings: TW_TO (its bytes).
#include "prelude.cuh"
#include "fill_parameters.h"

TW_KERNEL(fill, Fill, kBlockThreads) {
  const TW_TO value = *reinterpret_cast<const TW_TO*>(p.value);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step)
    static_cast<TW_TO*>(p.y)[i] = value;
}
