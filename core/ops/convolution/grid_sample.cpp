// Elements of images at places between them, and the places that affine maps give.
#include <array>
#include <vector>

#include "core/autograd/grad_mode.h"
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

enum Mode { kBilinear, kNearest, kBicubic };
enum Padding { kZeros, kBorder, kReflection };

// ---- places ----

// Places outside fold back at the ends, as often as it takes.
Tensor reflected(const Tensor& at, int64_t size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  const double span = static_cast<double>(align_corners ? size - 1 : size);
  if (span == 0) return at * 0.0;
  const Tensor distance = abs(at - low);
  Tensor turns, odd;
  {
    const GradModeGuard off(false);
    turns = floor(distance / span);
    odd = remainder(turns, 2) == Operand(1);
  }
  const Tensor rest = distance - turns * span;
  return where(odd, span - rest, rest) + low;
}
Tensor padded(const Tensor& at, int64_t size, Padding padding, bool align_corners) {
  if (padding == kZeros) return at;
  const Tensor inside = padding == kReflection ? reflected(at, size, align_corners) : at;
  // As in PyTorch the borders themselves have no slope: a place there is held by the border.
  return hardtanh(inside, 0.0, static_cast<double>(size - 1));
}
// From [-1, 1] to elements; NaN counts as -1.
Tensor in_elements(const Tensor& grid, int64_t size, bool align_corners) {
  const Tensor g = where(isnan(grid), Operand(-1.0), grid);
  const auto n = static_cast<double>(size);
  return align_corners ? (g + 1) * ((n - 1) / 2) : ((g + 1) * n - 1) * 0.5;
}

// ---- a sum over neighbours ----

// One axis of one neighbour: its whole place, and what it counts.
struct Tap {
  Tensor place, weight;
};
using Taps = std::vector<Tap>;

Tensor whole(const Tensor& x, Tensor (*f)(const Operand&)) {
  const GradModeGuard off(false);
  return f(x);
}
Taps linear_taps(const Tensor& at) {
  const Tensor low = whole(at, floor);
  const Tensor rest = at - low;
  return {{low, 1 - rest}, {low + 1, rest}};
}
// Keys' kernel with a = -0.75, as a polynomial of the distance on each side.
Taps cubic_taps(const Tensor& at) {
  constexpr double a = -0.75;
  const Tensor low = whole(at, floor);
  const Tensor t = at - low, s = 1 - t;
  const auto near = [](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {{low - 1, far(t + 1)}, {low, near(t)}, {low + 1, near(s)}, {low + 2, far(s + 1)}};
}

struct Image {
  Tensor x;
  Dims size;
  Shape shape;  // of the result
};

// Where in its plane an element lies, from its places by axis; -1 outside. All are (batch, 1, ...).
Tensor flat_places(const Image& image, const std::vector<const Tensor*>& places) {
  const GradModeGuard off(false);
  Tensor valid, flat;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const int64_t size = image.size[static_cast<int>(i)];
    const Tensor inside = (*places[i] >= Operand(0.0)) & (*places[i] < static_cast<double>(size));
    const Tensor own = astype(where(inside, *places[i], 0), DType::int32);
    valid = valid ? valid & inside : inside;
    flat = flat ? flat * Operand(Scalar(size)) + own : own;
  }
  return where(valid, flat, -1);
}
// Elements at whole places, one tensor an axis; 0 outside.
Tensor elements(const Image& image, const std::vector<const Tensor*>& places) {
  const Tensor flat = broadcast_to(flat_places(image, places), image.shape);
  return apply(kGatherInPlanes, {image.x, flat}, AttributeList(1).set_list(0, image.size));
}

// All combinations of the axes' taps, as rows of weights and of places.
Tensor sum_of_taps(const Image& image, std::vector<Taps> axes, Padding padding, bool align_corners,
                   bool pads_places) {
  for (std::size_t i = 0; pads_places && i < axes.size(); ++i)
    for (Tap& tap : axes[i]) {
      const GradModeGuard off(false);
      tap.place = padded(tap.place, image.size[static_cast<int>(i)], padding, align_corners);
    }
  const Tensor& x = image.x;
  int64_t points = 1, size = 1;
  for (int i = 2; i < x.rank(); ++i) points *= image.shape[i], size *= x.size(i);
  std::vector<Tensor> weights, flats;
  std::vector<std::size_t> at(axes.size(), 0);
  for (bool more = true; more;) {
    std::vector<const Tensor*> places;
    Tensor weight;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const Tap& tap = axes[i][at[i]];
      places.push_back(&tap.place);
      weight = weight ? weight * tap.weight : tap.weight;
    }
    weights.push_back(reshape(weight, {x.size(0), 1, points}));
    flats.push_back(reshape(flat_places(image, places), {x.size(0), 1, points}));
    std::size_t axis = axes.size();
    while (axis > 0 && ++at[axis - 1] == axes[axis - 1].size()) at[--axis] = 0;
    more = axis > 0;
  }
  const Tensor planes = reshape(x, {x.size(0), x.size(1), size});
  const Tensor y = apply(kSumTaps, {planes, concat(weights, 1), concat(flats, 1)},
                         AttributeList(1).set(0, size));
  return reshape(y, image.shape);
}

// ---- grid_sample ----

// Attributes: mode, padding_mode, align_corners.
void check_sample(const Use& use) {
  const Tensor &x = use.in[0].tensor, &grid = use.in[1].tensor;
  const int axes = x.rank() - 2;
  if (!is_floating(x.dtype()) || x.dtype() != grid.dtype())
    fail(ErrorKind::type,
         "grid_sample: input and grid must have the same floating-point type, got ",
         name_of(x.dtype()), " and ", name_of(grid.dtype()));
  if (axes != 2 && axes != 3)
    fail(ErrorKind::value,
         "grid_sample: input must be (batch, channels, height, width) or "
         "(batch, channels, depth, height, width), got ",
         x.shape());
  if (grid.rank() != x.rank() || grid.size(0) != x.size(0) || grid.size(axes + 1) != axes)
    fail(ErrorKind::value, "grid_sample: grid ", grid.shape(), " does not fit input ", x.shape(),
         ": expected the same batch, ", axes, " axes of the result, and ", axes,
         " coordinates last");
  int64_t elements = 1;
  for (int i = 2; i < x.rank(); ++i) {
    if (x.size(i) == 0)
      fail(ErrorKind::value, "grid_sample: input ", x.shape(), " has no elements");
    elements *= x.size(i);
    if (elements >= int64_t{1} << 31)
      fail(ErrorKind::value, "grid_sample: input ", x.shape(),
           " has planes of 2^31 elements or more");
  }
  if (use.attributes[0] == kBicubic && axes != 2)
    fail(ErrorKind::value, "grid_sample: mode 'bicubic' is for inputs of 4 dimensions, got ",
         x.shape());
}

// The coordinate of an axis of the image, which the grid has in the opposite order.
Tensor coordinate(const Tensor& grid, int axis, int axes) {
  std::vector<Range> ranges;
  for (const int64_t extent : grid.shape()) ranges.push_back({0, 1, extent});
  ranges.back() = {axes - 1 - axis, 1, 1};
  const Tensor one = slice(grid, ranges, 1u << (grid.rank() - 1));
  return expand_dims(one, 1);
}

void grid_sample_body(const Use& use, Tensor* out) {
  check_sample(use);
  const DType own = use.in[0].tensor.dtype();
  const DType type = own == DType::float64 ? own : DType::float32;
  const Tensor x = astype(use.in[0].tensor, type), grid = astype(use.in[1].tensor, type);
  const auto mode = static_cast<Mode>(use.attributes[0]);
  const auto padding = static_cast<Padding>(use.attributes[1]);
  const bool align = use.attributes.flag(2);
  const int axes = x.rank() - 2;
  Image image = {x, Dims(axes, 0), x.shape()};
  std::vector<Taps> taps;
  for (int i = 0; i < axes; ++i) {
    image.size[i] = x.size(i + 2);
    image.shape[i + 2] = grid.size(i + 1);
    Tensor at = in_elements(coordinate(grid, i, axes), image.size[i], align);
    if (mode != kBicubic) at = padded(at, image.size[i], padding, align);
    if (mode == kNearest)
      taps.push_back({{whole(at, round), Tensor()}});
    else
      taps.push_back(mode == kBicubic ? cubic_taps(at) : linear_taps(at));
  }
  if (mode == kNearest) {
    std::vector<const Tensor*> places;
    for (const Taps& axis : taps) places.push_back(&axis[0].place);
    out[0] = astype(elements(image, places), own);
    return;
  }
  out[0] = astype(sum_of_taps(image, taps, padding, align, mode == kBicubic), own);
}

// ---- affine_grid ----

// Places of n elements from -1 to 1: their centres, or from end to end.
Tensor places_of(int64_t n, DType dtype, bool align_corners) {
  const Tensor i = arange(0, Scalar(n), 1, dtype);
  if (!align_corners) return (i * 2 + 1) / static_cast<double>(n) - 1;
  return n > 1 ? i * 2 / static_cast<double>(n - 1) - 1 : i;
}

// Attributes: size, align_corners.
void affine_grid_body(const Use& use, Tensor* out) {
  const Tensor& theta = use.in[0].tensor;
  const Dims size = use.attributes.dims(0);
  const int axes = size.rank() - 2;
  if (axes != 2 && axes != 3)
    fail(ErrorKind::value,
         "affine_grid: size must be (batch, channels, height, width) or (batch, "
         "channels, depth, height, width), got ",
         size);
  if (!is_floating(theta.dtype()))
    fail(ErrorKind::type, "affine_grid: theta must be floating-point, got ",
         name_of(theta.dtype()));
  if (theta.rank() != 3 || theta.size(0) != size[0] || theta.size(1) != axes ||
      theta.size(2) != axes + 1)
    fail(ErrorKind::value, "affine_grid: for size ", size, " theta must be ",
         Shape{size[0], axes, axes + 1}, ", got ", theta.shape());
  for (const int64_t each : size)
    if (each < 1) fail(ErrorKind::value, "affine_grid: size ", size, " must be above 0");
  Shape shape;
  for (int i = 0; i < axes; ++i) shape.push_back(size[i + 2]);
  Shape column = shape;
  column.push_back(1);
  std::vector<Tensor> columns;
  for (int i = axes - 1; i >= 0; --i) {
    Shape along(axes + 1, 1);
    along[i] = size[i + 2];
    columns.push_back(broadcast_to(
        reshape(places_of(size[i + 2], theta.dtype(), use.attributes.flag(1)), along), column));
  }
  columns.push_back(broadcast_to(full(Shape(axes + 1, 1), 1, theta.dtype()), column));
  const Tensor base = reshape(concat(columns, -1), {-1, axes + 1});
  Shape result = {size[0]};
  for (const int64_t extent : shape) result.push_back(extent);
  result.push_back(axes);
  out[0] = reshape(matmul(base, swap_axes(theta, 1, 2)), result);
}

}  // namespace

// Three ops of which each makes one of y, x and weights from the two others: sums y of elements x
// at places times weights, and their gradients, which are these again.
#define TW_TAPS "places: Tensor, size: int) -> Tensor"
constexpr OpRecord kSumTaps = {
    .name = "sum_taps",
    .signature = "(x: Tensor, weights: Tensor, " TW_TAPS,
    .help =
        "Sums over k of weights (n, k, points) times the elements of planes x (n, channels, size) "
        "at places (n, k, points); none where that is -1.",
    .infer =
        [](Call& call, Result* results) {
          results[0].shape = {call.in[0].size(0), call.in[0].size(1), call.in[1].size(2)};
          results[0].dtype = call.in[0].dtype;
        },
    .vjp =
        [](Vjp& v) {
          if (v.wants(0)) v.give(0, kSpreadTaps, {v.g(), v.in(1), v.in(2)}, v.attributes());
          if (v.wants(1)) v.give(1, kMultiplyTaps, {v.g(), v.in(0), v.in(2)}, v.attributes());
        },
    .reads = {{.inputs = 6}, {.inputs = 5}}};
constexpr OpRecord kSpreadTaps = {
    .name = "spread_taps",
    .signature = "(y: Tensor, weights: Tensor, " TW_TAPS,
    .help = "Planes of a size with weights times y added up at places.",
    .infer =
        [](Call& call, Result* results) {
          results[0].shape = {call.in[0].size(0), call.in[0].size(1), call.attributes[0]};
          results[0].dtype = call.in[0].dtype;
        },
    .vjp =
        [](Vjp& v) {
          if (v.wants(0)) v.give(0, kSumTaps, {v.g(), v.in(1), v.in(2)}, v.attributes());
          if (v.wants(1)) v.give(1, kMultiplyTaps, {v.in(0), v.g(), v.in(2)}, v.attributes());
        },
    .reads = {{.inputs = 6}, {.inputs = 5}}};
constexpr OpRecord kMultiplyTaps = {
    .name = "multiply_taps",
    .signature = "(y: Tensor, x: Tensor, " TW_TAPS,
    .help = "Sums over the channels of y times the elements of x at places.",
    .infer =
        [](Call& call, Result* results) {
          results[0].like = 2;
          results[0].dtype = call.in[0].dtype;
        },
    .vjp =
        [](Vjp& v) {
          if (v.wants(0)) v.give(0, kSumTaps, {v.in(1), v.g(), v.in(2)}, v.attributes());
          if (v.wants(1)) v.give(1, kSpreadTaps, {v.in(0), v.g(), v.in(2)}, v.attributes());
        },
    .reads = {{.inputs = 6}, {.inputs = 5}}};

constexpr OpRecord kGridSample = {
    .name = "grid_sample",
    .signature =
        "(input: Tensor, grid: Tensor, mode: 'bilinear' | 'nearest' | 'bicubic' = 'bilinear', "
        "padding_mode: 'zeros' | 'border' | 'reflection' = 'zeros', align_corners: bool = False) "
        "-> Tensor",
    .help =
        "Elements of images (batch, channels, height, width) at places grid (batch, rows, columns, "
        "2), or of (batch, channels, depth, height, width) at (batch, layers, rows, columns, 3): x "
        "first, then y, then z.\n"
        "-1 and 1 are the ends of an axis, or with align_corners the centres of its outermost "
        "elements; NaN counts as -1. bicubic is for images of two axes.\n"
        "Shapes: input (batch, channels, height, width), grid (batch, rows, columns, 2); the "
        "result is (batch, channels, rows, columns); with a third axis likewise.\n"
        "Raises ValueError for shapes that do not fit, TypeError for types that differ or are not "
        "floating-point.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.grid_sample.",
    .flags = kFunction,
    .body = grid_sample_body,
    .autocast = Autocast::wide};
constexpr OpRecord kAffineGrid = {
    .name = "affine_grid",
    .signature = "(theta: Tensor, size: Shape, align_corners: bool = False) -> Tensor",
    .help =
        "The grid that grid_sample takes for affine maps theta (batch, 2, 3), or (batch, 3, 4), of "
        "images of a size (batch, channels, ...).\n"
        "Raises ValueError for shapes that do not fit.\n"
        "Shapes: theta (batch, 2, 3) gives (batch, height, width, 2), theta (batch, 3, 4) gives "
        "(batch, depth, height, width, 3).\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.affine_grid; Jaderberg et al., Spatial transformer "
        "networks (2015).",
    .flags = kFunction,
    .body = affine_grid_body};

}  // namespace tw
