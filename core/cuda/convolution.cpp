// The GPU's ladders for the three parts of a convolution.
#include "core/cuda/families.h"
#include "core/cuda/lowering.h"
#include "core/cuda/rates.h"
#include "core/ops/convolution_problem.h"

namespace tw::cuda {

namespace {

// The parameter of kernels/convolution.cuh.
struct Parameter {
  std::int64_t batch, groups, in, out;
  std::int64_t x[3], kernel[3], y[3], stride[3], dilation[3], before[3];
  const void *a, *b, *bias;
  void* result;
};
Parameter parameter_of(const ConvolutionProblem& p) {
  Parameter q = {p.batch, p.groups, p.in, p.out, {},  {},     {},
                 {},      {},       {},   p.a,   p.b, p.bias, p.result};
  for (int d = 0; d < 3; ++d) {
    q.x[d] = p.x[d], q.kernel[d] = p.kernel[d], q.y[d] = p.y[d];
    q.stride[d] = p.stride[d], q.dilation[d] = p.dilation[d], q.before[d] = p.before[d];
  }
  return q;
}

// Rows, columns and terms of a group's product.
struct Sides {
  std::int64_t i, j, k;
};
Sides sides_of(const ConvolutionProblem& p) {
  const std::int64_t in = p.in / p.groups, out = p.out / p.groups, taps = volume(p.kernel);
  const std::int64_t x = p.batch * volume(p.x), y = p.batch * volume(p.y);
  switch (p.part) {
    case ConvolutionPart::forward: return {out, y, in * taps};
    case ConvolutionPart::input_gradient: return {in, x, out * taps};
    case ConvolutionPart::weight_gradient: return {out, in * taps, y};
  }
  __builtin_unreachable();
}

void launch(const ConvolutionProblem& p, const char* kernel, int high, int wide) {
  const Sides sides = sides_of(p);
  const std::uint64_t key =
      static_cast<std::uint64_t>(p.dtype) * 4 + static_cast<std::uint64_t>(p.part);
  const Function function = kernel_of(kernel, key, "convolution.cuh", kernel, [&] {
    return define("TW_TYPE", type_name(p.dtype)) +
           define("TW_PART", std::to_string(static_cast<int>(p.part)));
  });
  const Parameter parameter = parameter_of(p);
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(sides.j, wide));
  grid.blocks[1] = static_cast<unsigned>(divide_up(sides.i, high));
  grid.blocks[2] = static_cast<unsigned>(p.groups);
  grid.threads = 256;
  Gpu::current().launch(function, grid, &parameter);
}
const ConvolutionProblem& problem_of(const void* problem) {
  return *static_cast<const ConvolutionProblem*>(problem);
}

// Second and third axis of a grid.
constexpr std::int64_t kMostBlocks = 65535;
template <int high> bool fits_grid(const void* problem, std::string* reason) {
  const ConvolutionProblem& p = problem_of(problem);
  if (p.groups <= kMostBlocks && divide_up(sides_of(p).i, high) <= kMostBlocks) return true;
  if (reason) *reason = "more groups or channels than a grid has blocks";
  return false;
}

constexpr char kNaive[] = "convolution_naive", kImplicit[] = "convolution_implicit";
void run_naive(const void* problem) { launch(problem_of(problem), kNaive, 8, 32); }
void run_implicit(const void* problem) { launch(problem_of(problem), kImplicit, 64, 64); }

// Finding an element costs about as much as its product.
double estimate_ns(const ConvolutionProblem& p, int high, int wide, double products_per_ns) {
  const Sides s = sides_of(p);
  const double blocks = static_cast<double>(divide_up(s.i, high) * divide_up(s.j, wide)) *
                        static_cast<double>(p.groups);
  return waves_ns(blocks, static_cast<double>(high) * wide * static_cast<double>(s.k),
                  products_per_ns / 2);
}
double naive_ns(const void* problem) {
  return estimate_ns(problem_of(problem), 8, 32, rates().naive);
}
double implicit_ns(const void* problem) {
  return estimate_ns(problem_of(problem), 64, 64, rates().registers_small);
}

const char* refuses(const Call& call) { return refuses_narrow(call.in[0].dtype); }
// Kernels give zeros, or the bias, where there are no terms.
const Kernel& choose(const void* problem) {
  const auto& q = *static_cast<const LoweredConvolution*>(problem);
  static const OpKernels* const ladders[] = {find_op(kConvolutionOps[0], KernelSet::cuda),
                                             find_op(kConvolutionOps[1], KernelSet::cuda),
                                             find_op(kConvolutionOps[2], KernelSet::cuda)};
  const OpKernels* const ladder = ladders[static_cast<int>(q.problem.part)];
  if (q.results == 0 || !q.has_terms) return *ladder->kernels.front();
  return choose_among(ladder, &q.problem);
}
void run(const Kernel& kernel, const void* problem) {
  const auto& q = *static_cast<const LoweredConvolution*>(problem);
  if (q.results > 0) kernel.run(&q.problem);
}

template <ConvolutionPart part> constexpr Lowering lowering() {
  constexpr bool forward = part == ConvolutionPart::forward;
  return {.op = kConvolutionOps[static_cast<int>(part)],
          .problem_bytes = sizeof(LoweredConvolution),
          .refuses = refuses,
          .set_up = set_up_convolution<part>,
          .bind = bind_convolution < forward ? 3 : 2 >,
          .contiguous = forward ? 7 : 3,
          .choose = choose,
          .run = run,
          .describe = describe_convolution,
          .set = KernelSet::cuda};
}
constexpr Lowering kLowerings[] = {lowering<ConvolutionPart::forward>(),
                                   lowering<ConvolutionPart::input_gradient>(),
                                   lowering<ConvolutionPart::weight_gradient>()};

}  // namespace

void register_convolution_kernels() {
  for (const char* op : kConvolutionOps) {
    register_kernel(new Kernel{op, "naive", "cuda", Precision::ieee, "one thread an element",
                               fits_grid<8>, naive_ns, run_naive});
    register_kernel(new Kernel{op, "implicit", "cuda", Precision::ieee,
                               "tiles of a product; elements are found where they lie",
                               fits_grid<64>, implicit_ns, run_implicit});
  }
  for (const Lowering& each : kLowerings) register_lowering(&each);
}

}  // namespace tw::cuda
