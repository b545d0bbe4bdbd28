// Pooling and its gradients, unfold and fold, and elements of planes by their places.
#include <new>

#include "core/cuda/gpu/families.h"
#include "core/cuda/convolution/windows_parameters.h"
#include "core/cuda/gpu/add_kernel.h"

namespace tw::cuda {

namespace {

using Windows = WindowsOf<void>;
using Places = PlacesOf<void>;
template <class Parameter> struct Problem {
  Parameter parameter;
  DType dtype;
};

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}

Windows& set_up(const Call& call, void* problem) {
  auto& p = *new (problem) Problem<Windows>{};
  p.dtype = call.in[0].dtype;
  Windows& w = p.parameter;
  w.count = call.out[0].count;
  std::int64_t* const lists[] = {w.kernel, w.stride, w.dilation, w.before, w.x, w.y};
  const int axes = call.attributes.list(0).count;
  for (int i = 0; i < 6; ++i)
    for (int d = 0; d < 3; ++d)
      lists[i][d] = d < 3 - axes ? i != 3 : call.attributes.list(i)[d - (3 - axes)];
  return w;
}
void set_up_max(const Call& call, void* problem) {
  set_up(call, problem).indexed = call.attributes.flag(6);
}
void set_up_mean(const Call& call, void* problem) {
  Windows& w = set_up(call, problem);
  w.include_padding = call.attributes.flag(6);
  w.divisor = call.attributes[7];
}
// Attributes: kernel, stride, dilation, padding, sizes of the image.
void set_up_columns(const Call& call, void* problem) {
  auto& p = *new (problem) Problem<Windows>{};
  p.dtype = call.in[0].dtype;
  Windows& w = p.parameter;
  w.count = call.out[0].count;
  std::int64_t* const lists[] = {w.kernel, w.stride, w.dilation, w.before, w.x};
  for (int i = 0; i < 5; ++i) {
    lists[i][0] = i != 3;
    for (int d = 0; d < 2; ++d) lists[i][d + 1] = call.attributes.list(i)[d];
  }
  for (int d = 0; d < 3; ++d)
    w.y[d] = (w.x[d] + 2 * w.before[d] - w.dilation[d] * (w.kernel[d] - 1) - 1) / w.stride[d] + 1;
}
void bind(void* problem, void* const* at) {
  Windows& w = static_cast<Problem<Windows>*>(problem)->parameter;
  w.from = at[0];
  w.to = at[1];
}
void bind_max(void* problem, void* const* at) {
  bind(problem, at);
  static_cast<Problem<Windows>*>(problem)->parameter.indices = static_cast<std::int32_t*>(at[2]);
}

template <class Parameter>
void launch(const Problem<Parameter>& p, const char* kernel, std::int64_t items) {
  if (items == 0) return;
  const Function function =
      kernel_of(kernel, static_cast<std::uint64_t>(p.dtype), "windows.cuh", kernel,
                [&] { return define("TW_TYPE", type_name(p.dtype)); });
  Gpu::current().launch(function, grid_for(items), &p.parameter);
}
constexpr char kMax[] = "max_windows", kMean[] = "mean_windows", kSpread[] = "spread_windows",
               kUnfold[] = "unfold", kFold[] = "fold", kGather[] = "gather_in_planes",
               kScatter[] = "scatter_in_planes";
template <const char* kernel> void run(const void* problem) {
  const auto& p = *static_cast<const Problem<Windows>*>(problem);
  launch(p, kernel, p.parameter.count);
}

void set_up_places(const Call& call, const Meta& wide, void* problem) {
  auto& p = *new (problem) Problem<Places>{};
  p.dtype = call.in[0].dtype;
  const Meta& places = call.in[1];
  const int space = call.attributes.list(0).count;
  for (int i = 0; i < wide.rank(); ++i) {
    const bool leads = i < wide.rank() - space;
    if (leads) p.parameter.planes *= wide.size(i);
    if (!leads) p.parameter.size *= wide.size(i), p.parameter.places *= places.size(i);
  }
}
void bind_places(void* problem, void* const* at) {
  Places& p = static_cast<Problem<Places>*>(problem)->parameter;
  p.from = at[0];
  p.at = static_cast<const std::int32_t*>(at[1]);
  p.to = at[2];
}
template <const char* kernel, bool scatters> void run_places(const void* problem) {
  const auto& p = *static_cast<const Problem<Places>*>(problem);
  launch(p, kernel, p.parameter.planes * (scatters ? p.parameter.size : p.parameter.places));
}

constexpr char kHelp[] = "an element of the result a thread";

}  // namespace

void register_window_kernels() {
  add_kernel<Problem<Windows>>(kMax, kHelp,
                               {.refuses = refuses,
                                .set_up = set_up_max,
                                .bind = bind_max,
                                .run = run<kMax>,
                                .contiguous = 1});
  add_kernel<Problem<Windows>>(kMean, kHelp,
                               {.refuses = refuses,
                                .set_up = set_up_mean,
                                .bind = bind,
                                .run = run<kMean>,
                                .contiguous = 1});
  add_kernel<Problem<Windows>>(kSpread, kHelp,
                               {.refuses = refuses,
                                .set_up = set_up_mean,
                                .bind = bind,
                                .run = run<kSpread>,
                                .contiguous = 1});
  add_kernel<Problem<Windows>>("windows_to_columns", kHelp,
                               {.refuses = refuses,
                                .set_up = set_up_columns,
                                .bind = bind,
                                .run = run<kUnfold>,
                                .contiguous = 1});
  add_kernel<Problem<Windows>>("columns_to_windows", kHelp,
                               {.refuses = refuses,
                                .set_up = set_up_columns,
                                .bind = bind,
                                .run = run<kFold>,
                                .contiguous = 1});
  add_kernel<Problem<Places>>(
      kGather, kHelp,
      {.refuses = refuses,
       .set_up = [](const Call& call, void* problem) { set_up_places(call, call.in[0], problem); },
       .bind = bind_places,
       .run = run_places<kGather, false>,
       .contiguous = 3});
  add_kernel<Problem<Places>>(
      kScatter, kHelp,
      {.refuses = refuses,
       .set_up = [](const Call& call, void* problem) { set_up_places(call, call.out[0], problem); },
       .bind = bind_places,
       .run = run_places<kScatter, true>,
       .contiguous = 3});
}

}  // namespace tw::cuda
