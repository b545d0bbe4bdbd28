// Variance and standard deviation: squares of distances from the mean.
#include <algorithm>

#include "core/autograd/op_node.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/arange.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduction_records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

Tensor squared_magnitude(const Tensor& x) {
  return is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : x * x;
}

struct Spread {
  const std::uint32_t axes;
  const double degrees;  // of freedom
  Spread(const Shape& shape, Attributes attributes, const char* op)
      : axes(attributes.axes(0, shape.rank(), op)),
        degrees(std::max(static_cast<double>(count_of(shape, axes)) - attributes.real(1), 0.0)) {}
};

// The type that x counts in: its own, or that which was asked for.
DType spread_dtype(const Tensor& x, Attributes attributes) {
  return attributes.none(3) ? x.dtype() : attributes.dtype(3);
}

// x where it has the type that it counts in, else x in a type that kernels compute in: of 16 bits
// that type would round the terms.
Tensor spread_terms(const Tensor& x, Attributes attributes) {
  const DType dtype = spread_dtype(x, attributes);
  return dtype == x.dtype() ? x : astype(x, working_dtype(dtype));
}

// The mean, of 16-bit types in float32.
Tensor centre_of(const Tensor& x, std::uint32_t axes) {
  return reduced_by(k_mean, x, list_of(axes),
                    AttributeList(3).set(1, true).set(2, attribute_of(working_dtype(x.dtype()))));
}

// The root, with gradient 0 instead of NaN where all elements are equal, as in PyTorch.
Tensor deviation(const Tensor& variance) {
  const Tensor zero = variance == 0;
  return where(zero, 0, sqrt(where(zero, 1, variance)));
}

}  // namespace

constexpr OpRecord kSquaresAbout = {
    .name = "squares_about",
    .signature = "(x: Tensor, centre: Tensor, axis: Axes) -> Tensor",
    .help =
        "Sum of the squares of distances from a centre, which has extent 1 along the axes, in "
        "float64: where a kernel sums them, squares of float32 do not overflow.",
    .infer =
        [](Call& call, Result* results) {
          const Shape& shape = *call.in[0].shape;
          const std::uint32_t axes = call.attributes.axes(0, shape.rank(), call.op->name);
          results[0].dtype = DType::float64;
          results[0].shape = kept_shape(shape, axes, true);
        },
    .estimate = estimate_reduction,
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor &x = use.in[0].tensor, &centre = use.in[1].tensor;
          const std::uint32_t axes = use.attributes.axes(0, x.rank(), use.op.name);
          const Tensor squares = sum(squared_magnitude(x - centre), list_of(axes), true);
          out[0] = astype(squares, DType::float64);
        }};
constexpr OpRecord kVariance = {
    .name = "variance",
    .signature =
        "(x: Tensor, axis: Axes = None, correction: float = 0.0, keepdims: bool = False, "
        "dtype: dtype | None = None) -> Tensor",
    .help = "What var gives, in float64.",
    .body =
        [](const Use& use, Tensor* out) {
          const Tensor& x_in = use.in[0].tensor;
          const Spread spread(x_in.shape(), use.attributes, "var");
          const Tensor x = spread_terms(x_in, use.attributes);
          AttributeList attributes(1);
          attributes.set_list(0, list_of(spread.axes).list);
          const Tensor centre = centre_of(x, spread.axes);
          const Tensor y = apply(kSquaresAbout, {x, centre}, attributes) / spread.degrees;
          const Shape shape = kept_shape(x.shape(), spread.axes, use.attributes.flag(2));
          out[0] = owned(reshape(y, shape));
        },
    .vjp =
        [](Vjp& v) {
          const Tensor x = spread_terms(v.in(0).tensor, v.attributes());
          const DType type = working_dtype(x.dtype());
          const Spread spread(x.shape(), v.attributes(), "var");
          const Shape keepdims = kept_shape(x.shape(), spread.axes, true);
          const Tensor g = reshape(astype(v.g(), part_dtype(type)), keepdims);
          if (modes.grad || is_complex(type)) {  // in steps that are differentiated again
            const Tensor wide = astype(x, type);
            const Tensor centre = mean(wide, list_of(spread.axes), true);
            return v.give(0, g * (2 / spread.degrees) * (wide - centre));
          }
          v.give(0, gradient_of(PointwiseOp::square_distance, 0,
                                broadcast_to(g / spread.degrees, x.shape()),
                                {x, centre_of(x, spread.axes)}));
        },
    .reads = {{.inputs = 1}}};
namespace {

Tensor variance_of(const Tensor& x, Attributes attributes) {
  Tensor y;
  const Operand in[] = {x};
  apply(kVariance, in, 1, attributes, &y);
  return y;
}

// Of x times `scale`, which brings it into the range of its squares where those left it; empty: of
// x. float64 alone has such sums, in which float32's are in range.
struct ScaledVariance {
  Tensor variance, scale;

  ScaledVariance(const Use& use, SafeRange range) {
    const Tensor& given = use.in[0].tensor;
    variance = variance_of(given, use.attributes);
    if (part_dtype(spread_dtype(given, use.attributes)) != DType::float64) return;
    if (!given.count() || !any_outside(variance, range)) return;
    const Tensor x = spread_terms(given, use.attributes);
    const Axes axes = list_of(use.attributes.axes(0, x.rank(), use.op.name));
    const Tensor known = reshape(variance.detached(), kept_shape_of(x, axes));
    const Tensor factor = scale_of(known, range, max(abs(x.detached()), axes, true));
    variance = variance_of(x * factor, use.attributes);
    scale = reshape(factor, variance.shape());
  }

 private:
  static Shape kept_shape_of(const Tensor& x, const Axes& axes) {
    Shape shape = x.shape();
    for (const std::int64_t axis : axes.list) shape[static_cast<int>(axis)] = 1;
    return shape;
  }
};

}  // namespace

constexpr OpRecord kVar = {
    .name = "var",
    .signature =
        "(x: Tensor, axis: Axes = None, correction: float = 0.0, keepdims: bool = False, "
        "dtype: dtype | None = None) -> Tensor",
    .help =
        "Variance; correction is taken off the number of elements.\n"
        "Of complex numbers: of their distances from the mean, a real number.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating, complex. Result: the same type, of complex numbers that of their parts; "
        "dtype where given, which x of any type is turned into first.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const DType dtype = spread_dtype(use.in[0].tensor, use.attributes);
      check_floating(dtype, "var");
      use.attributes.axes(0, use.in[0].tensor.rank(), "var");  // which speaks for itself
      // What is too small for a type is 0 in it.
      const ScaledVariance v(use, {0, range_of_sums(DType::float64).most});
      const Tensor y = v.scale ? v.variance / v.scale / v.scale : v.variance;
      out[0] = astype(y, part_dtype(dtype));
    }};
constexpr OpRecord kStd = {
    .name = "std",
    .signature =
        "(x: Tensor, axis: Axes = None, correction: float = 0.0, keepdims: bool = False, "
        "dtype: dtype | None = None) -> Tensor",
    .help =
        "Standard deviation; correction is taken off the number of elements.\n"
        "Its gradient is 0 where it is 0.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating, complex. Result: the same type, of complex numbers that of their parts; "
        "dtype where given, which x of any type is turned into first.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      const DType dtype = spread_dtype(x, use.attributes);
      check_floating(dtype, "std");
      use.attributes.axes(0, x.rank(), "std");  // which speaks for itself
      const ScaledVariance v(use, range_of_sums(DType::float64));
      const Tensor y = deviation(v.variance);
      out[0] = astype(v.scale ? y / v.scale : y, part_dtype(dtype));
    }};

namespace {

Tensor deviating(const OpRecord& op, const Tensor& x, const Axes& axes, double correction,
                 bool keepdims) {
  return reduced_by(
      op, x, axes,
      AttributeList(4).set(1, attribute_of(correction)).set(2, keepdims).set(3, kNone));
}

}  // namespace

Tensor var(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  return deviating(kVar, x, axes, correction, keepdims);
}
Tensor standard_deviation(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  return deviating(kStd, x, axes, correction, keepdims);
}

}  // namespace tw
