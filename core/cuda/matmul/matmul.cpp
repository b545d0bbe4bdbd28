// The GPU's ladder for matrix products, and the way to it from calls of matmul, linear and addmm.
#include "core/cuda/gpu/families.h"
#include "core/cuda/matmul/hopper.h"

namespace tw::cuda {

namespace {

// Sums in pieces of k, and tensor cores' order of additions, depend on more than a row.
bool always(const void*) { return true; }

constexpr Kernel kRungs[] = {
    {.op = "matmul",
     .name = "naive",
     .device = "cuda",
     .precision = Precision::ieee,
     .help = "one thread an element",
     .cost_ns = naive_ns,
     .run = run_naive},
    {.op = "matmul",
     .name = "tiled",
     .device = "cuda",
     .precision = Precision::ieee,
     .help = "squares in shared memory",
     .cost_ns = tiled_ns,
     .run = run_tiled},
    {.op = "matmul",
     .name = "registers",
     .device = "cuda",
     .precision = Precision::ieee,
     .help = "blocks in registers, the next tiles on their way",
     .cost_ns = registers_ns,
     .run = run_registers},
    {.op = "matmul",
     .name = "split_k",
     .device = "cuda",
     .precision = Precision::ieee,
     .help = "as registers, few tiles of many terms in pieces along k",
     .accepts = accepts_pieces,
     .cost_ns = split_k_ns,
     .run = run_split_k,
     .depends_on_batch = always},
    {.op = "matmul",
     .name = "tensor",
     .device = "cuda",
     .precision = Precision::ieee,
     .help = "16 bits on tensor cores, summed in float",
     .accepts = accepts_halves,
     .cost_ns = tensor_ns,
     .run = run_tensor,
     .depends_on_batch = always},
    {.op = "matmul",
     .name = "hopper",
     .device = "cuda",
     .precision = Precision::ieee,
     .help =
         "16 bits by warpgroups of 9.0, fed by the copy engine; what begins off 16 bytes goes to "
         "tensor",
     .accepts = accepts_hopper,
     .cost_ns = hopper_ns,
     .run = run_hopper,
     .depends_on_batch = always},
    {.op = "matmul",
     .name = "split",
     .device = "cuda",
     .precision = Precision::fp32,
     .help = "two halves of scaled rows, three products on tensor cores: as exact as float32",
     .accepts = accepts_split,
     .cost_ns = split_ns,
     .run = run_split,
     .depends_on_batch = always},
    {.op = "matmul",
     .name = "tf32",
     .device = "cuda",
     .precision = Precision::medium,
     .help = "operands rounded to tf32 (11 bits) on tensor cores, summed in float32",
     .accepts = accepts_float,
     .cost_ns = tensor_ns,
     .run = run_tensor,
     .depends_on_batch = always},
    {.op = "matmul",
     .name = "bf16x6",
     .device = "cuda",
     .precision = Precision::fp32,
     .help = "three bfloat16 parts, six products on tensor cores: all bits of float32",
     .accepts = accepts_float,
     .cost_ns = parts_ns<6>,
     .run = run_parts<3>,
     .depends_on_batch = always},
    {.op = "matmul",
     .name = "bf16x3",
     .device = "cuda",
     .precision = Precision::high,
     .help = "two bfloat16 parts, three products: 16 bits",
     .accepts = accepts_float,
     .cost_ns = parts_ns<3>,
     .run = run_parts<2>,
     .depends_on_batch = always},
    {.op = "matmul",
     .name = "bf16",
     .device = "cuda",
     .precision = Precision::medium,
     .help = "operands rounded to bfloat16, summed in float32",
     .accepts = accepts_float,
     .cost_ns = parts_ns<1>,
     .run = run_parts<1>,
     .depends_on_batch = always},
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
