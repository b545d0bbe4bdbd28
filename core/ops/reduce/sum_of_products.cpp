// Sums of products of two tensors, in one op, and as gradients of products.
#include "core/autograd/op_node.h"
#include "core/base/axis_order.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reduce/reduction_records.h"
#include "core/ops/shape/view.h"
#include "core/runtime/choice.h"

namespace tw {

constexpr OpRecord kSumOfProducts = {
    .name = "sum_of_products",
    .signature = "(x: Tensor, y: Tensor, axis: Axes = None) -> Tensor",
    .help =
        "Sum of x * y over all or some axes of what they broadcast to.\n"
        "Shapes: x and y broadcast; the result lacks the axes.\n"
        "Types: floating. Result: the common type; 16-bit ones are multiplied in float32.\n"
        "Raises TypeError for other types, ValueError for shapes that do not broadcast, IndexError "
        "for an axis out of range.\n"
        "Source: definition.",
    .flags = kFunction,
    .infer =
        [](Call& call, Result* results) {
          const char* const name = call.op->name;
          for (int i = 0; i < 2; ++i) check_floating(call.in[i].dtype, name, false);
          const Shape shape = broadcast_shapes(*call.in[0].shape, *call.in[1].shape, name);
          results[0].dtype = promote(call.in[0].dtype, call.in[1].dtype);
          results[0].shape = kept_shape(shape, call.attributes.axes(0, shape.rank(), name), false);
        },
    .estimate =
        [](const Call& call) {
          Estimate work = estimate_reduction(call);
          work.flops *= 2;
          work.bytes += static_cast<double>(call.in[1].count * size_of(call.in[1].dtype));
          return work;
        },
    .body =
        [](const Use& use, Tensor* out) {
          const DType type = promote(use.in[0].tensor.dtype(), use.in[1].tensor.dtype());
          const Tensor products = astype(use.in[0].tensor, working_dtype(type)) *
                                  astype(use.in[1].tensor, working_dtype(type));
          const std::uint32_t axes = use.attributes.axes(0, products.rank(), use.op.name);
          out[0] = astype(sum(products, list_of(axes), false), type);
        },
    .vjp =
        [](Vjp& v) {
          const Shape shape = broadcast_shapes(v.shape(0), v.shape(1), v.record().name);
          const std::uint32_t axes = v.attributes().axes(0, shape.rank(), v.record().name);
          const Tensor g = reshape(v.g(), kept_shape(shape, axes, true));
          for (const int i : {0, 1})
            if (v.wants(i)) v.give(i, broadcast_operand(g * v.in(1 - i).tensor, shape));
        },
    .reads = {{.inputs = 2}, {.inputs = 1}},
    .shapes = 3};

Tensor sum_of_products(const Tensor& x, const Tensor& y, const Axes& axes) {
  AttributeList attributes(1);
  if (axes.all)
    attributes.set(0, kNone);
  else
    attributes.set_list(0, axes.list);
  return apply(kSumOfProducts, {x, y}, attributes);
}

bool give_sum_of_products(Vjp& v, int input) {
  const Tensor& g = v.g();
  const Shape own = v.own_shape(input), shape = g.shape();
  if (own == shape || g.device() || is_batch_invariant()) return false;
  const Operand given = v.in(1 - input);
  const Tensor& other = given.tensor;
  const bool has_loops = is_floating(g.dtype()) && g.dtype() != DType::float16;
  if (!has_loops || !other || other.dtype() != g.dtype() || !(other.shape() == shape)) return false;
  if (!is_dense(shape, g.strides())) return false;
  Axes axes{std::vector<std::int64_t>()};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (g.strides()[axis] != other.strides()[axis]) return false;
    const int at = axis - (shape.rank() - own.rank());
    if (at < 0 || own[at] == 1) axes.list.push_back(axis);
  }
  v.give(input, reshape(sum_of_products(g, other, axes), own));
  return true;
}

}  // namespace tw
