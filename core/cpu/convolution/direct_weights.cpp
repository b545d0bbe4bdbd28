// Rung direct, the weights' gradient: for each tap and input channel, the sums over all pixels of
// the input times the gradient, whose channels are in the lanes.
#include "core/base/thresholds.h"
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/layout.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

struct Plan {
  int64_t in, out, taps, pitch, rows;  // of a group; rows: of sums, one for each tap and channel
  int64_t low[3];
  int cut, lanes;
  int64_t images, units;  // of a step: images, or places along the axis that is cut
  int64_t steps_an_image, steps;
  int64_t parts, panel_steps;
  Panels panels;

  template <class T> Plan(const ConvolutionProblem& p, T)
      : in(p.in / p.groups),
        out(p.out / p.groups),
        taps(volume(p.kernel)),
        cut(cut_axis(p)),
        lanes(convolution_loops<T>().lanes),
        panels(out, lanes) {
    pitch = pixel_pitch(in, lanes);
    rows = taps * in;
    for (int d = 0; d < 3; ++d) low[d] = -p.before[d];
    const int64_t unit = volume(p.y) / p.y[cut];
    int64_t bytes = pitch * static_cast<int64_t>(sizeof(T));
    for (int d = 0; d < 3; ++d) bytes *= d == cut ? p.stride[d] : reach(p, d, p.y[d]);
    const int64_t fitting = std::max<int64_t>(
        1, std::min(thresholds::kChainTerms / unit, thresholds::kBlockBytes / bytes));
    units = std::min(p.y[cut], fitting);
    units = ceil_div(p.y[cut], ceil_div(p.y[cut], units));
    images = units < p.y[cut] ? 1 : std::clamp<int64_t>(fitting / units, 1, p.batch);
    steps_an_image = ceil_div(p.y[cut], units);
    steps = ceil_div(p.batch, images) * steps_an_image;
    const int64_t most = std::clamp<int64_t>(
        static_cast<int64_t>(flops_of(p) / thresholds::kFlopGrain), 1, thresholds::kBatchParts);
    const int64_t copy =
        p.groups * panels.count * panels.width * rows * static_cast<int64_t>(sizeof(T));
    parts = std::clamp<int64_t>(ceil_div(most, p.groups * panels.count), 1,
                                std::min(steps, 1 + thresholds::kSumCopyBytes / copy));
  }
  static int64_t reach(const ConvolutionProblem& p, int d, int64_t count) {
    return (count - 1) * p.stride[d] + (p.kernel[d] - 1) * p.dilation[d] + 1;
  }
};

// Adds one step's products to the sums [tap][input channel][lanes].
template <class T> void add_step(const ConvolutionProblem& p, const Plan& plan, int64_t step,
                                 int64_t group, int64_t panel, bool adds, T* sums) {
  const ConvolutionLoops& loops = convolution_loops<T>();
  const int64_t image = step / plan.steps_an_image * plan.images;
  const int64_t first = step % plan.steps_an_image * plan.units;
  const int64_t width = plan.panels.width;
  SourceBox box;
  int64_t size[3];
  for (int d = 0; d < 3; ++d) {
    const bool cut = d == plan.cut;
    size[d] = cut ? std::min(plan.units, p.y[d] - first) : p.y[d];
    box.low[d] = plan.low[d] + (cut ? first * p.stride[d] : 0);
    box.size[d] = Plan::reach(p, d, size[d]);
  }
  box.images = std::min(plan.images, p.batch - image);
  box.pitch = plan.pitch;
  const int64_t x_plane = volume(p.x), y_plane = volume(p.y), pixels = volume(size);
  const ScratchArray<T> x(box.elements()), g(box.images * pixels * width);
  fill_box(box, p.x, plan.cut,
           static_cast<const T*>(p.a) + (image * p.in + group * plan.in) * x_plane, p.in * x_plane,
           plan.in, static_cast<T*>(x));
  const ScratchArray<std::int32_t> places(std::max(pixels, plan.rows));
  for (int64_t i = 0; i < pixels; ++i) places[i] = static_cast<std::int32_t>(i * width);
  const int64_t channel = group * plan.out + plan.panels.first(panel);
  const int64_t before = first * (y_plane / p.y[plan.cut]);
  for (int64_t n = 0; n < box.images; ++n)
    loops.to_lanes({y_plane, plan.panels.at(panel), pixels, places},
                   static_cast<const T*>(p.b) + ((image + n) * p.out + channel) * y_plane + before,
                   g + n * pixels * width);
  int64_t row = 0;
  for (int64_t z = 0; z < p.kernel[0]; ++z)
    for (int64_t y = 0; y < p.kernel[1]; ++y)
      for (int64_t k = 0; k < p.kernel[2]; ++k)
        for (int64_t c = 0; c < plan.in; ++c)
          places[row++] = static_cast<std::int32_t>(
              box.place(z * p.dilation[0], y * p.dilation[1], k * p.dilation[2]) + c);
  const int64_t lines = box.images * size[0] * size[1];
  const ScratchArray<ConvolutionRun> runs(lines);
  for (int64_t i = 0; i < lines; ++i)
    runs[i] = {i / size[1] / size[0] * box.image_step() +
                   box.place(i / size[1] % size[0] * p.stride[0], i % size[1] * p.stride[1], 0),
               i * size[2] * width, size[2]};
  loops.multiply({.a = x,
                  .b = g,
                  .c = sums,
                  .rows_at = places,
                  .rows = plan.rows,
                  .columns = plan.panels.columns(panel, plan.lanes),
                  .a_col = p.stride[2] * plan.pitch,
                  .b_row = width,
                  .c_row = width,
                  .runs = runs,
                  .run_count = lines,
                  .adds = adds});
}

// Sums of one panel to (out, in, taps).
template <class T> void store(const ConvolutionProblem& p, const Plan& plan, int64_t group,
                              int64_t panel, const T* sums) {
  const ScratchArray<std::int32_t> places(plan.rows);
  for (int64_t i = 0; i < plan.rows; ++i)
    places[i] =
        static_cast<std::int32_t>((i % plan.taps * plan.in + i / plan.taps) * plan.panels.width);
  const int64_t channel = group * plan.out + plan.panels.first(panel);
  convolution_loops<T>().from_lanes({plan.rows, plan.panels.at(panel), plan.rows, places}, sums,
                                    nullptr, static_cast<T*>(p.result) + channel * plan.rows);
}

}  // namespace

template <class T> void direct_weights(const ConvolutionProblem& p) {
  const Plan plan(p, T{});
  const int64_t panels = p.groups * plan.panels.count, size = plan.rows * plan.panels.width;
  const ScratchArray<T> sums(plan.parts * panels * size);
  parallel_chunks(plan.parts * panels, [&](int64_t i) {
    const int64_t part = i / panels, panel = i % panels;
    const int64_t first = part * plan.steps / plan.parts;
    const int64_t past = (part + 1) * plan.steps / plan.parts;
    for (int64_t step = first; step < past; ++step)
      add_step<T>(p, plan, step, panel / plan.panels.count, panel % plan.panels.count, step > first,
                  sums + i * size);
  });
  parallel_chunks(panels, [&](int64_t panel) {
    T* const total = sums + panel * size;
    for (int64_t part = 1; part < plan.parts; ++part) {
      const T* const more = sums + (part * panels + panel) * size;
      for (int64_t i = 0; i < size; ++i) total[i] += more[i];
    }
    store<T>(p, plan, panel / plan.panels.count, panel % plan.panels.count, total);
  });
}
template void direct_weights<float>(const ConvolutionProblem&);
template void direct_weights<double>(const ConvolutionProblem&);

}  // namespace tw
