// Convolutions in the registry: the ladder of each part, and how calls become problems for it.
#include "core/cpu/convolution.h"

#include <algorithm>
#include <memory>
#include <new>

#include "core/cpu/convolution/depthwise.h"
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/im2col.h"
#include "core/cpu/convolution/naive.h"
#include "core/cpu/convolution/winograd.h"
#include "core/cpu/families.h"
#include "core/runtime/registry.h"

namespace tw {
namespace {

using std::int64_t;

constexpr const char* kOps[] = {"convolution", "convolution_input_gradient",
                                "convolution_weight_gradient"};

const ConvolutionProblem& problem_of(const void* problem) {
  return *static_cast<const ConvolutionProblem*>(problem);
}

// ---- rungs ----

using Accepts = bool (*)(const ConvolutionProblem&, std::string*);
using Cost = double (*)(const ConvolutionProblem&);
using Run = void (*)(const ConvolutionProblem&);

bool accepts_any(const ConvolutionProblem&, std::string*) { return true; }

// What estimates see: under batch invariance one sample, so that the choice is the same for any
// number of them.
ConvolutionProblem weighed(const void* problem) {
  ConvolutionProblem p = problem_of(problem);
  if (is_batch_invariant() && p.part != ConvolutionPart::weight_gradient) p.batch = 1;
  return p;
}

// A rung of all three ladders, in their order.
template <Accepts accepts, Cost cost_ns, Run run>
void add_rung(const char* name, Precision precision, const char* help) {
  for (const char* op : kOps)
    register_kernel(
        new Kernel{op, name, "cpu", precision, help,
                   [](const void* p, std::string* reason) { return accepts(weighed(p), reason); },
                   [](const void* p) { return cost_ns(weighed(p)); },
                   [](const void* p) { run(problem_of(p)); }});
}

void add_rungs() {
  add_rung<accepts_any, naive_cost_ns, naive_run>("naive", Precision::ieee,
                                                  "the definition: one sum an element");
  add_rung<accepts_any, im2col_cost_ns, im2col_run>(
      "im2col", Precision::ieee, "products of the weights and blocks of the unfolded input");
  add_rung<direct_accepts, direct_cost_ns, direct_run>(
      "direct", Precision::ieee, "sums over the kernel's taps in registers, channels in the lanes");
  add_rung<winograd_accepts, winograd_cost_ns, winograd_run>(
      "winograd", Precision::fp32, "F(2x2, 3x3): 2.25 times fewer multiplications");
  add_rung<winograd4_accepts, winograd4_cost_ns, winograd4_run>(
      "winograd4", Precision::high, "F(4x4, 3x3): 4 times fewer multiplications");
  add_rung<depthwise_accepts, depthwise_cost_ns, depthwise_run>(
      "depthwise", Precision::ieee, "groups of one channel: planes with pixels in the lanes");
}

// ---- lowerings ----

// A problem with what a result without terms needs: its elements, and whether there are terms.
struct Lowered {
  ConvolutionProblem problem;
  int64_t results;
  bool has_terms;
};
static_assert(sizeof(Lowered) <= kMaxProblemBytes && std::is_trivially_copyable_v<Lowered>);

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}

void copy_sizes(const Meta& from, int64_t (&to)[3]) {
  const int axes = from.rank() - 2;
  for (int d = 0; d < 3; ++d) to[d] = d < 3 - axes ? 1 : from.size(d + axes - 1);
}
void copy_words(List from, int64_t otherwise, int64_t (&to)[3]) {
  for (int d = 0; d < 3; ++d) to[d] = d < 3 - from.count ? otherwise : from[d + from.count - 3];
}

// Words: stride, dilation, padding in front, sizes of the result, groups.
template <ConvolutionPart part> void set_up(const Call& call, void* problem) {
  static const char present = 0;  // until the address is known
  constexpr bool forward = part == ConvolutionPart::forward;
  const Meta& x = part == ConvolutionPart::input_gradient ? call.out[0] : call.in[0];
  const Meta& w = part == ConvolutionPart::weight_gradient ? call.out[0] : call.in[1];
  const Meta& y = forward ? call.out[0] : call.in[part == ConvolutionPart::weight_gradient];
  Lowered& q = *new (problem) Lowered{};
  ConvolutionProblem& p = q.problem;
  p.dtype = call.in[0].dtype;
  p.part = part;
  p.batch = x.size(0), p.in = x.size(1), p.out = y.size(1);
  p.groups = call.words[4];
  copy_sizes(x, p.x);
  copy_sizes(w, p.kernel);
  copy_sizes(y, p.y);
  copy_words(call.words.list(0), 1, p.stride);
  copy_words(call.words.list(1), 1, p.dilation);
  copy_words(call.words.list(2), 0, p.before);
  if (forward && !call.in[2].absent) p.bias = &present;
  q.results = call.out[0].count;
  q.has_terms = call.in[0].count > 0 && call.in[1].count > 0;
}
template <int inputs> void bind(void* problem, void* const* at) {
  ConvolutionProblem& p = static_cast<Lowered*>(problem)->problem;
  p.a = at[0];
  p.b = at[1];
  if (p.bias) p.bias = at[2];
  p.result = at[inputs];
}

const Kernel& choose_rung(const ConvolutionProblem& p) {
  constexpr int kWords = 23;
  using Cache = ChoiceCache<kWords>;
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
  static const OpKernels* const ladders[] = {find_op(kOps[0]), find_op(kOps[1]), find_op(kOps[2])};
  return cache->choose(ladders[static_cast<int>(p.part)], &p, key);
}
// Any rung does where there is nothing to compute.
const Kernel& choose(const void* problem) {
  const auto& q = *static_cast<const Lowered*>(problem);
  if (q.results > 0 && q.has_terms) return choose_rung(q.problem);
  return *kernels_of_op(kOps[static_cast<int>(q.problem.part)]).front();
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

std::string sizes_text(const int64_t (&sizes)[3]) {
  std::string text;
  for (int d = 0; d < 3; ++d)
    if (sizes[d] != 1 || d == 2 || !text.empty())
      text += (text.empty() ? "" : "x") + std::to_string(sizes[d]);
  return text;
}
std::string describe(const void* problem) {
  const ConvolutionProblem& p = static_cast<const Lowered*>(problem)->problem;
  std::string text = std::string(name_of(p.dtype)) + " " + std::to_string(p.batch) + "x" +
                     std::to_string(p.in) + "x" + sizes_text(p.x) + " to " + std::to_string(p.out) +
                     "x" + sizes_text(p.y) + ", kernel " + sizes_text(p.kernel);
  if (volume(p.stride) != 1) text += ", stride " + sizes_text(p.stride);
  if (p.groups != 1) text += ", " + std::to_string(p.groups) + " groups";
  return p.bias ? text + " + bias" : text;
}

template <ConvolutionPart part> constexpr Lowering lowering() {
  constexpr bool forward = part == ConvolutionPart::forward;
  return {.op = kOps[static_cast<int>(part)],
          .problem_bytes = sizeof(Lowered),
          .refuses = refuses,
          .set_up = set_up<part>,
          .bind = bind < forward ? 3 : 2 >
          , .contiguous = forward ? 7 : 3, .choose = choose, .run = run, .describe = describe};
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
