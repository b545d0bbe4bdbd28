// From calls of matmul, linear and addmm to the problems of the ladder: batches merged into one
// stride where they can be, the rest walked; which operands are copied first; which types are
// multiplied as they are.
#include <memory>
#include <new>
#include <type_traits>

#include "core/cpu/families.h"
#include "core/cpu/matmul.h"
#include "core/runtime/registry.h"
#include "core/runtime/warning.h"

namespace tw {
namespace {

using std::int64_t;

struct Product {
  MatmulProblem matrices;
  int outer_axes;  // batch axes beyond the problem's own
  int64_t outer;   // products along them
  int64_t extent[kMaxRank], a[kMaxRank], b[kMaxRank], c[kMaxRank];
};
static_assert(sizeof(Product) <= kMaxProblemBytes && std::is_trivially_copyable_v<Product>);

const OpKernels* ladder() {
  static const OpKernels* const kernels = find_op("matmul");
  return kernels;
}

const Kernel& choose_rung(const MatmulProblem& p) {
  // On the heap: static TLS space is scarce for libraries that are loaded late (dlopen).
  thread_local std::unique_ptr<ChoiceCache<11>> cache;
  if (!cache) [[unlikely]]
    cache = std::make_unique<ChoiceCache<11>>();
  // All of a problem but its pointers and its batch, with which every estimate grows alike.
  const int64_t extras = (p.beta != 0) | (p.epilogue.bias != nullptr) << 1 |
                         int(p.epilogue.relu) << 2 | p.epilogue.row << 3;
  return cache->choose(ladder(), &p,
                       {static_cast<int64_t>(p.dtype), p.m, p.n, p.k, p.a_row, p.a_col, p.b_row,
                        p.b_col, p.c_row, p.c_col, extras});
}
// Types without a fast rung fall back to the first, three plain loops: a hundred times slower than
// float32.
void warn_of_slow_path(const Kernel& kernel, const MatmulProblem& p) {
  constexpr double kNoticeable = 2e7;  // operations: about 10 ms
  const double flops = 2.0 * double(p.batch) * double(p.m) * double(p.n) * double(p.k);
  if (modes.device || modes.dry_run || flops < kNoticeable || is_floating(p.dtype) ||
      &kernel != ladder()->kernels.front())
    return;
  warn_once(std::string("matmul ") + name_of(p.dtype),
            std::string("matmul: no fast kernel for ") + name_of(p.dtype) + ", the " + kernel.name +
                " one runs; where the values allow, convert with astype(float32) or float64");
}

bool is_empty(const MatmulProblem& p) { return p.batch == 0 || p.m == 0 || p.n == 0; }

// Any rung does where there is nothing to compute.
const Kernel& choose(const void* problem) {
  const MatmulProblem& p = static_cast<const Product*>(problem)->matrices;
  if (is_empty(p)) return *ladder()->kernels.front();
  const Kernel& kernel = choose_rung(p);
  warn_of_slow_path(kernel, p);
  return kernel;
}

// Which inputs of an op are what; -1: it has none.
struct Roles {
  int a, b, bias;
  bool b_transposed, relu;
  int beta, alpha;  // words
};
constexpr Roles kMatmulRoles = {0, 1, -1, false, false, -1, -1};
constexpr Roles kLinearRoles = {0, 1, 2, true, false, -1, -1};
constexpr Roles kLinearReluRoles = {0, 1, 2, true, true, -1, -1};
constexpr Roles kAddmmRoles = {1, 2, 0, false, false, -1, 1};
constexpr Roles kIntoRoles = {1, 2, -1, false, false, 0, 1};

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

// Appends a batch axis, merged with the one before where all three allow.
void push_axis(Product& q, int& rank, int64_t n, int64_t a, int64_t b, int64_t c) {
  if (n == 1) return;
  const int last = rank - 1;
  if (last >= 0 && q.a[last] == n * a && q.b[last] == n * b && q.c[last] == n * c) {
    q.extent[last] *= n;
    q.a[last] = a;
    q.b[last] = b;
    q.c[last] = c;
    return;
  }
  q.extent[rank] = n;
  q.a[rank] = a;
  q.b[rank] = b;
  q.c[rank++] = c;
}

MatmulEpilogue epilogue_of(const Call& call, const Roles& roles) {
  static const char present = 0;  // until the address is known
  if (roles.bias < 0 || call.in[roles.bias].absent) return {nullptr, 0, 0, roles.relu};
  const Meta& bias = call.in[roles.bias];
  const bool by_rows = bias.rank() == 2 && bias.size(0) > 1;
  return {&present, by_rows, bias.size(bias.rank() - 1) > 1, roles.relu};
}

void set_up_product(const Call& call, const Roles& roles, Product& q) {
  const Meta &a = call.in[roles.a], &b = call.in[roles.b], &c = call.out[0];
  const Matrix left = matrix_of(a, false), right = matrix_of(b, roles.b_transposed);
  const Strides& c_strides = *c.strides;
  const int rank = c.rank();
  MatmulProblem& p = *new (&q.matrices) MatmulProblem;
  p.dtype = a.dtype;
  p.alpha = roles.alpha < 0 ? 1 : call.words.real(roles.alpha);
  p.beta = roles.beta < 0 ? 0 : call.words.real(roles.beta);
  p.epilogue = epilogue_of(call, roles);
  p.m = a.size(a.rank() - 2);
  p.k = a.size(a.rank() - 1);
  p.n = c.size(rank - 1);
  p.a_row = left.row, p.a_col = left.col;
  p.b_row = right.row, p.b_col = right.col;
  p.c_row = c_strides[rank - 2], p.c_col = c_strides[rank - 1];
  int axes = 0;
  for (int axis = 0; axis < rank - 2; ++axis) {
    const int from_end = rank - 3 - axis;
    push_axis(q, axes, c.size(axis), batch_stride(a, from_end), batch_stride(b, from_end),
              c_strides[axis]);
  }
  // A stack of matrices times one matrix is one tall product.
  if (axes > 0 && q.b[axes - 1] == 0 && q.a[axes - 1] == p.m * p.a_row &&
      q.c[axes - 1] == p.m * p.c_row && !p.epilogue.row) {
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

template <const Roles& roles> void set_up(const Call& call, void* problem) {
  set_up_product(call, roles, *static_cast<Product*>(problem));
}

template <const Roles& roles, int inputs> void bind(void* problem, void* const* at) {
  MatmulProblem& p = static_cast<Product*>(problem)->matrices;
  p.a = at[roles.a];
  p.b = at[roles.b];
  p.c = at[inputs];
  if (p.epilogue.bias) p.epilogue.bias = at[roles.bias];
}

void run(const Kernel& kernel, const void* problem) {
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

std::string describe(const void* problem) {
  const MatmulProblem& p = static_cast<const Product*>(problem)->matrices;
  std::string text = std::string(name_of(p.dtype)) + " ";
  if (p.batch != 1) text += std::to_string(p.batch) + "x";
  text += std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.beta != 0) text += " + c";
  if (p.epilogue.bias) text += " + bias";
  return p.epilogue.relu ? text + ", relu" : text;
}

// ---- which types, and which copies ----

bool is_line(const Meta& x, int axis) {
  const int64_t stride = (*x.strides)[axis];
  return stride == 1 || stride == 0 || x.size(axis) == 1;
}

// Kernels read rows or columns without gaps. One that is forced may want more.
template <const Roles& roles> std::uint32_t copies(const Call& call) {
  std::uint32_t copied = 0;
  for (const int i : {roles.a, roles.b}) {
    const Meta& x = call.in[i];
    if (!is_line(x, x.rank() - 1) && !is_line(x, x.rank() - 2)) copied |= 1u << i;
  }
  if (roles.bias >= 0 && !call.in[roles.bias].contiguous) copied |= 1u << roles.bias;
  if (copied || (call.in[roles.a].contiguous && call.in[roles.b].contiguous)) return copied;
  Product q;
  set_up_product(call, roles, q);
  if (forced_kernel_accepts(ladder(), &q.matrices)) return copied;
  for (const int i : {roles.a, roles.b})
    if (!call.in[i].contiguous) copied |= 1u << i;
  return copied;
}

// Whether a kernel multiplies bfloat16 as it is sooner than another one copies in float32. A forced
// kernel decides by what it accepts.
bool stays_bfloat16(const Call& call, const Roles& roles) {
  Product q;
  set_up_product(call, roles, q);
  MatmulProblem& p = q.matrices;
  if (is_batch_invariant()) return false;  // the choice would depend on the rows
  if (p.dtype != DType::bfloat16 || p.m * p.n * p.k == 0 || p.epilogue.bias || p.epilogue.relu)
    return false;
  p.batch = 1;
  p.alpha = 1, p.beta = 0;
  if (!forced_kernel_accepts(ladder(), &p)) return false;
  const double narrow_ns = choose_rung(p).cost_ns(&p);
  p.dtype = DType::float32;
  if (!forced_kernel_accepts(ladder(), &p)) return true;
  constexpr double kNsPerCopy = 100, kNsPerElement = 0.15;
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  const double copies_ns = 3 * kNsPerCopy + kNsPerElement * (m * k + k * n + m * n);
  return narrow_ns < choose_rung(p).cost_ns(&p) + copies_ns;
}

// Half types are computed in float32 unless bfloat16 has a kernel; everything else in its own type.
template <const Roles& roles> const char* refuses(const Call& call) {
  const DType dtype = call.in[roles.a].dtype;
  if (!is_floating(dtype) || size_of(dtype) != 2) return nullptr;
  return stays_bfloat16(call, roles) ? nullptr : kTooNarrow;
}
// The epilogue is for float32 and float64: bfloat16 that is multiplied as it is gets it apart.
template <const Roles& roles> const char* refuses_epilogue(const Call& call) {
  const DType dtype = call.in[roles.a].dtype;
  if (!is_floating(dtype)) return "bias and activation are for floating types";
  if (roles.b_transposed && is_forced(ladder())) {
    Product q;
    set_up_product(call, roles, q);
    if (!forced_kernel_accepts(ladder(), &q.matrices)) return "the forced kernel refuses";
  }
  if (size_of(dtype) != 2) return nullptr;
  constexpr Roles plain = {roles.a, roles.b, -1, roles.b_transposed, false, -1, -1};
  return stays_bfloat16(call, plain) ? "bfloat16 is multiplied as it is" : kTooNarrow;
}
// One value for each column or for each row.
const char* refuses_addmm(const Call& call) {
  const Shape& input = *call.in[0].shape;
  const Shape& product = *call.out[0].shape;
  const bool is_bias =
      input == Shape{product[1]} || input == Shape{1, product[1]} || input == Shape{product[0], 1};
  if (call.words.real(0) != 1 || !is_bias) return "the input is no bias";
  return refuses_epilogue<kAddmmRoles>(call);
}
const char* refuses_into(const Call& call) {
  return call.out[0].dtype != call.in[1].dtype ? "the sums have another type" : nullptr;
}

template <const Roles& roles, int inputs>
constexpr Lowering lowering(const char* op, const char* (*refuses)(const Call&)) {
  return {.op = op,
          .problem_bytes = sizeof(Product),
          .refuses = refuses,
          .set_up = set_up<roles>,
          .bind = bind<roles, inputs>,
          .kernels = "matmul",
          .copies = copies<roles>,
          .choose = choose,
          .run = run,
          .describe = describe};
}
constexpr Lowering kLowerings[] = {
    lowering<kMatmulRoles, 2>("matmul", refuses<kMatmulRoles>),
    lowering<kLinearRoles, 3>("linear", refuses_epilogue<kLinearRoles>),
    lowering<kLinearReluRoles, 3>("linear_relu", refuses_epilogue<kLinearReluRoles>),
    lowering<kAddmmRoles, 3>("addmm", refuses_addmm),
    lowering<kIntoRoles, 3>("matmul_into", refuses_into)};

}  // namespace

void register_matmul_lowerings() {
  for (const Lowering& each : kLowerings) register_lowering(&each);
}

}  // namespace tw
