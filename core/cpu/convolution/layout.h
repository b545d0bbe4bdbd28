// How the fast convolutions lay out what they read: boxes of pixels of channels with the padding
// filled in, weights in panels of output channels, and pieces that fit the cache.
#pragma once
#include <algorithm>

#include "core/problems/convolution.h"
#include "core/cpu/convolution/tiles.h"
#include "core/cpu/isa/isa.h"
#include "core/memory/scratch.h"

namespace tw {

inline const ConvolutionTable& convolution_table() { return *active_kernels().convolution; }
template <class T> const ConvolutionLoops& convolution_loops() {
  const ConvolutionTable& table = convolution_table();
  return sizeof(T) == 8 ? table.float64 : table.float32;
}
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }
inline bool spans_one_axis(const ConvolutionProblem& p, int axis) {
  return p.x[axis] == 1 && p.y[axis] == 1;
}

template <class T> class ScratchArray {
 public:
  explicit ScratchArray(std::int64_t count)
      : scratch_(static_cast<std::size_t>(count) * sizeof(T)) {}
  operator T*() const { return scratch_.as<T>(); }

 private:
  Scratch scratch_;
};

// Channels in the lanes: cut into panels of nearly equal width, whole vectors each.
struct Panels {
  std::int64_t channels, count, width;
  Panels(std::int64_t channels, int lanes)
      : channels(channels),
        count(ceil_div(ceil_div(channels, lanes), convolution_table().tile_vectors)),
        width(ceil_div(ceil_div(channels, lanes), count) * lanes) {}
  std::int64_t first(std::int64_t panel) const { return panel * width; }
  std::int64_t at(std::int64_t panel) const { return std::min(width, channels - first(panel)); }
  // Up to whole vectors.
  int columns(std::int64_t panel, int lanes) const {
    return static_cast<int>(round_up(at(panel), lanes));
  }
};

// Elements from pixel to pixel: a power of two would put all of them into few sets of the cache.
inline std::int64_t pixel_pitch(std::int64_t channels, int lanes) {
  const std::int64_t pitch = round_up(channels, lanes);
  return pitch % 128 == 0 ? pitch + std::max(16, lanes) : pitch;
}

// A part of the padded source, for some images: places [low, low + size) along each axis, which
// may begin before the source and end behind it.
struct SourceBox {
  std::int64_t low[3], size[3];
  std::int64_t images, pitch;
  std::int64_t pixels() const { return size[0] * size[1] * size[2]; }
  // A pixel more takes what lies outside.
  std::int64_t image_step() const { return (pixels() + 1) * pitch; }
  std::int64_t elements() const { return images * image_step(); }
  std::int64_t place(std::int64_t z, std::int64_t y, std::int64_t x) const {
    return ((z * size[1] + y) * size[2] + x) * pitch;
  }
};

// The axis that pieces are cut along: the first that is not of one element.
inline int cut_axis(const ConvolutionProblem& p) {
  for (int d = 0; d < 2; ++d)
    if (!spans_one_axis(p, d)) return d;
  return 2;
}

// Whether the least box, one step of the axis that is cut, has places of 32 bits.
inline bool fits_boxes(const ConvolutionProblem& p) {
  double elements = double(std::max(p.in, p.out) / p.groups + 256);
  for (int d = 0; d < 3; ++d)
    elements *= double(p.kernel[d] * p.dilation[d] + 6 * p.stride[d]) +
                (d == cut_axis(p) ? 0 : double(std::max(p.x[d], p.y[d])));
  return elements < double(1 << 30);
}
inline bool refuse_long_rows(std::string* reason) {
  if (reason) *reason = "rows of the input are too long for places of 32 bits";
  return false;
}

// Zeros for what lies outside the source.
template <class T> void zero_padding(const SourceBox& box, const std::int64_t (&source)[3], T* to) {
  const auto outside = [&](int d, std::int64_t i) {
    return box.low[d] + i < 0 || box.low[d] + i >= source[d];
  };
  const std::int64_t width = box.size[2];
  const std::int64_t lead = std::clamp<std::int64_t>(-box.low[2], 0, width);
  const std::int64_t tail = std::clamp<std::int64_t>(source[2] - box.low[2], lead, width);
  for (std::int64_t n = 0; n < box.images; ++n)
    for (std::int64_t z = 0; z < box.size[0]; ++z)
      for (std::int64_t y = 0; y < box.size[1]; ++y) {
        T* const row = to + n * box.image_step() + box.place(z, y, 0);
        const bool whole = outside(0, z) || outside(1, y);
        std::fill_n(row, (whole ? width : lead) * box.pitch, T{0});
        if (!whole) std::fill_n(row + tail * box.pitch, (width - tail) * box.pitch, T{0});
      }
}

// The pixels of the source that a box holds, which follow each other where only the axis `cut` and
// those behind it have several elements.
struct SourcePixels {
  std::int64_t first[3], past[3];
  std::int64_t before, count;  // pixels that lie before them in memory, and how many they are

  SourcePixels(const SourceBox& box, const std::int64_t (&source)[3], int cut)
      : first{0, 0, 0}, past{source[0], source[1], source[2]}, before(0), count(1) {
    first[cut] = std::clamp<std::int64_t>(box.low[cut], 0, source[cut]);
    past[cut] = std::clamp(box.low[cut] + box.size[cut], first[cut], source[cut]);
    for (int d = 0; d < 3; ++d) {
      count *= past[d] - first[d];
      before = before * source[d] + first[d];
    }
  }
  // Where each begins in the box; behind its pixels where that has no place for it.
  void write_places(const SourceBox& box, std::int32_t* places) const {
    const auto inside = [&](int d, std::int64_t i) { return i >= 0 && i < box.size[d]; };
    const auto pitch = static_cast<std::int32_t>(box.pitch);
    const auto outside = static_cast<std::int32_t>(box.pixels() * box.pitch);
    const std::int64_t left = first[2] - box.low[2], right = past[2] - box.low[2];
    const std::int64_t from = std::clamp<std::int64_t>(0, left, right);
    const std::int64_t to = std::clamp(box.size[2], from, right);
    for (std::int64_t z = first[0] - box.low[0]; z < past[0] - box.low[0]; ++z)
      for (std::int64_t y = first[1] - box.low[1]; y < past[1] - box.low[1]; ++y) {
        const bool row = inside(0, z) && inside(1, y);
        std::fill_n(places, right - left, outside);
        auto place = static_cast<std::int32_t>(box.place(z, y, from));
        for (std::int64_t x = from; row && x < to; ++x, place += pitch) places[x - left] = place;
        places += right - left;
      }
  }
};

// Copies `channels` channels of images of `source` sizes into a box; images are `image` elements
// apart. All but axes from `cut` on have one element.
template <class T> void fill_box(const SourceBox& box, const std::int64_t (&source)[3], int cut,
                                 const T* from, std::int64_t image, std::int64_t channels, T* to) {
  zero_padding(box, source, to);
  const SourcePixels pixels(box, source, cut);
  if (pixels.count == 0) return;
  const ScratchArray<std::int32_t> places(pixels.count);
  pixels.write_places(box, places);
  const std::int64_t plane = source[0] * source[1] * source[2];
  for (std::int64_t n = 0; n < box.images; ++n)
    convolution_loops<T>().to_lanes({plane, channels, pixels.count, places},
                                    from + n * image + pixels.before, to + n * box.image_step());
}

// Weights as [tap][input channel][lanes] for one panel of output channels, from (out, in, taps), of
// whose `in` input channels `count` are taken. slots[tap] says where a tap lies.
template <class T> void pack_weights(const T* w, std::int64_t taps, std::int64_t count,
                                     std::int64_t in, std::int64_t channels,
                                     const std::int64_t* slots, std::int64_t width, T* to) {
  const ScratchArray<std::int32_t> places(count * taps);
  for (std::int64_t i = 0; i < count * taps; ++i)
    places[i] = static_cast<std::int32_t>((slots[i % taps] * count + i / taps) * width);
  convolution_loops<T>().to_lanes({in * taps, channels, count * taps, places}, w, to);
}
// The same with input channels in the lanes: [tap][output channel][lanes] from (out, in, taps).
// `in` is the number of input channels of w, of which `channels` are taken.
template <class T> void pack_weights_back(const T* w, std::int64_t taps, std::int64_t out,
                                          std::int64_t in, std::int64_t channels,
                                          const std::int64_t* slots, std::int64_t width, T* to) {
  const ConvolutionLoops& loops = convolution_loops<T>();
  const ScratchArray<std::int32_t> places(taps);
  for (std::int64_t o = 0; o < out; ++o) {
    if (taps == 1) {
      T* const row = to + o * width;
      std::copy_n(w + o * in, channels, row);
      std::fill(row + channels, row + width, T{0});
      continue;
    }
    for (std::int64_t k = 0; k < taps; ++k)
      places[k] = static_cast<std::int32_t>((slots[k] * out + o) * width);
    loops.to_lanes({taps, channels, taps, places}, w + o * in * taps, to);
  }
}

}  // namespace tw
