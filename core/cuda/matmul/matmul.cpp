// The GPU's ladder for matrix products, and the way to it from calls of matmul, linear and addmm.
#include "core/cuda/gpu/families.h"
#include "core/cuda/matmul/hopper.h"

namespace tw::cuda {

namespace {

// Sums in pieces of k, and tensor cores' order of additions, depend on more than a row.
bool always(const void*) { return true; }

constexpr Kernel kRungs[] = {
    {"matmul", "naive", "cuda", Precision::ieee, "one thread an element", nullptr, naive_ns,
     run_naive},
    {"matmul", "tiled", "cuda", Precision::ieee, "squares in shared memory", nullptr, tiled_ns,
     run_tiled},
    {"matmul", "registers", "cuda", Precision::ieee,
     "blocks in registers, the next tiles on their way", nullptr, registers_ns, run_registers},
    {"matmul", "split_k", "cuda", Precision::ieee,
     "as registers, few tiles of many terms in pieces along k", accepts_pieces, split_k_ns,
     run_split_k, nullptr, nullptr, true, always},
    {"matmul", "tensor", "cuda", Precision::ieee, "16 bits on tensor cores, summed in float",
     accepts_halves, tensor_ns, run_tensor, nullptr, nullptr, true, always},
    {"matmul", "hopper", "cuda", Precision::ieee,
     "16 bits by warpgroups of 9.0, fed by the copy engine; what begins off 16 bytes goes to "
     "tensor",
     accepts_hopper, hopper_ns, run_hopper, nullptr, nullptr, true, always},
    {"matmul", "split", "cuda", Precision::fp32,
     "two halves of scaled rows, three products on tensor cores: as exact as float32",
     accepts_split, split_ns, run_split, nullptr, nullptr, true, always},
    {"matmul", "tf32", "cuda", Precision::medium,
     "operands rounded to tf32 (11 bits) on tensor cores, summed in float32", accepts_float,
     tensor_ns, run_tensor, nullptr, nullptr, true, always},
    {"matmul", "bf16x6", "cuda", Precision::fp32,
     "three bfloat16 parts, six products on tensor cores: all bits of float32", accepts_float,
     parts_ns<6>, run_parts<3>, nullptr, nullptr, true, always},
    {"matmul", "bf16x3", "cuda", Precision::high, "two bfloat16 parts, three products: 16 bits",
     accepts_float, parts_ns<3>, run_parts<2>, nullptr, nullptr, true, always},
    {"matmul", "bf16", "cuda", Precision::medium, "operands rounded to bfloat16, summed in float32",
     accepts_float, parts_ns<1>, run_parts<1>, nullptr, nullptr, true, always},
};

const OpKernels* ladder() {
  static const OpKernels* const kernels = find_op("matmul", KernelSet::cuda);
  return kernels;
}
const Kernel& choose(const void* problem) {
  const MatmulProblem& p = static_cast<const Product*>(problem)->matrices;
  return is_empty(p) ? *ladder()->kernels.front() : choose_among(ladder(), &p);
}

const char* refuses_addmm(const Call& call) {
  return adds_bias(call) ? nullptr : "the input is no bias";
}
const char* refuses_into(const Call& call) {
  return call.out[0].dtype != call.in[1].dtype ? "the sums have another type" : nullptr;
}
// The bias alone: kernels take any strides of matrices.
template <const Roles& roles> std::uint32_t copies(const Call& call) {
  return roles.bias >= 0 && !call.in[roles.bias].absent && !call.in[roles.bias].contiguous
             ? 1u << roles.bias
             : 0;
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
          .describe = describe_product,
          .set = KernelSet::cuda};
}
constexpr Lowering kLowerings[] = {lowering<kMatmulRoles, 2>("matmul", nullptr),
                                   lowering<kLinearRoles, 3>("linear", nullptr),
                                   lowering<kLinearReluRoles, 3>("linear_relu", nullptr),
                                   lowering<kAddmmRoles, 3>("addmm", refuses_addmm),
                                   lowering<kIntoRoles, 3>("matmul_into", refuses_into)};

}  // namespace

std::vector<std::pair<std::string, double>> product_estimates(std::int64_t m, std::int64_t k,
                                                              std::int64_t n, DType dtype) {
  const MatmulProblem p = {dtype,   1,     m, n, k,       nullptr, m * k, k, 1,
                           nullptr, k * n, n, 1, nullptr, m * n,   n,     1};
  std::vector<std::pair<std::string, double>> estimates;
  for (const Kernel* rung : ladder()->kernels)
    if (!rung->accepts || rung->accepts(&p, nullptr))
      estimates.emplace_back(rung->name, rung->cost_ns(&p));
  return estimates;
}

void register_matmul_kernels() {
  for (const Kernel& rung : kRungs) register_kernel(&rung);
  for (const Lowering& each : kLowerings) register_lowering(&each);
}

}  // namespace tw::cuda
