// Batches are merged into one stride where they can be; the rest are walked.
#include "core/problems/matmul.h"

#include <new>

#include "core/problems/axes.h"
#include "core/runtime/choice.h"
#include "core/runtime/registry.h"

namespace tw {
namespace {

using std::int64_t;

struct Matrix {
  const Meta* meta;
  int64_t row, col;
};
Matrix matrix_of(const Meta& x, bool transposed) {
  const int rank = x.rank();
  const int64_t row = (*x.strides)[rank - 2], col = (*x.strides)[rank - 1];
  return transposed ? Matrix{&x, col, row} : Matrix{&x, row, col};
}

int64_t batch_stride(const Meta& x, int axis_from_end) {
  const int axis = x.rank() - 3 - axis_from_end;
  return axis < 0 || x.size(axis) == 1 ? 0 : (*x.strides)[axis];
}

MatmulEpilogue epilogue_of(const Call& call, const Roles& roles) {
  static const char present = 0;  // until the address is known
  if (roles.bias < 0 || call.in[roles.bias].absent) return {nullptr, 0, 0, roles.relu};
  const Meta& bias = call.in[roles.bias];
  const bool by_rows = bias.rank() == 2 && bias.size(0) > 1;
  return {&present, by_rows, bias.size(bias.rank() - 1) > 1, roles.relu};
}

}  // namespace

void set_up_product(const Call& call, const Roles& roles, Product& q) {
  const Meta &a = call.in[roles.a], &b = call.in[roles.b], &c = call.out[0];
  const Matrix left = matrix_of(a, false), right = matrix_of(b, roles.b_transposed);
  const Strides& c_strides = *c.strides;
  const int rank = c.rank();
  MatmulProblem& p = *new (&q.matrices) MatmulProblem;
  p.dtype = a.dtype;
  p.alpha = roles.alpha < 0 ? 1 : call.attributes.real(roles.alpha);
  p.beta = roles.beta < 0 ? 0 : call.attributes.real(roles.beta);
  p.epilogue = epilogue_of(call, roles);
  p.m = a.size(a.rank() - 2);
  p.k = a.size(a.rank() - 1);
  p.n = c.size(rank - 1);
  p.a_row = left.row, p.a_col = left.col;
  p.b_row = right.row, p.b_col = right.col;
  p.c_row = c_strides[rank - 2], p.c_col = c_strides[rank - 1];
  std::int64_t* const strides[] = {q.a, q.b, q.c};
  OperandAxes batch{0, 3, q.extent,
                    [&strides](int k, int axis) -> int64_t& { return strides[k][axis]; }};
  for (int axis = 0; axis < rank - 2; ++axis) {
    const int from_end = rank - 3 - axis;
    const int64_t steps[] = {batch_stride(a, from_end), batch_stride(b, from_end), c_strides[axis]};
    batch.push(c.size(axis), steps);
  }
  int axes = batch.rank;
  // A stack of matrices times one matrix is one tall product.
  if (axes > 0 && q.b[axes - 1] == 0 && q.a[axes - 1] == p.m * p.a_row &&
      q.c[axes - 1] == p.m * p.c_row && !p.epilogue.row && uses(Optimization::batch_folding)) {
    p.m *= q.extent[axes - 1];
    --axes;
  }
  q.outer_axes = axes > 0 ? axes - 1 : 0;
  p.batch = axes > 0 ? q.extent[axes - 1] : 1;
  p.a_batch = axes > 0 ? q.a[axes - 1] : 0;
  p.b_batch = axes > 0 ? q.b[axes - 1] : 0;
  p.c_batch = axes > 0 ? q.c[axes - 1] : 0;
  q.outer = 1;
  for (int axis = 0; axis < q.outer_axes; ++axis) q.outer *= q.extent[axis];
}

void run_product(const Kernel& kernel, const void* problem) {
  const auto& q = *static_cast<const Product*>(problem);
  if (is_empty(q.matrices)) return;
  if (q.outer_axes == 0) return kernel.run(&q.matrices);
  MatmulProblem p = q.matrices;
  const auto bytes = static_cast<int64_t>(size_of(p.dtype));
  for (int64_t index = 0; index < q.outer; ++index) {
    int64_t rest = index, at_a = 0, at_b = 0, at_c = 0;
    for (int axis = q.outer_axes - 1; axis >= 0; --axis) {
      const int64_t i = rest % q.extent[axis];
      rest /= q.extent[axis];
      at_a += i * q.a[axis];
      at_b += i * q.b[axis];
      at_c += i * q.c[axis];
    }
    p.a = static_cast<const char*>(q.matrices.a) + at_a * bytes;
    p.b = static_cast<const char*>(q.matrices.b) + at_b * bytes;
    p.c = static_cast<char*>(q.matrices.c) + at_c * bytes;
    kernel.run(&p);
  }
}

std::string describe_product(const void* problem) {
  const MatmulProblem& p = static_cast<const Product*>(problem)->matrices;
  std::string text = std::string(name_of(p.dtype)) + " ";
  if (p.batch != 1) text += std::to_string(p.batch) + "x";
  text += std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.beta != 0) text += " + c";
  if (p.epilogue.bias) text += " + bias";
  return p.epilogue.relu ? text + ", relu" : text;
}

bool adds_bias(const Call& call) {
  const Shape& input = *call.in[0].shape;
  const Shape& product = *call.out[0].shape;
  const bool is_bias =
      input == Shape{product[1]} || input == Shape{1, product[1]} || input == Shape{product[0], 1};
  return call.attributes.real(0) == 1 && is_bias;
}

}  // namespace tw
