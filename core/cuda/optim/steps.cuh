// One row of problems/updates.inc, over many parameters in one launch. Settings: TW_TYPE (what is computed
// in and states have), TW_MEMORY (of parameters and gradients), TW_STATES (how many, -1: no gradient
// either), TW_UPDATE (what becomes of p, s1, s2, s3 by g and f),
// TW_NUMBER (type of a factor that is a tensor).
#include "math.cuh"
#include "steps_parameters.h"
using M = TW_MEMORY;
using Slice = SliceOf<M, T>;
using Update = UpdateOf<M, T, TW_NUMBER>;

TW_DEVICE L& operator+=(L& a, L b) { return a = a + b; }
TW_DEVICE L& operator-=(L& a, L b) { return a = a - b; }
TW_DEVICE L weighted(L f, L x) { return f * where(f == 0, 0, x); }

// The second axis of the grid counts slices.
TW_KERNEL(update, Update, kBlockThreads) {
  const Slice& slice = p.slices[blockIdx.y];
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < slice.n; i += step) {
    const Update& all = p;
    L f[kMostFactors];
#pragma unroll
    for (int k = 0; k < kMostFactors; ++k) f[k] = L(all.made ? all.made[k] : all.factors[k]);
    if (all.number) f[0] = L(*all.number);
    L g = 0, s1 = 0, s2 = 0, s3 = 0;
    L p = convert<T>(slice.param[i]);
#if TW_STATES >= 0
    g = convert<T>(slice.grad[i]);
#endif
#if TW_STATES >= 1
    s1 = slice.states[0][i];
#endif
#if TW_STATES >= 2
    s2 = slice.states[1][i];
#endif
#if TW_STATES >= 3
    s3 = slice.states[2][i];
#endif
    TW_UPDATE;
    slice.param[i] = convert<M>(p.v);
#if TW_STATES >= 1
    slice.states[0][i] = s1.v;
#endif
#if TW_STATES >= 2
    slice.states[1][i] = s2.v;
#endif
#if TW_STATES >= 3
    slice.states[2][i] = s3.v;
#endif
  }
}
