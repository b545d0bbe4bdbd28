// The sums of pieces of k become C: added up in the order of the pieces, whatever order they were
// made in, so that the bits are the same every time and on every GPU.
#include "problem.cuh"

TW_KERNEL(matmul_join, Matmul, kBlockThreads) {
  const int64_t elements = p.m * p.n, step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t e = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; e < elements; e += step) {
    const S* at = p.partial + blockIdx.z * p.pieces * elements + e;
    S sum = at[0];
    for (int64_t piece = 1; piece < p.pieces; ++piece) sum += at[piece * elements];
    store(p, p.c + blockIdx.z * p.c_batch, e / p.n, e % p.n, sum);
  }
}
