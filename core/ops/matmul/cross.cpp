// Cross products.
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/copy.h"
#include "core/ops/move/join.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

// Attributes of the op along an axis, counted from the front.
Tensor cross_along(const Tensor& a, const Tensor& b, Attribute axis) {
  return apply(kCrossAlong, {a, b}, AttributeList(1).set(0, axis));
}

void cross_along_body(const Use& use, Tensor* out) {
  const auto axis = static_cast<int>(use.attributes[0]);
  const auto part = [axis](const Tensor& x, int i) {
    std::vector<Range> ranges;
    for (const std::int64_t extent : x.shape()) ranges.push_back({0, 1, extent});
    ranges[static_cast<std::size_t>(axis)] = {i, 1, 1};
    return slice(x, ranges);
  };
  const Tensor &a = use.in[0].tensor, &b = use.in[1].tensor;
  std::vector<Tensor> parts;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    parts.push_back(part(a, j) * part(b, k) - part(a, k) * part(b, j));
  }
  out[0] = concat(parts, axis);
}

void cross_body(const Use& use, Tensor* out) {
  const Tensor &a = use.in[0].tensor, &b = use.in[1].tensor;
  const int at = normalize_axis(use.attributes[0], a.rank(), "cross");
  const int also = normalize_axis(use.attributes[0], b.rank(), "cross");
  if (a.size(at) != 3 || b.size(also) != 3)
    fail(ErrorKind::value, "cross: axis ", use.attributes[0], " must have size 3, got ", a.shape(),
         " and ", b.shape());
  if (a.rank() - at != b.rank() - also)
    fail(ErrorKind::value, "cross: axis ", use.attributes[0], " lies differently in shapes ",
         a.shape(), " and ", b.shape(), "; count it from the end");
  const DType dtype = promote(a.dtype(), b.dtype());
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "cross");
  out[0] = cross_along(broadcast_operand(astype(a, dtype), shape),
                       broadcast_operand(astype(b, dtype), shape), shape.rank() - a.rank() + at);
}

Tensor conjugate(const Tensor& x) { return is_complex(x.dtype()) ? conj(x) : x; }

}  // namespace

constexpr OpRecord kCrossAlong = {
    .name = "cross_along",
    .signature = "(a: Tensor, b: Tensor, axis: int) -> Tensor",
    .help = "Cross products of vectors along an axis.",
    .infer =
        [](Call& call, Result* results) {
          results[0].like = 0;
          results[0].dtype = call.in[0].dtype;
        },
    .estimate =
        [](const Call& call) {
          const auto count = static_cast<double>(call.in[0].count);
          return Estimate{3 * count, 3 * count * static_cast<double>(size_of(call.in[0].dtype))};
        },
    .body = cross_along_body,
    .vjp =
        [](Vjp& v) {
          const Attribute axis = v.attributes()[0];
          if (v.wants(0)) v.give(0, cross_along(conjugate(v.in(1).tensor), v.g(), axis));
          if (v.wants(1)) v.give(1, cross_along(v.g(), conjugate(v.in(0).tensor), axis));
        },
    .reads = {{.inputs = 2}, {.inputs = 1}}};
constexpr OpRecord kCross = {
    .name = "cross",
    .signature = "(x1: Tensor, x2: Tensor, *, axis: int = -1) -> Tensor",
    .help =
        "Cross product of vectors of three numbers along an axis; other axes broadcast.\n"
        "Raises ValueError where the axis does not have size 3.\n"
        "Shapes: x1 and x2 (..., 3, ...), which broadcast; so is the result.\n"
        "Types: integer, floating, complex. Result: the common type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: Array API standard 2024.12, linalg.cross.",
    .flags = kFunction,
    .body = cross_body};

}  // namespace tw
