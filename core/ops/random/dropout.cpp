// Dropout of whole channels, and dropout that keeps mean and variance of what SELU gives.
#include <cmath>

#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/random/draws.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

// Whether anything is to be done. Attributes: p, training, generator.
bool drops(const Use& use) {
  const double p = use.attributes.real(0);
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, use.op.name, ": p = ", p, " is not in [0, 1]");
  const Tensor& x = use.in[0].tensor;
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, use.op.name, ": needs a floating-point input, got ", name_of(x.dtype()));
  return use.attributes.flag(1) && p > 0;
}

// (batch, channels, 1, ...)
Shape of_channels(const Tensor& x) {
  Shape shape(x.rank(), 1);
  for (int i = 0; i < 2; ++i) shape[i] = x.size(i);
  return shape;
}

Tensor without_channels(const Use& use, const Tensor& x) {
  const Shape shape = of_channels(x);
  const DType type = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const Tensor ones = full(shape, 1, type);
  const Tensor key = draw(generator_of(use.attributes, 2), ones.count());
  const Tensor scales = apply(kDropoutBy, {ones, key}, AttributeList(1).set(0, use.attributes[0]));
  return astype(x * scales, x.dtype());
}

template <int axes> void channel_dropout_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  constexpr bool batch_may_lack = axes != 2;  // of two axes of space, PyTorch takes one for a batch
  const int rank = x.rank();
  if (rank != axes + 2 && rank != axes + 1)
    fail(ErrorKind::value, use.op.name, ": input must have ", axes + 1, " or ", axes + 2,
         " dimensions, got ", x.shape());
  out[0] = x;
  if (!drops(use)) return;
  const bool lacks = batch_may_lack && rank == axes + 1;
  const Tensor y = without_channels(use, lacks ? expand_dims(x, 0) : x);
  out[0] = lacks ? reshape(y, x.shape()) : y;
}

// Where an element is dropped, it is what SELU gives for large negative numbers; then all is scaled
// and shifted back.
Tensor with_saturated(const Use& use, const Shape& mask) {
  constexpr double alpha = 1.7580993408473766;
  const Tensor& x = use.in[0].tensor;
  const double p = use.attributes.real(0);
  if (p == 1) return x * 0.0;
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p)), b = alpha * a * p;
  const Tensor kept = less(unit_uniform(generator_of(use.attributes, 2), mask, false), 1 - p);
  return where(kept, x * a + b, b - alpha * a);
}
void alpha_dropout_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  out[0] = drops(use) ? with_saturated(use, x.shape()) : x;
}
void feature_alpha_dropout_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  if (x.rank() < 2)
    fail(ErrorKind::value, "feature_alpha_dropout: input must be (batch, channels, ...), got ",
         x.shape());
  out[0] = drops(use) ? with_saturated(use, of_channels(x)) : x;
}

#define TW_DROPOUT(training)                                   \
  "(input: Tensor, p: float = 0.5, training: bool = " training \
  ", inplace: in_place = False, generator: Generator | None = None) -> Tensor"
#define TW_FACTS(shapes, name)                                                          \
  "\nShapes: " shapes                                                                   \
  "; the result has input's shape.\nTypes: floating. Result: the same "                 \
  "type.\nRaises ValueError for other shapes and p outside [0, 1].\nSource: PyTorch's " \
  "torch.nn.functional." name "."

constexpr OpRecord dropout(const char* name, const char* signature, const char* help,
                           void (*body)(const Use&, Tensor*)) {
  return {.name = name, .signature = signature, .help = help, .flags = kFunction, .body = body};
}

}  // namespace

constexpr OpRecord kDropout1d =
    dropout("dropout1d", TW_DROPOUT("True"),
            "Zeroes whole channels of (batch, channels, length), or without a batch, with "
            "probability p and scales the rest by 1 / (1 - p), while training (Tompson et al., "
            "2015)." TW_FACTS("input (batch, channels, length) or (channels, length)", "dropout1d"),
            channel_dropout_body<1>);
constexpr OpRecord kDropout2d =
    dropout("dropout2d", TW_DROPOUT("True"),
            "Zeroes whole channels of (batch, channels, height, width), or of (batch, channels, "
            "length) as in PyTorch, with probability p and scales the rest by 1 / (1 - p), while "
            "training (Tompson et al., 2015)." TW_FACTS(
                "input (batch, channels, height, width) or (batch, channels, length)", "dropout2d"),
            channel_dropout_body<2>);
constexpr OpRecord kDropout3d =
    dropout("dropout3d", TW_DROPOUT("True"),
            "Zeroes whole channels of (batch, channels, depth, height, width), or without a batch, "
            "with probability p and scales the rest by 1 / (1 - p), while training (Tompson et "
            "al., 2015)." TW_FACTS(
                "input (batch, channels, depth, height, width) or (channels, depth, height, width)",
                "dropout3d"),
            channel_dropout_body<3>);
constexpr OpRecord kAlphaDropout =
    dropout("alpha_dropout", TW_DROPOUT("False"),
            "Sets elements with probability p to SELU's value far below 0 and shifts and scales "
            "all of them, so that mean 0 and variance 1 stay, while training (Klambauer et al., "
            "2017).\nShapes: input of any shape; the result has it.\nTypes: floating. Result: the "
            "same type.\nRaises ValueError for p outside [0, 1].\nSource: PyTorch's "
            "torch.nn.functional.alpha_dropout.",
            alpha_dropout_body);
constexpr OpRecord kFeatureAlphaDropout =
    dropout("feature_alpha_dropout", TW_DROPOUT("False"),
            "alpha_dropout of whole channels of (batch, channels, ...)." TW_FACTS(
                "input (batch, channels, ...)", "feature_alpha_dropout"),
            feature_alpha_dropout_body);

}  // namespace tw
