// What rungs of products share: their parameter, and what becomes of a sum. Settings: TW_TYPE
// (elements in memory), TW_SUM (what is added up in).
#include "prelude.cuh"
#include "matmul_parameters.h"
using M = TW_TYPE;
using S = TW_SUM;
using Matmul = MatmulOf<M, S>;

template <class V> TW_DEVICE V scaled(double by, V x) { return V(by) * x; }
template <class Part> TW_DEVICE Complex<Part> scaled(double by, Complex<Part> z) {
  return {Part(by) * z.re, Part(by) * z.im};
}
// NaN stays.
template <class V> TW_DEVICE V rectified(V x) { return x >= V(0) || x != x ? x : V(0); }
template <class Part> TW_DEVICE Complex<Part> rectified(Complex<Part> z) { return z; }  // not asked

// What becomes of one sum.
TW_DEVICE M finished(const Matmul& p, const M* at, int64_t i, int64_t j, S sum) {
  S value = scaled(p.alpha, sum);
  if (p.beta != 0) value += scaled(p.beta, convert<S>(*at));
  if (p.bias) value += convert<S>(p.bias[i * p.bias_row + j * p.bias_col]);
  if (p.relu) value = rectified(value);
  return convert<M>(value);
}
// One sum goes to its place.
TW_DEVICE void store(const Matmul& p, M* c, int64_t i, int64_t j, S sum) {
  M* at = c + i * p.c_row + j * p.c_col;
  *at = finished(p, at, i, j, sum);
}
