// C = relu(alpha A B + bias + beta C) for a batch of matrices, with any strides. Settings: TW_TYPE
// (elements in memory), TW_SUM (what is added up in).
#include "prelude.cuh"
using M = TW_TYPE;
using S = TW_SUM;

struct Matmul {
  int64_t m, n, k;
  const M *a, *b;
  M* c;
  int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col;
  double alpha, beta;
  const M* bias;
  int64_t bias_row, bias_col, relu;
  // Of rungs that cut k: so many pieces of `terms`, whose sums go to `partial`
  // [batch][piece][m][n].
  S* partial;
  int64_t pieces, terms;
};

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
