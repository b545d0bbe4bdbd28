// What gradients of gradients compute, op by op.
#include "core/ops/pointwise/gradient_formulas.h"

#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"

namespace tw {

namespace {

// ---- what the formulas call beside the rows; core/cpu/math has the same over vectors ----

Tensor fma(const Tensor& a, const Operand& b, const Operand& c) {
  return is_complex(a.dtype()) ? a * b + c : multiply_add(a, b, c);
}
Tensor quotient_or_0(const Tensor& a, const Tensor& b) {
  const Tensor zero = b == 0;
  return where(zero, 0, a / where(zero, 1, b));
}
// Where b is 0 as b a^b / a, whose derivatives are those of b a^(b - 1) without its powers of 1 /
// a.
Tensor power_slope(const Tensor& a, const Tensor& b) {
  const Tensor zero = b == 0;
  const Tensor base = where(zero & (a != 0) & (a == a), a, 1);
  return where(zero, b * pow(base, where(zero, b, 0)) / base, b * pow(where(zero, 1, a), b - 1));
}
Tensor over_squared_length(const Tensor& x, const Tensor& a, const Tensor& b) {
  const Tensor length = hypot(a, b);
  return quotient_or_0(quotient_or_0(x, length), length);
}

// Whose derivative loses no digits where it is near 1, as that of the row does, from its result.
Tensor sigmoid(const Tensor& x) {
  const Tensor above = x > 0;
  const Tensor share = tw::sigmoid(where(above, -x, x));
  return where(above, 1 - share, share);
}
Tensor polygamma(const Operand& n, const Operand& x) { return gamma_derivative(x, n); }
Tensor normal_share(const Tensor& x) { return 0.5 * erfc(x * -0.7071067811865476); }
Tensor normal_density(const Tensor& x) { return exp(x * x * -0.5) * 0.3989422804014327; }
Tensor gelu_erf_slope(const Tensor& x) { return normal_share(x) + x * normal_density(x); }
Tensor silu_slope(const Tensor& x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }
Tensor tanh_softplus(const Tensor& x) { return tanh(softplus(x, 1, 20)); }

// ---- the formulas ----

struct None {};
constexpr None none;
Tensor as_tensor(const Tensor& x) { return x; }
Tensor as_tensor(None) { return Tensor(); }
Tensor as_tensor(int) { return Tensor(); }

using TensorGradient = Tensor (*)(int input, const Tensor& g, const Tensor& a, const Tensor& b,
                                  const Tensor& c, const Tensor& y);
#define TW_UNARY(name, types, result, formula, gradient, help)                                    \
  Tensor name##_gradient(int, [[maybe_unused]] const Tensor& g, [[maybe_unused]] const Tensor& x, \
                         const Tensor&, const Tensor&, [[maybe_unused]] const Tensor& y) {        \
    return as_tensor(gradient);                                                                   \
  }
#define TW_BINARY(name, types, result, formula, ga, gb, help)                                \
  Tensor name##_gradient(int input, [[maybe_unused]] const Tensor& g,                        \
                         [[maybe_unused]] const Tensor& a, [[maybe_unused]] const Tensor& b, \
                         const Tensor&, [[maybe_unused]] const Tensor& y) {                  \
    return input == 0 ? as_tensor(ga) : as_tensor(gb);                                       \
  }
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help)                             \
  Tensor name##_gradient(int input, [[maybe_unused]] const Tensor& g,                          \
                         [[maybe_unused]] const Tensor& a, [[maybe_unused]] const Tensor& b,   \
                         [[maybe_unused]] const Tensor& c, [[maybe_unused]] const Tensor& y) { \
    return input == 0 ? as_tensor(ga) : input == 1 ? as_tensor(gb) : as_tensor(gc);            \
  }
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
constexpr TensorGradient kTensorGradients[kPointwiseOps] = {
#define TW_UNARY(name, ...) name##_gradient,
#define TW_BINARY(name, ...) name##_gradient,
#define TW_TERNARY(name, ...) name##_gradient,
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};

// ---- where a row's formula loses digits once it is differentiated again ----

// 1 - x^2: as a product exact near 1 and -1, as a difference of exact slope near 0.
Tensor one_minus_square(const Tensor& x) {
  const Tensor size = is_complex(x.dtype()) ? magnitude(x) : abs(x);
  return where(size < 0.5, 1 - x * x, (1 - x) * (1 + x));
}
// The square of tanh, away from 0 by e^(-2 |x|), of which 1 - tanh(x)^2 has all digits.
Tensor tanh_square(const Tensor& x) {
  const Tensor size = abs(x), far = size > 0.5, near = tanh(where(far, 0, x));
  const Tensor less = exp(-2 * where(far, size, 1)), t = (1 - less) / (1 + less);
  return where(far, t * t, near * near);
}
// With q = sigmoid(-x): tanh(softplus(x)) = (1 - q^2) / (1 + q^2), on each side by what is small.
Tensor mish_slope(const Tensor& x) {
  const Tensor s = sigmoid(x), q = sigmoid(-x), sum = 1 + q * q;
  const Tensor share = where(x > 0, 1 - 2 * q * q / sum, s * (1 + q) / sum);
  return share + x * s * (q / sum) * (q / sum) * 4;
}
// Where |x| is above 30 the slope is 0 or 1 in every type, and its factors overflow further out.
Tensor gelu_tanh_slope(const Tensor& given) {
  const Tensor x = hardtanh(given, -30, 30), square = x * x;
  const Tensor u = x * (1.5957691216057308 + square * 0.07135481627260025);
  const Tensor slope = x * (1.5957691216057308 + square * 0.21406444881780076);
  return sigmoid(u) * (1 + slope * sigmoid(-u));
}

// The row's gradient in other attributes; else empty.
Tensor steady_gradient(PointwiseOp op, const Tensor& g, const Tensor& x) {
  switch (op) {
    case PointwiseOp::asin: return g / sqrt(one_minus_square(x));
    case PointwiseOp::acos: return -g / sqrt(one_minus_square(x));
    case PointwiseOp::atanh: return g / one_minus_square(x);
    case PointwiseOp::tanhshrink: return g * tanh_square(x);
    case PointwiseOp::mish: return g * mish_slope(x);
    case PointwiseOp::gelu_tanh: return g * gelu_tanh_slope(x);
    default: return Tensor();
  }
}
// Where a formula holds for real numbers alone; else empty. Values: a, b, c and the result.
Tensor complex_gradient(PointwiseOp op, int input, const Tensor& g, const Tensor* values) {
  const Tensor &a = values[0], &b = values[1];
  if (op == PointwiseOp::asinh) return g / sqrt(a * a + 1);
  if (op != PointwiseOp::pow) return Tensor();
  const Tensor zero = a == 0;
  if (input == 0) {
    const Tensor none = b == 0;  // b a^(b - 1) is 0 there, whatever a is
    return where(none, 0, g * b * pow(where(none, 1, a), b - 1));
  }
  return where(zero & (real(b) >= 0), 0, g * values[3] * log(astype(where(zero, 1, a), g.dtype())));
}

}  // namespace

Tensor gradient_formula(PointwiseOp op, int input, const Tensor& g,
                        const Tensor (&values)[kMaxRowInputs + 1]) {
  if (is_complex(g.dtype()))
    if (const Tensor dx = complex_gradient(op, input, g, values)) return dx;
  if (const Tensor dx = steady_gradient(op, g, values[0])) return dx;
  const auto& [a, b, c, y] = values;
  return kTensorGradients[static_cast<int>(op)](input, g, a, b, c, y);
}

}  // namespace tw
