// Cuts the parameters of an optimizer's step into pieces of equal size and shares them between
// threads.
#include "core/cpu/optim/steps.h"

#include <string>

#include "core/base/scalar.h"
#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/problems/update_factors.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Elements of a stage: two buffers of them stay in the L1 cache.
constexpr int64_t kStage = thresholds::kStageBytes / int64_t(sizeof(float));

ParameterSlice part(const ParameterSlice& p, int64_t begin, int64_t n) {
  const int64_t bytes = size_of(p.dtype), state_bytes = size_of(working_dtype(p.dtype));
  const auto moved = [&](void* array) {
    return array ? static_cast<char*>(array) + begin * state_bytes : nullptr;
  };
  return {p.dtype,
          n,
          static_cast<char*>(p.param) + begin * bytes,
          p.grad ? static_cast<const char*>(p.grad) + begin * bytes : nullptr,
          {moved(p.states[0]), moved(p.states[1]), moved(p.states[2])}};
}

// Runs a loop of float32 on parameters of float16 or bfloat16: a stage of them and of their
// gradients is widened, and the parameters are rounded to nearest on their way back.
void run_staged(UpdateTable::Loop loop, const double* factors, const ParameterSlice& slice) {
  const auto& convert = active_kernels().convert->convert;
  const ConvertFunction widen = convert[index_of(slice.dtype)][index_of(DType::float32)];
  const ConvertFunction narrow = convert[index_of(DType::float32)][index_of(slice.dtype)];
  const auto bytes = static_cast<int64_t>(size_of(slice.dtype));
  alignas(64) float param[kStage], grad[kStage];
  for (int64_t at = 0; at < slice.n; at += kStage) {
    const int64_t n = slice.n - at < kStage ? slice.n - at : kStage;
    ParameterSlice stage = part(slice, at, n);
    void* const target = stage.param;
    widen(n, target, bytes, param, sizeof(float));
    if (stage.grad) widen(n, stage.grad, bytes, grad, sizeof(float));
    stage.param = param;
    stage.grad = grad;
    loop(factors, stage);
    narrow(n, param, sizeof(float), target, bytes);
  }
}

using Problem = UpdateProblem;

template <int states> struct Row {
  static constexpr int operands = 2 + states, numbers = states < 0 ? 1 : 2;
  static int parameters(const Call& call) { return (call.inputs - numbers) / operands; }
};

template <int states> std::uint32_t problem_bytes(const Call& call) {
  const int parameters = Row<states>::parameters(call);
  return static_cast<std::uint32_t>(sizeof(Problem) + sizeof(ParameterSlice) * parameters);
}
template <int row, int states> void set_up(const Call& call, void* memory) {
  constexpr int operands = Row<states>::operands, numbers = Row<states>::numbers;
  Problem& p = *new (memory) Problem{.row = row, .count = Row<states>::parameters(call)};
  for (int i = 2 - numbers; i < 2; ++i) p.types[i] = call.in[call.inputs - 2 + i].dtype;
  p.attributes = call.attributes.count;
  for (int i = 0; i < p.attributes; ++i) p.attribute[i] = call.attributes[i];
  for (int i = 0; i < p.count; ++i) {
    const Meta& param = call.in[i * operands];
    new (p.slices() + i) ParameterSlice{.dtype = param.dtype, .n = param.count};
  }
}
template <int states> void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  for (int i = 0; i < p.count; ++i) {
    ParameterSlice& slice = p.slices()[i];
    slice.param = *at++;
    if (states >= 0) slice.grad = *at++;
    for (int s = 0; s < states; ++s) slice.states[s] = *at++;
  }
  for (int i = 2 - Row<states>::numbers; i < 2; ++i) p.numbers[i] = *at++;
}
double cost_ns(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  double bytes = 0;
  constexpr double bytes_per_ns = 16, arrays = 4;  // one core, from and to memory
  for (int i = 0; i < p.count; ++i)
    bytes += static_cast<double>(p.slices()[i].n) * arrays * size_of(p.slices()[i].dtype);
  return 100 + bytes / bytes_per_ns;
}
void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  double factors[kMaxFactors] = {};
  const double step = p.numbers[0] ? number_value(p.types[0], p.numbers[0]) : 1;
  kUpdateFactors[p.row](step, number_value(p.types[1], p.numbers[1]), {p.attribute, p.attributes},
                        factors);
  int64_t total = 0;
  for (int i = 0; i < p.count; ++i) total += p.slices()[i].n;
  const UpdateTable& table = *active_kernels().update;
  // All parameters laid end to end, cut at each grain.
  parallel_ranges(total, thresholds::kGrain, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // position of slice i
    for (int i = 0; i < p.count && first < end; first += p.slices()[i++].n) {
      const ParameterSlice& slice = p.slices()[i];
      const int64_t from = begin > first ? begin - first : 0;
      const int64_t past = end - first < slice.n ? end - first : slice.n;
      if (from >= past) continue;
      const ParameterSlice piece = part(slice, from, past - from);
      if (slice.dtype == DType::float64)
        table.float64[p.row](factors, piece);
      else if (slice.dtype == DType::float32)
        table.float32[p.row](factors, piece);
      else
        run_staged(table.float32[p.row], factors, piece);
    }
  });
}
std::string describe(const void* problem) {
  return std::to_string(static_cast<const Problem*>(problem)->count) + " tensors";
}

}  // namespace

void register_update_kernels() {
#define TW_UPDATE(row, states, ...)                                                     \
  {                                                                                     \
    Lowering& lowering =                                                                \
        add_kernel<Problem>(#row, "every array read and written once, all parameters",  \
                            {.set_up = set_up<static_cast<int>(UpdateOp::row), states>, \
                             .bind = bind<states>,                                      \
                             .cost_ns = cost_ns,                                        \
                             .run = run,                                                \
                             .name = "fused"});                                         \
    lowering.bytes = problem_bytes<states>;                                             \
    lowering.describe = describe;                                                       \
  }
#include "core/problems/updates.inc"
#undef TW_UPDATE
}

}  // namespace tw
