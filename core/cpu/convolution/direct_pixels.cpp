// Rung direct, forward from few input channels: these would leave most lanes empty, so pixels of a
// row of the output lie there, and the weights are read where they are.
#include "core/base/thresholds.h"
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/planes.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// A piece fills anew the rows that its first and last output rows reach; where there is work for
// so many pieces, each has enough rows that this is a small part.
constexpr int64_t kReaches = 2;
// Planes of the output that are written to in turns: each lies in a page of its own, and the TLB
// for stores holds few. A multiple of the rows of all tiles.
constexpr int64_t kPlanesAtOnce = 24;

// Rows [first, past) of one image and group.
template <class T> class Rows {
 public:
  Rows(const ConvolutionProblem& p, const PlaneLayout& at, const std::int32_t* rows_at)
      : p_(p), at_(at), rows_at_(rows_at), in_(p.in / p.groups), out_(p.out / p.groups) {}

  void run(int64_t image, int64_t group, int64_t first, int64_t past) const {
    const int64_t x_size = volume(p_.x), y_size = volume(p_.y), taps = in_ * at_.taps;
    const T* const x = static_cast<const T*>(p_.a) + (image * p_.in + group * in_) * x_size;
    T* const y = static_cast<T*>(p_.result) + (image * p_.out + group * out_) * y_size;
    const int64_t rows = past - first, lanes = convolution_loops<T>().lanes;
    const ScratchArray<std::int32_t> taps_at(taps);
    if (runs_on()) {
      const ShiftedPlanes at(at_, rows);
      const ScratchArray<T> planes(at.elements(in_) + lanes);
      for (int64_t c = 0; c < in_; ++c) at.fill(first, x + c * x_size, planes + c * at.elements(1));
      at.find_taps(in_, taps_at);
      return add_up({planes, taps_at, 1, rows * p_.y[2], 0}, group, y + first * p_.y[2]);
    }
    const int64_t step = at_.axes[0].step, height = at_.rows_of(0, rows), plane = height * at_.row;
    const ScratchArray<T> planes(in_ * plane + lanes);
    for (int64_t c = 0; c < in_; ++c)
      fill_plane(at_, first * step, height, x + c * x_size, planes + c * plane);
    find_taps(at_, in_, plane, taps_at);
    add_up({planes, taps_at, rows, p_.y[2], step * at_.row}, group, y + first * p_.y[2]);
  }

 private:
  // Rows of the result that follow each other, of some length, and what they read.
  struct Lines {
    const T* planes;
    const std::int32_t* taps_at;
    int64_t count, length, step;
  };
  // Whether a shifted copy for each column of the kernel pays: rows leave lanes empty, and enough
  // output channels share the copies.
  bool runs_on() const {
    constexpr int64_t many = 16;
    return at_.axes[0].step == 1 && at_.axes[1].step == 1 && out_ >= many &&
           p_.y[2] % convolution_loops<T>().lanes != 0 && uses(Optimization::shifted_planes);
  }
  void add_up(const Lines& lines, int64_t group, T* y) const {
    const ConvolutionLoops& loops = convolution_loops<T>();
    const int64_t y_size = volume(p_.y), terms = in_ * at_.taps;
    ConvolutionBlock block{};
    block.a = static_cast<const T*>(p_.b) + group * out_ * terms;
    block.c_row = y_size;
    block.taps_at = lines.taps_at;
    block.run_count = terms;
    block.adds = p_.bias;
    const int64_t most = loops.lanes * convolution_table().tile_vectors;
    const int64_t parts = ceil_div(lines.length, most);
    const int64_t width = round_up(ceil_div(lines.length, parts), loops.lanes);
    for (int64_t c = 0; c < out_; c += kPlanesAtOnce) {
      block.rows_at = rows_at_ + c;
      block.rows = std::min(kPlanesAtOnce, out_ - c);
      for (int64_t line = 0; line < lines.count; ++line) {
        T* const to = y + c * y_size + line * lines.length;
        if (p_.bias) fill_bias(group * out_ + c, block.rows, lines.length, to);
        for (int64_t column = 0; column < lines.length; column += width) {
          block.columns = static_cast<int>(std::min(width, lines.length - column));
          block.b = lines.planes + line * lines.step + column;
          block.c = to + column;
          loops.multiply(block);
        }
      }
    }
  }
  void fill_bias(int64_t channel, int64_t count, int64_t length, T* row) const {
    const T* const bias = static_cast<const T*>(p_.bias) + channel;
    for (int64_t c = 0; c < count; ++c) std::fill_n(row + c * volume(p_.y), length, bias[c]);
  }

  const ConvolutionProblem& p_;
  const PlaneLayout& at_;
  const std::int32_t* rows_at_;
  int64_t in_, out_;
};

}  // namespace

bool direct_takes_pixels(const ConvolutionProblem& p) {
  return p.part == ConvolutionPart::forward && has_few_planes(p);
}

template <class T> void direct_pixels(const ConvolutionProblem& p) {
  const PlaneLayout at(p, convolution_loops<T>().lanes);
  const int64_t out = p.out / p.groups, terms = p.in / p.groups * at.taps;
  const ScratchArray<std::int32_t> rows_at(out);
  for (int64_t i = 0; i < out; ++i) rows_at[i] = static_cast<std::int32_t>(i * terms);
  const double row_flops = 2.0 * double(out) * double(terms) * double(p.y[2]);
  const int64_t all_rows = p.batch * p.groups * p.y[1];
  const int64_t wanted =
      std::min(kReaches * at.reach[0] / at.axes[0].step, all_rows / thresholds::kPieces);
  const int64_t rows =
      std::clamp(std::max(static_cast<int64_t>(thresholds::kFlopGrain / row_flops), wanted),
                 int64_t{1}, p.y[1]);
  const int64_t bands = ceil_div(p.y[1], rows);
  const Rows<T> band(p, at, rows_at);
  parallel_chunks(p.batch * p.groups * bands, [&](int64_t i) {
    const int64_t first = i % bands * rows;
    band.run(i / bands / p.groups, i / bands % p.groups, first, std::min(first + rows, p.y[1]));
  });
}
template void direct_pixels<float>(const ConvolutionProblem&);
template void direct_pixels<double>(const ConvolutionProblem&);

}  // namespace tw
