// Cuts the parameters of an optimizer step into pieces of equal size and shares them between
// threads.
#include "core/cpu/optimizer.h"

#include <cmath>
#include <string>

#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Elements of a piece, over all parameters: about 10 us of memory traffic, long against handing it
// to another thread; a model smaller than that stays on the caller's.
constexpr int64_t kPiece = 32 << 10;

const OptimizerLoops& loops_of(DType dtype) {
  const OptimizerTable& table = *active_kernels().optimizer;
  return dtype == DType::float64 ? table.float64 : table.float32;
}

// Elements of a stage: two buffers of them stay in the L1 cache.
constexpr int64_t kStage = 1024;

ParameterSlice part(DType dtype, const ParameterSlice& p, int64_t begin, int64_t n) {
  const int64_t bytes = size_of(dtype), state_bytes = size_of(state_type(dtype));
  const auto moved = [&](void* array) {
    return array ? static_cast<char*>(array) + begin * state_bytes : nullptr;
  };
  return {static_cast<char*>(p.param) + begin * bytes,
          static_cast<const char*>(p.grad) + begin * bytes, moved(p.state1), moved(p.state2), n};
}

// Runs a loop of float32 on parameters of float16 or bfloat16: a stage of them and of their
// gradients is widened, and the parameters are rounded to nearest on their way back.
struct Staged {
  DType dtype;
  ConvertFunction widen, narrow;

  explicit Staged(DType dtype) : dtype(dtype) {
    const auto& convert = active_kernels().convert->convert;
    widen = convert[index_of(dtype)][index_of(DType::float32)];
    narrow = convert[index_of(DType::float32)][index_of(dtype)];
  }
  template <class Loop> void operator()(const ParameterSlice& slice, Loop&& loop) const {
    const auto bytes = static_cast<int64_t>(size_of(dtype));
    alignas(64) float param[kStage], grad[kStage];
    for (int64_t at = 0; at < slice.n; at += kStage) {
      const int64_t n = slice.n - at < kStage ? slice.n - at : kStage;
      ParameterSlice stage = part(dtype, slice, at, n);
      void* const target = stage.param;
      widen(n, target, bytes, param, sizeof(float));
      widen(n, stage.grad, bytes, grad, sizeof(float));
      stage.param = param;
      stage.grad = grad;
      loop(stage);
      narrow(n, param, sizeof(float), target, bytes);
    }
  }
};

// Calls body(slice) for all parameters laid end to end, cut every kPiece elements.
template <class F>
void each_slice(DType dtype, const ParameterSlice* parameters, int64_t count, F&& body) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += parameters[i].n;
  parallel_ranges(total, kPiece, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // position of parameters[i]
    for (int64_t i = 0; i < count && first < end; first += parameters[i++].n) {
      const int64_t from = begin > first ? begin - first : 0;
      const int64_t past = end - first < parameters[i].n ? end - first : parameters[i].n;
      if (from < past) body(part(dtype, parameters[i], from, past - from));
    }
  });
}

template <class Loop>
void each_wide_slice(DType dtype, const ParameterSlice* parameters, int64_t count, Loop&& loop) {
  if (dtype == state_type(dtype)) return each_slice(dtype, parameters, count, loop);
  const Staged staged(dtype);
  each_slice(dtype, parameters, count, [&](const ParameterSlice& s) { staged(s, loop); });
}

}  // namespace

void sgd_step(DType dtype, const SgdArgs& args, const ParameterSlice* parameters, int64_t count) {
  const auto loop = loops_of(dtype).sgd;
  each_wide_slice(dtype, parameters, count, [&](const ParameterSlice& s) { loop(args, s); });
}

void adam_step(DType dtype, const AdamArgs& args, const ParameterSlice* parameters, int64_t count) {
  const double step = static_cast<double>(args.step);
  const AdamFactors factors = {args.decoupled ? 1 - args.lr * args.weight_decay : 1,
                               args.decoupled ? 0 : args.weight_decay,
                               args.beta1,
                               args.beta2,
                               args.eps,
                               args.lr / (1 - std::pow(args.beta1, step)),
                               std::sqrt(1 - std::pow(args.beta2, step))};
  const auto loop = loops_of(dtype).adam;
  each_wide_slice(dtype, parameters, count, [&](const ParameterSlice& s) { loop(factors, s); });
}

void adagrad_step(DType dtype, const AdagradArgs& args, const ParameterSlice* parameters,
                  int64_t count) {
  const AdagradFactors factors = {
      args.lr / (1 + static_cast<double>(args.step - 1) * args.lr_decay), args.weight_decay,
      args.eps};
  const auto loop = loops_of(dtype).adagrad;
  each_wide_slice(dtype, parameters, count, [&](const ParameterSlice& s) { loop(factors, s); });
}

namespace {

bool accepts_step(const void*, std::string*) { return true; }
template <class Args> double step_cost_ns(const void* problem) {
  const auto& p = *static_cast<const StepProblem<Args>*>(problem);
  double elements = 0;
  for (int64_t i = 0; i < p.count; ++i) elements += static_cast<double>(p.parameters[i].n);
  constexpr double bytes_per_ns = 16, arrays = 4;  // one core, from and to memory
  return 100 + elements * arrays * size_of(p.dtype) / bytes_per_ns;
}
template <class Args, void (*step)(DType, const Args&, const ParameterSlice*, int64_t)>
void run_step(const void* problem) {
  const auto& p = *static_cast<const StepProblem<Args>*>(problem);
  step(p.dtype, p.args, p.parameters, p.count);
}
#define TW_STEP(op, Args)                                                              \
  constexpr Kernel op##_kernel = {#op,                                                 \
                                  "fused",                                             \
                                  "cpu",                                               \
                                  Precision::ieee,                                     \
                                  "every array read and written once, all parameters", \
                                  accepts_step,                                        \
                                  step_cost_ns<Args>,                                  \
                                  run_step<Args, op>};                                 \
  [[maybe_unused]] const bool op##_registered = (register_kernel(&op##_kernel), true);
TW_STEP(sgd_step, SgdArgs)
TW_STEP(adam_step, AdamArgs)
TW_STEP(adagrad_step, AdagradArgs)
#undef TW_STEP

}  // namespace

}  // namespace tw
