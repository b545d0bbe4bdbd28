// Rung direct, the weights' gradient of few input channels: pixels of rows of the output lie in the
// lanes, so that its gradient is read where it is, which for so few terms would take longer to
// transpose than to multiply.
#include "core/base/thresholds.h"
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/planes.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

struct Plan {
  int64_t in, out, terms, rows, bands, steps, parts;
  int64_t sums;  // vectors of a part

  Plan(const ConvolutionProblem& p, int64_t taps, int64_t vector_bytes)
      : in(p.in / p.groups), out(p.out / p.groups), terms(in * taps) {
    rows = std::clamp<int64_t>(thresholds::kDotPixels / p.y[2], 1, p.y[1]);
    bands = ceil_div(p.y[1], rows);
    steps = p.batch * bands;
    sums = out * terms;
    const auto pieces =
        static_cast<int64_t>(flops_of(p) / double(p.groups) / thresholds::kFlopGrain);
    const int64_t most = std::clamp<int64_t>(pieces, 1, thresholds::kBatchParts);
    const int64_t copies = thresholds::kDotCopyBytes / std::max<int64_t>(1, sums * vector_bytes);
    parts = std::max<int64_t>(1, std::min({steps, most, 1 + copies}));
  }
};

// Adds the products of one band of one image and group.
template <class T> void add_band(const ConvolutionProblem& p, const PlaneLayout& at,
                                 const Plan& plan, int64_t step, int64_t group, T* sums) {
  const ConvolutionLoops& loops = convolution_loops<T>();
  const int64_t image = step / plan.bands, first = step % plan.bands * plan.rows;
  const int64_t rows = std::min(plan.rows, p.y[1] - first), height = at.rows_of(0, rows);
  const ScratchArray<T> planes(plan.in * height * at.row + loops.lanes);
  const int64_t x_size = volume(p.x), y_size = volume(p.y);
  const T* const x = static_cast<const T*>(p.a) + (image * p.in + group * plan.in) * x_size;
  for (int64_t c = 0; c < plan.in; ++c)
    fill_plane(at, first * at.axes[0].step, height, x + c * x_size, planes + c * height * at.row);
  const ScratchArray<std::int32_t> taps_at(plan.terms);
  find_taps(at, plan.in, height * at.row, taps_at);
  const T* const g = static_cast<const T*>(p.b) + (image * p.out + group * plan.out) * y_size;
  loops.add_dots({.g = g + first * p.y[2],
                  .x = planes,
                  .taps_at = taps_at,
                  .sums = sums,
                  .channels = plan.out,
                  .taps = plan.terms,
                  .rows = rows,
                  .columns = p.y[2],
                  .g_plane = y_size,
                  .x_row = at.axes[0].step * at.row});
}

}  // namespace

bool direct_takes_dots(const ConvolutionProblem& p) {
  return p.part == ConvolutionPart::weight_gradient && has_few_planes(p);
}

template <class T> void direct_dots(const ConvolutionProblem& p) {
  const ConvolutionLoops& loops = convolution_loops<T>();
  const PlaneLayout at(p, loops.lanes);
  const Plan plan(p, at.taps, loops.lanes * static_cast<int64_t>(sizeof(T)));
  const int64_t size = plan.sums * loops.lanes;
  const ScratchArray<T> sums(plan.parts * p.groups * size);
  parallel_chunks(plan.parts * p.groups, [&](int64_t i) {
    const int64_t part = i / p.groups, group = i % p.groups;
    T* const own = sums + i * size;
    std::fill_n(own, size, T{0});
    const int64_t past = (part + 1) * plan.steps / plan.parts;
    for (int64_t step = part * plan.steps / plan.parts; step < past; ++step)
      add_band<T>(p, at, plan, step, group, own);
  });
  parallel_chunks(p.groups, [&](int64_t group) {
    T* const total = sums + group * size;
    for (int64_t part = 1; part < plan.parts; ++part) {
      const T* const more = sums + (part * p.groups + group) * size;
      for (int64_t i = 0; i < size; ++i) total[i] += more[i];
    }
    loops.fold_dots(plan.sums, total, static_cast<T*>(p.result) + group * plan.sums);
  });
}
template void direct_dots<float>(const ConvolutionProblem&);
template void direct_dots<double>(const ConvolutionProblem&);

}  // namespace tw
