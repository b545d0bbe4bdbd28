// Rung direct, forward from few input channels: these would leave most lanes empty, so pixels of a
// row of the output lie there, and the weights are read where they are.
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/planes.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

constexpr double kPieceFlops = 4e6;
// Planes of the output that are written to in turns: each lies in a page of its own, and the TLB
// for stores holds few. A multiple of the rows of all tiles.
constexpr int64_t kPlanesAtOnce = 24;

// Rows [first, past) of one image and group.
template <class T> class Rows {
 public:
  Rows(const ConvolutionProblem& p, const PlaneLayout& at, const std::int32_t* rows_at)
      : p_(p), at_(at), rows_at_(rows_at), in_(p.in / p.groups), out_(p.out / p.groups) {}

  void run(int64_t image, int64_t group, int64_t first, int64_t past) const {
    const ConvolutionLoops& loops = convolution_loops<T>();
    const int64_t step = at_.axes[0].step, height = at_.rows_of(0, past - first);
    const ScratchArray<T> planes(in_ * height * at_.row + loops.lanes);
    const int64_t x_size = volume(p_.x), y_size = volume(p_.y);
    const T* const x = static_cast<const T*>(p_.a) + (image * p_.in + group * in_) * x_size;
    for (int64_t c = 0; c < in_; ++c)
      fill_plane(at_, first * step, height, x + c * x_size, planes + c * height * at_.row);
    const ScratchArray<std::int32_t> taps_at(in_ * at_.taps);
    find_taps(at_, in_, height * at_.row, taps_at);
    ConvolutionBlock block{};
    block.a = static_cast<const T*>(p_.b) + group * out_ * in_ * at_.taps;
    block.c_row = y_size;
    block.taps_at = taps_at;
    block.run_count = in_ * at_.taps;
    block.adds = p_.bias;
    const int64_t most = loops.lanes * convolution_table().tile_vectors;
    const int64_t parts = ceil_div(p_.y[2], most);
    const int64_t width = round_up(ceil_div(p_.y[2], parts), loops.lanes);
    T* const y = static_cast<T*>(p_.result) + (image * p_.out + group * out_) * y_size;
    for (int64_t c = 0; c < out_; c += kPlanesAtOnce) {
      block.rows_at = rows_at_ + c;
      block.rows = std::min(kPlanesAtOnce, out_ - c);
      for (int64_t row = first; row < past; ++row) {
        T* const to = y + c * y_size + row * p_.y[2];
        if (p_.bias) fill_bias(group * out_ + c, block.rows, to);
        for (int64_t column = 0; column < p_.y[2]; column += width) {
          block.columns = static_cast<int>(std::min(width, p_.y[2] - column));
          block.b = planes + (row - first) * step * at_.row + column;
          block.c = to + column;
          loops.multiply(block);
        }
      }
    }
  }

 private:
  void fill_bias(int64_t channel, int64_t count, T* row) const {
    const T* const bias = static_cast<const T*>(p_.bias) + channel;
    for (int64_t c = 0; c < count; ++c) std::fill_n(row + c * volume(p_.y), p_.y[2], bias[c]);
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
  const int64_t rows =
      std::clamp<int64_t>(static_cast<int64_t>(kPieceFlops / row_flops), 1, p.y[1]);
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
