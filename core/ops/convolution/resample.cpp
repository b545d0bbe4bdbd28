// Images of another size.
#include <array>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/convolution/windows.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/move/index.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"
#include "core/problems/attribute_values.h"

namespace tw {
namespace {

using std::int64_t;

// Attributes of resample_axes.
enum AxesAttribute {
  kImage,
  kSize,
  kMethod,
  kAlign,
  kAntialias,
  kScale,
  kTransposed = kScale + 3,
  kAxesAttributes
};
using Method = ResampleMethod;

// Of the signature of resample.
enum Mode { kModeNearest, kModeExact, kModeLinear, kModeBilinear, kModeTrilinear, kModeBicubic };
constexpr const char* kModes[] = {"nearest",  "nearest-exact", "linear",
                                  "bilinear", "trilinear",     "bicubic"};
constexpr int kAxesOfMode[] = {0, 0, 1, 2, 3, 2};
constexpr Method kMethodOfMode[] = {Method::nearest, Method::nearest_exact, Method::linear,
                                    Method::linear,  Method::linear,        Method::cubic};

struct Wanted {
  Dims size;
  std::array<double, 3> scale;
  Method method;
  bool align_corners, antialias;
};

Tensor resampled(const Tensor& x, const Dims& size, int first, const Wanted& wanted) {
  Dims image(size.rank(), 0);
  for (int i = 0; i < size.rank(); ++i) image[i] = x.size(x.rank() - size.rank() + i);
  AttributeList attributes(kAxesAttributes);
  attributes.set(kMethod, static_cast<Attribute>(wanted.method)).set(kAlign, wanted.align_corners);
  attributes.set(kAntialias, wanted.antialias).set(kTransposed, 0);
  for (int i = 0; i < 3; ++i) {
    const int at = first + i;
    attributes.set(kScale + i,
                   attribute_of(at < 3 ? wanted.scale[static_cast<std::size_t>(at)] : 0.0));
  }
  return apply(kResampleAxes, {x}, attributes.set_list(kImage, image).set_list(kSize, size));
}

// Elements of any type, by where the method finds them.
Tensor picked(Tensor x, const Wanted& wanted) {
  const int axes = wanted.size.rank();
  for (int i = 0; i < axes; ++i) {
    const int axis = x.rank() - axes + i;
    const Tensor places = arange(0, Scalar(x.size(axis)), 1, DType::float64);
    std::vector<IndexItem> items(static_cast<std::size_t>(axis), {.kind = IndexItem::Kind::slice});
    items.push_back(
        {.kind = IndexItem::Kind::tensor,
         .tensor = astype(resampled(places, Dims{wanted.size[i]}, i, wanted), DType::int64)});
    x = index(x, items);
  }
  return x;
}

// Attributes: size, mode, align_corners, antialias, three scales.
void resample_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const List given = use.attributes.list(0);
  const auto mode = static_cast<int>(use.attributes[1]);
  const int axes = given.count, wanted_axes = kAxesOfMode[mode];
  if (axes < 1 || axes > 3 || x.rank() != axes + 2)
    fail(ErrorKind::value, "resample: input ", x.shape(), " with ", axes,
         axes == 1 ? " size" : " sizes",
         " of the result: expected (batch, channels, ...) and a size for each of the 1 to 3 axes "
         "behind them");
  if (wanted_axes && axes != wanted_axes)
    fail(ErrorKind::value, "resample: mode '", kModes[mode], "' is for inputs of ", wanted_axes + 2,
         " dimensions, got ", x.shape());
  Wanted wanted = {per_axis(use, 0, "size", axes, 1, 1),
                   {},
                   kMethodOfMode[mode],
                   use.attributes.flag(2),
                   use.attributes.flag(3)};
  for (int i = 0; i < 3; ++i)
    wanted.scale[static_cast<std::size_t>(i)] = use.attributes.real(4 + i);
  for (int i = 2; i < x.rank(); ++i)
    if (x.size(i) < 1 || x.size(i) >= int64_t{1} << 31)
      fail(ErrorKind::value, "resample: input ", x.shape(), " has an axis of size ", x.size(i));
  if (is_floating(x.dtype())) {
    out[0] = resampled(x, wanted.size, 0, wanted);
  } else if (wanted.method < Method::linear) {
    out[0] = picked(x, wanted);
  } else {
    fail(ErrorKind::type, "resample: mode '", kModes[mode], "' is for floating point, got ",
         name_of(x.dtype()), "; convert with astype");
  }
}

}  // namespace

constexpr OpRecord kResampleAxes = {
    .name = "resample_axes",
    .signature =
        "(input: Tensor, image: Shape, size: Shape, method: int, align_corners: bool, antialias: "
        "bool, scale0: float, scale1: float, scale2: float, transposed: bool) -> Tensor",
    .help =
        "Images of size image as images of another size, each axis by a band matrix; or the "
        "transpose of that.",
    .infer =
        [](Call& call, Result* results) {
          const Meta& x = call.in[0];
          const List space =
              call.attributes.list(call.attributes.flag(kTransposed) ? kImage : kSize);
          for (int i = 0; i < x.rank() - space.count; ++i) results[0].shape.push_back(x.size(i));
          for (const Attribute size : space) results[0].shape.push_back(size);
          results[0].dtype = x.dtype;
        },
    .vjp =
        [](Vjp& v) {
          AttributeList attributes(v.attributes().at, v.attributes().count);
          v.give(0, kResampleAxes, {v.g()},
                 attributes.set(kTransposed, !v.attributes().flag(kTransposed)));
        }};

constexpr OpRecord kResample = {
    .name = "resample",
    .signature =
        "(input: Tensor, size: Shape, mode: 'nearest' | 'nearest-exact' | 'linear' | 'bilinear' | "
        "'trilinear' | 'bicubic' = 'nearest', align_corners: bool = False, antialias: bool = "
        "False, scale0: float = 0.0, scale1: float = 0.0, scale2: float = 0.0) -> Tensor",
    .help =
        "Images (batch, channels, ...) with another size of the 1 to 3 axes behind the channels: "
        "what interpolate stands on.\n"
        "A scale is the distance of two elements of the result in those of the input; 0: as the "
        "sizes say.\n"
        "Shapes: input (batch, channels, ...); the result is (batch, channels, *size).\n"
        "Types: all; modes other than the nearest are for floating. Result: the same type.\n"
        "Raises ValueError for sizes that do not fit, TypeError for a mode that is not for the "
        "type.\n"
        "Source: PyTorch's torch.nn.functional.interpolate.",
    .flags = kFunction,
    .body = resample_body};

}  // namespace tw
