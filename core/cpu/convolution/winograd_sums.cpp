// Rung winograd, forward and the input's gradient.
#include "core/base/thresholds.h"
#include "core/cpu/convolution/winograd_tiles.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

struct Plan {
  WinogradShape s;
  Panels panels;
  int lanes;
  int64_t pitch, sums_pitch;
  int64_t images, rows;  // of a piece
  int64_t tiles_at_once;
  int64_t panel_run;
  int64_t channel_run;  // channels of the source that are added up in one chain
  bool weights_are_far;

  Plan(const ConvolutionProblem& p, int m)
      : s(p, m),
        panels(s.out, convolution_loops<float>().lanes),
        lanes(convolution_loops<float>().lanes) {
    pitch = pixel_pitch(s.in, lanes);
    sums_pitch = panels.width;
    const int64_t tile = s.planes * (pitch + panels.width) * int64_t(sizeof(float));
    const int64_t bytes = p.groups * panels.count * panel_elements() * int64_t(sizeof(float));
    weights_are_far = double(bytes) > far_weight_bytes();
    const int64_t wanted = std::clamp(
        thresholds::kTilesBytes / tile,
        weights_are_far ? thresholds::kFewFarTiles : thresholds::kFewTiles, thresholds::kManyTiles);
    rows = std::clamp<int64_t>((wanted + s.columns / 2) / s.columns, 1, s.rows);
    rows = ceil_div(s.rows, ceil_div(s.rows, rows));
    images = rows < s.rows ? 1 : std::clamp<int64_t>(wanted / (rows * s.columns), 1, p.batch);
    const int64_t most = std::clamp<int64_t>(int64_t(flops_of(p) / thresholds::kFlopGrain), 1,
                                             num_threads() > 1 ? thresholds::kPieces : 1);
    while (images > 1 && pieces(p) < ceil_div(most, weights_are_far ? panels.count : 1))
      images /= 2;
    tiles_at_once = m == 2 ? std::min(thresholds::kTilesAtOnce, tiles()) : tiles();
    panel_run = ceil_div(panels.count, std::min(panels.count, ceil_div(most, pieces(p))));
    const int64_t channel = s.planes * panels.width * int64_t(sizeof(float));
    const int64_t runs = ceil_div(s.in * channel, thresholds::kTransformedBytes);
    channel_run = round_up(ceil_div(s.in, runs), lanes);
  }
  // Weights that one piece alone needs are transformed as it needs them, and so are those that
  // would come back from memory: that takes less time.
  bool shares_weights(const ConvolutionProblem& p) const {
    return pieces(p) > p.groups && !weights_are_far;
  }
  int64_t bands() const { return ceil_div(s.rows, rows); }
  int64_t pieces(const ConvolutionProblem& p) const {
    return ceil_div(p.batch, images) * bands() * p.groups;
  }
  int64_t tiles() const { return images * rows * s.columns; }
  int64_t tile_elements() const { return s.planes * pitch + 16; }
  int64_t weight_plane() const { return s.in * panels.width + kPlanePadding; }
  int64_t panel_elements() const { return s.planes * weight_plane(); }
};

// The weights of source channels [first, first + count) for one panel: [plane][channel][lanes].
void transform_weights(const ConvolutionProblem& p, const Plan& plan, int64_t group, int64_t panel,
                       int64_t first, int64_t count, int64_t plane, float* to) {
  constexpr int64_t taps = 9;
  const bool back = p.part == ConvolutionPart::input_gradient;
  const int64_t width = plan.panels.width, out = plan.panels.first(panel);
  const int64_t channels = plan.panels.at(panel);
  const float* const w = static_cast<const float*>(p.b) + group * plan.s.out * plan.s.in * taps;
  const ScratchArray<float> packed(taps * count * width);
  int64_t slots[taps];
  for (int64_t k = 0; k < taps; ++k) slots[k] = back ? taps - 1 - k : k;
  if (back)
    pack_weights_back<float>(w + (first * plan.s.out + out) * taps, taps, count, plan.s.out,
                             channels, slots, width, packed);
  else
    pack_weights<float>(w + (out * plan.s.in + first) * taps, taps, count, plan.s.in, channels,
                        slots, width, packed);
  const ScratchArray<std::int32_t> at(count);
  for (int64_t c = 0; c < count; ++c) at[c] = static_cast<std::int32_t>(c * width);
  winograd_loops(plan.s.m).weights(
      {count, width, at, 3 * count * width, count * width, plane, width}, packed, to);
}
// All of them: [group][panel][plane][channel][lanes].
void transform_all_weights(const ConvolutionProblem& p, const Plan& plan, float* to) {
  parallel_chunks(p.groups * plan.panels.count, [&](int64_t i) {
    transform_weights(p, plan, i / plan.panels.count, i % plan.panels.count, 0, plan.s.in,
                      plan.weight_plane(), to + i * plan.panel_elements());
  });
}

// Where tiles and pixels of a piece lie. Pieces of fewer rows or images take the first of them.
struct Places {
  SourceBox source, result;
  ScratchArray<std::int32_t> source_tiles, result_tiles, pixels;

  explicit Places(const Plan& plan)
      : source(plan.s.box(plan.images, 0, plan.rows, plan.pitch)),
        result(plan.s.result_box(plan.images, 0, plan.rows, plan.panels.width)),
        source_tiles(plan.tiles()),
        result_tiles(plan.tiles()),
        pixels(result.pixels()) {
    place_tiles(plan.s, source, plan.rows, source_tiles);
    place_tiles(plan.s, result, plan.rows, result_tiles);
    const int64_t width = plan.s.result[2];
    for (int64_t y = 0, i = 0; y < result.size[1]; ++y)
      for (int64_t x = 0; x < width; ++x)
        pixels[i++] = static_cast<std::int32_t>(result.place(0, y, x));
  }
};

// Some images and rows of tiles [first, past).
class Piece {
 public:
  Piece(const ConvolutionProblem& p, const Plan& plan, const Places& at, int64_t image,
        int64_t first, int64_t group)
      : p_(p),
        plan_(plan),
        at_(at),
        s_(plan.s),
        image_(image),
        first_(first),
        past_(std::min(first + plan.rows, plan.s.rows)),
        group_(group),
        images_(std::min(plan.images, p.batch - image)),
        tiles_(images_ * (past_ - first) * plan.s.columns) {}

  // `weights`: all that are transformed, or null where this piece alone needs them.
  void run(const float* weights, int64_t first_panel, int64_t past_panel) const {
    const ScratchArray<float> x(tiles_ * plan_.tile_elements());
    transform_source(x);
    const ScratchArray<float> result(at_.result.elements());
    for (int64_t panel = first_panel; panel < past_panel; ++panel) {
      if (weights)
        add_up(panel, x, weights + (group_ * plan_.panels.count + panel) * plan_.panel_elements(),
               result);
      else
        add_up(panel, x, result);
      store(panel, result);
    }
  }

 private:
  int64_t sums_plane(int64_t tiles) const { return tiles * plan_.panels.width + kPlanePadding; }
  void transform_source(float* planes) const {
    const SourceBox box = s_.box(images_, first_, past_, plan_.pitch);
    const ScratchArray<float> source(box.elements());
    const int64_t size = volume(s_.source), image = p_.groups * s_.in * size;
    fill_box(box, s_.source, 1,
             static_cast<const float*>(p_.a) + image_ * image + group_ * s_.in * size, image, s_.in,
             static_cast<float*>(source));
    winograd_loops(s_.m).input({tiles_, s_.in, at_.source_tiles, box.place(0, 1, 0), box.pitch,
                                plan_.pitch, plan_.tile_elements()},
                               source, planes);
  }
  // Some tiles at a time, whose sums stay in the first-level cache.
  void add_up(int64_t panel, const float* x, const float* w, float* result) const {
    const int64_t plane = sums_plane(plan_.tiles_at_once);
    const ScratchArray<float> sums(s_.planes * plane);
    for (int64_t first = 0; first < tiles_; first += plan_.tiles_at_once) {
      const int64_t tiles = std::min(plan_.tiles_at_once, tiles_ - first);
      for (int64_t c = 0; c < s_.in; c += plan_.channel_run)
        add_products(panel, first, tiles, c, x, w + c * plan_.panels.width, plan_.weight_plane(),
                     sums, plane);
      to_result(panel, first, tiles, sums, plane, result);
    }
  }
  // Some channels at a time, whose weights are transformed now.
  void add_up(int64_t panel, const float* x, float* result) const {
    const int64_t plane = sums_plane(tiles_);
    const ScratchArray<float> sums(s_.planes * plane);
    const int64_t weight_plane = plan_.channel_run * plan_.panels.width + kPlanePadding;
    const ScratchArray<float> w(s_.planes * weight_plane);
    for (int64_t c = 0; c < s_.in; c += plan_.channel_run) {
      transform_weights(p_, plan_, group_, panel, c, std::min(plan_.channel_run, s_.in - c),
                        weight_plane, w);
      add_products(panel, 0, tiles_, c, x, w, weight_plane, sums, plane);
    }
    to_result(panel, 0, tiles_, sums, plane, result);
  }
  // Of a run of channels from `c` on, to tiles [first, first + tiles).
  void add_products(int64_t panel, int64_t first, int64_t tiles, int64_t c, const float* x,
                    const float* w, int64_t weight_plane, float* sums, int64_t sums_plane) const {
    const int64_t width = plan_.panels.width;
    convolution_loops<float>().multiply({.a = x + first * plan_.tile_elements() + c,
                                         .b = w,
                                         .c = sums,
                                         .rows = tiles,
                                         .columns = plan_.panels.columns(panel, plan_.lanes),
                                         .a_row = plan_.tile_elements(),
                                         .a_col = 1,
                                         .b_row = width,
                                         .c_row = width,
                                         .run_count = std::min(plan_.channel_run, s_.in - c),
                                         .adds = c > 0,
                                         .planes = s_.planes,
                                         .a_plane = plan_.pitch,
                                         .b_plane = weight_plane,
                                         .c_plane = sums_plane});
  }
  void to_result(int64_t panel, int64_t first, int64_t tiles, const float* sums, int64_t sums_plane,
                 float* result) const {
    const int64_t width = plan_.panels.width;
    winograd_loops(s_.m).output({tiles, plan_.panels.at(panel), at_.result_tiles + first,
                                 at_.result.place(0, 1, 0), width, sums_plane, width},
                                sums, result);
  }
  void store(int64_t panel, const float* result) const {
    const int64_t above = first_ * s_.m, below = std::min(past_ * s_.m, s_.result[1]);
    const int64_t plane = volume(s_.result), channel = group_ * s_.out + plan_.panels.first(panel);
    const float* const bias = p_.bias ? static_cast<const float*>(p_.bias) + channel : nullptr;
    for (int64_t n = 0; n < images_; ++n)
      convolution_loops<float>().from_lanes(
          {plane, plan_.panels.at(panel), (below - above) * s_.result[2], at_.pixels},
          result + n * at_.result.image_step(), bias,
          static_cast<float*>(p_.result) + ((image_ + n) * p_.groups * s_.out + channel) * plane +
              above * s_.result[2]);
  }

  const ConvolutionProblem& p_;
  const Plan& plan_;
  const Places& at_;
  const WinogradShape& s_;
  int64_t image_, first_, past_, group_, images_, tiles_;
};

}  // namespace

WeightPasses passes_of_sums(const ConvolutionProblem& p, int m) {
  const Plan plan(p, m);
  const double pieces = double(plan.pieces(p)) / double(p.groups);
  return plan.shares_weights(p) ? WeightPasses{1, 1 + pieces} : WeightPasses{pieces, 0};
}

void winograd_sums(const ConvolutionProblem& p, int m) {
  const Plan plan(p, m);
  const bool shares = plan.shares_weights(p);
  const ScratchArray<float> weights(shares ? p.groups * plan.panels.count * plan.panel_elements()
                                           : 0);
  if (shares) transform_all_weights(p, plan, weights);
  const Places at(plan);
  const int64_t bands = plan.bands(), ranges = ceil_div(plan.panels.count, plan.panel_run);
  parallel_chunks(plan.pieces(p) * ranges, [&](int64_t i) {
    const int64_t panel = i % ranges * plan.panel_run, band = i / ranges % bands;
    const int64_t group = i / ranges / bands % p.groups, image = i / ranges / bands / p.groups;
    Piece(p, plan, at, image * plan.images, band * plan.rows, group)
        .run(weights, panel, std::min(panel + plan.panel_run, plan.panels.count));
  });
}

}  // namespace tw
