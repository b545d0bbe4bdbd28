// Unfold and fold: the windows that a convolution reads as columns of a matrix, and their sum back.
// Each is the other's gradient.
#include "core/autograd/op_node.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/convolution/windows.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

// Attributes of both: kernel, stride, dilation, padding, sizes of the image.
enum WindowAttribute { kKernel, kStride, kDilation, kPadding, kImage, kWindowAttributes };

int64_t places_of(const char* op, Attributes attributes) {
  Checked places(op, 1);
  for (int i = 0; i < 2; ++i) {
    const int64_t reach = attributes.list(kDilation)[i] * (attributes.list(kKernel)[i] - 1) + 1;
    const int64_t padded = attributes.list(kImage)[i] + 2 * attributes.list(kPadding)[i];
    places = places * ((padded - reach) / attributes.list(kStride)[i] + 1);
  }
  return places.get();
}
int64_t taps_of(Attributes attributes) {
  return attributes.list(kKernel)[0] * attributes.list(kKernel)[1];
}

void infer_columns(Call& call, Result* results) {
  const Meta& x = call.in[0];
  const Checked rows = Checked("unfold", x.size(1)) * taps_of(call.attributes);
  results[0].shape = {x.size(0), rows.get(), places_of("unfold", call.attributes)};
  results[0].dtype = x.dtype;
}
void infer_image(Call& call, Result* results) {
  const Meta& x = call.in[0];
  const List image = call.attributes.list(kImage);
  results[0].shape = {x.size(0), x.size(1) / taps_of(call.attributes), image[0], image[1]};
  results[0].dtype = x.dtype;
}

// The geometry of a call whose attributes behind `first` are kernel_size, dilation, padding,
// stride. Raises ValueError where no window fits the image.
AttributeList geometry(const Use& use, int first, const Dims& image) {
  constexpr int axes = 2;
  const Dims kernel = per_axis(use, first, "kernel_size", axes, 1, 1);
  const Dims dilation = per_axis(use, first + 1, "dilation", axes, 1, 1);
  const Dims padding = per_axis(use, first + 2, "padding", axes, 0, 0);
  const Dims stride = per_axis(use, first + 3, "stride", axes, 1, 1);
  Dims reach(axes, 0), padded(axes, 0);
  for (int i = 0; i < axes; ++i) {
    reach[i] = dilation[i] * (kernel[i] - 1) + 1;
    padded[i] = image[i] + 2 * padding[i];
  }
  if (reach[0] > padded[0] || reach[1] > padded[1])
    fail(ErrorKind::value, use.op.name, ": windows of ", reach,
         " are larger than the padded image ", padded);
  AttributeList attributes(kWindowAttributes);
  attributes.set_list(kKernel, kernel).set_list(kStride, stride).set_list(kDilation, dilation);
  return attributes.set_list(kPadding, padding).set_list(kImage, image);
}

Tensor with_batch(const Use& use, int rank, const char* expected) {
  const Tensor& x = use.in[0].tensor;
  if (x.rank() != rank && x.rank() != rank - 1)
    fail(ErrorKind::value, use.op.name, ": input must be ", expected, ", or without a batch, got ",
         x.shape());
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, use.op.name, ": floating point only, got ", name_of(x.dtype()));
  return x.rank() == rank ? x : expand_dims(x, 0);
}

void unfold_body(const Use& use, Tensor* out) {
  const Tensor x = with_batch(use, 4, "(batch, channels, height, width)");
  const Tensor y = apply(kWindowsToColumns, {x}, geometry(use, 0, {x.size(2), x.size(3)}));
  out[0] = use.in[0].tensor.rank() == 4 ? y : owned(squeeze(y, {0}));
}

// The first attribute: output_size.
void fold_body(const Use& use, Tensor* out) {
  const Tensor x = with_batch(use, 3, "(batch, channels * kernel elements, windows)");
  const Dims image = per_axis(use, 0, "output_size", 2, 1, 0);
  const AttributeList attributes = geometry(use, 1, image);
  const int64_t taps = taps_of(attributes), places = places_of(use.op.name, attributes);
  if (x.size(1) % taps != 0)
    fail(ErrorKind::value, use.op.name, ": the kernel's ", taps, " elements do not divide the ",
         x.size(1), " rows of input ", use.in[0].tensor.shape());
  if (x.size(2) != places)
    fail(ErrorKind::value, use.op.name, ": output_size ", image, " has ", places,
         " windows, but input ", use.in[0].tensor.shape(), " has ", x.size(2));
  const Tensor y = apply(kColumnsToWindows, {x}, attributes);
  out[0] = use.in[0].tensor.rank() == 3 ? y : owned(squeeze(y, {0}));
}

}  // namespace

constexpr OpRecord kWindowsToColumns = {
    .name = "windows_to_columns",
    .signature =
        "(input: Tensor, kernel: Shape, stride: Shape, dilation: Shape, padding: Shape, image: "
        "Shape) -> Tensor",
    .help = "The windows of images (batch, channels, height, width) as columns.",
    .infer = infer_columns,
    .vjp = [](Vjp& v) { v.give(0, kColumnsToWindows, {v.g()}, v.attributes()); }};
constexpr OpRecord kColumnsToWindows = {
    .name = "columns_to_windows",
    .signature =
        "(input: Tensor, kernel: Shape, stride: Shape, dilation: Shape, padding: Shape, image: "
        "Shape) -> Tensor",
    .help = "Images as sums of the windows that are columns.",
    .infer = infer_image,
    .vjp = [](Vjp& v) { v.give(0, kWindowsToColumns, {v.g()}, v.attributes()); }};

constexpr OpRecord kUnfold = {
    .name = "unfold",
    .signature =
        "(input: Tensor, kernel_size: Shape, dilation: Shape = 1, padding: Shape = 0, "
        "stride: Shape = 1) -> Tensor",
    .help =
        "The windows that a convolution of input (batch, channels, height, width) reads, as "
        "columns: (batch, channels * kernel elements, windows). Without a batch, so is the result. "
        "Raises ValueError where no window fits.\n"
        "Shapes: input (batch, channels, height, width); the result is (batch, channels * kernel "
        "elements, windows); batch may be left out.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.unfold.",
    .flags = kFunction,
    .body = unfold_body};
constexpr OpRecord kFold = {
    .name = "fold",
    .signature =
        "(input: Tensor, output_size: Shape, kernel_size: Shape, dilation: Shape = 1, "
        "padding: Shape = 0, stride: Shape = 1) -> Tensor",
    .help =
        "Images (batch, channels, *output_size) as the sum of windows that are columns, as unfold "
        "gives them: what windows share is added up. Raises ValueError for sizes that do not fit.\n"
        "Shapes: input (batch, channels * kernel elements, windows); the result is (batch, "
        "channels, *output_size); batch may be left out.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.nn.functional.fold.",
    .flags = kFunction,
    .body = fold_body};

}  // namespace tw
