// Rung direct, forward and the input's gradient. With a stride the gradient's pixels fall into
// classes, by their place modulo the stride: each class is a convolution of its own, of stride 1,
// with those taps of the kernel that reach it.
#include "core/base/thresholds.h"
#include "core/cpu/convolution/axis.h"
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/layout.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

struct Plan {
  GatherAxis axes[3];
  int64_t low[3], high[3];
  int64_t source_channels, result_channels;  // of a group
  int64_t taps, pitch;
  int cut;
  int64_t units;                                 // along the axis that is cut: places of a class
  int64_t piece_images, piece_units, panel_run;  // of a piece
  int lanes;
  Panels panels;

  template <class T> Plan(const ConvolutionProblem& p, T)
      : axes{{p, 0}, {p, 1}, {p, 2}},
        source_channels((axes[0].forward ? p.in : p.out) / p.groups),
        result_channels((axes[0].forward ? p.out : p.in) / p.groups),
        taps(volume(p.kernel)),
        cut(cut_axis(p)),
        lanes(convolution_loops<T>().lanes),
        panels(result_channels, lanes) {
    pitch = pixel_pitch(source_channels, lanes);
    for (int d = 0; d < 3; ++d) axes[d].bounds(&low[d], &high[d]);
    units = ceil_div(axes[cut].result, axes[cut].classes);
    cut_pieces(p, sizeof(T));
  }
  // Source places along axis d of `count` places of a class.
  int64_t reach(int d, int64_t count) const {
    return (count - 1) * axes[d].step + high[d] - low[d] + 1;
  }
  int64_t panel_elements() const { return (taps + 1) * source_channels * panels.width; }
  int64_t all_units(int d) const { return ceil_div(axes[d].result, axes[d].classes); }

  void cut_pieces(const ConvolutionProblem& p, int64_t bytes) {
    int64_t pixels = 1, source = pitch * bytes;  // of a unit
    for (int d = 0; d < 3; ++d) pixels *= d == cut ? axes[d].classes : axes[d].result;
    for (int d = 0; d < 3; ++d) source *= d == cut ? axes[d].step : reach(d, all_units(d));
    const int64_t wanted = std::max<int64_t>(1, thresholds::kPiecePixels / pixels);
    const int64_t fitting = std::max<int64_t>(1, thresholds::kSourceBytes / source);
    piece_units = std::min(
        units, std::max(std::min(wanted, fitting), ceil_div(high[cut] - low[cut], axes[cut].step)));
    piece_units = ceil_div(units, ceil_div(units, piece_units));
    piece_images = 1;
    if (piece_units == units)
      piece_images = std::clamp<int64_t>(std::min(wanted, fitting) / units, 1, p.batch);
    const double work = flops_of(p) / thresholds::kFlopGrain;
    const int64_t most = std::clamp<int64_t>(static_cast<int64_t>(work), 1, thresholds::kPieces);
    while (piece_images > 1 && places() * ceil_div(p.batch, piece_images) * p.groups < most)
      piece_images = piece_images / 2;
    const int64_t pieces = places() * ceil_div(p.batch, piece_images) * p.groups;
    panel_run = ceil_div(panels.count, std::min(panels.count, ceil_div(most, pieces)));
  }
  int64_t places() const { return ceil_div(units, piece_units); }
};

// The taps of one class of pixels, in the order in which weights are packed.
struct Class {
  int64_t residue[3];
  int64_t first_slot, taps;
};
template <class F> void each_class(const Plan& plan, F&& f) {
  Class c{{0, 0, 0}, 0, 0};
  const GatherAxis* a = plan.axes;
  for (c.residue[0] = 0; c.residue[0] < a[0].classes; ++c.residue[0])
    for (c.residue[1] = 0; c.residue[1] < a[1].classes; ++c.residue[1])
      for (c.residue[2] = 0; c.residue[2] < a[2].classes; ++c.residue[2]) {
        c.taps = 1;
        for (int d = 0; d < 3; ++d) {
          int64_t reaching = 0;
          for (int64_t k = 0; k < a[d].taps; ++k) reaching += a[d].reaches(k, c.residue[d]);
          c.taps *= reaching;
        }
        f(c);
        c.first_slot += c.taps;
      }
}
// Calls f(tap, offsets along the axes) for each tap of a class.
template <class F> void each_tap(const Plan& plan, const Class& c, F&& f) {
  const GatherAxis* a = plan.axes;
  for (int64_t z = 0; z < a[0].taps; ++z)
    for (int64_t y = 0; y < a[1].taps; ++y)
      for (int64_t x = 0; x < a[2].taps; ++x) {
        if (!a[0].reaches(z, c.residue[0]) || !a[1].reaches(y, c.residue[1]) ||
            !a[2].reaches(x, c.residue[2]))
          continue;
        f((z * a[1].taps + y) * a[2].taps + x, a[0].offset(z, c.residue[0]) - plan.low[0],
          a[1].offset(y, c.residue[1]) - plan.low[1], a[2].offset(x, c.residue[2]) - plan.low[2]);
      }
}

// All weights: [group][panel][slot][source channel][lanes], with one more slot for taps that reach
// nothing.
template <class T> void pack_all(const ConvolutionProblem& p, const Plan& plan, T* packed) {
  const ScratchArray<int64_t> slots(plan.taps);
  std::fill_n(static_cast<int64_t*>(slots), plan.taps, plan.taps);
  each_class(plan, [&](const Class& c) {
    int64_t slot = c.first_slot;
    each_tap(plan, c, [&](int64_t tap, int64_t, int64_t, int64_t) { slots[tap] = slot++; });
  });
  const int64_t in = p.in / p.groups, out = p.out / p.groups;
  auto* w = static_cast<const T*>(p.b);
  parallel_ranges(p.groups * plan.panels.count, 1, [&](int64_t i, int64_t) {
    const int64_t group = i / plan.panels.count, panel = i % plan.panels.count;
    const int64_t first = plan.panels.first(panel), channels = plan.panels.at(panel);
    const T* const from = w + group * out * in * plan.taps;
    if (p.part == ConvolutionPart::forward)
      pack_weights(from + first * in * plan.taps, plan.taps, in, in, channels, slots,
                   plan.panels.width, packed + i * plan.panel_elements());
    else
      pack_weights_back(from + first * plan.taps, plan.taps, out, in, channels, slots,
                        plan.panels.width, packed + i * plan.panel_elements());
  });
}

// One piece: some images, and places [first, past) along the axis that is cut.
template <class T> class Piece {
 public:
  Piece(const ConvolutionProblem& p, const Plan& plan, int64_t image, int64_t first, int64_t group)
      : p_(p), plan_(plan), image_(image), first_(first), group_(group) {
    past_ = std::min(first + plan.piece_units, plan.units);
    images_ = std::min(plan.piece_images, p.batch - image);
    for (int d = 0; d < 3; ++d) {
      box_.low[d] = plan.low[d] + (d == plan.cut ? first * plan.axes[d].step : 0);
      box_.size[d] = plan.reach(d, d == plan.cut ? past_ - first : plan.all_units(d));
      const GatherAxis& axis = plan.axes[d];
      from_[d] = d == plan.cut ? first * axis.classes : 0;
      size_[d] =
          d == plan.cut ? std::min(past_ * axis.classes, axis.result) - from_[d] : axis.result;
    }
    box_.images = images_;
    box_.pitch = plan.pitch;
  }
  void run(const T* packed, int64_t first_panel, int64_t past_panel) const {
    const ScratchArray<T> source(box_.elements()),
        sums(images_ * volume(size_) * plan_.panels.width);
    const ScratchArray<std::int32_t> rows_at(images_ * volume(size_)), places(volume(size_));
    fill_source(source);
    for (int64_t panel = first_panel; panel < past_panel; ++panel) {
      const T* const weights =
          packed + (group_ * plan_.panels.count + panel) * plan_.panel_elements();
      add_up(source, weights, panel, rows_at, sums);
      store(panel, places, sums);
    }
  }

 private:
  void fill_source(T* source) const {
    const int64_t sizes[3] = {plan_.axes[0].source, plan_.axes[1].source, plan_.axes[2].source};
    const int64_t plane = volume(sizes), channels = plan_.source_channels;
    const int64_t image = p_.groups * channels * plane;
    fill_box(box_, sizes, plan_.cut,
             static_cast<const T*>(p_.a) + image_ * image + group_ * channels * plane, image,
             channels, source);
  }
  // Places of a class in this piece, along axis d.
  int64_t count(const Class& c, int d) const {
    const bool cut = d == plan_.cut;
    return plan_.axes[d].count(c.residue[d], cut ? first_ : 0, cut ? past_ : plan_.all_units(d));
  }
  int64_t count(const Class& c) const { return count(c, 0) * count(c, 1) * count(c, 2); }

  // Where each pixel of image n lies among the sums: classes one after the other, in each the
  // images.
  void find_places(int64_t n, std::int32_t* places) const {
    const GatherAxis* a = plan_.axes;
    int64_t first = 0;
    each_class(plan_, [&](const Class& c) {
      int64_t row = first + n * count(c);
      for (int64_t z = 0; z < count(c, 0); ++z)
        for (int64_t y = 0; y < count(c, 1); ++y)
          for (int64_t x = 0; x < count(c, 2); ++x) {
            const int64_t at[3] = {c.residue[0] + z * a[0].classes, c.residue[1] + y * a[1].classes,
                                   c.residue[2] + x * a[2].classes};
            places[(at[0] * size_[1] + at[1]) * size_[2] + at[2]] =
                static_cast<std::int32_t>(row++ * plan_.panels.width);
          }
      first += images_ * count(c);
    });
  }
  int64_t find_rows(const Class& c, std::int32_t* rows_at) const {
    int64_t rows = 0;
    for (int64_t n = 0; n < images_; ++n)
      for (int64_t z = 0; z < count(c, 0); ++z)
        for (int64_t y = 0; y < count(c, 1); ++y)
          for (int64_t x = 0; x < count(c, 2); ++x)
            rows_at[rows++] = static_cast<std::int32_t>(
                n * box_.image_step() +
                box_.place(z * plan_.axes[0].step, y * plan_.axes[1].step, x * plan_.axes[2].step));
    return rows;
  }
  void add_up(const T* source, const T* weights, int64_t panel, std::int32_t* rows_at,
              T* sums) const {
    const ConvolutionLoops& loops = convolution_loops<T>();
    const int64_t width = plan_.panels.width, channels = plan_.source_channels;
    const int64_t tap_bytes = channels * width * static_cast<int64_t>(sizeof(T));
    const int64_t at_once = std::max<int64_t>(
        1, std::min(thresholds::kWeightBytes / tap_bytes, thresholds::kChainTerms / channels));
    const ScratchArray<ConvolutionRun> runs(plan_.taps);
    each_class(plan_, [&](const Class& c) {
      const int64_t rows = find_rows(c, rows_at);
      if (rows == 0) return;
      int64_t taps = 0;
      each_tap(plan_, c, [&](int64_t, int64_t z, int64_t y, int64_t x) {
        runs[taps] = {box_.place(z, y, x), (c.first_slot + taps) * channels * width, channels};
        ++taps;
      });
      for (int64_t k = 0; k == 0 || k < taps; k += at_once)
        loops.multiply({.a = source,
                        .b = weights,
                        .c = sums,
                        .rows_at = rows_at,
                        .rows = rows,
                        .columns = plan_.panels.columns(panel, plan_.lanes),
                        .a_col = 1,
                        .b_row = width,
                        .c_row = width,
                        .runs = runs + k,
                        .run_count = std::min(at_once, taps - k),
                        .adds = k > 0});
      sums += rows * width;
    });
  }
  void store(int64_t panel, std::int32_t* places, const T* sums) const {
    const ConvolutionLoops& loops = convolution_loops<T>();
    const int64_t channel = group_ * plan_.result_channels + plan_.panels.first(panel);
    const int64_t all = p_.groups * plan_.result_channels;
    int64_t plane = 1, before = 0;
    for (int d = 0; d < 3; ++d) {
      plane *= plan_.axes[d].result;
      before = before * plan_.axes[d].result + from_[d];
    }
    const T* const bias = p_.bias ? static_cast<const T*>(p_.bias) + channel : nullptr;
    for (int64_t n = 0; n < images_; ++n) {
      find_places(n, places);
      loops.from_lanes(
          {plane, plan_.panels.at(panel), volume(size_), places}, sums, bias,
          static_cast<T*>(p_.result) + ((image_ + n) * all + channel) * plane + before);
    }
  }

  const ConvolutionProblem& p_;
  const Plan& plan_;
  int64_t image_, first_, past_, group_, images_;
  SourceBox box_;
  int64_t from_[3], size_[3];  // of the result
};

}  // namespace

template <class T> void direct_sums(const ConvolutionProblem& p) {
  const Plan plan(p, T{});
  const ScratchArray<T> packed(p.groups * plan.panels.count * plan.panel_elements());
  pack_all<T>(p, plan, packed);
  const int64_t places = plan.places(), ranges = ceil_div(plan.panels.count, plan.panel_run);
  const int64_t images = ceil_div(p.batch, plan.piece_images);
  parallel_chunks(images * p.groups * places * ranges, [&](int64_t i) {
    const int64_t panel = i % ranges * plan.panel_run;
    const int64_t place = i / ranges % places, group = i / ranges / places % p.groups;
    const int64_t image = i / ranges / places / p.groups;
    Piece<T>(p, plan, image * plan.piece_images, place * plan.piece_units, group)
        .run(packed, panel, std::min(panel + plan.panel_run, plan.panels.count));
  });
}
template void direct_sums<float>(const ConvolutionProblem&);
template void direct_sums<double>(const ConvolutionProblem&);

}  // namespace tw
