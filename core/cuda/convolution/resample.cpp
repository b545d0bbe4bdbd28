// Images of another size, and sums at places (grid_sample).
#include <cmath>
#include <new>

#include "core/cuda/gpu/families.h"
#include "core/cuda/convolution/resample_parameters.h"
#include "core/cuda/convolution/taps_parameters.h"
#include "core/cuda/gpu/add_kernel.h"

namespace tw::cuda {

namespace {

using std::int64_t;

const char* refuses(const Call& call) { return refuses_narrow(call.in[0].dtype); }

// ---- sizes ----

using Method = ResampleMethod;
using Axis = ResampledAxis<void>;
using Resample = ResampleOf<void>;
struct Problem {
  Resample parameter;
  DType dtype;
  Method method;
  bool transposed;
};

// Elements that a row of the band matrix has at most, and its step in elements of the image.
void finish(Axis& a, const Problem& p) {
  a.taps = 1;
  if (p.method < Method::linear) return;
  const auto from = static_cast<double>(a.from), to = static_cast<double>(a.to);
  if (p.parameter.align_corners)
    a.scale = a.to > 1 ? (from - 1) / (to - 1) : 0;
  else if (a.scale == 0)
    a.scale = from / to;
  const double reach = p.method == Method::cubic ? 2 : 1;
  if (p.parameter.antialias)
    a.taps = 2 * static_cast<int64_t>(std::ceil(reach * std::max(a.scale, 1.0))) + 1;
  else
    a.taps = static_cast<int64_t>(2 * reach);
  a.taps = std::min(a.taps, a.from);
}
// Attributes: image, size, method, align_corners, antialias, the scales of three axes, transposed.
void set_up(const Call& call, void* problem) {
  Problem& p = *new (problem) Problem{};
  const Meta& x = call.in[0];
  const List image = call.attributes.list(0), size = call.attributes.list(1);
  p.dtype = x.dtype;
  p.method = static_cast<Method>(call.attributes[2]);
  p.transposed = call.attributes.flag(8);
  p.parameter.align_corners = call.attributes.flag(3);
  p.parameter.antialias = call.attributes.flag(4);
  p.parameter.count = call.out[0].count;
  const int missing = 3 - image.count;  // axes of size 1, which come first
  for (int d = 0; d < 3; ++d) {
    Axis& a = p.parameter.axes[d];
    a.from = d < missing ? 1 : image[d - missing];
    a.to = d < missing ? 1 : size[d - missing];
    a.scale = d < missing ? 0 : call.attributes.real(5 + d - missing);
    finish(a, p);
  }
}
void bind(void* problem, void* const* at) {
  Resample& p = static_cast<Problem*>(problem)->parameter;
  p.x = at[0];
  p.y = at[1];
}

constexpr char kBands[] = "resample_bands", kResample[] = "resample",
               kTransposed[] = "resample_transposed";
Function resample_kernel(const Problem& p, const char* kernel) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(p.dtype) * 4 + static_cast<std::uint64_t>(p.method);
  return kernel_of(kernel, key, "resample.cuh", kernel, [&] {
    return define("TW_TYPE", type_name(p.dtype)) +
           define("TW_METHOD", std::to_string(static_cast<int>(p.method)));
  });
}
void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.parameter.count == 0) return;
  Gpu& gpu = Gpu::current();
  Resample q = p.parameter;
  int64_t rows = 0, weights = 0;
  for (const Axis& a : q.axes) rows += a.to, weights += a.to * a.taps;
  const auto size = static_cast<int64_t>(size_of(p.dtype));
  const Room bands(weights * size + rows * 4);
  char* at = static_cast<char*>(bands.at());
  for (Axis& a : q.axes) {
    a.weights = at;
    at += a.to * a.taps * size;
  }
  for (Axis& a : q.axes) {
    a.first = reinterpret_cast<std::int32_t*>(at);
    at += a.to * 4;
  }
  Grid grid;
  grid.blocks[0] = static_cast<unsigned>(divide_up(rows, kBlockThreads));
  gpu.launch(resample_kernel(p, kBands), grid, &q);
  gpu.launch(resample_kernel(p, p.transposed ? kTransposed : kResample), grid_for(q.count), &q);
}

// ---- sums at places ----

using Taps = TapsOf<void>;
struct TapsProblem {
  Taps parameter;
  DType dtype;
};

// `y`, `x` and `weights` of a call, whatever of them is made, and the places.
void set_up_taps(const Meta& y, const Meta& x, const Meta& places, void* problem) {
  *new (problem) TapsProblem = {
      {x.size(0), x.size(1), x.size(2), places.size(1), y.size(2), {}, {}, {}, {}}, x.dtype};
}
void bind_taps(void* problem, void* const* at) {
  Taps& p = static_cast<TapsProblem*>(problem)->parameter;
  p.first = at[0];
  p.second = at[1];
  p.places = static_cast<const std::int32_t*>(at[2]);
  p.made = at[3];
}

constexpr char kSum[] = "sum_taps", kMultiply[] = "multiply_taps", kSpread[] = "spread_taps";
template <const char* kernel> void run_taps(const void* problem) {
  const auto& p = *static_cast<const TapsProblem*>(problem);
  const Taps& q = p.parameter;
  const int64_t made = q.batch * (kernel == kSum        ? q.channels * q.points
                                  : kernel == kMultiply ? q.taps * q.points
                                                        : q.channels * q.size);
  if (made == 0) return;
  Grid grid = grid_for(made);
  if (kernel == kSpread) {
    grid.blocks[0] = static_cast<unsigned>(divide_up(q.size, kBlockThreads));
    grid.blocks[1] = static_cast<unsigned>(divide_up(q.channels, kSpreadChannels));
    grid.blocks[2] = static_cast<unsigned>(q.batch);
  }
  Gpu::current().launch(kernel_of(kernel, static_cast<std::uint64_t>(p.dtype), "taps.cuh", kernel,
                                  [&] { return define("TW_TYPE", type_name(p.dtype)); }),
                        grid, &q);
}
template <const char* kernel> void add_taps(const char* help, void (*set_up)(const Call&, void*)) {
  add_kernel<TapsProblem>(kernel, help,
                          {.refuses = refuses,
                           .set_up = set_up,
                           .bind = bind_taps,
                           .run = run_taps<kernel>,
                           .contiguous = 7,
                           .name = "neighbours"});
}

}  // namespace

void register_resample_kernels() {
  add_kernel<Problem>(
      "resample_axes", "bands first, then an element a thread by all axes",
      {.refuses = refuses, .set_up = set_up, .bind = bind, .run = run, .contiguous = 1});
  add_taps<kSum>("a point a thread", [](const Call& call, void* problem) {
    set_up_taps(call.out[0], call.in[0], call.in[2], problem);
  });
  add_taps<kSpread>("a place a thread, which looks through all taps",
                    [](const Call& call, void* problem) {
                      set_up_taps(call.in[0], call.out[0], call.in[2], problem);
                    });
  add_taps<kMultiply>("a point a thread", [](const Call& call, void* problem) {
    set_up_taps(call.in[0], call.in[1], call.in[2], problem);
  });
}

}  // namespace tw::cuda
