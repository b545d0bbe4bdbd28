// Softmax and its relatives, and cross-entropy over class indices: one launch each.
#include <new>

#include "core/base/error.h"
#include "core/cuda/gpu/block_counters.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/normalization/softmax_parameters.h"

namespace tw::cuda {

namespace {

struct Problem {
  Softmax parameter;
  DType dtype;
};

const char* refuses(const Call& call) {
  for (int i = 0; i < call.inputs; ++i) {
    const DType dtype = call.in[i].dtype;
    if (is_complex(dtype)) return "no kernel for complex numbers";
    if (!is_floating(dtype) || dtype != call.in[0].dtype) return kTooNarrow;
  }
  return nullptr;
}
void set_up(const Call& call, void* problem) {
  const Meta& x = call.in[0];
  Problem& p = *new (problem) Problem{{}, x.dtype};
  const int axis = x.rank() ? normalize_axis(call.attributes[0], x.rank(), call.op->name) : 0;
  if (x.rank()) p.parameter.n = x.size(axis);
  for (int i = 0; i < axis; ++i) p.parameter.outer *= x.size(i);
  for (int i = axis + 1; i < x.rank(); ++i) p.parameter.inner *= x.size(i);
}
void bind_forward(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.parameter.x = at[0];
  p.parameter.y = at[1];
}
void bind_backward(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.parameter.x = at[0];
  p.parameter.g = at[1];
  p.parameter.y = at[2];
}

// Threads that share a row of n elements that lie together.
int width_of(std::int64_t n) { return n > 512 ? kBlockThreads : kWarpThreads; }

Function kernel_for(const void* place, DType dtype, int width, bool logarithms,
                    const char* kernel) {
  const std::uint64_t key =
      (static_cast<std::uint64_t>(dtype) * 512 + static_cast<std::uint64_t>(width)) * 2 +
      logarithms;
  return kernel_of(place, key, "softmax.cuh", kernel, [&] {
    return define("TW_IN", type_name(dtype)) + define("TW_TYPE", type_name(compute_dtype(dtype))) +
           define("TW_WIDTH", std::to_string(width)) + define("TW_LOG", logarithms ? "1" : "0");
  });
}
Grid rows_grid(std::int64_t rows, int width) {
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(rows * width, kBlockThreads));
  return grid;
}

template <bool logarithms, bool backward> void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const Softmax& s = p.parameter;
  if (s.outer * s.n * s.inner == 0) return;
  static const char place = 0;
  const int width = s.inner > 1 ? 1 : width_of(s.n);
  Gpu::current().launch(
      kernel_for(&place, p.dtype, width, logarithms, backward ? "softmax_backward" : "softmax"),
      rows_grid(s.outer * s.inner, width), &s);
}

// ---- cross-entropy ----

struct LossProblem {
  CrossEntropy parameter;
  DType dtype;
};
LossProblem& fresh(const Call& call, void* problem) {
  LossProblem& p = *new (problem) LossProblem{};
  const Meta& x = call.in[0];
  p.dtype = x.dtype;
  p.parameter.rows = x.size(0);
  p.parameter.classes = x.size(1);
  p.parameter.ignore_index = call.attributes[0];
  return p;
}
void set_up_losses(const Call& call, void* problem) { fresh(call, problem); }
void bind_losses(void* problem, void* const* at) {
  CrossEntropy& p = static_cast<LossProblem*>(problem)->parameter;
  p.x = at[0];
  p.targets = static_cast<const std::int64_t*>(at[1]);
  p.loss = at[2];
  p.norms_out = at[3];
  p.counted = at[4];
}
void raise_bad_target(const Fault& fault) {
  fail(ErrorKind::index, "cross_entropy: target ", fault.value, " in row ", fault.place,
       " is out of range for ", fault.limit, " classes");
}
CrossEntropy ready(const LossProblem& p) {
  static const std::int32_t code = register_fault(raise_bad_target);
  CrossEntropy q = p.parameter;
  q.fault = Gpu::current().fault();
  q.code = code;
  return q;
}
void run_losses(const void* problem) {
  const LossProblem& p = *static_cast<const LossProblem*>(problem);
  static const char of_losses = 0, of_counts = 0;
  Gpu& gpu = Gpu::current();
  const CrossEntropy q = ready(p);
  const int width = width_of(q.classes);
  if (q.rows > 0)
    gpu.launch(kernel_for(&of_losses, p.dtype, width, true, "cross_entropy"),
               rows_grid(q.rows, width), &q);
  gpu.launch(kernel_for(&of_counts, p.dtype, kWarpThreads, true, "count_targets"),
             rows_grid(1, kBlockThreads), &q);
}

void set_up_total(const Call& call, void* problem) {
  fresh(call, problem).parameter.is_mean = call.attributes.flag(1);
}
void bind_total(void* problem, void* const* at) {
  bind_losses(problem, at);
  static_cast<LossProblem*>(problem)->parameter.targets_out = static_cast<std::int64_t*>(at[5]);
}
void run_total(const void* problem) {
  const LossProblem& p = *static_cast<const LossProblem*>(problem);
  static const char of_rows = 0, of_blocks = 0;
  Gpu& gpu = Gpu::current();
  CrossEntropy q = ready(p);
  const int width = width_of(q.classes);
  const Grid grid = rows_grid(q.rows, width);
  q.blocks = q.rows > 0 ? grid.blocks[0] : 0;
  const Room sums(std::max<std::int64_t>(q.blocks, 1) * std::int64_t{sizeof(double)}),
      counts(std::max<std::int64_t>(q.blocks, 1) * std::int64_t{sizeof(std::int64_t)});
  q.sums = static_cast<double*>(sums.at());
  q.counts = static_cast<std::int64_t*>(counts.at());
  q.done = q.rows > 0 ? counters_of_blocks(gpu) : nullptr;
  if (q.rows > 0)
    gpu.launch(kernel_for(&of_rows, p.dtype, width, true, "cross_entropy_total"), grid, &q);
  if (!q.done)
    gpu.launch(kernel_for(&of_blocks, p.dtype, kWarpThreads, true, "cross_entropy_finish"),
               rows_grid(1, kBlockThreads), &q);
}

// One gradient for all rows, or one for each.
std::uint32_t copies_of_losses(const Call& call) {
  const Meta& g = call.in[3];
  return g.contiguous || (*g.strides)[0] == 0 ? 0 : 1u << 3;
}
void set_up_losses_backward(const Call& call, void* problem) {
  fresh(call, problem).parameter.g_step = (*call.in[3].strides)[0] != 0;
}
void bind_losses_backward(void* problem, void* const* at) {
  CrossEntropy& p = static_cast<LossProblem*>(problem)->parameter;
  p.x = at[0];
  p.targets = static_cast<const std::int64_t*>(at[1]);
  p.norms = at[2];
  p.g = at[3];
  p.dx = at[4];
}
void set_up_total_backward(const Call& call, void* problem) {
  fresh(call, problem).parameter.is_mean = call.attributes.flag(1);
}
void bind_total_backward(void* problem, void* const* at) {
  CrossEntropy& p = static_cast<LossProblem*>(problem)->parameter;
  p.x = at[0];
  p.targets = static_cast<const std::int64_t*>(at[1]);
  p.norms = at[2];
  p.total = p.is_mean ? at[3] : nullptr;
  p.g = at[4];
  p.dx = at[5];
}
void run_losses_backward(const void* problem) {
  const LossProblem& p = *static_cast<const LossProblem*>(problem);
  if (p.parameter.rows * p.parameter.classes == 0) return;
  static const char place = 0;
  const int width = width_of(p.parameter.classes);
  Gpu::current().launch(kernel_for(&place, p.dtype, width, true, "cross_entropy_backward"),
                        rows_grid(p.parameter.rows, width), &p.parameter);
}

constexpr char kHelp[] = "a warp or a block a row, which is read once where it fits in registers";
constexpr char kBackwardHelp[] = "a warp or a block a row";

}  // namespace

void register_softmax_kernels() {
  add_kernel<LossProblem>(
      "cross_entropy_rows", kHelp,
      {.set_up = set_up_losses, .bind = bind_losses, .run = run_losses, .contiguous = 3});
  add_kernel<LossProblem>("cross_entropy_rows_backward", kBackwardHelp,
                          {.set_up = set_up_losses_backward,
                           .bind = bind_losses_backward,
                           .run = run_losses_backward,
                           .contiguous = 7})
      .copies = copies_of_losses;
  add_kernel<LossProblem>(
      "cross_entropy_total", "as rows; the last block to be done adds them up",
      {.set_up = set_up_total, .bind = bind_total, .run = run_total, .contiguous = 3});
  add_kernel<LossProblem>("cross_entropy_total_backward", kBackwardHelp,
                          {.set_up = set_up_total_backward,
                           .bind = bind_total_backward,
                           .run = run_losses_backward,
                           .contiguous = 7});
  add_kernel<Problem>("softmax", kHelp,
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind_forward,
                       .run = run<false, false>,
                       .contiguous = 1});
  add_kernel<Problem>("log_softmax", kHelp,
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind_forward,
                       .run = run<true, false>,
                       .contiguous = 1});
  add_kernel<Problem>("softmax_backward", kBackwardHelp,
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind_backward,
                       .run = run<false, true>,
                       .contiguous = 3});
  add_kernel<Problem>("log_softmax_backward", kBackwardHelp,
                      {.refuses = refuses,
                       .set_up = set_up,
                       .bind = bind_backward,
                       .run = run<true, true>,
                       .contiguous = 3});
}

}  // namespace tw::cuda
