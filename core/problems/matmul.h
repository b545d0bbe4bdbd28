// Matrix products as kernels of every device see them: the problem that each rung of a ladder
// solves, and the way from calls of matmul, linear and addmm to it.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/runtime/op.h"

namespace tw {

struct Kernel;

// What follows a product, for float32 and float64: relu(x + bias[i * row + j * col]) for element
// (i, j) of each matrix of the batch; row and col are 0 or 1.
struct MatmulEpilogue {
  const void* bias = nullptr;  // null: nothing is added
  std::int64_t row = 0, col = 0;
  bool relu = false;
};

// C[b] = epilogue(alpha * A[b] @ B[b] + beta * C[b]) for b in [0, batch), all of one dtype, strides
// in elements (negative allowed, zero only for A and B). beta == 0: C is not read, so it may be
// uninitialised. k == 0 gives beta * C. C never overlaps A or B and its elements are distinct. For
// integers alpha and beta are whole numbers; for bool the product is "or" of "and".
struct MatmulProblem {
  DType dtype;
  std::int64_t batch, m, n, k;
  const void* a;
  std::int64_t a_batch, a_row, a_col;  // A is m x k
  const void* b;
  std::int64_t b_batch, b_row, b_col;  // B is k x n
  void* c;
  std::int64_t c_batch, c_row, c_col;  // C is m x n
  double alpha = 1, beta = 0;
  MatmulEpilogue epilogue{};
};

inline bool is_empty(const MatmulProblem& p) { return p.batch == 0 || p.m == 0 || p.n == 0; }

// A call: a batch of products with even steps, and batch axes around it that are walked.
struct Product {
  MatmulProblem matrices;
  int outer_axes;      // batch axes beyond the problem's own
  std::int64_t outer;  // products along them
  std::int64_t extent[kMaxRank], a[kMaxRank], b[kMaxRank], c[kMaxRank];
};
static_assert(sizeof(Product) <= kMaxProblemBytes && std::is_trivially_copyable_v<Product>);

// Which inputs of an op are what; -1: it has none.
struct Roles {
  int a, b, bias;
  bool b_transposed, relu;
  int beta, alpha;  // attributes
};
inline constexpr Roles kMatmulRoles = {0, 1, -1, false, false, -1, -1};
inline constexpr Roles kLinearRoles = {0, 1, 2, true, false, -1, -1};
inline constexpr Roles kLinearReluRoles = {0, 1, 2, true, true, -1, -1};
inline constexpr Roles kAddmmRoles = {1, 2, 0, false, false, -1, 1};
inline constexpr Roles kIntoRoles = {1, 2, -1, false, false, 0, 1};

void set_up_product(const Call& call, const Roles& roles, Product& product);
template <const Roles& roles> void set_up_product(const Call& call, void* problem) {
  set_up_product(call, roles, *static_cast<Product*>(problem));
}
template <const Roles& roles, int inputs> void bind_product(void* problem, void* const* at) {
  MatmulProblem& p = static_cast<Product*>(problem)->matrices;
  p.a = at[roles.a];
  p.b = at[roles.b];
  p.c = at[inputs];
  if (p.epilogue.bias) p.epilogue.bias = at[roles.bias];
}
// Each of its batches by the kernel.
void run_product(const Kernel& kernel, const void* product);
std::string describe_product(const void* product);

// Whether elements along an axis lie one after another, or repeat.
inline bool is_line(const Meta& x, int axis) {
  const std::int64_t stride = (*x.strides)[axis];
  return stride == 1 || stride == 0 || x.size(axis) == 1;
}

// Whether addmm's input is one value for each column or for each row, added once.
bool adds_bias(const Call& call);

}  // namespace tw
