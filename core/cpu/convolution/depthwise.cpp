#include "core/cpu/convolution/depthwise.h"

#include <algorithm>
#include <numeric>

#include "core/cpu/convolution/cost.h"
#include "core/cpu/convolution/axis.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Multiply-adds of a piece, about 30 us.
constexpr int64_t kPieceTerms = 1 << 19;
// Elements that are spread, multiplied and collected at a time: no load waits for the stores of
// other widths just before it, and all stay in the first-level cache.
constexpr int64_t kSpread = 3072;

// How the planes of a problem are read, and how the results fall into classes.
struct Layout {
  GatherAxis axes[2];
  DepthwisePlane plane;
  int64_t taps, reach;   // rows that one of the result reads
  int64_t height, band;  // rows of a class, and those that are computed at a time
  int64_t elements;      // of a spread band
  int64_t class_size;    // elements of a band's sums

  Layout(const ConvolutionProblem& p, int lanes, bool in_bands)
      : axes{{p, 1}, {p, 2}}, taps(p.kernel[1] * p.kernel[2]) {
    int64_t high[2];
    for (int d = 0; d < 2; ++d) {
      axes[d].bounds(&plane.low[d], &high[d]);
      plane.source[d] = axes[d].source;
      plane.step[d] = axes[d].step;
    }
    reach = high[0] - plane.low[0] + 1;
    height = ceil_div(axes[0].result, axes[0].classes);
    const int64_t width = ceil_div(axes[1].result, axes[1].classes);
    plane.size[1] = (width - 1) * plane.step[1] + high[1] - plane.low[1] + 1;
    plane.row = ceil_div(plane.size[1], plane.step[1]);
    band = in_bands ? std::clamp<int64_t>(kSpread / (plane.row * plane.step[1] * plane.step[0]), 1,
                                          height)
                    : height;
    plane.size[0] = rows_read(band);
    plane.phase[1] = ceil_div(plane.size[0], plane.step[0]) * plane.row;
    plane.phase[0] = plane.phase[1] * plane.step[1];
    elements = plane.phase[0] * plane.step[0] + lanes;
    class_size = band * plane.row + lanes;
  }
  int64_t rows_read(int64_t rows) const { return (rows - 1) * plane.step[0] + reach; }
  int64_t classes() const { return axes[0].classes * axes[1].classes; }
  // Planes that are spread at a time.
  int64_t group() const { return std::clamp<int64_t>(kSpread / elements, 1, 16); }
};

// The taps of each class of the result's places, and where they read.
class Classes {
 public:
  explicit Classes(const Layout& at)
      : along_(at.axes[1].classes),
        taps_(at.taps),
        counts_(at.classes()),
        widths_(along_),
        order_(at.classes() * taps_),
        at_(at.classes() * taps_),
        weights_(taps_ * static_cast<int64_t>(sizeof(double))) {
    for (int64_t j = 0; j < along_; ++j) widths_[j] = at.axes[1].count(j, 0, at.axes[1].result);
    for (int64_t c = 0; c < at.classes(); ++c) {
      counts_[c] = 0;
      for (int64_t k = 0; k < taps_; ++k) add(at, c, k);
    }
  }
  DepthwiseTaps taps(int64_t row, int64_t column) const {
    const int64_t c = row * along_ + column;
    return {counts_[c], at_ + c * taps_};
  }
  int64_t width(int64_t column) const { return widths_[column]; }
  // Of a channel's weights those of a class, in the order of its taps; until the next call.
  template <class T> const T* pick(int64_t row, int64_t column, const T* weights) const {
    const int64_t c = row * along_ + column;
    if (counts_[c] == taps_) return weights;
    T* const picked = reinterpret_cast<T*>(static_cast<char*>(weights_));
    for (int64_t i = 0; i < counts_[c]; ++i) picked[i] = weights[order_[c * taps_ + i]];
    return picked;
  }

 private:
  void add(const Layout& at, int64_t c, int64_t k) {
    const GatherAxis &down = at.axes[0], &along = at.axes[1];
    const int64_t ky = k / along.taps, kx = k % along.taps, row = c / along_, column = c % along_;
    if (!down.reaches(ky, row) || !along.reaches(kx, column)) return;
    const DepthwisePlane& p = at.plane;
    const int64_t y = down.offset(ky, row) - p.low[0], x = along.offset(kx, column) - p.low[1];
    const int64_t place = c * taps_ + counts_[c]++;
    at_[place] = static_cast<std::int32_t>(y % p.step[0] * p.phase[0] + y / p.step[0] * p.row +
                                           x % p.step[1] * p.phase[1] + x / p.step[1]);
    order_[place] = static_cast<std::int32_t>(k);
  }

  const int64_t along_, taps_;
  const ScratchArray<int64_t> counts_, widths_;
  const ScratchArray<std::int32_t> order_, at_;
  const ScratchArray<char> weights_;
};

// The sums of `rows` rows of one class of rows.
template <class T> void sums_of_band(const Layout& at, const Classes& classes, int64_t residue,
                                     int64_t rows, const T* x, const T* w, double bias, T* sums) {
  for (int64_t j = 0; j < at.axes[1].classes; ++j)
    convolution_loops<T>().depthwise((rows - 1) * at.plane.row + classes.width(j),
                                     classes.taps(residue, j), x, classes.pick(residue, j, w), bias,
                                     sums + j * at.class_size);
}

template <class T> void sums(const ConvolutionProblem& p) {
  const Layout at(p, convolution_loops<T>().lanes, true);
  const GatherAxis &down = at.axes[0], &along = at.axes[1];
  const int64_t source = down.source * along.source, result = down.result * along.result;
  auto* bias = static_cast<const T*>(p.bias);
  const int64_t planes = std::max<int64_t>(1, kPieceTerms / (result * at.taps));
  parallel_ranges(p.batch * p.in, planes, [&](int64_t first, int64_t past) {
    const Classes classes(at);
    const int64_t group = at.group();
    const int64_t size = at.class_size * along.classes;
    const ScratchArray<T> x(group * at.elements), sums(group * size);
    std::fill_n(static_cast<T*>(x), group * at.elements, T{0});
    for (int64_t from = first; from < past; from += group)
      for (int64_t row = 0; row < at.height; row += at.band) {
        const int64_t some = std::min(group, past - from);
        for (int64_t i = 0; i < some; ++i)
          convolution_loops<T>().depthwise_spread(
              at.plane, row * at.plane.step[0], at.plane.size[0],
              static_cast<const T*>(p.a) + (from + i) * source, x + i * at.elements);
        for (int64_t residue = 0; residue < down.classes; ++residue) {
          const int64_t rows = down.count(residue, row, row + at.band);
          if (rows <= 0) continue;
          int64_t channel = from % p.in;
          for (int64_t i = 0; i < some; ++i) {
            sums_of_band<T>(at, classes, residue, rows, x + i * at.elements,
                            static_cast<const T*>(p.b) + channel * at.taps,
                            bias ? double(bias[channel]) : 0, sums + i * size);
            if (++channel == p.in) channel = 0;
          }
          T* y = static_cast<T*>(p.result) + from * result +
                 (residue + row * down.classes) * along.result;
          for (int64_t i = 0; i < some; ++i, y += result)
            convolution_loops<T>().depthwise_collect(
                {rows, along.result, along.classes, at.plane.row, at.class_size,
                 down.classes * along.result},
                sums + i * size, y);
        }
      }
  });
}

// Of one channel after the other for all images, as the images lie: an image's channels follow each
// other in memory.
template <class T> void weights(const ConvolutionProblem& p) {
  const int lanes = convolution_loops<T>().lanes;
  const Layout at(p, lanes, false);
  const int64_t x_size = volume(p.x), y_size = volume(p.y);
  const int64_t channels = std::max<int64_t>(1, kPieceTerms / (p.batch * y_size * at.taps));
  parallel_ranges(p.in, channels, [&](int64_t first, int64_t past) {
    const Classes classes(at);
    const int64_t group = at.group(), size = at.taps * lanes;
    const ScratchArray<T> x(group * at.elements), sums((past - first) * size);
    std::fill_n(static_cast<T*>(x), group * at.elements, T{0});
    std::fill_n(static_cast<T*>(sums), (past - first) * size, T{0});
    for (int64_t n = 0; n < p.batch; ++n)
      for (int64_t from = first; from < past; from += group) {
        const int64_t some = std::min(group, past - from);
        for (int64_t i = 0; i < some; ++i)
          convolution_loops<T>().depthwise_spread(
              at.plane, 0, at.plane.size[0],
              static_cast<const T*>(p.a) + (n * p.in + from + i) * x_size, x + i * at.elements);
        for (int64_t i = 0; i < some; ++i)
          convolution_loops<T>().depthwise_weights(
              p.y[1], p.y[2], at.plane.row, classes.taps(0, 0), x + i * at.elements,
              static_cast<const T*>(p.b) + (n * p.in + from + i) * y_size,
              sums + (from + i - first) * size);
      }
    T* const dw = static_cast<T*>(p.result) + first * at.taps;
    for (int64_t i = 0; i < (past - first) * at.taps; ++i)
      dw[i] = std::accumulate(sums + i * lanes, sums + (i + 1) * lanes, T{0});
  });
}

template <class T> void run(const ConvolutionProblem& p) {
  p.part == ConvolutionPart::weight_gradient ? weights<T>(p) : sums<T>(p);
}

}  // namespace

bool depthwise_accepts(const ConvolutionProblem& p, std::string* reason) {
  if (!fits_boxes(p)) return refuse_long_rows(reason);
  const bool takes = p.groups == p.in && p.groups == p.out && spans_one_axis(p, 0) &&
                     p.kernel[0] == 1 && p.before[0] == 0;
  if (!takes && reason) *reason = "for groups of one channel, and one or two axes";
  return takes;
}

// A load for each multiply-add halves the rate, and rows of less than a vector waste it.
double depthwise_cost_ns(const ConvolutionProblem& p) {
  constexpr double kNsPerFlop = 0.012;
  const double lanes = double(round_up(p.y[2], lanes_of(p))) / double(p.y[2]);
  return kCallNs + kToLanesNs * elements_of(p, p.x, p.in) +
         kNsPerFlop * lanes * flops_of(p) * (p.dtype == DType::float64 ? 2 : 1);
}

void depthwise_run(const ConvolutionProblem& p) {
  p.dtype == DType::float64 ? run<double>(p) : run<float>(p);
}

}  // namespace tw
