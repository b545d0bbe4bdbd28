// The complex conjugate. Setting: TW_TYPE.
#include "prelude.cuh"

struct Conjugate {
  int64_t count;
  const TW_TYPE* x;
  TW_TYPE* y;
};
TW_KERNEL(conjugate, Conjugate, 256) {
  const int64_t step = int64_t(gridDim.x) * 256;
  for (int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x; i < p.count; i += step)
    p.y[i] = {p.x[i].re, -p.x[i].im};
}
