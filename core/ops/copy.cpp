// Copies, conversions and whole-tensor writes.
#include "core/ops/copy.h"

#include "core/autograd/backward.h"
#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/cpu/reduce.h"
#include "core/ops/create.h"
#include "core/ops/in_place.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

void copy_elements(const char* op, const Tensor& x, const Strides& x_strides, const Tensor& y) {
  const double count = static_cast<double>(y.count());
  const double bytes = count * static_cast<double>(x.item_bytes() + y.item_bytes());
  Access at;
  const char* const from = at(x);
  char* const to = at(y);
  dispatch(
      0, bytes,
      [&] { copy_strided(x.dtype(), y.dtype(), y.shape(), from, x_strides, to, y.strides()); },
      [&](Observation& seen) {
        seen.op = op;
        seen.kernel = "copy";
        seen.isa = name_of(active_isa());
        seen.problem = std::string(name_of(x.dtype())) + " to " + name_of(y.dtype()) + " " +
                       to_string(y.shape());
      });
}

Tensor converted(const char* op, const Tensor& x, DType dtype) {
  Access at;
  at(x);  // stays while memory for the result is found
  Tensor y = Tensor::empty(x.shape(), dtype);
  copy_elements(op, x, x.strides(), y);
  return y;
}

}  // namespace

Tensor copy(const Tensor& x) {
  Tensor y = converted("copy", x, x.dtype());
  if (should_record(x)) record(y, "copy", [](Node&, const Tensor& g, Tensor* dx) { dx[0] = g; }, x);
  return y;
}

Tensor with_truth_values(const Tensor& x) {
  std::uint8_t largest = 0;
  const Pinned pinned(x->storage);
  if (x.count() > 0)
    reduce({ReduceOp::max,
            x.dtype(),
            x.dtype(),
            {},
            {},
            x.shape(),
            x.strides(),
            x.pinned_bytes(),
            &largest});
  if (largest <= 1) return x;
  Tensor y = Tensor::empty(x.shape(), DType::bool_);
  const Pinned result(y->storage);
  copy_strided(DType::uint8, DType::bool_, x.shape(), x.pinned_bytes(), x.strides(),
               y.pinned_bytes(), y.strides());
  return y;
}

Tensor contiguous(const Tensor& x) { return x.contiguous() ? x : copy(x); }

Tensor with_lines(const Tensor& x) {
  const auto is_line = [&x](int axis) {
    const std::int64_t stride = x.strides()[axis];
    return stride == 1 || stride == 0 || x.size(axis) == 1;
  };
  return is_line(x.rank() - 1) || is_line(x.rank() - 2) ? x : copy(x);
}

Tensor astype(const Tensor& x, DType dtype, bool always_copy) {
  if (x.dtype() == dtype) return always_copy ? copy(x) : x;
  if (is_complex(x.dtype()) && !is_bool(dtype))
    fail(ErrorKind::type, "astype: complex64 to ", name_of(dtype),
         " would drop the imaginary part; x.numpy().real keeps one of the two");
  Tensor y = converted("astype", x, dtype);
  if (should_record(x) && is_floating(dtype))
    record(
        y, "astype",
        [from = x.dtype()](Node&, const Tensor& g, Tensor* dx) { dx[0] = astype(g, from); }, x);
  return y;
}

void assign(Tensor& into, const Operand& value) {
  const InPlaceChange change("assign", into, value.tensor);
  Tensor x = value.is_tensor() ? value.tensor : full(Shape(), value.scalar, into.dtype());
  if (is_complex(x.dtype()) && !is_complex(into.dtype()))
    fail(ErrorKind::type, "assign: complex64 into ", name_of(into.dtype()));
  while (x.rank() > into.rank() && x.size(0) == 1) x = squeeze(x, {0});
  if (x.rank() > into.rank() ||
      !(broadcast_shapes(x.shape(), into.shape(), "assign") == into.shape()))
    fail(ErrorKind::value, "assign: shape ", x.shape(), " does not broadcast into ", into.shape());
  if (change.changes_nothing(x)) return;
  x = change.before(x);
  const Tensor source = broadcast_operand(x, into.shape());
  change.begin();
  copy_elements("assign", source, source.strides(), into);
  if (!change.recorded()) return;
  // The old values are gone: their gradient is zero.
  change.join_graph(into, [&](const Tensor& y) {
    record(
        y, "assign",
        [dtype = x.dtype(), shape = x.shape()](Node& node, const Tensor& g, Tensor* dx) {
          if (node.wants(0)) dx[0] = zeros(g.shape(), g.dtype());
          if (node.wants(1)) dx[1] = astype(sum_to(g, shape), dtype);
        },
        into, x);
  });
}

namespace {

Tensor ones_like(const Tensor& x) { return full(x.shape(), 1, x.dtype()); }
Tensor add_tensors(const Tensor& a, const Tensor& b) { return add(a, b); }
void add_in_place(const Tensor& into, const Tensor& x) {
  Operand operands[] = {into, x};
  pointwise_in_place(PointwiseOp::add, operands);
}

[[maybe_unused]] const bool registered = [] {
  set_gradient_arithmetic({add_tensors, add_in_place, copy, ones_like, sum_to,
                           [](const Tensor& x, DType dtype) { return astype(x, dtype); }});
  return true;
}();

}  // namespace

}  // namespace tw
