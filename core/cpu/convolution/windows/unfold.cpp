// The kernels of unfold and fold, whose loops im2col uses as well.
#include <new>

#include "core/cpu/convolution/windows/unfold.h"
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// The geometry, of which `a` is what is read and `result` what is written.
using Problem = ConvolutionProblem;

const char* refuses(const Call& call) {
  const DType dtype = call.in[0].dtype;
  return dtype == DType::float32 || dtype == DType::float64 ? nullptr : kTooNarrow;
}
// Attributes: kernel, stride, dilation, padding, sizes of the image.
void set_up_with(const Call& call, const Meta& image, const Meta& columns, void* problem) {
  Problem& p = *new (problem) Problem{};
  p.dtype = image.dtype;
  p.batch = image.size(0), p.groups = 1, p.in = image.size(1), p.out = columns.size(2);
  int64_t* const lists[] = {p.kernel, p.stride, p.dilation, p.before, p.x};
  for (int i = 0; i < 5; ++i) {
    lists[i][0] = i != 3;
    for (int d = 0; d < 2; ++d) lists[i][d + 1] = call.attributes.list(i)[d];
  }
  for (int d = 0; d < 3; ++d)
    p.y[d] = (p.x[d] + 2 * p.before[d] - p.dilation[d] * (p.kernel[d] - 1) - 1) / p.stride[d] + 1;
}
void set_up_unfold(const Call& call, void* problem) {
  set_up_with(call, call.in[0], call.out[0], problem);
}
void set_up_fold(const Call& call, void* problem) {
  set_up_with(call, call.out[0], call.in[0], problem);
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.a = at[0];
  p.result = at[1];
}

double cost_ns(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  return 500 + 0.3 * double(p.batch * p.in * volume(p.kernel)) * double(volume(p.y));
}

// Calls body(image, first channel, channels, runs) for pieces of about a grain.
template <class F> void each_piece(const Problem& p, F body) {
  const int64_t y = volume(p.y), size = volume(p.kernel) * y;
  if (p.batch * p.in * size == 0) return;
  const int64_t each = std::clamp<int64_t>(thresholds::kLightGrain / size, 1, p.in);
  const int64_t pieces = (p.in + each - 1) / each;
  parallel_chunks(p.batch * pieces, [&](int64_t i) {
    const int64_t image = i / pieces, channel = i % pieces * each;
    body(image, channel, std::min(each, p.in - channel), UnfoldedRuns(p, 0, y));
  });
}

template <class T> void unfold_all(const Problem& p) {
  const int64_t size = volume(p.kernel) * volume(p.y);
  each_piece(p, [&](int64_t image, int64_t channel, int64_t channels, const UnfoldedRuns& runs) {
    const int64_t first = image * p.in + channel;
    unfold(p, runs, channels, static_cast<const T*>(p.a) + first * volume(p.x),
           static_cast<T*>(p.result) + first * size, volume(p.y));
  });
}
template <class T> void fold_all(const Problem& p) {
  const int64_t size = volume(p.kernel) * volume(p.y);
  auto* const result = static_cast<T*>(p.result);
  std::fill_n(result, p.batch * p.in * volume(p.x), T{0});
  each_piece(p, [&](int64_t image, int64_t channel, int64_t channels, const UnfoldedRuns& runs) {
    const int64_t first = image * p.in + channel;
    fold(p, runs, channels, static_cast<const T*>(p.a) + first * size, volume(p.y),
         result + first * volume(p.x));
  });
}
template <void (*single)(const Problem&), void (*wide)(const Problem&)>
void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  p.dtype == DType::float64 ? wide(p) : single(p);
}

}  // namespace

void register_window_kernels() {
  add_kernel<Problem>("windows_to_columns", "copies of runs of rows",
                      {.refuses = refuses,
                       .set_up = set_up_unfold,
                       .bind = bind,
                       .cost_ns = cost_ns,
                       .run = run<unfold_all<float>, unfold_all<double>>,
                       .contiguous = 1,
                       .name = "spans"});
  add_kernel<Problem>("columns_to_windows", "sums of runs of rows",
                      {.refuses = refuses,
                       .set_up = set_up_fold,
                       .bind = bind,
                       .cost_ns = cost_ns,
                       .run = run<fold_all<float>, fold_all<double>>,
                       .contiguous = 1,
                       .name = "spans"});
}

}  // namespace tw
