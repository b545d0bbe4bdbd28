#include "core/cpu/convolution/im2col.h"

#include <algorithm>

#include "core/base/thresholds.h"
#include "core/cpu/convolution/cost.h"
#include "core/cpu/convolution/windows/unfold.h"
#include "core/cpu/matmul/matmul.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// Pieces of an image are whole tiles of the widest product kernel: four vectors of 16 floats.
constexpr int64_t kTilePlaces = 64;

void multiply(const MatmulProblem& p) {
  static const OpKernels* const ladder = find_op("matmul");
  choose_inside(ladder, &p).run(&p);
}

MatmulProblem product_of(DType dtype, int64_t m, int64_t n, int64_t k) {
  MatmulProblem product{};
  product.dtype = dtype;
  product.batch = 1;
  product.m = m, product.n = n, product.k = k;
  return product;
}

// One group, in elements.
struct Sizes {
  int64_t in, out, taps, x, y;
  explicit Sizes(const ConvolutionProblem& p)
      : in(p.in / p.groups),
        out(p.out / p.groups),
        taps(volume(p.kernel)),
        x(volume(p.x)),
        y(volume(p.y)) {}
};

int64_t parts_of(int64_t count, int64_t each) { return (count + each - 1) / each; }

// How the places of the output are cut: whole images, or equal pieces of one.
struct ColumnBlocks {
  int64_t images, places;  // of a block
  int64_t each_image;      // blocks; 1 where a block holds several images
  int64_t count;
};
ColumnBlocks blocks_of(const ConvolutionProblem& p, int64_t places) {
  const int64_t y = volume(p.y);
  if (y < thresholds::kFewPlaces && p.batch > 1 && uses(Optimization::batched_columns)) {
    const int64_t images = std::min(p.batch, parts_of(std::max(places, thresholds::kFewPlaces), y));
    return {images, images * y, 1, parts_of(p.batch, images)};
  }
  int64_t parts = parts_of(y, std::max(places, thresholds::kFewPlaces));
  if (parts > 1 && !uses(Optimization::blocked_im2col)) parts = 1;
  const int64_t each = parts_of(parts_of(y, parts), kTilePlaces) * kTilePlaces;
  return {1, std::min(each, y), parts_of(y, each), p.batch * parts_of(y, each)};
}
struct ColumnBlock {
  int64_t image, images;  // first, and how many
  int64_t place, count;   // first within its image, and how many in all
  int64_t first(int64_t y) const { return image * y + place; }
};
ColumnBlock block_at(const ConvolutionProblem& p, const ColumnBlocks& blocks, int64_t i) {
  const int64_t y = volume(p.y);
  if (blocks.images > 1) {
    const int64_t image = i * blocks.images, images = std::min(blocks.images, p.batch - image);
    return {image, images, 0, images * y};
  }
  const int64_t place = i % blocks.each_image * blocks.places;
  return {i / blocks.each_image, 1, place, std::min(blocks.places, y - place)};
}

// A matrix of a block: one row a channel, or a channel's element of the kernel.
template <class T> struct Lines {
  T* at;
  int64_t width;  // from row to row
};

// Whether the unfolded input is the input.
bool is_plain(const ConvolutionProblem& p) {
  if (volume(p.kernel) != 1) return false;
  for (int d = 0; d < 3; ++d)
    if (p.stride[d] != 1 || p.before[d] != 0 || p.x[d] != p.y[d]) return false;
  return uses(Optimization::columns_in_place);
}

// The channels [0, channels) from x on, unfolded into `memory`, or where they lie.
template <class T> Lines<const T> unfolded(const ConvolutionProblem& p, const ColumnBlock& block,
                                           const T* x, int64_t channels, T* memory) {
  const Sizes s(p);
  if (is_plain(p) && block.images == 1) return {x + block.image * p.in * s.x + block.place, s.x};
  unfold(p, UnfoldedRuns(p, block.first(s.y), block.count), channels, x, memory, block.count);
  return {memory, block.count};
}
// The output's channels from y on, side by side where the block has several images.
template <class T> Lines<const T> gathered(const ConvolutionProblem& p, const ColumnBlock& block,
                                           const T* y, int64_t channels, T* memory) {
  const int64_t size = volume(p.y);
  if (block.images == 1) return {y + block.image * p.out * size + block.place, size};
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t n = 0; n < block.images; ++n)
      std::copy_n(y + ((block.image + n) * p.out + c) * size, size,
                  memory + c * block.count + n * size);
  return {memory, block.count};
}
template <class T> void scatter(const ConvolutionProblem& p, const ColumnBlock& block,
                                const T* memory, int64_t channels, T* y) {
  const int64_t size = volume(p.y);
  for (int64_t n = 0; n < block.images; ++n)
    for (int64_t c = 0; c < channels; ++c)
      std::copy_n(memory + c * block.count + n * size, size,
                  y + ((block.image + n) * p.out + c) * size);
}

// ---- forward: y = w @ unfolded x ----

MatmulProblem forward_product(const ConvolutionProblem& p, int64_t places) {
  const Sizes s(p);
  MatmulProblem product = product_of(p.dtype, s.out, places, s.in * s.taps);
  product.a_row = product.k, product.a_col = 1;
  product.b_row = places, product.b_col = 1;
  product.c_row = places, product.c_col = 1;
  if (p.bias) product.epilogue = {p.bias, 1, 0, false};
  return product;
}
ColumnBlocks forward_blocks(const ConvolutionProblem& p) {
  const Sizes s(p);
  return blocks_of(p, thresholds::kBlockBytes / (s.in * s.taps * int64_t(size_of(p.dtype))));
}
template <class T>
void forward_block(const ConvolutionProblem& p, const ColumnBlock& block, int64_t group) {
  const Sizes s(p);
  const bool several = block.images > 1;
  const bool in_place = is_plain(p) && !several;
  const Scratch lines(in_place ? 0 : s.in * s.taps * block.count * sizeof(T));
  const Scratch sums(several ? s.out * block.count * sizeof(T) : 0);
  auto* const x = static_cast<const T*>(p.a) + group * s.in * s.x;
  T* const y = static_cast<T*>(p.result) + group * s.out * s.y;
  const auto b = unfolded(p, block, x, s.in, lines.as<T>());
  MatmulProblem product = forward_product(p, block.count);
  product.a = static_cast<const T*>(p.b) + group * s.out * product.k;
  product.b = b.at, product.b_row = b.width;
  product.c = several ? sums.as<T>() : y + block.image * p.out * s.y + block.place;
  if (!several) product.c_row = s.y;
  if (p.bias) product.epilogue.bias = static_cast<const T*>(p.bias) + group * s.out;
  multiply(product);
  if (several) scatter(p, block, sums.as<T>(), s.out, y);
}
template <class T> void forward(const ConvolutionProblem& p) {
  const ColumnBlocks blocks = forward_blocks(p);
  parallel_chunks(p.groups * blocks.count, [&](int64_t i) {
    forward_block<T>(p, block_at(p, blocks, i / p.groups), i % p.groups);
  });
}

// ---- the input's gradient: fold(w^T @ g) ----

// Channels whose unfolded gradients are computed together.
int64_t channels_of_piece(const ConvolutionProblem& p, const ColumnBlocks& blocks) {
  const Sizes s(p);
  const int64_t bytes = s.taps * blocks.places * int64_t(size_of(p.dtype));
  return std::clamp<int64_t>(2 * thresholds::kBlockBytes / bytes, 1, s.in);
}
// A block that holds several images is gathered for each piece: its channels are to be many.
ColumnBlocks input_gradient_blocks(const ConvolutionProblem& p) {
  constexpr int64_t kChannels = 4;
  const int64_t bytes = volume(p.kernel) * int64_t(size_of(p.dtype)) * kChannels;
  return blocks_of(p, volume(p.y) < thresholds::kFewPlaces ? thresholds::kFewPlaces
                                                           : 2 * thresholds::kBlockBytes / bytes);
}
MatmulProblem input_gradient_product(const ConvolutionProblem& p, int64_t channels,
                                     int64_t places) {
  const Sizes s(p);
  MatmulProblem product = product_of(p.dtype, channels * s.taps, places, s.out);
  product.a_row = 1, product.a_col = s.in * s.taps;
  product.b_row = places, product.b_col = 1;
  product.c_row = places, product.c_col = 1;
  return product;
}
// Of some channels of the images that blocks [from, to) are cut from.
template <class T> void input_gradient_piece(const ConvolutionProblem& p,
                                             const ColumnBlocks& blocks, int64_t from, int64_t to,
                                             int64_t group, int64_t channel, int64_t channels) {
  const Sizes s(p);
  const ColumnBlock whole = block_at(p, blocks, from);
  const bool several = blocks.images > 1, in_place = is_plain(p) && !several;
  const Scratch lines(in_place ? 0 : channels * s.taps * blocks.places * sizeof(T));
  const Scratch gradients(several ? s.out * blocks.places * sizeof(T) : 0);
  T* const dx = static_cast<T*>(p.result) + (group * s.in + channel) * s.x;
  for (int64_t n = whole.image; !in_place && n < whole.image + whole.images; ++n)
    std::fill_n(dx + n * p.in * s.x, channels * s.x, T{0});
  for (int64_t i = from; i < to; ++i) {
    const ColumnBlock block = block_at(p, blocks, i);
    const auto b = gathered(p, block, static_cast<const T*>(p.a) + group * s.out * s.y, s.out,
                            gradients.as<T>());
    MatmulProblem product = input_gradient_product(p, channels, block.count);
    product.a = static_cast<const T*>(p.b) + (group * s.out * s.in + channel) * s.taps;
    product.b = b.at, product.b_row = b.width;
    product.c = in_place ? dx + block.image * p.in * s.x + block.place : lines.as<T>();
    if (in_place) product.c_row = s.x;
    multiply(product);
    if (in_place) continue;
    fold(p, UnfoldedRuns(p, block.first(s.y), block.count), channels, lines.as<T>(), block.count,
         dx);
  }
}
template <class T> void input_gradient(const ConvolutionProblem& p) {
  const ColumnBlocks blocks = input_gradient_blocks(p);
  const int64_t in = p.in / p.groups, each = channels_of_piece(p, blocks);
  const int64_t pieces = parts_of(in, each), runs = blocks.count / blocks.each_image;
  parallel_chunks(runs * p.groups * pieces, [&](int64_t i) {
    const int64_t run = i / pieces / p.groups, channel = i % pieces * each;
    input_gradient_piece<T>(p, blocks, run * blocks.each_image, (run + 1) * blocks.each_image,
                            i / pieces % p.groups, channel, std::min(each, in - channel));
  });
}

// ---- the weight's gradient: the sum over blocks of g @ (unfolded x)^T ----

// Channels so that the sums stay in cache while blocks pass; parts of the blocks, each with sums of
// its own, where that leaves few pieces.
struct WeightPieces {
  ColumnBlocks blocks;
  int64_t channels, by_channel, parts;
};
WeightPieces weight_pieces(const ConvolutionProblem& p) {
  const Sizes s(p);
  const auto element = int64_t(size_of(p.dtype));
  WeightPieces out;
  out.channels =
      std::clamp<int64_t>(2 * thresholds::kBlockBytes / (s.out * s.taps * element), 1, s.in);
  out.by_channel = parts_of(s.in, out.channels);
  out.blocks = blocks_of(
      p, std::max<int64_t>(2 * thresholds::kBlockBytes / (out.channels * s.taps * element), 512));
  out.parts = std::clamp<int64_t>(thresholds::kBatchParts / (p.groups * out.by_channel), 1,
                                  out.blocks.count);
  return out;
}
MatmulProblem weight_gradient_product(const ConvolutionProblem& p, int64_t channels,
                                      int64_t places) {
  const Sizes s(p);
  MatmulProblem product = product_of(p.dtype, s.out, channels * s.taps, places);
  product.a_row = places, product.a_col = 1;
  product.b_row = 1, product.b_col = places;
  product.c_row = s.in * s.taps, product.c_col = 1;
  return product;
}
// dw: the sums of this part, laid out as the result.
template <class T> void weight_gradient_piece(const ConvolutionProblem& p,
                                              const WeightPieces& pieces, int64_t part,
                                              int64_t group, int64_t channel, T* dw) {
  const Sizes s(p);
  const ColumnBlocks& blocks = pieces.blocks;
  const int64_t channels = std::min(pieces.channels, s.in - channel);
  const bool several = blocks.images > 1;
  const Scratch lines(is_plain(p) && !several ? 0 : channels * s.taps * blocks.places * sizeof(T));
  const Scratch gradients(several ? s.out * blocks.places * sizeof(T) : 0);
  const int64_t from = blocks.count * part / pieces.parts;
  for (int64_t i = from; i < blocks.count * (part + 1) / pieces.parts; ++i) {
    const ColumnBlock block = block_at(p, blocks, i);
    const auto a = gathered(p, block, static_cast<const T*>(p.b) + group * s.out * s.y, s.out,
                            gradients.as<T>());
    const auto b = unfolded(p, block, static_cast<const T*>(p.a) + (group * s.in + channel) * s.x,
                            channels, lines.as<T>());
    MatmulProblem product = weight_gradient_product(p, channels, block.count);
    product.a = a.at, product.a_row = a.width;
    product.b = b.at, product.b_col = b.width;
    product.c = dw + (group * s.out * s.in + channel) * s.taps;
    product.beta = i > from;
    multiply(product);
  }
}
template <class T> void weight_gradient(const ConvolutionProblem& p) {
  const WeightPieces pieces = weight_pieces(p);
  const int64_t count = p.out * (p.in / p.groups) * volume(p.kernel);
  const Scratch sums((pieces.parts - 1) * count * sizeof(T));
  T* const dw = static_cast<T*>(p.result);
  const auto sums_of = [&](int64_t part) {
    return part == 0 ? dw : sums.as<T>() + (part - 1) * count;
  };
  parallel_chunks(pieces.parts * p.groups * pieces.by_channel, [&](int64_t i) {
    const int64_t part = i / pieces.by_channel / p.groups;
    weight_gradient_piece(p, pieces, part, i / pieces.by_channel % p.groups,
                          i % pieces.by_channel * pieces.channels, sums_of(part));
  });
  for (int64_t part = 1; part < pieces.parts; ++part) {
    const T* const more = sums_of(part);
    for (int64_t i = 0; i < count; ++i) dw[i] += more[i];
  }
}

template <class T> void run(const ConvolutionProblem& p) {
  switch (p.part) {
    case ConvolutionPart::forward: return forward<T>(p);
    case ConvolutionPart::input_gradient: return input_gradient<T>(p);
    case ConvolutionPart::weight_gradient: return weight_gradient<T>(p);
  }
}

// ---- cost ----

// To copy a span and an element of an unfolded form, and to read them again; and what products of
// the input's and the output's blocks take a flop beside the arithmetic, whatever the width of
// vectors: measured on AVX-512 at 3.7 to 3.8 GHz.
constexpr double kNsPerSpan = 5, kNsPerElement = 0.19, kBlockNsPerFlop = 0.0009, kOverheadNs = 500;

// The last block of an image, or of the images, is smaller than the others.
double share_of_blocks(const ConvolutionProblem& p, const ColumnBlocks& blocks) {
  return double(p.batch * volume(p.y)) / double(blocks.count * blocks.places);
}
double products_ns(const ConvolutionProblem& p) {
  const Sizes s(p);
  if (p.part == ConvolutionPart::forward) {
    const ColumnBlocks blocks = forward_blocks(p);
    return share_of_blocks(p, blocks) * double(p.groups * blocks.count) *
           packed_ns(forward_product(p, blocks.places));
  }
  if (p.part == ConvolutionPart::input_gradient) {
    const ColumnBlocks blocks = input_gradient_blocks(p);
    const int64_t channels = channels_of_piece(p, blocks);
    return share_of_blocks(p, blocks) * double(p.groups * blocks.count) * double(s.in) /
           double(channels) * packed_ns(input_gradient_product(p, channels, blocks.places));
  }
  const WeightPieces pieces = weight_pieces(p);
  return share_of_blocks(p, pieces.blocks) *
         double(p.groups * pieces.blocks.count * pieces.by_channel) *
         packed_ns(weight_gradient_product(p, pieces.channels, pieces.blocks.places));
}

}  // namespace

double im2col_cost_ns(const ConvolutionProblem& p) {
  if (flops_of(p) == 0) return kOverheadNs;
  const double lines = double(p.in) * double(volume(p.kernel));
  const double places = double(p.batch) * double(volume(p.y));
  const double copies = lines * places * (kNsPerElement + kNsPerSpan / double(p.y[2]));
  const bool sums_stay = p.part == ConvolutionPart::weight_gradient;
  const double unfolding =
      is_plain(p) ? 0 : copies + (sums_stay ? 0 : kBlockNsPerFlop * flops_of(p));
  return kOverheadNs + unfolding + narrowness() * products_ns(p);
}

void im2col_run(const ConvolutionProblem& p) {
  p.dtype == DType::float64 ? run<double>(p) : run<float>(p);
}

}  // namespace tw
