// Layer, RMS, group, instance and batch normalisation, as [outer, groups, channels, inner].
#include <new>

#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/normalization/norm_parameters.h"

namespace tw::cuda {

namespace {

using Norm = NormOf<void>;
struct Problem {
  Norm parameter;
  DType dtype;
  bool affine;
};

const char* refuses(const Call& call) { return refuses_narrow(call); }
// Attributes: groups, channels, inner, eps, centered; of gradients also whether scales have some.
template <bool backward> void set_up(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  const Attributes attributes = call.attributes;
  p.dtype = call.in[0].dtype;
  p.affine = backward && attributes.flag(5);
  Norm& q = p.parameter;
  q.groups = attributes[0];
  q.channels = attributes[1];
  q.inner = attributes[2];
  q.eps = attributes.real(3);
  q.centered = attributes.flag(4);
  const std::int64_t of_place = q.groups * q.channels * q.inner;
  q.outer = of_place ? call.in[0].count / of_place : 0;
}
template <bool of_channels> void bind(void* problem, void* const* at) {
  Norm& p = static_cast<Problem*>(problem)->parameter;
  p.x = at[0];
  p.weight = at[1];
  p.bias = at[2];
  p.y = at[3];
  p.mean = at[4];
  p.rstd = at[5];
  if (of_channels) p.variance = at[6];
}
void bind_backward(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  Norm& q = p.parameter;
  q.g = at[0];
  q.x = at[1];
  q.mean_in = at[2];
  q.rstd_in = at[3];
  q.weight = at[4];
  q.dx = at[5];
  q.dweight = p.affine ? at[6] : nullptr;
  q.dbias = p.affine ? at[7] : nullptr;
}

template <bool of_channels, bool backward> void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  const Norm& q = p.parameter;
  static const char of_sets = 0, of_scales = 0;
  const std::int64_t sets = of_channels ? q.channels : q.outer * q.groups;
  const std::int64_t count = of_channels ? q.outer * q.inner : q.channels * q.inner;
  if (sets == 0 || (count == 0 && !p.affine)) return;
  const int width = count > 512 ? kBlockThreads : kWarpThreads;
  const std::uint64_t key =
      (static_cast<std::uint64_t>(p.dtype) * 512 + static_cast<std::uint64_t>(width)) * 4 +
      of_channels * 2 + backward;
  const auto settings = [&] {
    return define("TW_TYPE", type_name(p.dtype)) + define("TW_WIDTH", std::to_string(width)) +
           define("TW_OF_CHANNELS", of_channels ? "1" : "0");
  };
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(sets * width, kBlockThreads));
  Gpu& gpu = Gpu::current();
  gpu.launch(
      kernel_of(&of_sets, key, "norm.cuh", backward ? "normalize_backward" : "normalize", settings),
      grid, &q);
  if (!backward || of_channels || !p.affine) return;
  grid.blocks[0] = static_cast<unsigned>(divide_up(q.groups * q.channels, kBlockScales));
  gpu.launch(kernel_of(&of_scales, key, "norm.cuh", "scales_backward", settings), grid, &q);
}

constexpr char kHelp[] = "a warp or a block a set; mean, variance about it, scaling";
constexpr char kBackwardHelp[] = "a warp or a block a set; two sums and a scaled difference";

}  // namespace

void register_norm_kernels() {
  add_kernel<Problem>("normalize_rows", kHelp,
                      {.refuses = refuses,
                       .set_up = set_up<false>,
                       .bind = bind<false>,
                       .run = run<false, false>,
                       .contiguous = 7});
  add_kernel<Problem>("normalize_channels", kHelp,
                      {.refuses = refuses,
                       .set_up = set_up<false>,
                       .bind = bind<true>,
                       .run = run<true, false>,
                       .contiguous = 7});
  add_kernel<Problem>("normalize_rows_backward", kBackwardHelp,
                      {.refuses = refuses,
                       .set_up = set_up<true>,
                       .bind = bind_backward,
                       .run = run<false, true>,
                       .contiguous = 31});
  add_kernel<Problem>("normalize_channels_backward", kBackwardHelp,
                      {.refuses = refuses,
                       .set_up = set_up<true>,
                       .bind = bind_backward,
                       .run = run<true, true>,
                       .contiguous = 31});
}

}  // namespace tw::cuda
