// Functions that gradient formulas of pointwise.inc call beside its rows, over tensors, for
// gradients of gradients; core/cpu/math has the same over vectors.
#pragma once
#include "core/ops/pointwise.h"

namespace tw {

inline Tensor quotient_or_0(const Tensor& a, const Tensor& b) {
  const Tensor zero = b == 0;
  return where(zero, 0, a / where(zero, 1, b));
}
// Where b is 0 as b a^b / a, whose derivatives are those of b a^(b - 1) without its powers of 1 /
// a.
inline Tensor power_slope(const Tensor& a, const Tensor& b) {
  const Tensor zero = b == 0;
  const Tensor base = where(zero & (a != 0) & (a == a), a, 1);
  return where(zero, b * pow(base, where(zero, b, 0)) / base, b * pow(where(zero, 1, a), b - 1));
}
inline Tensor over_squared_length(const Tensor& x, const Tensor& a, const Tensor& b) {
  const Tensor length = hypot(a, b);
  return quotient_or_0(quotient_or_0(x, length), length);
}

inline Tensor polygamma(const Operand& n, const Operand& x) { return gamma_derivative(x, n); }
inline Tensor normal_share(const Tensor& x) { return 0.5 * erfc(x * -0.7071067811865476); }
inline Tensor normal_density(const Tensor& x) { return exp(x * x * -0.5) * 0.3989422804014327; }
inline Tensor gelu_erf_slope(const Tensor& x) { return normal_share(x) + x * normal_density(x); }
inline Tensor silu_slope(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return s * (1 + x * (1 - s));
}
inline Tensor tanh_softplus(const Tensor& x) { return tanh(softplus(x, 1, 20)); }

}  // namespace tw
