// From calls of matmul, linear and addmm to the problems of the ladder: batches merged into one
// stride where they can be, the rest walked; which operands are copied first; which types are
// multiplied as they are.
#include <memory>
#include <new>
#include <type_traits>

#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/matmul/matmul.h"
#include "core/cpu/matmul/complex.h"
#include "core/runtime/choice.h"
#include "core/runtime/registry.h"

namespace tw {
namespace {

using std::int64_t;

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

// Any rung does where there is nothing to compute.
const Kernel& choose(const void* problem) {
  const MatmulProblem& p = static_cast<const Product*>(problem)->matrices;
  if (is_empty(p)) return *ladder()->kernels.front();
  return choose_rung(p);
}

// ---- which types, and which copies ----

// Kernels read rows or columns without gaps. One that is forced may want more.
template <const Roles& roles> std::uint32_t copies(const Call& call) {
  std::uint32_t copied = 0;
  for (const int i : {roles.a, roles.b}) {
    const Meta& x = call.in[i];
    if (!is_line(x, x.rank() - 1) && !is_line(x, x.rank() - 2)) copied |= 1u << i;
  }
  if (roles.bias >= 0 && !call.in[roles.bias].contiguous) copied |= 1u << roles.bias;
  if (copied || !is_forced(ladder())) return copied;
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
  if (call.in[roles.a].dtype != DType::bfloat16) return false;
  if (is_batch_invariant()) return false;  // the choice would depend on the rows
  Product q;
  set_up_product(call, roles, q);
  MatmulProblem& p = q.matrices;
  if (p.m * p.n * p.k == 0 || p.epilogue.bias || p.epilogue.relu) return false;
  p.batch = 1;
  p.alpha = 1, p.beta = 0;
  if (!forced_kernel_accepts(ladder(), &p)) return false;
  const double narrow_ns = choose_rung(p).cost_ns(&p);
  p.dtype = DType::float32;
  if (!forced_kernel_accepts(ladder(), &p)) return true;
  constexpr double kNsPerCopy = 100, kNsPerElement = 0.15;
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  const double copies_ns = 3 * kNsPerCopy + kNsPerElement * (m * k + k * n + m * n);
  return narrow_ns < choose_rung(p).cost_ns(&p) + copies_ns &&
         (is_forced(ladder()) || uses(Optimization::bfloat16_products));
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
const char* refuses_into(const Call& call) {
  return call.out[0].dtype != call.in[1].dtype ? "the sums have another type" : nullptr;
}

// One value for each column or for each row.
const char* refuses_addmm(const Call& call) {
  return adds_bias(call) ? refuses_epilogue<kAddmmRoles>(call) : "the input is no bias";
}

template <const Roles& roles, int inputs>
constexpr Lowering lowering(const char* op, const char* (*refuses)(const Call&)) {
  return {.op = op,
          .problem_bytes = sizeof(Product),
          .refuses = refuses,
          .set_up = set_up_product<roles>,
          .bind = bind_product<roles, inputs>,
          .kernels = "matmul",
          .copies = copies<roles>,
          .choose = choose,
          .run = run_product,
          .describe = describe_product};
}
constexpr Lowering kLowerings[] = {
    lowering<kMatmulRoles, 2>("matmul", refuses<kMatmulRoles>),
    lowering<kLinearRoles, 3>("linear", refuses_epilogue<kLinearRoles>),
    lowering<kLinearReluRoles, 3>("linear_relu", refuses_epilogue<kLinearReluRoles>),
    lowering<kAddmmRoles, 3>("addmm", refuses_addmm),
    lowering<kIntoRoles, 3>("matmul_into", refuses_into)};

// ---- complex vectors, the first conjugated ----

const char* refuses_vdot(const Call& call) {
  return is_complex(call.in[0].dtype) ? nullptr : "real numbers are their own conjugates";
}
void set_up_vdot(const Call& call, void* problem) {
  auto& p = *new (problem) MatmulProblem{};
  p.dtype = call.in[0].dtype;
  p.batch = p.m = p.n = 1;
  p.k = call.in[0].count;
  p.a_col = p.b_row = 1;
  p.alpha = 1;
}
void bind_vdot(void* problem, void* const* at) {
  auto& p = *static_cast<MatmulProblem*>(problem);
  p.a = at[0];
  p.b = at[1];
  p.c = at[2];
}
double vdot_ns(const void* problem) {
  constexpr double kBytesPerNs = 16;  // one core reading memory
  const auto& p = *static_cast<const MatmulProblem*>(problem);
  return 100 + 2 * double(p.k) * double(size_of(p.dtype)) / kBytesPerNs;
}
void run_vdot(const void* problem) {
  multiply_vectors(*static_cast<const MatmulProblem*>(problem), true);
}

}  // namespace

void register_matmul_lowerings() {
  for (const Lowering& each : kLowerings) register_lowering(&each);
  add_kernel<MatmulProblem>("vdot_complex", "both vectors as they lie",
                            {.refuses = refuses_vdot,
                             .set_up = set_up_vdot,
                             .bind = bind_vdot,
                             .cost_ns = vdot_ns,
                             .run = run_vdot,
                             .contiguous = 3});
}

}  // namespace tw
