// What gradients of gradients compute: the steps of a formula's graph, each an op.
#include "core/ops/pointwise/gradient_formulas.h"

#include <cmath>
#include <utility>
#include <vector>

#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"

namespace tw {

namespace {

// ---- what the formulas call beside the rows; core/cpu/math has the same over vectors ----

Tensor quotient_or_0(const Operand& a, const Operand& b) {
  const Tensor zero = b == 0;
  return where(zero, 0, a / where(zero, 1, b));
}
// Where b is 0 as b a^b / a, whose derivatives are those of b a^(b - 1) without its powers of 1 /
// a.
Tensor power_slope(const Operand& a, const Operand& b) {
  const Tensor zero = b == 0;
  const Tensor base = where(zero & (a != 0) & (a == a), a, 1);
  return where(zero, b * pow(base, where(zero, b, 0)) / base, b * pow(where(zero, 1, a), b - 1));
}
Tensor over_squared_length(const Operand& x, const Operand& a, const Operand& b) {
  const Tensor length = hypot(a, b);
  return quotient_or_0(quotient_or_0(x, length), length);
}

// Whose derivative loses no digits where it is near 1, as that of the row does, from its result.
Tensor steady_sigmoid(const Operand& x) {
  const Tensor above = x > 0;
  const Tensor share = sigmoid(where(above, negative(x), x));
  return where(above, 1 - share, share);
}
Tensor polygamma(const Operand& n, const Operand& x) { return gamma_derivative(x, n); }
Tensor normal_share(const Operand& x) { return 0.5 * erfc(x * -0.7071067811865476); }
Tensor normal_density(const Operand& x) { return exp(x * x * -0.5) * 0.3989422804014327; }
Tensor gelu_erf_slope(const Operand& x) { return normal_share(x) + x * normal_density(x); }
Tensor silu_slope(const Operand& x) {
  return steady_sigmoid(x) * (1 + x * steady_sigmoid(negative(x)));
}
Tensor tanh_softplus(const Operand& x) { return tanh(softplus(x, 1, 20)); }
Tensor fma(const Operand& a, const Operand& b, const Operand& c) {
  const auto of_complex = [](const Operand& x) {
    return x.is_tensor() && is_complex(x.tensor.dtype());
  };
  const bool is_row = !of_complex(a) && !of_complex(b) && !of_complex(c);
  return is_row ? multiply_add(a, b, c) : a * b + c;
}
Tensor weighted(const Operand& f, const Operand& x) { return f * where(f == 0, 0, x); }

// ---- the formulas, step by step ----

Operand number_of(double number) {
  const bool whole = std::fabs(number) < 1e9 && number == std::trunc(number);
  return whole ? Operand(static_cast<int>(number)) : Operand(number);
}
Tensor apply_function(formula::Function function, const Operand* in) {
  if (function == formula::Function::sigmoid) return steady_sigmoid(in[0]);
  switch (function) {
#define TW_OPERATOR(name, symbol, ...) \
  case formula::Function::name: return in[0] symbol in[1];
#define TW_FUNCTION(name, arity, ...) TW_FUNCTION_OF_##arity(name)
#define TW_FUNCTION_OF_1(name) \
  case formula::Function::name: return name(in[0]);
#define TW_FUNCTION_OF_2(name) \
  case formula::Function::name: return name(in[0], in[1]);
#define TW_FUNCTION_OF_3(name) \
  case formula::Function::name: return name(in[0], in[1], in[2]);
#include "core/problems/formula_functions.inc"
#undef TW_OPERATOR
#undef TW_FUNCTION
#undef TW_FUNCTION_OF_1
#undef TW_FUNCTION_OF_2
#undef TW_FUNCTION_OF_3
    default: return Tensor();
  }
}

// `inputs`: by their numbers.
Tensor value_of(const formula::Formula& formula, const Tensor* const* inputs) {
  std::vector<Operand> values(static_cast<std::size_t>(formula.size));
  std::vector<int> readers(values.size());
  for (int i = 0; i < formula.size; ++i)
    for (int k = 0; k < formula::operands_of(formula.nodes[i]); ++k)
      ++readers[formula.nodes[i].of[k]];
  for (int i = 0; i < formula.size; ++i) {
    const formula::Node& node = formula.nodes[i];
    if (node.function == formula::Function::input) {
      values[i] = *inputs[node.of[0]];
    } else if (node.function == formula::Function::number) {
      values[i] = number_of(node.number);
    } else {
      Operand in[formula::kMaxOperands];
      for (int k = 0; k < formula::operands_of(node); ++k)
        in[k] = --readers[node.of[k]] ? values[node.of[k]] : std::move(values[node.of[k]]);
      values[i] = apply_function(node.function, in);
    }
  }
  return values.back().tensor;
}

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
// With q = steady_sigmoid(-x): tanh(softplus(x)) = (1 - q^2) / (1 + q^2), on each side by what is
// small.
Tensor mish_slope(const Tensor& x) {
  const Tensor s = steady_sigmoid(x), q = steady_sigmoid(-x), sum = 1 + q * q;
  const Tensor share = where(x > 0, 1 - 2 * q * q / sum, s * (1 + q) / sum);
  return share + x * s * (q / sum) * (q / sum) * 4;
}
// Where |x| is above 30 the slope is 0 or 1 in every type, and its factors overflow further out.
Tensor gelu_tanh_slope(const Tensor& given) {
  const Tensor x = hardtanh(given, -30, 30), square = x * x;
  const Tensor u = x * (1.5957691216057308 + square * 0.07135481627260025);
  const Tensor slope = x * (1.5957691216057308 + square * 0.21406444881780076);
  return steady_sigmoid(u) * (1 + slope * steady_sigmoid(-u));
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
  const Tensor* inputs[kPointwiseInputs];
  for (int i = 0; i <= kMaxRowInputs; ++i) inputs[i] = &values[i];
  inputs[input_g] = &g;
  return value_of(kPointwiseRows[static_cast<int>(op)].gradients[input].graph, inputs);
}

}  // namespace tw
