// Rung winograd, forward and the input's gradient.
#include "core/cpu/convolution/winograd_tiles.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Transformed tiles and their products should stay in the second-level cache; with few tiles the
// weights are read too often.
constexpr int64_t kPlaneBytes = 1 << 20, kFewTiles = 28, kManyTiles = 64;
constexpr int64_t kPieces = 16;
constexpr double kPieceFlops = 4e6;

struct Plan {
  WinogradShape s;
  Panels panels;
  int lanes;
  int64_t pitch, sums_pitch;
  int64_t images, rows;  // of a piece
  int64_t panel_run;

  Plan(const ConvolutionProblem& p, int m)
      : s(p, m),
        panels(s.out, convolution_loops<float>().lanes),
        lanes(convolution_loops<float>().lanes) {
    pitch = pixel_pitch(s.in, lanes);
    sums_pitch = panels.width;
    const int64_t tile = s.planes * (pitch + panels.width) * int64_t(sizeof(float));
    const int64_t wanted = std::clamp(kPlaneBytes / tile, kFewTiles, kManyTiles);
    rows = std::clamp<int64_t>((wanted + s.columns / 2) / s.columns, 1, s.rows);
    rows = ceil_div(s.rows, ceil_div(s.rows, rows));
    images = rows < s.rows ? 1 : std::clamp<int64_t>(wanted / (rows * s.columns), 1, p.batch);
    const int64_t most = std::clamp<int64_t>(int64_t(flops_of(p) / kPieceFlops), 1, kPieces);
    while (images > 1 && pieces(p) < most) images /= 2;
    panel_run = ceil_div(panels.count, std::min(panels.count, ceil_div(most, pieces(p))));
  }
  int64_t bands() const { return ceil_div(s.rows, rows); }
  int64_t pieces(const ConvolutionProblem& p) const {
    return ceil_div(p.batch, images) * bands() * p.groups;
  }
  int64_t weight_plane() const { return s.in * panels.width + kPlanePadding; }
  int64_t panel_elements() const { return s.planes * weight_plane(); }
};

// [group][panel][plane][source channel][lanes].
void transform_weights(const ConvolutionProblem& p, const Plan& plan, float* to) {
  constexpr int64_t taps = 9;
  const bool back = p.part == ConvolutionPart::input_gradient;
  const int64_t width = plan.panels.width, count = plan.s.in;
  parallel_chunks(p.groups * plan.panels.count, [&](int64_t i) {
    const int64_t group = i / plan.panels.count, panel = i % plan.panels.count;
    const int64_t first = plan.panels.first(panel), channels = plan.panels.at(panel);
    const float* const w = static_cast<const float*>(p.b) + group * plan.s.out * count * taps;
    const ScratchArray<float> packed(taps * count * width);
    int64_t slots[taps];
    for (int64_t k = 0; k < taps; ++k) slots[k] = back ? taps - 1 - k : k;
    if (back)
      pack_weights_back<float>(w + first * taps, taps, count, plan.s.out, channels, slots, width,
                               packed);
    else
      pack_weights<float>(w + first * count * taps, taps, count, channels, slots, width, packed);
    const ScratchArray<std::int32_t> at(count);
    for (int64_t c = 0; c < count; ++c) at[c] = static_cast<std::int32_t>(c * width);
    winograd_loops(plan.s.m).weights(
        {count, width, at, 3 * count * width, count * width, plan.weight_plane(), width}, packed,
        to + i * plan.panel_elements());
  });
}

// Some images and rows of tiles [first, past).
class Piece {
 public:
  Piece(const ConvolutionProblem& p, const Plan& plan, int64_t image, int64_t first, int64_t group)
      : p_(p),
        plan_(plan),
        s_(plan.s),
        image_(image),
        first_(first),
        past_(std::min(first + plan.rows, plan.s.rows)),
        group_(group),
        images_(std::min(plan.images, p.batch - image)),
        tiles_(images_ * (past_ - first) * plan.s.columns) {}

  void run(const float* weights, int64_t first_panel, int64_t past_panel) const {
    const int64_t plane = plan_.pitch, tile = s_.planes * plane + 16;
    const ScratchArray<float> x(tiles_ * tile);
    transform_source(x, plane, tile);
    const int64_t width = plan_.panels.width, sums_plane = tiles_ * width + kPlanePadding;
    const ScratchArray<float> sums(s_.planes * sums_plane);
    const ScratchArray<std::int32_t> rows_at(tiles_);
    for (int64_t t = 0; t < tiles_; ++t) rows_at[t] = static_cast<std::int32_t>(t * tile);
    const ConvolutionRun run = {0, 0, s_.in};
    for (int64_t panel = first_panel; panel < past_panel; ++panel) {
      const float* const w =
          weights + (group_ * plan_.panels.count + panel) * plan_.panel_elements();
      for (int i = 0; i < s_.planes; ++i)
        convolution_loops<float>().multiply(
            {x + i * plane, w + i * plan_.weight_plane(), sums + i * sums_plane, rows_at, tiles_,
             plan_.panels.columns(panel, plan_.lanes), 1, width, width, &run, 1, false});
      store(panel, sums, sums_plane);
    }
  }

 private:
  void transform_source(float* planes, int64_t plane, int64_t tile) const {
    const SourceBox box = s_.box(images_, first_, past_, plan_.pitch);
    const ScratchArray<float> source(box.elements());
    const int64_t size = volume(s_.source), image = p_.groups * s_.in * size;
    fill_box(box, s_.source, 1,
             static_cast<const float*>(p_.a) + image_ * image + group_ * s_.in * size, image, s_.in,
             static_cast<float*>(source));
    const ScratchArray<std::int32_t> at(tiles_);
    place_tiles(s_, box, past_ - first_, at);
    winograd_loops(s_.m).input({tiles_, s_.in, at, box.place(0, 1, 0), box.pitch, plane, tile},
                               source, planes);
  }
  void store(int64_t panel, const float* sums, int64_t sums_plane) const {
    const int64_t width = plan_.panels.width;
    const SourceBox box = s_.result_box(images_, first_, past_, width);
    const ScratchArray<float> tiles(box.elements());
    const ScratchArray<std::int32_t> at(std::max(tiles_, box.pixels()));
    place_tiles(s_, box, past_ - first_, at);
    winograd_loops(s_.m).output(
        {tiles_, plan_.panels.at(panel), at, box.place(0, 1, 0), box.pitch, sums_plane, width},
        sums, tiles);
    const int64_t above = first_ * s_.m, below = std::min(past_ * s_.m, s_.result[1]);
    int64_t pixels = 0;
    for (int64_t y = 0; y < below - above; ++y)
      for (int64_t x = 0; x < s_.result[2]; ++x)
        at[pixels++] = static_cast<std::int32_t>(box.place(0, y, x));
    const int64_t plane = volume(s_.result), channel = group_ * s_.out + plan_.panels.first(panel);
    const float* const bias = p_.bias ? static_cast<const float*>(p_.bias) + channel : nullptr;
    for (int64_t n = 0; n < images_; ++n)
      convolution_loops<float>().from_lanes(
          {plane, plan_.panels.at(panel), pixels, at}, tiles + n * box.image_step(), bias,
          static_cast<float*>(p_.result) + ((image_ + n) * p_.groups * s_.out + channel) * plane +
              above * s_.result[2]);
  }

  const ConvolutionProblem& p_;
  const Plan& plan_;
  const WinogradShape& s_;
  int64_t image_, first_, past_, group_, images_, tiles_;
};

}  // namespace

void winograd_sums(const ConvolutionProblem& p, int m) {
  const Plan plan(p, m);
  const ScratchArray<float> weights(p.groups * plan.panels.count * plan.panel_elements());
  transform_weights(p, plan, weights);
  const int64_t bands = plan.bands(), ranges = ceil_div(plan.panels.count, plan.panel_run);
  parallel_chunks(plan.pieces(p) * ranges, [&](int64_t i) {
    const int64_t panel = i % ranges * plan.panel_run, band = i / ranges % bands;
    const int64_t group = i / ranges / bands % p.groups, image = i / ranges / bands / p.groups;
    Piece(p, plan, image * plan.images, band * plan.rows, group)
        .run(weights, panel, std::min(panel + plan.panel_run, plan.panels.count));
  });
}

}  // namespace tw
