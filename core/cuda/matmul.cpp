// The GPU's ladder for matrix products, and the way to it from calls of matmul, linear and addmm.
#include <cmath>

#include "core/base/error.h"
#include "core/cuda/families.h"
#include "core/cuda/lowering.h"
#include "core/ops/product.h"

namespace tw::cuda {

namespace {

// The parameter of kernels/matmul.
struct Parameter {
  std::int64_t m, n, k;
  const void *a, *b;
  void* c;
  std::int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col;
  double alpha, beta;
  const void* bias;
  std::int64_t bias_row, bias_col, relu;
};

Parameter parameter_of(const MatmulProblem& p) {
  return {p.m,
          p.n,
          p.k,
          p.a,
          p.b,
          p.c,
          p.a_batch,
          p.a_row,
          p.a_col,
          p.b_batch,
          p.b_row,
          p.b_col,
          p.c_batch,
          p.c_row,
          p.c_col,
          p.alpha,
          p.beta,
          p.epilogue.bias,
          p.epilogue.row,
          p.epilogue.col,
          p.epilogue.relu};
}

std::string settings_of(DType dtype) {
  return define("TW_TYPE", type_name(dtype)) + define("TW_SUM", type_name(compute_dtype(dtype)));
}

constexpr std::int64_t kMostBlocks = 65535;  // of a grid's second and third axis

// Blocks of high x wide elements of C; a batch longer than a grid takes is cut.
void launch_blocks(const MatmulProblem& p, Function kernel, int high, int wide, unsigned shared) {
  Parameter parameter = parameter_of(p);
  const std::int64_t size = static_cast<std::int64_t>(size_of(p.dtype));
  for (std::int64_t first = 0; first < p.batch; first += kMostBlocks) {
    const std::int64_t count = std::min(kMostBlocks, p.batch - first);
    for (std::int64_t i0 = 0; i0 < p.m; i0 += kMostBlocks * high) {
      const std::int64_t rows = std::min(kMostBlocks * high, p.m - i0);
      parameter.a = static_cast<const char*>(p.a) + (first * p.a_batch + i0 * p.a_row) * size;
      parameter.b = static_cast<const char*>(p.b) + first * p.b_batch * size;
      parameter.c = static_cast<char*>(p.c) + (first * p.c_batch + i0 * p.c_row) * size;
      parameter.m = rows;
      if (p.epilogue.bias)
        parameter.bias = static_cast<const char*>(p.epilogue.bias) + i0 * p.epilogue.row * size;
      Grid grid;
      grid.blocks[0] = static_cast<unsigned>(divide_up(p.n, wide));
      grid.blocks[1] = static_cast<unsigned>(divide_up(rows, high));
      grid.blocks[2] = static_cast<unsigned>(count);
      grid.threads = 256;
      grid.shared_bytes = shared;
      Gpu::current().launch(kernel, grid, &parameter);
    }
  }
}

const MatmulProblem& problem_of(const void* problem) {
  return *static_cast<const MatmulProblem*>(problem);
}

void run_naive(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  static const char place = 0;
  launch_blocks(p,
                kernel_of(&place, static_cast<std::uint64_t>(p.dtype), "matmul/naive.cuh",
                          "matmul_naive", [&] { return settings_of(p.dtype); }),
                8, 32, 0);
}
void run_tiled(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  static const char place = 0;
  launch_blocks(p,
                kernel_of(&place, static_cast<std::uint64_t>(p.dtype), "matmul/tiled.cuh",
                          "matmul_tiled", [&] { return settings_of(p.dtype); }),
                32, 32, 0);
}

// Elements of C that a thread has along each axis: eight where there are blocks for all
// multiprocessors then, else four.
int fours_of(const MatmulProblem& p) {
  const std::int64_t blocks = divide_up(p.m, 128) * divide_up(p.n, 128) * p.batch;
  return size_of(compute_dtype(p.dtype)) == 4 && blocks >= Gpu::current().facts.multiprocessors ? 8
                                                                                                : 4;
}
void run_registers(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  static const char place = 0;
  const int each = fours_of(p), side = 16 * each;
  const bool a_lines = std::abs(p.a_col) <= std::abs(p.a_row);
  const bool b_lines = std::abs(p.b_row) <= std::abs(p.b_col);
  const std::uint64_t key =
      ((static_cast<std::uint64_t>(p.dtype) * 16 + static_cast<std::uint64_t>(each)) * 2 +
       a_lines) *
          2 +
      b_lines;
  const Function kernel = kernel_of(&place, key, "matmul/registers.cuh", "matmul_registers", [&] {
    return settings_of(p.dtype) + define("TW_ROWS", std::to_string(each)) +
           define("TW_COLUMNS", std::to_string(each)) + define("TW_A_LINES", a_lines ? "1" : "0") +
           define("TW_B_LINES", b_lines ? "1" : "0");
  });
  const std::size_t sum_bytes = size_of(compute_dtype(p.dtype));
  const auto shared = static_cast<unsigned>(2 * 16 * 2 * (side + 4) * sum_bytes);
  launch_blocks(p, kernel, side, side, shared);
}

// Float in parts of bfloat16, or 16 bits as they are (one part).
template <int parts> void run_tensor(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  static const char place = 0;
  const bool a_lines = std::abs(p.a_col) <= std::abs(p.a_row);
  const bool b_lines = std::abs(p.b_row) <= std::abs(p.b_col);
  const std::uint64_t key = (static_cast<std::uint64_t>(p.dtype) * 2 + a_lines) * 2 + b_lines;
  const Function kernel = kernel_of(&place, key, "matmul/tensor.cuh", "matmul_tensor", [&] {
    return settings_of(p.dtype) + define("TW_KIND", p.dtype == DType::float16 ? "1" : "0") +
           define("TW_PARTS", std::to_string(parts)) + define("TW_A_LINES", a_lines ? "1" : "0") +
           define("TW_B_LINES", b_lines ? "1" : "0");
  });
  constexpr int high = 128, wide = 64, pitch = 40;
  launch_blocks(p, kernel, high, wide, parts * (high + wide) * pitch * 2);
}
bool accepts_halves(const void* problem, std::string* reason) {
  const DType dtype = problem_of(problem).dtype;
  if (dtype == DType::bfloat16 || dtype == DType::float16) return true;
  if (reason) *reason = "for bfloat16 and float16";
  return false;
}
bool accepts_float(const void* problem, std::string* reason) {
  if (problem_of(problem).dtype == DType::float32) return true;
  if (reason) *reason = "for float32";
  return false;
}

// Estimates from a multiprocessor's rate: multiply-adds a cycle that a rung has been seen to reach,
// and blocks in waves.
double waves_ns(const MatmulProblem& p, int high, int wide, double products_per_ns) {
  const GpuFacts& facts = Gpu::current().facts;
  const double blocks = static_cast<double>(divide_up(p.m, high) * divide_up(p.n, wide)) *
                        static_cast<double>(p.batch);
  const double each = static_cast<double>(high) * wide * static_cast<double>(p.k);
  const double waves = std::ceil(blocks / facts.multiprocessors);
  return 3000 + waves * (1000 + each / products_per_ns);
}
double naive_ns(const void* problem) { return waves_ns(problem_of(problem), 8, 32, 8); }
double tiled_ns(const void* problem) { return waves_ns(problem_of(problem), 32, 32, 40); }
double registers_ns(const void* problem) {
  const MatmulProblem& p = problem_of(problem);
  const int each = fours_of(p);
  return waves_ns(p, 16 * each, 16 * each, each == 8 ? 180 : 120);
}

template <int products> double tensor_ns(const void* problem) {
  return waves_ns(problem_of(problem), 128, 64, 800.0 / products);
}

constexpr Kernel kRungs[] = {
    {"matmul", "naive", "cuda", Precision::ieee, "one thread an element", nullptr, naive_ns,
     run_naive},
    {"matmul", "tiled", "cuda", Precision::ieee, "squares in shared memory", nullptr, tiled_ns,
     run_tiled},
    {"matmul", "registers", "cuda", Precision::ieee,
     "blocks in registers, the next tiles on their way", nullptr, registers_ns, run_registers},
    {"matmul", "tensor", "cuda", Precision::ieee, "16 bits on tensor cores, summed in float",
     accepts_halves, tensor_ns<1>, run_tensor<1>},
    {"matmul", "bf16x6", "cuda", Precision::fp32,
     "three bfloat16 parts, six products on tensor cores: all bits of float32", accepts_float,
     tensor_ns<6>, run_tensor<3>},
    {"matmul", "bf16x3", "cuda", Precision::high, "two bfloat16 parts, three products: 16 bits",
     accepts_float, tensor_ns<3>, run_tensor<2>},
    {"matmul", "bf16", "cuda", Precision::medium, "operands rounded to bfloat16, summed in float32",
     accepts_float, tensor_ns<1>, run_tensor<1>},
};

const OpKernels* ladder() {
  static const OpKernels* const kernels = find_op("matmul", KernelSet::cuda);
  return kernels;
}
const Kernel& choose(const void* problem) {
  const MatmulProblem& p = static_cast<const Product*>(problem)->matrices;
  return is_empty(p) ? *ladder()->kernels.front() : choose_among(ladder(), &p);
}

const char* refuses(const Call& call) {
  return is_complex(call.out[0].dtype) ? "kernels of 'cuda' are for real numbers so far" : nullptr;
}
const char* refuses_addmm(const Call& call) {
  return adds_bias(call) ? refuses(call) : "the input is no bias";
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
constexpr Lowering kLowerings[] = {lowering<kMatmulRoles, 2>("matmul", refuses),
                                   lowering<kLinearRoles, 3>("linear", refuses),
                                   lowering<kLinearReluRoles, 3>("linear_relu", refuses),
                                   lowering<kAddmmRoles, 3>("addmm", refuses_addmm),
                                   lowering<kIntoRoles, 3>("matmul_into", refuses_into)};

}  // namespace

void register_matmul_kernels() {
  for (const Kernel& rung : kRungs) register_kernel(&rung);
  for (const Lowering& each : kLowerings) register_lowering(&each);
}

}  // namespace tw::cuda
