// One row of problems/pointwise.inc: its formula over the elements of its operands. Settings:
//   TW_TYPE     what is computed in       TW_FORMULA  its result, from what TW_TAKE declares
//   TW_OUT      the result's type in memory
//   TW_PACK     elements that a thread reads and writes at once
//   TW_APART    1 where operands are broadcast or strided: one element at a time
//   TW_LOAD     declares what a pack reads, TW_TAKE its k-th element and the formula's steps
#include "math.cuh"
#include "pointwise_parameters.h"

template <class M> struct alignas(sizeof(M) * TW_PACK) Pack {
  M at[TW_PACK];
};

template <class M> TW_DEVICE L number(const Pointwise& p, int i) {
  return convert<T>(*reinterpret_cast<const M*>(p.numbers[i]));
}

template <class M> TW_DEVICE Pack<M> load(const Pointwise& p, int i, int64_t pack) {
#if TW_APART
  pack = place(p.extents, p.strides[i], pack);
#endif
  return reinterpret_cast<const Pack<M>*>(p.in[i])[pack];
}

// Conditions are bool, or int where several are combined.
template <class M> TW_DEVICE M in_memory(bool x) { return convert<M>(x); }
template <class M> TW_DEVICE M in_memory(int x) { return convert<M>(x != 0); }
template <class M> TW_DEVICE M in_memory(L x) { return convert<M>(x.v); }

TW_DEVICE void compute_pack(const Pointwise& p, int64_t pack) {
  TW_LOAD
  Pack<TW_OUT> results;
#pragma unroll
  for (int k = 0; k < TW_PACK; ++k) {
    TW_TAKE
    results.at[k] = in_memory<TW_OUT>(TW_FORMULA);
  }
#if TW_APART
  pack = place(p.extents, p.y_strides, pack);
#endif
  reinterpret_cast<Pack<TW_OUT>*>(p.y)[pack] = results;
}

TW_KERNEL(pointwise, Pointwise, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step)
    compute_pack(p, i);
}
