#include "core/cpu/convolution/depthwise.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/thresholds.h"
#include "core/cpu/convolution/axis.h"
#include "core/cpu/convolution/cost.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// How bands of the result's rows, and what they read, lie as pixels of as many planes as there are
// lanes.
struct Layout {
  GatherAxis down, along;
  int64_t low[2], high[2];
  int64_t lanes, taps, width;  // width: columns that are read, padding included
  int64_t height, band;        // rows of a class, and those that are computed at a time

  Layout(const ConvolutionProblem& p, int lanes)
      : down(p, 1), along(p, 2), lanes(lanes), taps(p.kernel[1] * p.kernel[2]) {
    down.bounds(&low[0], &high[0]);
    along.bounds(&low[1], &high[1]);
    const int64_t columns = ceil_div(along.result, along.classes);
    width = (columns - 1) * along.step + high[1] - low[1] + 1;
    height = ceil_div(down.result, down.classes);
    const int64_t rows =
        thresholds::kBandBytes / (width * lanes * static_cast<int64_t>(size_of(p.dtype)));
    band = std::clamp<int64_t>((rows - high[0] + low[0] - 1) / down.step + 1, 1, height);
  }
  int64_t source() const { return down.source * along.source; }
  int64_t result() const { return down.result * along.result; }
  int64_t rows_read(int64_t rows) const { return (rows - 1) * down.step + high[0] - low[0] + 1; }
  // What the rows of a class from `row` on read.
  SourceBox box(int64_t row) const {
    const int64_t rows = rows_read(std::min(band, height - row));
    return {{0, low[0] + row * down.step, low[1]}, {1, rows, width}, 1, lanes};
  }
  int64_t source_elements() const { return (rows_read(band) * width + 1) * lanes; }
  int64_t result_elements() const { return band * down.classes * along.result * lanes; }
  // The result's rows of a band, of all classes.
  int64_t first(int64_t row) const { return row * down.classes; }
  int64_t count(int64_t row) const {
    return std::min(down.result - first(row), band * down.classes);
  }
};

// Places of pixels that follow each other.
std::vector<std::int32_t> in_order(int64_t pixels, int64_t lanes) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(pixels));
  for (std::size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<std::int32_t>(static_cast<int64_t>(i) * lanes);
  return places;
}

// The source's pixels under a band, with the padding. Where a plane is one band this is prepared
// once.
template <class T> class Source {
 public:
  explicit Source(const Layout& at) : at_(at), pixels_(at.source_elements()) {}
  const T* read(int64_t row, const T* planes, int64_t count) {
    if (row != row_) prepare(row);
    convolution_loops<T>().to_lanes(
        {at_.source(), count, static_cast<int64_t>(places_.size()), places_.data()},
        planes + before_, pixels_);
    return pixels_;
  }

 private:
  void prepare(int64_t row) {
    const int64_t source[3] = {1, at_.down.source, at_.along.source};
    const SourceBox box = at_.box(row);
    const SourcePixels held(box, source, 1);
    zero_padding<T>(box, source, pixels_);
    places_.resize(static_cast<std::size_t>(held.count));
    held.write_places(box, places_.data());
    before_ = held.before;
    row_ = row;
  }
  const Layout& at_;
  const ScratchArray<T> pixels_;
  std::vector<std::int32_t> places_;
  int64_t row_ = -1, before_ = 0;
};

// For each class of the result's places what its taps read and are multiplied by.
class Classes {
 public:
  explicit Classes(const Layout& at) : along_(at.along.classes) {
    for (int64_t row = 0; row < at.down.classes; ++row)
      for (int64_t column = 0; column < along_; ++column) {
        first_.push_back(at_.size());
        for (int64_t k = 0; k < at.taps; ++k)  // in the order of what they read
          add(at, row, column, at.along.forward ? k : at.taps - 1 - k);
      }
    first_.push_back(at_.size());
  }
  DepthwiseTaps taps(int64_t row, int64_t column) const {
    const auto c = static_cast<std::size_t>(row * along_ + column);
    return {static_cast<int64_t>(first_[c + 1] - first_[c]), at_.data() + first_[c],
            weights_.data() + first_[c]};
  }

 private:
  void add(const Layout& at, int64_t row, int64_t column, int64_t k) {
    const int64_t ky = k / at.along.taps, kx = k % at.along.taps;
    if (!at.down.reaches(ky, row) || !at.along.reaches(kx, column)) return;
    const int64_t y = at.down.offset(ky, row) - at.low[0];
    const int64_t x = at.along.offset(kx, column) - at.low[1];
    at_.push_back(static_cast<std::int32_t>((y * at.width + x) * at.lanes));
    weights_.push_back(static_cast<std::int32_t>(k * at.lanes));
  }
  const int64_t along_;
  std::vector<std::size_t> first_;
  std::vector<std::int32_t> at_, weights_;
};

// Which channels the lanes of a group of planes are of: planes follow each other, image by image,
// so that few channels fill the lanes too. After `period` groups the channels are the same again.
struct Groups {
  int64_t lanes, channels, planes, count, period;
  Groups(const ConvolutionProblem& p, int64_t lanes)
      : lanes(lanes),
        channels(p.in),
        planes(p.batch * p.in),
        count(ceil_div(planes, lanes)),
        period(std::min(count, p.in / std::gcd(p.in, lanes))) {}
  int64_t first(int64_t group) const { return group * lanes; }
  int64_t size(int64_t group) const { return std::min(lanes, planes - first(group)); }
  int64_t channel(int64_t group, int64_t lane) const { return (first(group) + lane) % channels; }
};

// The sums of a band, as pixels of planes.
template <class T> void sums_of_band(const Layout& at, const Classes& classes, int64_t row,
                                     const T* x, const T* w, T* y) {
  const int64_t y_row = at.down.classes * at.along.result * at.lanes;
  for (int64_t i = 0; i < at.down.classes; ++i)
    for (int64_t j = 0; j < at.along.classes; ++j)
      convolution_loops<T>().depthwise(
          {at.down.count(i, row, row + at.band), at.along.count(j, 0, at.along.result),
           at.down.step * at.width * at.lanes, at.along.step, y_row, at.along.classes},
          classes.taps(i, j), x, w, y + (i * at.along.result + j) * at.lanes);
}

template <class T> void sums(const ConvolutionProblem& p) {
  const Layout at(p, convolution_loops<T>().lanes);
  const Groups groups(p, at.lanes);
  const Classes classes(at);
  // By tap and lane, then a bias a lane.
  const int64_t size = (at.taps + 1) * at.lanes;
  const ScratchArray<T> weights(groups.period * size);
  for (int64_t group = 0; group < groups.period; ++group)
    for (int64_t lane = 0; lane < at.lanes; ++lane) {
      const int64_t channel = groups.channel(group, lane);
      T* const to = weights + group * size + lane;
      for (int64_t k = 0; k < at.taps; ++k)
        to[k * at.lanes] = static_cast<const T*>(p.b)[channel * at.taps + k];
      to[at.taps * at.lanes] = p.bias ? static_cast<const T*>(p.bias)[channel] : T{0};
    }
  const std::vector<std::int32_t> places = in_order(at.result_elements() / at.lanes, at.lanes);
  const int64_t piece = std::max<int64_t>(1, thresholds::kDepthwiseGrain / (at.result() * size));
  parallel_ranges(groups.count, piece, [&](int64_t first, int64_t past) {
    Source<T> source(at);
    const ScratchArray<T> y(at.result_elements());
    for (int64_t group = first; group < past; ++group)
      for (int64_t row = 0; row < at.height; row += at.band) {
        const int64_t plane = groups.first(group), planes = groups.size(group);
        const T* const w = weights + group % groups.period * size;
        const T* const x =
            source.read(row, static_cast<const T*>(p.a) + plane * at.source(), planes);
        sums_of_band<T>(at, classes, row, x, w, y);
        convolution_loops<T>().from_lanes(
            {at.result(), planes, at.count(row) * at.along.result, places.data()}, y,
            p.bias ? w + at.taps * at.lanes : nullptr,
            static_cast<T*>(p.result) + plane * at.result() + at.first(row) * at.along.result);
      }
  });
}

// The sums of a band are added up, then those of all planes of a channel. Work is cut by channels
// and, where these are few, into parts that do not depend on the number of threads.
template <class T> void weights(const ConvolutionProblem& p) {
  const Layout at(p, convolution_loops<T>().lanes);
  const Groups groups(p, at.lanes);
  const Classes classes(at);
  const std::vector<std::int32_t> places = in_order(at.result_elements() / at.lanes, at.lanes);
  const int64_t size = at.taps * at.lanes;
  const int64_t turns = ceil_div(groups.count, groups.period);
  const int64_t turn =
      std::max<int64_t>(1, thresholds::kDepthwiseGrain / (at.result() * size));  // of a piece
  const int64_t parts = std::clamp<int64_t>(ceil_div(16, groups.period), 1, ceil_div(turns, turn));
  const ScratchArray<T> sums(groups.period * parts * size);
  std::fill_n(static_cast<T*>(sums), groups.period * parts * size, T{0});
  const int64_t piece = std::max<int64_t>(1, turn * parts / turns);
  parallel_ranges(groups.period * parts, piece, [&](int64_t first, int64_t past) {
    Source<T> source(at);
    const ScratchArray<T> g(at.result_elements());
    const auto add = [&](int64_t group, T* to) {
      const int64_t plane = groups.first(group), planes = groups.size(group);
      for (int64_t row = 0; row < at.height; row += at.band) {
        const T* const x =
            source.read(row, static_cast<const T*>(p.a) + plane * at.source(), planes);
        convolution_loops<T>().to_lanes(
            {at.result(), planes, at.count(row) * at.along.result, places.data()},
            static_cast<const T*>(p.b) + plane * at.result() + at.first(row) * at.along.result, g);
        convolution_loops<T>().depthwise_weights(
            {at.count(row), at.along.result, at.down.step * at.width * at.lanes, at.along.step,
             at.along.result * at.lanes, 1},
            classes.taps(0, 0), x, g, to);
      }
    };
    // All of a part turn by turn, as the planes lie in memory.
    for (int64_t i = first; i < past;) {
      const int64_t part = i / groups.period, next = std::min(past, (part + 1) * groups.period);
      for (int64_t t = turns * part / parts; t < turns * (part + 1) / parts; ++t)
        for (int64_t j = i; j < next; ++j)
          if (const int64_t group = t * groups.period + j % groups.period; group < groups.count)
            add(group, sums + j * size);
      i = next;
    }
  });
  T* const dw = static_cast<T*>(p.result);
  std::fill_n(dw, p.in * at.taps, T{0});
  for (int64_t i = 0; i < groups.period * parts; ++i)
    for (int64_t lane = 0; lane < groups.size(i % groups.period); ++lane)
      for (int64_t k = 0; k < at.taps; ++k)
        dw[groups.channel(i % groups.period, lane) * at.taps + k] +=
            sums[i * size + k * at.lanes + lane];
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

// Planes transposed to pixels and back, a load for each multiply-add; lanes without a plane cost as
// much.
double depthwise_cost_ns(const ConvolutionProblem& p) {
  constexpr double kSourceNs = 0.08, kResultNs = 0.1, kNsPerFlop = 0.0065;
  const double planes = double(p.batch * p.in), lanes = double(lanes_of(p));
  const double idle = double(ceil_div(p.batch * p.in, lanes_of(p))) * lanes / planes;
  return kCallNs + idle *
                       (kSourceNs * elements_of(p, p.x, p.in) +
                        kResultNs * elements_of(p, p.y, p.in) + kNsPerFlop * flops_of(p)) *
                       (p.dtype == DType::float64 ? 2 : 1);
}

void depthwise_run(const ConvolutionProblem& p) {
  p.dtype == DType::float64 ? run<double>(p) : run<float>(p);
}

}  // namespace tw
