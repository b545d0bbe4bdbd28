// Rung 1, naive: one thread an element of C. Threads side by side read the same element of A, from the
// read-only cache, and neighbours of B. Every multiplication waits for two loads.
#include "problem.cuh"

TW_KERNEL(matmul_naive, Matmul, kBlockThreads) {
  const int64_t j = int64_t(blockIdx.x) * kNaiveWide + threadIdx.x % kNaiveWide;
  const int64_t i = int64_t(blockIdx.y) * kNaiveHigh + threadIdx.x / kNaiveWide;
  if (i >= p.m || j >= p.n) return;
  const M* a = p.a + blockIdx.z * p.a_batch + i * p.a_row;
  const M* b = p.b + blockIdx.z * p.b_batch + j * p.b_col;
  S sum = S(0);
  for (int64_t k = 0; k < p.k; ++k)
    add_product(sum, convert<S>(a[k * p.a_col]), convert<S>(b[k * p.b_row]));
  store(p, p.c + blockIdx.z * p.c_batch, i, j, sum);
}
