// Copies, conversions, writes into tensors that are there, and what fills fresh memory.
#include "core/cuda/copy/copy.h"

#include <cstring>

#include "core/base/axis_order.h"
#include "core/base/error.h"
#include "core/cuda/copy/arange_parameters.h"
#include "core/cuda/copy/fill_parameters.h"
#include "core/cuda/gpu/axes.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"

namespace tw::cuda {

namespace {

std::string copy_settings(DType from, DType to, int pack, bool apart) {
  const bool same = from == to;
  return define("TW_FROM", same ? bytes_name(size_of(from)) : type_name(from)) +
         define("TW_TO", same ? bytes_name(size_of(to)) : type_name(to)) +
         define("TW_TRUTH", !same && is_bool(to) ? "1" : "0") +
         define("TW_PACK", std::to_string(pack)) + define("TW_APART", apart ? "1" : "0");
}
std::uint64_t copy_key(DType from, DType to, int pack, bool apart) {
  return ((static_cast<std::uint64_t>(from) * 32 + static_cast<std::uint64_t>(to)) * 32 +
          static_cast<std::uint64_t>(pack)) *
             2 +
         apart;
}

int pack_of(const CopyProblem& p) {
  if (p.apart) return 1;
  const auto pack = static_cast<std::int64_t>(16 / std::max(size_of(p.from), size_of(p.to)));
  const auto fits = [pack](const void* at, DType dtype) {
    return reinterpret_cast<std::uintptr_t>(at) %
               (static_cast<std::size_t>(pack) * size_of(dtype)) ==
           0;
  };
  return p.parameter.count % pack == 0 && fits(p.parameter.x, p.from) && fits(p.parameter.y, p.to)
             ? static_cast<int>(pack)
             : 1;
}

// Whether x runs along an axis that y crosses in its last but one: two axes, or three with a batch
// before them.
bool as_transpose(const CopyProblem& p, Transpose& t) {
  const Extents& e = p.parameter.extents;
  const std::int64_t *x = p.parameter.x_strides.stride, *y = p.parameter.y_strides.stride;
  const int row = e.rank - 2, column = e.rank - 1;
  if (p.is_number || e.rank < 2 || e.rank > 3 || x[row] != 1 || y[column] != 1) return false;
  if (e.extent[row] < 8 || e.extent[column] < 8) return false;
  t = {p.parameter.x, p.parameter.y, e.extent[row], e.extent[column], x[column], y[row], 0, 0};
  if (e.rank == 3) {
    if (e.extent[0] > 65535) return false;
    t.x_batch = x[0];
    t.y_batch = y[0];
  }
  return divide_up(t.columns, kTransposed) <= 65535;
}

}  // namespace

void set_up_between(CopyProblem& p, DType from, DType to, const Shape& shape,
                    const std::int64_t* x_steps, const std::int64_t* y_steps) {
  p.from = from;
  p.to = to;
  Axes<2> axes(2);
  p.parameter.count = element_count(shape);
  const AxisOrder order({y_steps, static_cast<std::size_t>(shape.rank())});
  for (int k = 0; k < shape.rank(); ++k) {
    const int axis = order.at[k];
    const std::int64_t steps[] = {x_steps[axis], y_steps[axis]};
    if (!axes.push(shape[axis], steps))
      fail(ErrorKind::not_implemented, "device 'cuda': a copy of ", shape.rank(),
           " axes that lie apart; kernels take up to ", kMaxAxes);
  }
  p.apart = !axes.is_one_run();
  axes.finish();
  p.parameter.extents = axes.extents;
  p.parameter.x_strides = axes.strides[0];
  p.parameter.y_strides = axes.strides[1];
}

void run_copy(const void* problem) {
  const CopyProblem& p = *static_cast<const CopyProblem*>(problem);
  if (p.parameter.count == 0) return;
  static const char of_copies = 0, of_transposes = 0;
  const int pack = pack_of(p);
  const std::uint64_t key = copy_key(p.from, p.to, pack, p.apart);
  const auto settings = [&] { return copy_settings(p.from, p.to, pack, p.apart); };
  if (Transpose t; p.apart && as_transpose(p, t)) {
    Grid grid;
    grid.blocks[0] = static_cast<unsigned>(divide_up(t.rows, kTransposed));
    grid.blocks[1] = static_cast<unsigned>(divide_up(t.columns, kTransposed));
    grid.blocks[2] =
        p.parameter.extents.rank == 3 ? static_cast<unsigned>(p.parameter.extents.extent[0]) : 1;
    const Function kernel = kernel_of(&of_transposes, key, "copy.cuh", "transpose", settings);
    return Gpu::current().launch(kernel, grid, &t);
  }
  Copy parameter = p.parameter;
  parameter.count /= pack;
  const Function kernel = kernel_of(&of_copies, key, "copy.cuh", "copy", settings);
  Gpu::current().launch(kernel, grid_for(parameter.count), &parameter);
}

namespace {

// ---- what fills memory ----

struct FillProblem {
  Fill parameter;
  DType dtype;
};
void set_up_fill(const Call& call, void* problem) {
  *static_cast<FillProblem*>(problem) = {{call.out[0].count, nullptr, {}}, call.out[0].dtype};
}
void bind_zeros(void* problem, void* const* at) {
  static_cast<FillProblem*>(problem)->parameter.y = at[0];
}
void bind_full(void* problem, void* const* at) {
  FillProblem& p = *static_cast<FillProblem*>(problem);
  std::memcpy(p.parameter.value, at[0], size_of(p.dtype));
  p.parameter.y = at[1];
}
// By bytes: a run of wider units where it is one, of zeros.
void run_fill(const void* problem) {
  const FillProblem& p = *static_cast<const FillProblem*>(problem);
  if (p.parameter.count == 0) return;
  static const char place = 0;
  const std::size_t size = size_of(p.dtype);
  const Function kernel = kernel_of(&place, size, "fill.cuh", "fill",
                                    [&] { return define("TW_TO", bytes_name(size)); });
  Gpu::current().launch(kernel, grid_for(p.parameter.count), &p.parameter);
}

// Zeros, and a window of them that is a copy.
struct UnsliceProblem {
  FillProblem all;
  CopyProblem window;
  std::int64_t offset_bytes;
};
void set_up_unslice(const Call& call, void* problem) {
  UnsliceProblem& p = *new (problem) UnsliceProblem;
  const Meta &x = call.in[0], &y = call.out[0];
  set_up_fill(call, &p.all);
  const tw::Strides whole = contiguous_strides(*y.shape);
  const List ranges = call.attributes.list(0);
  std::int64_t x_steps[kMaxRank], y_steps[kMaxRank], offset = 0;
  for (int i = 0; i < y.rank(); ++i) {
    if (x.size(i) > 0) offset += ranges[3 * i] * whole[i];
    x_steps[i] = (*x.strides)[i];
    y_steps[i] = whole[i] * ranges[3 * i + 1];
  }
  p.window.is_number = false;
  set_up_between(p.window, x.dtype, x.dtype, *x.shape, x_steps, y_steps);
  p.offset_bytes = offset * static_cast<std::int64_t>(size_of(x.dtype));
}
void bind_unslice(void* problem, void* const* at) {
  UnsliceProblem& p = *static_cast<UnsliceProblem*>(problem);
  p.window.parameter.x = at[0];
  p.all.parameter.y = at[1];
  p.window.parameter.y = static_cast<char*>(at[1]) + p.offset_bytes;
}
void run_unslice(const void* problem) {
  const auto& p = *static_cast<const UnsliceProblem*>(problem);
  run_fill(&p.all);
  run_copy(&p.window);
}

struct SequenceProblem {
  Sequence parameter;
  DType dtype;
};
void set_up_sequence(const Call& call, void* problem) {
  const Attributes& w = call.attributes;
  *static_cast<SequenceProblem*>(problem) = {
      {w[0], nullptr, w.flag(2), w.flag(3), w.flag(4), w[5], w[6], w.real(5), w.real(6), w.real(7)},
      call.out[0].dtype};
}
void bind_sequence(void* problem, void* const* at) {
  static_cast<SequenceProblem*>(problem)->parameter.y = at[0];
}
void run_sequence(const void* problem) {
  const auto& p = *static_cast<const SequenceProblem*>(problem);
  if (p.parameter.count == 0) return;
  static const char place = 0;
  const Function kernel =
      kernel_of(&place, static_cast<std::uint64_t>(p.dtype), "arange.cuh", "sequence",
                [&] { return define("TW_TO", type_name(p.dtype)); });
  Gpu::current().launch(kernel, grid_for(p.parameter.count), &p.parameter);
}

constexpr char kCopyHelp[] = "16 bytes a thread; transposes through shared memory";

}  // namespace

void register_copy_kernels() {
  add_kernel<CopyProblem>("copy", kCopyHelp,
                          {.set_up = set_up_copy<0>, .bind = bind_copy<0, 1>, .run = run_copy});
  add_kernel<CopyProblem>("astype", kCopyHelp,
                          {.set_up = set_up_copy<0>, .bind = bind_copy<0, 1>, .run = run_copy});
  add_kernel<CopyProblem>("assign", kCopyHelp,
                          {.set_up = set_up_copy<1>, .bind = bind_copy<1, 2>, .run = run_copy});
  add_kernel<FillProblem>("zeros", "one value",
                          {.set_up = set_up_fill, .bind = bind_zeros, .run = run_fill});
  add_kernel<FillProblem>("full", "one value",
                          {.set_up = set_up_fill, .bind = bind_full, .run = run_fill});
  add_kernel<UnsliceProblem>("unslice", "zeros, then a strided copy",
                             {.set_up = set_up_unslice, .bind = bind_unslice, .run = run_unslice});
  add_kernel<SequenceProblem>(
      "sequence", "one element a thread",
      {.set_up = set_up_sequence, .bind = bind_sequence, .run = run_sequence});
}

}  // namespace tw::cuda
