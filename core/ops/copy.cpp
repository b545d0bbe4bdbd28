// Copies, conversions and whole-tensor writes.
#include "core/ops/copy.h"

#include "core/autograd/backward.h"
#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/ops/create.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"
#include "core/ops/reduce.h"
#include "core/runtime/profile.h"

namespace tw {

namespace {

void copy_elements(const char* op, const Tensor& x, const Strides& x_strides, const Tensor& y) {
  const double count = static_cast<double>(y.count());
  const double bytes = count * static_cast<double>(x.item_bytes() + y.item_bytes());
  dispatch(
      0, bytes,
      [&] {
        copy_strided(x.dtype(), y.dtype(), y.shape(), x.bytes(), x_strides, y.bytes(), y.strides());
      },
      [&](Observation& seen) {
        seen.op = op;
        seen.kernel = "copy";
        seen.isa = name_of(active_isa());
        seen.problem = std::string(name_of(x.dtype())) + " to " + name_of(y.dtype()) + " " +
                       to_string(y.shape());
      });
}

Tensor converted(const char* op, const Tensor& x, DType dtype) {
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
         " would drop the imaginary part; take real(x) or imag(x)");
  Tensor y = converted("astype", x, dtype);
  if (should_record(x) && is_floating(dtype))
    record(
        y, "astype",
        [from = x.dtype()](Node&, const Tensor& g, Tensor* dx) { dx[0] = astype(g, from); }, x);
  return y;
}

void check_recorded_change(const Tensor& x, const char* op) {
  if (x.requires_grad() && x.is_leaf())
    fail(ErrorKind::runtime, op, ": in-place change of ", describe(x),
         ", a leaf that requires grad; do it under no_grad() or on a copy()");
  if (x->is_view)
    fail(ErrorKind::runtime, op, ": recorded in-place change of a view ", describe(x),
         "; write through the tensor it was taken from instead: base[index] = value");
}

void check_unrecorded_change(const Tensor& x, const char* op) {
  if (grad_mode && x->is_view && x->recorded_seen != kUntracked && x->storage->in_graph)
    fail(ErrorKind::runtime, op, ": in-place change of ", describe(x),
         ", a view of a tensor in the graph; write through that tensor: base[index] = value, or "
         "under no_grad()");
}

Tensor moved_header(const Tensor& x) {
  ++x->storage->recorded_changes;
  Tensor y = Tensor::over(x->storage, x->offset_bytes, x.shape(), x.strides(), x.dtype());
  y->extras = std::move(x->extras);
  return y;
}

void assign(Tensor& into, const Operand& value) {
  const bool recorded = should_record(into) || should_record(value.tensor);
  recorded ? check_recorded_change(into, "assign") : check_unrecorded_change(into, "assign");
  Tensor x = value.is_tensor() ? value.tensor : full(Shape(), value.scalar, into.dtype());
  if (is_complex(x.dtype()) && !is_complex(into.dtype()))
    fail(ErrorKind::type, "assign: complex64 into ", name_of(into.dtype()));
  while (x.rank() > into.rank() && x.size(0) == 1) x = squeeze(x, {0});
  if (x.rank() > into.rank() ||
      !(broadcast_shapes(x.shape(), into.shape(), "assign") == into.shape()))
    fail(ErrorKind::value, "assign: shape ", x.shape(), " does not broadcast into ", into.shape());
  if (x->storage == into->storage) x = copy(x);
  const Tensor source = broadcast_to(x, into.shape());
  into.touch("assign");
  copy_elements("assign", source, source.strides(), into);
  if (!recorded) return;
  // The old values are gone: their gradient is zero.
  Tensor y = moved_header(into);
  record(
      y, "assign",
      [dtype = x.dtype(), shape = x.shape()](Node& node, const Tensor& g, Tensor* dx) {
        if (node.wants(0)) dx[0] = zeros(g.shape(), g.dtype());
        if (node.wants(1)) dx[1] = astype(sum_to(g, shape), dtype);
      },
      into, x);
  into = y;
}

namespace {

Tensor ones_like(const Tensor& x) { return full(x.shape(), 1, x.dtype()); }
Tensor add_tensors(const Tensor& a, const Tensor& b) { return add(a, b); }
void add_in_place(const Tensor& into, const Tensor& x) {
  Operand operands[] = {into, x};
  pointwise_in_place(PointwiseOp::add, operands);
}

[[maybe_unused]] const bool registered = [] {
  set_gradient_arithmetic({add_tensors, add_in_place, copy, ones_like});
  return true;
}();

}  // namespace

}  // namespace tw
