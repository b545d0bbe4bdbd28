// Rung winograd, the weights' gradient: the transpose of the forward part. Steps of some tiles are
// transformed, then added up plane by plane; where one step takes all tiles, block by block of the
// weights, whose sums go no further than the second-level cache.
#include "core/base/thresholds.h"
#include "core/cpu/convolution/winograd_tiles.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Rows of tiles transformed by one thread.
constexpr int64_t kBandRows = 2;

struct Plan {
  WinogradShape s;
  Panels panels;
  int lanes;
  int64_t pitch, g_pitch;
  int64_t bands_an_image, bands, step;  // bands of kBandRows rows of tiles; bands of a step
  int64_t blocks, block;                // of input channels, and how many are in one

  Plan(const ConvolutionProblem& p, int m)
      : s(p, m),
        panels(s.out, convolution_loops<float>().lanes),
        lanes(convolution_loops<float>().lanes) {
    pitch = pixel_pitch(s.in, lanes);
    g_pitch = pixel_pitch(panels.count * panels.width, lanes);
    bands_an_image = ceil_div(s.rows, kBandRows);
    bands = bands_an_image * p.batch;
    const int64_t tile = s.planes * (pitch + g_pitch) * int64_t(sizeof(float));
    const int64_t channel = s.planes * panels.width * int64_t(sizeof(float));
    block =
        round_up(ceil_div(s.in, ceil_div(s.in * channel, thresholds::kTransformedBytes)), lanes);
    blocks = ceil_div(s.in, block);
    const bool one_step =
        p.batch * s.rows * s.columns <= thresholds::kManySumTiles && blocks * panels.count > 1;
    const bool far = double(panels.count * s.in * channel) > far_weight_bytes();
    const int64_t least = one_step || far ? thresholds::kManySumTiles : thresholds::kFewSumTiles;
    const int64_t wanted =
        std::clamp(thresholds::kSumTilesBytes / tile, least, thresholds::kManySumTiles);
    step = std::clamp<int64_t>(wanted / (s.columns * std::min(kBandRows, s.rows)), 1, bands);
  }
  int64_t most_tiles() const { return step * std::min(kBandRows, s.rows) * s.columns; }
  int64_t x_plane() const { return most_tiles() * pitch + kPlanePadding; }
  int64_t g_plane() const { return most_tiles() * g_pitch + kPlanePadding; }
  int64_t sums_plane(int64_t channels) const { return channels * panels.width + kPlanePadding; }
  bool takes_blocks() const { return step >= bands && blocks * panels.count > 1; }
  int64_t rows_of(int64_t band) const {
    return std::min(kBandRows, s.rows - band % bands_an_image * kBandRows);
  }
};

// One band of x and g to planes, from tile `first_tile` of the step on.
void transform_band(const ConvolutionProblem& p, const Plan& plan, int64_t group, int64_t band,
                    int64_t first_tile, float* x_planes, float* g_planes) {
  const WinogradShape& s = plan.s;
  const int64_t image = band / plan.bands_an_image, first = band % plan.bands_an_image * kBandRows;
  const int64_t rows = plan.rows_of(band), x_size = volume(p.x), g_size = volume(p.y);
  const WinogradLoops& loops = winograd_loops(s.m);
  const ScratchArray<std::int32_t> at(rows * s.columns);
  {
    const SourceBox box = s.box(1, first, first + rows, plan.pitch);
    const ScratchArray<float> x(box.elements());
    fill_box(box, p.x, 1, static_cast<const float*>(p.a) + (image * p.in + group * s.in) * x_size,
             0, s.in, static_cast<float*>(x));
    const int64_t tiles = place_tiles(s, box, rows, at);
    loops.input({tiles, s.in, at, box.place(0, 1, 0), box.pitch, plan.x_plane(), plan.pitch}, x,
                x_planes + first_tile * plan.pitch);
  }
  const SourceBox box = s.result_box(1, first, first + rows, plan.g_pitch);
  const ScratchArray<float> g(box.elements());
  fill_box(box, p.y, 1, static_cast<const float*>(p.b) + (image * p.out + group * s.out) * g_size,
           0, s.out, static_cast<float*>(g));
  const int64_t tiles = place_tiles(s, box, rows, at);
  loops.output_gradient(
      {tiles, s.out, at, box.place(0, 1, 0), box.pitch, plan.g_plane(), plan.g_pitch}, g,
      g_planes + first_tile * plan.g_pitch);
}

// The products of a step's tiles, for some planes of some input channels of a panel.
ConvolutionBlock products(const Plan& plan, int64_t panel, int64_t channels, int64_t tiles,
                          const float* x, const float* g, float* sums) {
  const int64_t width = plan.panels.width;
  return {.a = x,
          .b = g + panel * width,
          .c = sums,
          .rows = channels,
          .columns = plan.panels.columns(panel, plan.lanes),
          .a_row = 1,
          .a_col = plan.pitch,
          .b_row = plan.g_pitch,
          .c_row = width,
          .run_count = tiles};
}

// From sums[plane][channel][lanes] of input channels [first, first + count) of a panel.
void store(const ConvolutionProblem& p, const Plan& plan, int64_t group, int64_t panel,
           int64_t first, int64_t count, const float* sums) {
  constexpr int64_t taps = 9;
  const int64_t in = plan.s.in, width = plan.panels.width;
  const ScratchArray<float> dw(taps * count * width);
  const ScratchArray<std::int32_t> at(taps * count);
  for (int64_t c = 0; c < count; ++c) at[c] = static_cast<std::int32_t>(c * width);
  winograd_loops(plan.s.m).weights_gradient(
      {count, width, at, 3 * count * width, count * width, plan.sums_plane(count), width}, sums,
      dw);
  for (int64_t i = 0; i < count * taps; ++i)
    at[i] = static_cast<std::int32_t>((i % taps * count + i / taps) * width);
  const int64_t channel = group * plan.s.out + plan.panels.first(panel);
  convolution_loops<float>().from_lanes(
      {in * taps, plan.panels.at(panel), count * taps, at}, dw, nullptr,
      static_cast<float*>(p.result) + (channel * in + first) * taps);
}

// sums[panel][plane][input channel][lanes] += the products of one step.
void add_step(const Plan& plan, int64_t tiles, bool adds, const float* x, const float* g,
              float* sums) {
  const int64_t planes = plan.s.planes, in = plan.s.in;
  parallel_chunks(planes, [&](int64_t i) {
    for (int64_t panel = 0; panel < plan.panels.count; ++panel) {
      ConvolutionBlock block =
          products(plan, panel, in, tiles, x + i * plan.x_plane(), g + i * plan.g_plane(),
                   sums + (panel * planes + i) * plan.sums_plane(in));
      block.adds = adds;
      convolution_loops<float>().multiply(block);
    }
  });
}

// Of all tiles.
void add_up_blocks(const ConvolutionProblem& p, const Plan& plan, int64_t group, int64_t tiles,
                   const float* x, const float* g) {
  parallel_chunks(plan.panels.count * plan.blocks, [&](int64_t i) {
    const int64_t panel = i / plan.blocks, first = i % plan.blocks * plan.block;
    const int64_t count = std::min(plan.block, plan.s.in - first);
    const ScratchArray<float> sums(plan.s.planes * plan.sums_plane(count));
    ConvolutionBlock block = products(plan, panel, count, tiles, x + first, g, sums);
    block.planes = plan.s.planes;
    block.a_plane = plan.x_plane(), block.b_plane = plan.g_plane();
    block.c_plane = plan.sums_plane(count);
    convolution_loops<float>().multiply(block);
    store(p, plan, group, panel, first, count, sums);
  });
}

}  // namespace

WeightPasses passes_of_weights(const ConvolutionProblem& p, int m) {
  const Plan plan(p, m);
  return {1, plan.takes_blocks() ? 0 : 2 * double(ceil_div(plan.bands, plan.step))};
}

void winograd_weights(const ConvolutionProblem& p, int m) {
  const Plan plan(p, m);
  const int64_t panel_sums = plan.s.planes * plan.sums_plane(plan.s.in);
  const ScratchArray<float> x(plan.s.planes * plan.x_plane()), g(plan.s.planes * plan.g_plane());
  const ScratchArray<float> sums(plan.takes_blocks() ? 0 : plan.panels.count * panel_sums);
  const ScratchArray<int64_t> first_tile(plan.step + 1);
  for (int64_t group = 0; group < p.groups; ++group) {
    for (int64_t first = 0; first < plan.bands; first += plan.step) {
      const int64_t count = std::min(plan.step, plan.bands - first);
      first_tile[0] = 0;
      for (int64_t i = 0; i < count; ++i)
        first_tile[i + 1] = first_tile[i] + plan.rows_of(first + i) * plan.s.columns;
      parallel_chunks(count, [&](int64_t i) {
        transform_band(p, plan, group, first + i, first_tile[i], x, g);
      });
      if (plan.takes_blocks())
        add_up_blocks(p, plan, group, first_tile[count], x, g);
      else
        add_step(plan, first_tile[count], first > 0, x, g, sums);
    }
    if (plan.takes_blocks()) continue;
    parallel_chunks(plan.panels.count, [&](int64_t panel) {
      store(p, plan, group, panel, 0, plan.s.in, sums + panel * panel_sums);
    });
  }
}

}  // namespace tw
