// Channels as pixels, pixels as channels, and channels in another order.
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

// The first of the last three axes: channels, height, width.
int checked_planes(const Use& use, const char* factor) {
  const Tensor& x = use.in[0].tensor;
  if (x.rank() < 3)
    fail(ErrorKind::value, use.op.name, ": input must be (..., channels, height, width), got ",
         x.shape());
  if (use.attributes[0] < 1)
    fail(ErrorKind::value, use.op.name, ": ", factor, " must be above 0, got ", use.attributes[0]);
  return x.rank() - 3;
}
int64_t scaled(const Use& use, int64_t extent, int64_t factor) {
  return (Checked(use.op.name, extent) * factor).get();
}
Tensor permuted(const Tensor& x, int lead, std::initializer_list<int> order) {
  std::vector<int64_t> axes;
  for (int i = 0; i < lead; ++i) axes.push_back(i);
  for (const int axis : order) axes.push_back(lead + axis);
  return permute_dims(x, axes);
}
Shape with_last(const Shape& shape, int lead, std::initializer_list<int64_t> extents) {
  Shape out;
  for (int i = 0; i < lead; ++i) out.push_back(shape[i]);
  for (const int64_t extent : extents) out.push_back(extent);
  return out;
}

void pixel_shuffle_body(const Use& use, Tensor* out) {
  const int lead = checked_planes(use, "upscale_factor");
  const Tensor& x = use.in[0].tensor;
  const int64_t r = use.attributes[0], c = x.size(lead), h = x.size(lead + 1), w = x.size(lead + 2);
  if (r > 46340 || c % (r * r))
    fail(ErrorKind::value, "pixel_shuffle: the ", c, " channels of input ", x.shape(),
         " are no multiple of upscale_factor squared, ", r, " * ", r);
  const Tensor blocks = reshape(x, with_last(x.shape(), lead, {c / (r * r), r, r, h, w}));
  out[0] = reshape(contiguous(permuted(blocks, lead, {0, 3, 1, 4, 2})),
                   with_last(x.shape(), lead, {c / (r * r), scaled(use, h, r), scaled(use, w, r)}));
}
void pixel_unshuffle_body(const Use& use, Tensor* out) {
  const int lead = checked_planes(use, "downscale_factor");
  const Tensor& x = use.in[0].tensor;
  const int64_t r = use.attributes[0], c = x.size(lead), h = x.size(lead + 1), w = x.size(lead + 2);
  if (h % r || w % r)
    fail(ErrorKind::value, "pixel_unshuffle: height and width of input ", x.shape(),
         " are no multiples of downscale_factor ", r);
  const Tensor blocks = reshape(x, with_last(x.shape(), lead, {c, h / r, r, w / r, r}));
  out[0] = reshape(contiguous(permuted(blocks, lead, {0, 2, 4, 1, 3})),
                   with_last(x.shape(), lead, {scaled(use, scaled(use, c, r), r), h / r, w / r}));
}
void channel_shuffle_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const int64_t groups = use.attributes[0];
  if (x.rank() < 3)
    fail(ErrorKind::value, "channel_shuffle: input must be (batch, channels, ...), got ",
         x.shape());
  if (groups < 1 || x.size(1) % groups)
    fail(ErrorKind::value, "channel_shuffle: ", x.size(1), " channels cannot be split in ", groups,
         " groups");
  Shape split = {x.size(0), groups, x.size(1) / groups};
  std::vector<int64_t> axes = {0, 2, 1};
  for (int i = 2; i < x.rank(); ++i) {
    split.push_back(x.size(i));
    axes.push_back(i + 1);
  }
  out[0] = reshape(contiguous(permute_dims(reshape(x, split), axes)), x.shape());
}

}  // namespace

constexpr OpRecord kPixelShuffle = {
    .name = "pixel_shuffle",
    .signature = "(input: Tensor, upscale_factor: int) -> Tensor",
    .help =
        "Images (..., channels * r * r, height, width) as (..., channels, height * r, width * r): "
        "r * r channels are a square of pixels (Shi et al., 2016).\n"
        "Raises ValueError where the channels are no multiple of r * r.\n"
        "Shapes: input (..., channels * r * r, height, width); the result is (..., channels, "
        "height * r, width * r).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.pixel_shuffle.",
    .flags = kFunction,
    .body = pixel_shuffle_body};
constexpr OpRecord kPixelUnshuffle = {
    .name = "pixel_unshuffle",
    .signature = "(input: Tensor, downscale_factor: int) -> Tensor",
    .help =
        "Images (..., channels, height * r, width * r) as (..., channels * r * r, height, width): "
        "what pixel_shuffle does, undone.\n"
        "Raises ValueError where height or width is no multiple of r.\n"
        "Shapes: input (..., channels, height * r, width * r); the result is (..., channels * r * "
        "r, height, width).\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.pixel_unshuffle.",
    .flags = kFunction,
    .body = pixel_unshuffle_body};
constexpr OpRecord kChannelShuffle = {
    .name = "channel_shuffle",
    .signature = "(input: Tensor, groups: int) -> Tensor",
    .help =
        "Images (batch, channels, ...) with the first channel of each group first, then the second "
        "ones (Zhang et al., 2018).\n"
        "Raises ValueError where the groups do not divide the channels.\n"
        "Shapes: input (batch, channels, ...); the result has its shape.\n"
        "Types: all. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.channel_shuffle.",
    .flags = kFunction,
    .body = channel_shuffle_body};

}  // namespace tw
