// Complex numbers: parts, conjugates, and the ops that are made of them. Gradients are PyTorch's:
// that of a real loss by z is dL/dRe + i dL/dIm.
#include "core/ops/pointwise/complex.h"

#include <numbers>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

void check_complex(const Tensor& z, const char* op) {
  if (!is_complex(z.dtype()))
    fail(ErrorKind::type, op, ": needs a complex tensor, got ", name_of(z.dtype()));
}

void infer_as_real(Call& call, Result* results) {
  const Meta& z = call.in[0];
  if (!is_complex(z.dtype))
    fail(ErrorKind::type, "view_as_real: needs a complex tensor, got ", name_of(z.dtype));
  Result& y = results[0];
  y.shape = *z.shape;
  y.strides = *z.strides;
  for (int i = 0; i < z.rank(); ++i) y.strides[i] *= 2;
  y.shape.push_back(2);
  y.strides.push_back(1);
  y.dtype = part_dtype(z.dtype);
  y.alias = 0;
}

void infer_as_complex(Call& call, Result* results) {
  const Meta& x = call.in[0];
  if (complex_dtype(x.dtype) == x.dtype)
    fail(ErrorKind::type, "view_as_complex: needs float32 or float64, got ", name_of(x.dtype));
  const int last = x.rank() - 1;
  if (last < 0 || x.size(last) != 2)
    fail(ErrorKind::value, "view_as_complex: the last axis must have extent 2: ", *x.shape);
  Result& y = results[0];
  bool fits = (*x.strides)[last] == 1;
  for (int i = 0; i < last; ++i) {
    const std::int64_t step = (*x.strides)[i];
    fits &= step % 2 == 0 || x.size(i) < 2;
    y.shape.push_back(x.size(i));
    y.strides.push_back(step / 2);
  }
  if (!fits && element_count(y.shape) > 0)
    fail(ErrorKind::value, "view_as_complex: strides ", *x.strides,
         " put the parts of a number apart; use contiguous() first");
  y.dtype = complex_dtype(x.dtype);
  y.alias = 0;
}

Tensor as_real(const Tensor& z) { return apply(kViewAsReal, {z}); }
Tensor as_complex(const Tensor& x) { return apply(kViewAsComplex, {x}); }

Tensor part(const Tensor& z, std::int64_t which) {
  const Tensor pairs = as_real(z);
  std::vector<Range> ranges;
  for (const std::int64_t extent : z.shape()) ranges.push_back({0, 1, extent});
  ranges.push_back({which, 1, 1});
  return slice(pairs, ranges, 1u << z.rank());
}

void check_parts(const Tensor& a, const Tensor& b, const char* op) {
  if (a.dtype() != b.dtype() || complex_dtype(a.dtype()) == a.dtype())
    fail(ErrorKind::type, op, ": needs two tensors of float32 or float64, got ", name_of(a.dtype()),
         " and ", name_of(b.dtype()));
}

}  // namespace

constexpr OpRecord kViewAsReal = {
    .name = "view_as_real",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "The parts of complex numbers in the same memory: a real tensor with one axis more, of\n"
        "extent 2.\n"
        "Shapes: x of any shape; the result is (*x.shape, 2).\n"
        "Types: complex. Result: that of the parts.\n"
        "Source: PyTorch's torch.view_as_real.",
    .flags = kFunction,
    .infer = infer_as_real,
    .vjp = [](Vjp& v) { v.give(0, as_complex(contiguous(v.g()))); }};
constexpr OpRecord kViewAsComplex = {
    .name = "view_as_complex",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "Pairs of numbers along the last axis, of extent 2, as complex numbers in the same "
        "memory.\n"
        "Raises TypeError for other types than float32 and float64, ValueError for other shapes "
        "and\n"
        "for strides that put the parts of a number apart.\n"
        "Shapes: x (..., 2); the result is (...).\n"
        "Types: float32, float64. Result: the complex type of such parts.\n"
        "Source: PyTorch's torch.view_as_complex.",
    .flags = kFunction,
    .infer = infer_as_complex,
    .vjp = [](Vjp& v) { v.give(0, as_real(v.g())); }};
constexpr OpRecord kReal = {
    .name = "real",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "The real part, a view in the same memory; a real tensor itself.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: all. Result: the same type, of complex numbers that of their parts.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      out[0] = is_complex(x.dtype()) ? part(x, 0) : x;
    }};
constexpr OpRecord kImag = {.name = "imag",
                            .signature = "(x: Tensor) -> Tensor",
                            .help =
                                "The imaginary part, a view in the same memory.\n"
                                "Shapes: x of any shape; the result has it.\n"
                                "Types: complex. Result: that of the parts.\n"
                                "Source: Array API standard 2024.12.",
                            .flags = kFunction,
                            .body = [](const Use& use, Tensor* out) {
                              check_complex(use.in[0].tensor, "imag");
                              out[0] = part(use.in[0].tensor, 1);
                            }};
constexpr OpRecord kConj = {.name = "conj",
                            .signature = "(x: Tensor) -> Tensor",
                            .help =
                                "The complex conjugate; a real tensor itself.\n"
                                "Shapes: x of any shape; the result has it.\n"
                                "Types: all. Result: the same type.\n"
                                "Source: Array API standard 2024.12.",
                            .flags = kFunction,
                            .rewrite =
                                [](const Use& use, Tensor* out) {
                                  if (is_complex(use.in[0].tensor.dtype())) return false;
                                  out[0] = use.in[0].tensor;
                                  return true;
                                },
                            .infer =
                                [](Call& call, Result* results) {
                                  results[0].like = 0;
                                  results[0].dtype = call.in[0].dtype;
                                },
                            .vjp = [](Vjp& v) { v.give(0, conj(v.g())); }};
constexpr OpRecord kComplex = {
    .name = "complex",
    .signature = "(real: Tensor, imag: Tensor) -> Tensor",
    .help =
        "Complex numbers of the given parts, two tensors of float32 or float64 that\n"
        "broadcast. Raises TypeError for other types, ValueError for shapes that do not "
        "broadcast.\n"
        "Shapes: real and imag broadcast; the result has their common shape.\n"
        "Types: float32, float64. Result: the complex type of such parts.\n"
        "Source: PyTorch's torch.complex.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &re = use.in[0].tensor, &im = use.in[1].tensor;
      check_parts(re, im, "complex");
      const Shape shape = broadcast_shapes(re.shape(), im.shape(), "complex");
      const Operand parts[] = {broadcast_operand(re, shape), broadcast_operand(im, shape)};
      Tensor pairs;
      apply(kStack, parts, 2, AttributeList(1).set(0, -1), &pairs);
      out[0] = owned(as_complex(pairs));
    }};
constexpr OpRecord kPolar = {
    .name = "polar",
    .signature = "(abs: Tensor, angle: Tensor) -> Tensor",
    .help =
        "Complex numbers of the given magnitudes and angles in radians, two tensors of float32\n"
        "or float64 that broadcast.\n"
        "Shapes: abs and angle broadcast; the result has their common shape.\n"
        "Types: float32, float64. Result: the complex type of such parts.\n"
        "Raises TypeError for other types, ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.polar.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor &size = use.in[0].tensor, &angle = use.in[1].tensor;
      check_parts(size, angle, "polar");
      out[0] = complex(size * cos(angle), size * sin(angle));
    }};
constexpr OpRecord kAngle = {
    .name = "angle",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "The angle of complex numbers in radians, from -pi to pi; of real numbers pi where\n"
        "negative, else 0, and NaN of NaN.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: all. Result: the same type, of complex numbers that of their parts, of integers "
        "and bool the default floating type.\n"
        "Source: PyTorch's torch.angle.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      if (is_complex(x.dtype())) {
        out[0] = atan2(imag(x), real(x));
        return;
      }
      const Tensor wide = astype(x, floating_dtype(x.dtype()), false);
      out[0] = where(wide < 0, Scalar(std::numbers::pi), where(isnan(wide), wide, 0));
    }};

Tensor real(const Tensor& z) { return apply(kReal, {z}); }
Tensor imag(const Tensor& z) { return apply(kImag, {z}); }
Tensor conj(const Tensor& z) { return is_complex(z.dtype()) ? apply(kConj, {z}) : z; }
Tensor complex(const Tensor& re, const Tensor& im) { return apply(kComplex, {re, im}); }
Tensor magnitude(const Tensor& z) { return hypot(real(z), imag(z)); }
Tensor direction(const Tensor& z) {
  const Tensor beyond = isinf(magnitude(z));  // of finite parts: a quarter of them has a magnitude
  const Tensor w = where(beyond, z * 0.25, z);
  const Tensor size = magnitude(w);
  const Tensor zero = size == 0;
  return where(zero, 0, w / where(zero, 1, size));
}

}  // namespace tw
