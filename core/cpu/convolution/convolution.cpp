// Convolutions in the registry: the ladder of each part, and how calls become problems for it.
#include "core/problems/convolution.h"

#include <algorithm>
#include <memory>
#include <new>

#include "core/cpu/convolution/depthwise.h"
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/im2col.h"
#include "core/cpu/convolution/naive.h"
#include "core/cpu/convolution/winograd.h"
#include "core/cpu/isa/families.h"
#include "core/runtime/registry.h"

namespace tw {
namespace {

using std::int64_t;

const ConvolutionProblem& problem_of(const void* problem) {
  return *static_cast<const ConvolutionProblem*>(problem);
}

// ---- rungs ----

using Accepts = bool (*)(const ConvolutionProblem&, std::string*);
using Cost = double (*)(const ConvolutionProblem&);
using Run = void (*)(const ConvolutionProblem&);

bool accepts_any(const ConvolutionProblem&, std::string*) { return true; }

// By which the choice is the same for any number of samples. The gradient of the weights is a sum
// over them.
ConvolutionProblem one_sample(const void* problem) {
  ConvolutionProblem p = problem_of(problem);
  if (p.part != ConvolutionPart::weight_gradient) p.batch = 1;
  return p;
}

// A rung of all three ladders, in their order. `error`: of forward and both gradients, with sums of
// up to 4,608 terms.
template <Accepts accepts, Cost cost_ns, Run run>
void add_rung(const char* name, Precision precision, double error, const char* help) {
  for (const char* op : kConvolutionOps)
    register_kernel(new Kernel{
        .op = op,
        .name = name,
        .device = "cpu",
        .precision = precision,
        .help = help,
        .accepts =
            [](const void* p, std::string* reason) {
              return accepts(is_batch_invariant() ? one_sample(p) : problem_of(p), reason);
            },
        .cost_ns = [](const void* p) { return cost_ns(problem_of(p)); },
        .run = [](const void* p) { run(problem_of(p)); },
        .error = error,
        .cost_of_one_ns = [](const void* p) { return cost_ns(one_sample(p)); }});
}

void add_rungs() {
  add_rung<accepts_any, naive_cost_ns, naive_run>("naive", Precision::ieee, 6e-8,
                                                  "the definition: one sum an element");
  add_rung<accepts_any, im2col_cost_ns, im2col_run>(
      "im2col", Precision::ieee, 8e-7, "products of the weights and blocks of the unfolded input");
  add_rung<direct_accepts, direct_cost_ns, direct_run>(
      "direct", Precision::ieee, 8e-7,
      "sums over the kernel's taps in registers, channels in the lanes");
  add_rung<winograd_accepts, winograd_cost_ns, winograd_run>(
      "winograd", Precision::fp32, 1.2e-6, "F(2x2, 3x3): 2.25 times fewer multiplications");
  add_rung<winograd4_accepts, winograd4_cost_ns, winograd4_run>(
      "winograd4", Precision::high, 3e-5, "F(4x4, 3x3): 4 times fewer multiplications");
  add_rung<depthwise_accepts, depthwise_cost_ns, depthwise_run>(
      "depthwise", Precision::ieee, 3e-7, "groups of one channel: planes with pixels in the lanes");
}

// ---- lowerings ----

using Lowered = LoweredConvolution;
static_assert(sizeof(Lowered) <= kMaxProblemBytes && std::is_trivially_copyable_v<Lowered>);

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}

const Kernel& choose_rung(const ConvolutionProblem& p) {
  constexpr int kAttributes = 23;
  using Cache = ChoiceCache<kAttributes>;
  // On the heap: static TLS space is scarce for libraries that are loaded late (dlopen).
  thread_local std::unique_ptr<Cache> cache;
  if (!cache) [[unlikely]]
    cache = std::make_unique<Cache>();
  const int64_t kinds =
      static_cast<int64_t>(p.dtype) << 8 | static_cast<int64_t>(p.part) << 1 | (p.bias != nullptr);
  Cache::Key key = {kinds, p.batch, p.groups, p.in, p.out};
  auto at = key.begin() + 5;
  for (const auto* sizes : {p.x, p.kernel, p.y, p.stride, p.dilation, p.before})
    at = std::copy_n(sizes, 3, at);
  static const OpKernels* const ladders[] = {
      find_op(kConvolutionOps[0]), find_op(kConvolutionOps[1]), find_op(kConvolutionOps[2])};
  return cache->choose(ladders[static_cast<int>(p.part)], &p, key);
}
// Any rung does where there is nothing to compute.
const Kernel& choose(const void* problem) {
  const auto& q = *static_cast<const Lowered*>(problem);
  if (q.results > 0 && q.has_terms) return choose_rung(q.problem);
  return *kernels_of_op(kConvolutionOps[static_cast<int>(q.problem.part)]).front();
}

// What is left of sums without terms: zeros, or the bias.
template <class T> void run_without_terms(const Lowered& q) {
  const ConvolutionProblem& p = q.problem;
  auto* result = static_cast<T*>(p.result);
  auto* bias = static_cast<const T*>(p.bias);
  const int64_t plane = volume(p.y);
  for (int64_t i = 0; i < q.results; ++i) result[i] = bias ? bias[i / plane % p.out] : T{0};
}
void run(const Kernel& kernel, const void* problem) {
  const auto& q = *static_cast<const Lowered*>(problem);
  if (q.results > 0 && q.has_terms) return kernel.run(&q.problem);
  q.problem.dtype == DType::float64 ? run_without_terms<double>(q) : run_without_terms<float>(q);
}

template <ConvolutionPart part> constexpr Lowering lowering() {
  constexpr bool forward = part == ConvolutionPart::forward;
  return {.op = kConvolutionOps[static_cast<int>(part)],
          .problem_bytes = sizeof(Lowered),
          .refuses = refuses,
          .set_up = set_up_convolution<part>,
          .bind = bind_convolution < forward ? 3 : 2 >,
          .contiguous = forward ? 7 : 3,
          .choose = choose,
          .run = run,
          .describe = describe_convolution};
}
constexpr Lowering kLowerings[] = {lowering<ConvolutionPart::forward>(),
                                   lowering<ConvolutionPart::input_gradient>(),
                                   lowering<ConvolutionPart::weight_gradient>()};

}  // namespace

void register_convolution_kernels() {
  add_rungs();
  for (const Lowering& each : kLowerings) register_lowering(&each);
}

}  // namespace tw
