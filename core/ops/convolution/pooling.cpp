// Pooling: the largest or the mean element of each window of images. Checks, geometry, gradients.
//
// Internal ops work on any number of leading axes ("planes") and up to three axes of space. A
// stride of 0 marks an axis that adaptive pooling shares out: window i of n covers [floor(i * size
// / n), ceil((i + 1) * size / n)).
#include <limits>

#include "core/autograd/grad_mode.h"
#include "core/autograd/node.h"
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/convolution/windows.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/index.h"
#include "core/ops/engine/records.h"
#include "core/ops/move/scatter.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

// ---- the internal ops ----

// Attributes of windows: kernel, stride, dilation, padding in front, sizes of the image and of its
// windows' results; then what the two kinds of pooling have of their own.
enum WindowAttribute {
  kKernel,
  kStride,
  kDilation,
  kBefore,
  kImage,
  kSize,
  kIndexed,
  kMaxAttributes
};
enum MeanAttribute { kIncludePadding = kIndexed, kDivisor, kMeanAttributes };

Shape with_space(const Shape& shape, List space) {
  Shape out;
  for (int i = 0; i < shape.rank() - space.count; ++i) out.push_back(shape[i]);
  for (const Attribute size : space) out.push_back(size);
  return out;
}
void infer_space(Call& call, Result* results, int attribute) {
  results[0].shape = with_space(*call.in[0].shape, call.attributes.list(attribute));
  results[0].dtype = call.in[0].dtype;
}
void infer_max(Call& call, Result* results) {
  infer_space(call, results, kSize);
  results[1].shape = call.attributes.flag(kIndexed) ? results[0].shape : Shape{0};
  results[1].dtype = DType::int32;
}
Estimate estimate_windows(const Call& call) {
  double taps = 1;
  for (const Attribute size : call.attributes.list(kKernel)) taps *= double(size);
  const Meta &x = call.in[0], &y = call.out[0];
  const auto windows = double(std::min(x.count, y.count));
  return {windows * taps, double(x.count + y.count) * double(size_of(x.dtype))};
}

// ---- checks of public calls ----

constexpr int64_t kMostElements = std::numeric_limits<std::int32_t>::max();  // places have 32 bits

struct Image {
  Tensor x;
  Dims size;
};
Image checked_image(const Use& use, int axes) {
  const Tensor& x = use.in[0].tensor;
  const char* const op = use.op.name;
  if (x.rank() != axes + 2 && x.rank() != axes + 1)
    fail(ErrorKind::value, op, ": input must have ", axes + 2, " dimensions, or ", axes + 1,
         " without a batch, got ", x.shape());
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, op, ": floating point only, got ", name_of(x.dtype()),
         "; convert with astype");
  Image image{x, {}};
  int64_t elements = 1;
  for (int i = x.rank() - axes; i < x.rank(); ++i) {
    image.size.push_back(x.size(i));
    if (x.size(i) == 0) fail(ErrorKind::value, op, ": input ", x.shape(), " has an axis of size 0");
    elements = x.size(i) > kMostElements / elements ? kMostElements + 1 : elements * x.size(i);
  }
  if (elements > kMostElements)
    fail(ErrorKind::value, op, ": input ", x.shape(), " has planes of 2^31 elements or more");
  return image;
}

AttributeList attributes_of(int count, const Dims& kernel, const Dims& stride, const Dims& dilation,
                            const Dims& before, const Dims& image, const Dims& size) {
  AttributeList attributes(count);
  attributes.set_list(kKernel, kernel).set_list(kStride, stride).set_list(kDilation, dilation);
  return attributes.set_list(kBefore, before).set_list(kImage, image).set_list(kSize, size);
}

// Of a call whose attributes begin with kernel_size, stride and padding; `dilation_attribute` is
// -1 where the
// op has no dilation.
AttributeList window_attributes(const Use& use, int count, const Dims& image,
                                int dilation_attribute, bool ceil_mode) {
  const int axes = image.rank();
  const Dims kernel = per_axis(use, 0, "kernel_size", axes, 1, 1);
  const bool own =
      use.attributes.none(1) || use.attributes.list(1).count == 0;  // as far as they are wide
  const Dims stride = own ? kernel : per_axis(use, 1, "stride", axes, 1, 1);
  const Dims padding = per_axis(use, 2, "padding", axes, 0, 0);
  const Dims dilation = dilation_attribute < 0
                            ? Dims(axes, 1)
                            : per_axis(use, dilation_attribute, "dilation", axes, 1, 1);
  Dims reach(axes, 0), padded(axes, 0), size(axes, 0);
  bool fits = true;
  for (int i = 0; i < axes; ++i) {
    reach[i] = dilation[i] * (kernel[i] - 1) + 1;
    padded[i] = image[i] + 2 * padding[i];
    if (padding[i] > reach[i] / 2)
      fail(ErrorKind::value, use.op.name, ": padding ", padding,
           " must be at most half of the windows' ", reach);
    const int64_t room = padded[i] - reach[i] + (ceil_mode ? stride[i] - 1 : 0);
    fits &= room >= 0;
    size[i] = room / stride[i] + 1;
    // A last window that would begin in the padding behind the image is left out.
    if (ceil_mode && (size[i] - 1) * stride[i] >= image[i] + padding[i]) --size[i];
  }
  if (!fits)
    fail(ErrorKind::value, use.op.name, ": windows of ", reach,
         " are larger than the padded input ", padded,
         "; more padding or a smaller kernel_size fits");
  return attributes_of(count, kernel, stride, dilation, padding, image, size);
}

// output_size, of which None is the image's own.
Dims shared_size(const Use& use, const Dims& image) {
  const int axes = image.rank();
  if (use.attributes.none(0)) return image;
  Dims given = use.attributes.dims(0);
  if (given.rank() == 1 && axes > 1 && given[0] == kNone) return image;
  for (int i = 0; i < given.rank() && i < axes; ++i)
    if (given[i] == kNone) given[i] = image[i];
  return per_axis(use, given, "output_size", axes, 0);
}

// Where the windows of an axis are all alike they are said as a kernel and a stride.
AttributeList adaptive_attributes(const Use& use, int count, const Dims& image) {
  const int axes = image.rank();
  const Dims size = shared_size(use, image);
  Dims kernel(axes, 0), stride(axes, 0);
  for (int i = 0; i < axes; ++i) {
    const bool alike = size[i] && image[i] % size[i] == 0;
    kernel[i] = size[i] ? (image[i] + size[i] - 1) / size[i] : 1;
    stride[i] = alike ? kernel[i] : 0;
  }
  return attributes_of(count, kernel, stride, Dims(axes, 1), Dims(axes, 0), image, size);
}

// `wanted`: also the winners' places.
void take_largest(const Tensor& x, AttributeList attributes, bool wanted, Tensor* out) {
  attributes.set(kIndexed, wanted || (modes.grad && records(x)));
  Tensor made[2];
  const Operand in[] = {x};
  apply(kMaxWindows, in, 1, attributes, made);
  out[0] = made[0];
  if (wanted) out[1] = astype(made[1], DType::int64);
}
// Attributes: kernel_size, stride, padding, dilation, ceil_mode.
template <int axes, bool indices> void max_pool_body(const Use& use, Tensor* out) {
  const Image image = checked_image(use, axes);
  take_largest(image.x,
               window_attributes(use, kMaxAttributes, image.size, 3, use.attributes.flag(4)),
               indices, out);
}
template <int axes, bool indices> void adaptive_max_pool_body(const Use& use, Tensor* out) {
  const Image image = checked_image(use, axes);
  take_largest(image.x, adaptive_attributes(use, kMaxAttributes, image.size), indices, out);
}

// Attributes: kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override.
template <int axes> void avg_pool_body(const Use& use, Tensor* out) {
  const Image image = checked_image(use, axes);
  AttributeList attributes =
      window_attributes(use, kMeanAttributes, image.size, -1, use.attributes.flag(3));
  const Attribute divisor = axes > 1 ? use.attributes[5] : kNone;
  if (divisor == 0) fail(ErrorKind::value, use.op.name, ": divisor_override must not be 0");
  attributes.set(kIncludePadding, use.attributes.flag(4))
      .set(kDivisor, divisor == kNone ? 0 : divisor);
  out[0] = apply(kMeanWindows, {image.x}, attributes);
}
template <int axes> void adaptive_avg_pool_body(const Use& use, Tensor* out) {
  const Image image = checked_image(use, axes);
  AttributeList attributes = adaptive_attributes(use, kMeanAttributes, image.size);
  out[0] = apply(kMeanWindows, {image.x}, attributes.set(kIncludePadding, 0).set(kDivisor, 0));
}

// output_size of the pooled axes, or of all of them.
Dims unpooled_size(const Use& use, int axes) {
  const Tensor& x = use.in[0].tensor;
  const Dims given = use.attributes.dims(3);
  if (given.rank() != x.rank() || x.rank() == 1) return per_axis(use, 3, "output_size", axes, 1, 1);
  Dims size(axes, 0);
  for (int i = 0; i < axes; ++i) size[i] = given[x.rank() - axes + i];
  for (int i = 0; i < x.rank() - axes; ++i)
    if (given[i] != x.size(i))
      fail(ErrorKind::value, use.op.name, ": output_size ", given, " does not fit ", x.shape());
  return size;
}

// Attributes: kernel_size, stride, padding, output_size.
template <int axes> void max_unpool_body(const Use& use, Tensor* out) {
  const Image image = checked_image(use, axes);
  const Tensor& places = use.in[1].tensor;
  if (places.dtype() != DType::int64)
    fail(ErrorKind::type, use.op.name, ": indices must be int64, got ", name_of(places.dtype()));
  if (!(places.shape() == image.x.shape()))
    fail(ErrorKind::value, use.op.name, ": indices ", places.shape(),
         " must have the shape of the input ", image.x.shape());
  const Dims kernel = per_axis(use, 0, "kernel_size", axes, 1, 1);
  const Dims stride = use.attributes.none(1) ? kernel : per_axis(use, 1, "stride", axes, 1, 1);
  const Dims padding = per_axis(use, 2, "padding", axes, 0, 0);
  Dims size(axes, 0);
  int64_t count = 1;
  for (int i = 0; i < axes; ++i)
    size[i] = (image.size[i] - 1) * stride[i] - 2 * padding[i] + kernel[i];
  if (!use.attributes.none(3)) size = unpooled_size(use, axes);
  for (const int64_t each : size) {
    count = each > 0 && count <= kMostElements / each ? count * each : kMostElements + 1;
    if (count > kMostElements) fail(ErrorKind::value, use.op.name, ": no planes of size ", size);
  }
  const Tensor valid = checked_indices(places, count, kNone, Indexing::max_unpool);
  Shape planes = image.x.shape();
  for (int i = 0; i < axes; ++i) planes[planes.rank() - axes + i] = size[i];
  const Shape rows = {image.x.count() / element_count(image.size), element_count(image.size)};
  // Overlapping windows name a place several times with one value; as in PyTorch each of them gets
  // the gradient, as if it stood alone.
  const Tensor flat = scatter_along(zeros({rows[0], count}, image.x.dtype()), reshape(valid, rows),
                                    reshape(image.x, rows), 1, AlongUser::scatter, true);
  out[0] = reshape(flat, planes);
}

constexpr char kWindowAttributes[] =
    "(input: Tensor, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, "
    "dilation: Shape = 1, ceil_mode: bool = False) -> Tensor";
constexpr char kIndexedWindowAttributes[] =
    "(input: Tensor, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, "
    "dilation: Shape = 1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]";
constexpr char kMeanWindowAttributes[] =
    "(input: Tensor, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, "
    "ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) "
    "-> Tensor";
constexpr char kMeanWindowAttributes1d[] =
    "(input: Tensor, kernel_size: Shape, stride: Shape | None = None, padding: Shape = 0, "
    "ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor";
constexpr char kAdaptiveAttributes[] = "(input: Tensor, output_size: Shape | None) -> Tensor";
constexpr char kIndexedAdaptiveAttributes[] =
    "(input: Tensor, output_size: Shape | None) -> tuple[Tensor, Tensor]";

constexpr OpRecord pool(const char* name, const char* signature, const char* help,
                        void (*body)(const Use&, Tensor*), int results = 1) {
  return {.name = name,
          .signature = signature,
          .help = help,
          .flags = kFunction,
          .results = results,
          .body = body};
}

#define TW_POOLED                                                                         \
  "\nTypes: floating. Result: the same type.\nRaises ValueError for windows that do not " \
  "fit."
#define TW_INDEXED                                                                 \
  "\nTypes: floating. Result: values of the same type, indices of int64.\nRaises " \
  "ValueError for windows that do not fit."
#define TW_WINDOWED_RESULT(shape)                                                           \
  "\nShapes: input " shape                                                                  \
  "; the result has floor((size + 2 * padding - dilation * "                                \
  "(kernel_size - 1) - 1) / stride) + 1 windows along an axis, with ceil_mode ceil; batch " \
  "may be left out."
#define TW_ADAPTED_RESULT(shape)                              \
  "\nShapes: input " shape                                    \
  "; the result has output_size in place of the axes behind " \
  "channels; batch may be left out."
#define TW_TORCH(name) "\nSource: PyTorch's torch.nn.functional." name "."
#define TW_MAX_HELP(shape)                                                                         \
  "The largest element of each window of input " shape                                             \
  ", or without batch; windows lie stride "                                                        \
  "(default: kernel_size) apart, padding counts as -inf, ceil_mode keeps a last window that is "   \
  "not filled. The first of equal elements gets the gradient; NaN wins." TW_WINDOWED_RESULT(shape) \
      TW_POOLED
#define TW_MAX_INDEXED_HELP(name)                                            \
  "The results of " name                                                     \
  ", and where in its plane each lies: int64, in row-major order.\nShapes: " \
  "values and indices as the result of " name "." TW_INDEXED
#define TW_MEAN_HELP(shape)                                                                    \
  "The mean of each window of input " shape                                                    \
  ", or without batch; windows lie stride (default: "                                          \
  "kernel_size) apart, count_include_pad counts the zeros of padding, ceil_mode keeps a last " \
  "window that is not filled."
#define TW_DIVISOR_HELP " divisor_override divides the sums instead of the elements' number."
#define TW_ADAPTIVE_HELP(what, shape) \
  what                                                                                             \
      " of output_size windows an axis that cover input " shape                                    \
      ", or without batch: window i of "                                                           \
      "n goes from floor(i * size / n) to ceil((i + 1) * size / n)." TW_ADAPTED_RESULT(shape) \
      "\nTypes: floating. Result: the same type.\nRaises ValueError for inputs without " \
      "elements and for other numbers of sizes than axes."
#define TW_MEAN_FACTS(n)                                                                     \
  "\nShapes: input " TW_SHAPE_##n##D                                                         \
      "; the result has floor((size + 2 * padding - "                                        \
      "kernel_size) / stride) + 1 windows along an axis, with ceil_mode ceil; batch may be " \
      "left out." TW_POOLED TW_TORCH("avg_pool" #n "d")
#define TW_SHAPE_1D "(batch, channels, length)"
#define TW_SHAPE_2D "(batch, channels, height, width)"
#define TW_SHAPE_3D "(batch, channels, depth, height, width)"

}  // namespace

#define TW_WINDOW_SHAPES                                                                         \
  "(input: Tensor, kernel: Shape, stride: Shape, dilation: Shape, before: Shape, image: Shape, " \
  "size: Shape, "

constexpr OpRecord kMaxWindows = {
    .name = "max_windows",
    .signature = TW_WINDOW_SHAPES "indexed: bool) -> Tensor",
    .help =
        "The largest element of each window, and where indexed its place in the plane: -1 where a "
        "window has no element.",
    .results = 2,
    .infer = infer_max,
    .estimate = estimate_windows,
    .vjp =
        [](Vjp& v) {
          v.give(0, kScatterInPlanes, {v.g(), v.out(1)},
                 AttributeList(1).set_list(0, v.attributes().list(kImage)));
        },
    .reads = {{.results = 2}}};
constexpr OpRecord kScatterInPlanes = {
    .name = "scatter_in_planes",
    .signature = "(input: Tensor, indices: Tensor, size: Shape) -> Tensor",
    .help = "Planes of a size with the elements of input added up at their places.",
    .infer = [](Call& call, Result* results) { infer_space(call, results, 0); },
    .vjp = [](Vjp& v) { v.give(0, kGatherInPlanes, {v.g(), v.in(1)}, v.attributes()); },
    .reads = {{.inputs = 2}}};
constexpr OpRecord kGatherInPlanes = {
    .name = "gather_in_planes",
    .signature = kScatterInPlanes.signature,
    .help = "The elements of planes of a size at places, 0 where that is -1.",
    .infer =
        [](Call& call, Result* results) {
          results[0].like = 1;
          results[0].dtype = call.in[0].dtype;
        },
    .vjp = [](Vjp& v) { v.give(0, kScatterInPlanes, {v.g(), v.in(1)}, v.attributes()); },
    .reads = {{.inputs = 2}}};

constexpr OpRecord kMeanWindows = {
    .name = "mean_windows",
    .signature = TW_WINDOW_SHAPES "include_padding: bool, divisor: int) -> Tensor",
    .help = "The sum of each window over the number of its elements, or over divisor.",
    .infer = [](Call& call, Result* results) { infer_space(call, results, kSize); },
    .estimate = estimate_windows,
    .vjp = [](Vjp& v) { v.give(0, kSpreadWindows, {v.g()}, v.attributes()); }};
constexpr OpRecord kSpreadWindows = {
    .name = "spread_windows",
    .signature = kMeanWindows.signature,
    .help = "The transpose of mean_windows: each element's share added to all of its window.",
    .infer = [](Call& call, Result* results) { infer_space(call, results, kImage); },
    .estimate = estimate_windows,
    .vjp = [](Vjp& v) { v.give(0, kMeanWindows, {v.g()}, v.attributes()); }};

#define TW_MAX_POOLS(n)                                                                         \
  constexpr OpRecord kMaxPool##n##d =                                                           \
      pool("max_pool" #n "d", kWindowAttributes,                                                \
           TW_MAX_HELP(TW_SHAPE_##n##D) TW_TORCH("max_pool" #n "d"), max_pool_body<n, false>);  \
  constexpr OpRecord kMaxPool##n##dWithIndices =                                                \
      pool("max_pool" #n "d_with_indices", kIndexedWindowAttributes,                            \
           TW_MAX_INDEXED_HELP("max_pool" #n "d") TW_TORCH("max_pool" #n "d_with_indices"),     \
           max_pool_body<n, true>, 2);                                                          \
  constexpr OpRecord kAdaptiveMaxPool##n##d =                                                   \
      pool("adaptive_max_pool" #n "d", kAdaptiveAttributes,                                     \
           TW_ADAPTIVE_HELP("The largest elements", TW_SHAPE_##n##D)                            \
               TW_TORCH("adaptive_max_pool" #n "d"),                                            \
           adaptive_max_pool_body<n, false>);                                                   \
  constexpr OpRecord kAdaptiveMaxPool##n##dWithIndices =                                        \
      pool("adaptive_max_pool" #n "d_with_indices", kIndexedAdaptiveAttributes,                 \
           TW_MAX_INDEXED_HELP("adaptive_max_pool" #n "d")                                      \
               TW_TORCH("adaptive_max_pool" #n "d_with_indices"),                               \
           adaptive_max_pool_body<n, true>, 2);                                                 \
  constexpr OpRecord kAdaptiveAvgPool##n##d =                                                   \
      pool("adaptive_avg_pool" #n "d", kAdaptiveAttributes,                                     \
           TW_ADAPTIVE_HELP("The means", TW_SHAPE_##n##D) TW_TORCH("adaptive_avg_pool" #n "d"), \
           adaptive_avg_pool_body<n>);
TW_MAX_POOLS(1)
TW_MAX_POOLS(2)
TW_MAX_POOLS(3)

#define TW_MAX_UNPOOL(n)                                                                          \
  constexpr OpRecord kMaxUnpool##n##d = pool(                                                     \
      "max_unpool" #n "d",                                                                        \
      "(input: Tensor, indices: Tensor, kernel_size: Shape, stride: Shape | None = None, "        \
      "padding: Shape = 0, output_size: Shape | None = None) -> Tensor",                          \
      "Planes of zeros with the elements of input at the places that max pooling's indices "      \
      "say; of one place's the last stays. output_size, of the pooled axes or of all, is the "    \
      "smallest that the windows fit by default.\nShapes: input and indices " TW_SHAPE_##n##D     \
      "; the result has output_size in place of the axes behind channels; batch may be left "     \
      "out.\nTypes: floating; indices are int64. Result: the same type.\nRaises ValueError for "  \
      "shapes that differ, IndexError for places out of range, TypeError for indices of another " \
      "type." TW_TORCH("max_unpool" #n "d"),                                                      \
      max_unpool_body<n>);
TW_MAX_UNPOOL(1)
TW_MAX_UNPOOL(2)
TW_MAX_UNPOOL(3)
#undef TW_MAX_UNPOOL

constexpr OpRecord kAvgPool1d = pool("avg_pool1d", kMeanWindowAttributes1d,
                                     TW_MEAN_HELP(TW_SHAPE_1D) TW_MEAN_FACTS(1), avg_pool_body<1>);
constexpr OpRecord kAvgPool2d =
    pool("avg_pool2d", kMeanWindowAttributes,
         TW_MEAN_HELP(TW_SHAPE_2D) TW_DIVISOR_HELP TW_MEAN_FACTS(2), avg_pool_body<2>);
constexpr OpRecord kAvgPool3d =
    pool("avg_pool3d", kMeanWindowAttributes,
         TW_MEAN_HELP(TW_SHAPE_3D) TW_DIVISOR_HELP TW_MEAN_FACTS(3), avg_pool_body<3>);

}  // namespace tw
