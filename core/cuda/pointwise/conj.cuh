// The complex conjugate. Setting: TW_TYPE.
#include "prelude.cuh"
#include "conj_parameters.h"
using Conjugate = ConjugateOf<TW_TYPE>;

TW_KERNEL(conjugate, Conjugate, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t i = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; i < p.count; i += step)
    p.y[i] = {p.x[i].re, -p.x[i].im};
}
