// The definition of pointwise ops: row after row, the operands are brought into the type that the
// formula computes in, the formula goes over them one element at a time, and what it made is
// brought into the type of the result. No threads, no buffers that fit a cache, no vectors.
#include <cmath>
#include <memory>
#include <vector>

#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/pointwise/close_values.h"
#include "core/cpu/pointwise/complex_functions.h"
#include "core/cpu/pointwise/pointwise.h"

namespace tw {
namespace {

using Problem = PointwiseProblem;

void convert_row(std::int64_t n, DType from, const void* x, std::int64_t x_step, DType to, void* y,
                 std::int64_t y_step) {
  const ConvertTable& table = *scalar_kernels().convert;
  table.convert[index_of(from)][index_of(to)](n, x, x_step * size_of(from), y,
                                              y_step * size_of(to));
}

// Rows of one operand: taken where they lie if they lie close together in the formula's type.
class Rows {
 public:
  Rows(const Problem& p, int operand, DType type)
      : dtype_(p.dtype[operand]),
        type_(type),
        n_(p.extent[p.rank - 1]),
        step_(p.stride[operand][p.rank - 1]) {
    if (dtype_ != type || step_ != 1)
      own_.reset(new char[static_cast<std::size_t>(n_) * size_of(type)]);
  }
  const void* read(const char* row) const {
    if (!own_) return row;
    convert_row(n_, dtype_, row, step_, type_, own_.get(), 1);
    return own_.get();
  }
  void* place(char* row) const { return own_ ? own_.get() : row; }
  void write(char* row) const {
    if (own_) convert_row(n_, type_, own_.get(), 1, dtype_, row, step_);
  }

 private:
  DType dtype_, type_;
  std::int64_t n_, step_;
  std::unique_ptr<char[]> own_;
};

// The first element of an operand's row.
char* row_at(const Problem& p, int operand, std::int64_t row) {
  std::int64_t offset = 0;
  for (int axis = p.rank - 2; axis >= 0; row /= p.extent[axis--])
    offset += row % p.extent[axis] * p.stride[operand][axis];
  return static_cast<char*>(p.data[operand]) +
         offset * static_cast<std::int64_t>(size_of(p.dtype[operand]));
}

void compute(const Problem& p, PointwiseFn formula) {
  const bool is_bfloat16 = p.type == ComputeType::bf16;
  const DType type = is_bfloat16 ? DType::float32 : dtype_of(p.type);
  const DType made = result_type(p) == DType::bfloat16 ? DType::float32 : result_type(p);
  const std::int64_t n = p.extent[p.rank - 1];
  std::vector<Rows> operands;
  for (int k = 0; k < p.operands; ++k) operands.emplace_back(p, k, k == 0 ? made : type);
  constexpr int kSteps[kMaxPointwiseInputs] = {1, 1, 1, 1, 1};
  for (std::int64_t row = 0; row < p.count / n; ++row) {
    const void* in[kMaxPointwiseInputs];
    for (int k = 1; k < p.operands; ++k)
      in[k - 1] = operands[static_cast<std::size_t>(k)].read(row_at(p, k, row));
    char* const y = row_at(p, 0, row);
    formula(n, operands[0].place(y), in, kSteps, Traffic::in_l1);
    operands[0].write(y);
  }
}

ComputeType plain_type(const Problem& p) {
  return p.type == ComputeType::bf16 ? ComputeType::f32 : p.type;
}
template <PointwiseOp op> void value(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  if (p.checks_exponents) check_exponents(p);
  if (p.count > 0)
    compute(p, pointwise_value(op_for(op, p.dtype[0]), plain_type(p), scalar_kernels()));
}
template <PointwiseOp op, int input> void gradient(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  if (p.count > 0) compute(p, pointwise_gradient(op, input, plain_type(p), scalar_kernels()));
}
template <PointwiseOp op, int input> void add_gradient(const char* name) {
  if (kPointwiseRows[static_cast<int>(op)].gradients[input].form == GradientForm::formula)
    add_definition(name, gradient<op, input>);
}

template <class Number> void conjugate(const ConjugateProblem& p) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    const Number x = static_cast<const Number*>(p.x)[i];
    static_cast<Number*>(p.y)[i] = {x.re, -x.im};
  }
}
void run_conjugate(const void* problem) {
  const auto& p = *static_cast<const ConjugateProblem*>(problem);
  p.dtype == DType::complex64 ? conjugate<Complex64>(p) : conjugate<Complex128>(p);
}

void find_close(const void* problem) {
  const auto& p = *static_cast<const CloseValuesProblem*>(problem);
  for (std::int64_t i = 0; i < p.n; ++i) {
    const bool is_wide = p.dtype == DType::float64;
    const auto number = [&](const void* x) {
      return is_wide ? static_cast<const double*>(x)[i] : double(static_cast<const float*>(x)[i]);
    };
    const double a = number(p.a), b = number(p.b);
    const bool is_near = std::isfinite(b) && std::fabs(a - b) <= p.rtol * std::fabs(b) + p.atol;
    p.y[i] = a == b || is_near || (p.equal_nan && a != a && b != b);
  }
}

}  // namespace

void register_naive_pointwise_kernels() {
#define TW_GRADIENT(name, input) add_gradient<PointwiseOp::name, input>(#name "_backward_" #input);
#define TW_UNARY(name, ...)                        \
  add_definition(#name, value<PointwiseOp::name>); \
  TW_GRADIENT(name, 0)
#define TW_BINARY(name, ...) TW_UNARY(name) TW_GRADIENT(name, 1)
#define TW_TERNARY(name, ...) TW_BINARY(name) TW_GRADIENT(name, 2)
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
#undef TW_GRADIENT
  add_definition("conj", run_conjugate);
  add_definition("close_values", find_close);
}

}  // namespace tw
