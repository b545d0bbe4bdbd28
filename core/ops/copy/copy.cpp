// Copies, conversions and whole-tensor writes.
#include "core/ops/copy/copy.h"

#include "core/autograd/backward.h"
#include "core/autograd/capture.h"
#include "core/autograd/op_node.h"
#include "core/base/axis_order.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/copy/create.h"
#include "core/ops/copy/in_place.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"
#include "core/runtime/device.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

// Attributes of astype: the type, whether to copy where x has it, and a device, which frontends see
// to.
bool has_type(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  if (x.dtype() != use.attributes.dtype(0)) return false;
  out[0] = use.attributes.flag(1) ? copy(x) : x;
  return true;
}

void infer_copy(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}

void infer_astype(Call& call, Result* results) {
  const DType from = call.in[0].dtype, to = call.attributes.dtype(0);
  if (is_complex(from) && !is_bool(to) && !is_complex(to))
    fail(ErrorKind::type, "astype: ", name_of(from), " to ", name_of(to),
         " would drop the imaginary part; real(x) and imag(x) are the two");
  results[0].like = 0;
  const Meta& x = call.in[0];
  if (!x.contiguous) results[0].strides = dense_along(*x.shape, *x.strides);
  results[0].dtype = to;
}

// The target is the result.
void infer_assign(Call& call, Result* results) {
  call.type = call.in[0].dtype;
  results[0].like = 0;
  results[0].dtype = call.type;
}

Estimate estimate(const Call& call) {
  const Meta &x = call.in[call.inputs - 1], &y = call.out[0];
  return {0,
          static_cast<double>(y.count) * static_cast<double>(size_of(x.dtype) + size_of(y.dtype))};
}

// Where the memory comes from that a copy to a device fills.
BlockSource* source_for_copy(const Device* from, const Device* to, bool waits) {
  if (!to && from && from->pinned && !waits) return from->pinned;
  if (!from && to && to->arrivals && !(modes.source && modes.source->serving(to)))
    return to->arrivals;
  return modes.source;
}

// Between row-major tensors.
void move(const Tensor& x, const Tensor& y, bool waits) {
  if (modes.dry_run) return;
  const Device *const from = x.device(), *const to = y.device();
  const Device& mover = from ? *from : to ? *to : cpu_device;
  const auto bytes = static_cast<std::size_t>(x.count()) * x.item_bytes();
  Access at;
  void* const source = at(x);
  void* const target = at(y);
  if (mover.move)
    mover.move(mover, {target, y->storage->block, to}, {source, x->storage->block, from}, bytes,
               waits);
  else
    mover.copy(mover, target, source, bytes);
}

}  // namespace

constexpr OpRecord kCopy = {
    .name = "copy",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "The same values in fresh row-major memory.\nShapes: any; the result has it.\nTypes: all. "
        "Result: the same type.\nSource: PyTorch's torch.clone.",
    .flags = kMethod,
    .infer = infer_copy,
    .estimate = estimate,
    .vjp = [](Vjp& v) { v.give(0, v.g()); }};
constexpr OpRecord kContiguous = {
    .name = "contiguous",
    .signature = "(x: Tensor) -> Tensor",
    .help = "Itself where row-major, else a copy.",
    .flags = kMethod,
    .body = [](const Use& use, Tensor* out) { out[0] = contiguous(use.in[0].tensor); }};
constexpr OpRecord kAstype = {
    .name = "astype",
    .signature =
        "(x: Tensor, dtype: dtype, *, copy: bool = True, device: Device | None = None) -> Tensor",
    .help =
        "x converted to another dtype, and on another device where one is named.\n"
        "With copy=False, x itself where it has the dtype. Raises TypeError for complex to real.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: all. Result: dtype.\n"
        "Source: Array API standard 2024.12.",
    .flags = kFunction,
    .rewrite = has_type,
    .infer = infer_astype,
    .estimate = estimate,
    .vjp = [](Vjp& v) { v.give(0, v.g()); }};
// The old values are gone: their gradient is zero.
constexpr OpRecord kAssign = {
    .name = "assign",
    .signature = "(target: Tensor, value: Operand) -> Tensor",
    .help = "Writes a value, broadcast and converted, over what a tensor holds.",
    .infer = infer_assign,
    .estimate = estimate,
    .vjp =
        [](Vjp& v) {
          if (v.wants(0)) v.give(0, zeros(v.g().shape(), v.g().dtype()));
          if (v.wants(1)) v.give(1, v.g());
        },
    .shapes = 2};

constexpr OpRecord kToDevice = {
    .name = "to_device",
    .signature =
        "(x: Tensor, device: Device, source: Device, non_blocking: bool = False) -> Tensor",
    .help = "A copy on another device.",
    .body =
        [](const Use& use, Tensor* out) {
          refuse_in_capture("a tensor moves to another device");
          const Tensor x = contiguous(use.in[0].tensor);
          const Device* to = device_of_attribute(use.attributes[0]);
          const bool waits = !use.attributes.flag(2);
          const DeviceGuard guard(to);
          const BlockSourceGuard source(source_for_copy(x.device(), to, waits));
          out[0] = Tensor::empty(x.shape(), x.dtype());
          move(x, out[0], waits);
        },
    .vjp = [](Vjp& v) { v.give(0, to_device(v.g(), device_of_attribute(v.attributes()[1]))); }};

Tensor to_device(const Tensor& x, const Device* device, bool non_blocking) {
  if (x.device() == device) return x;
  return apply(kToDevice, {x},
               AttributeList(3)
                   .set(0, attribute_of(device))
                   .set(1, attribute_of(x.device()))
                   .set(2, non_blocking));
}

Tensor copy(const Tensor& x) { return apply(kCopy, {x}); }

Tensor contiguous(const Tensor& x) { return x.contiguous() ? x : copy(x); }

Tensor with_truth_values(const Tensor& x) {
  if (x.count() == 0) return x;
  const GradModeGuard off(false);
  const Tensor bytes =
      Tensor::over(x->storage, x->offset_bytes, x.shape(), x.strides(), DType::uint8);
  const Tensor largest = max(bytes, {}, false);
  const HostValues value(largest, "memory of other libraries is checked");
  return *value.as<std::uint8_t>() <= 1 ? x : not_equal(bytes, 0);
}

Tensor astype(const Tensor& x, DType dtype, bool always_copy) {
  if (x.dtype() == dtype && !always_copy) return x;
  return apply(kAstype, {x},
               AttributeList(3).set(0, attribute_of(dtype)).set(1, always_copy).set(2, kNone));
}

Tensor astype_operand(const Tensor& x, DType dtype) {
  if (modes.grad) return astype(x, dtype);
  return broadcast_operand(astype(without_repeats(x), dtype), x.shape());
}

void copy_into(const Tensor& target, const Tensor& x) {
  const Operand operands[] = {target, x};
  apply_into(kAssign, operands, 2, {}, target);
}

void assign(Tensor& into, const Operand& value) {
  const InPlaceChange change("assign", into, value.tensor);
  Operand x = value;
  if (value.is_tensor()) {
    if (is_complex(x.tensor.dtype()) && !is_complex(into.dtype()))
      fail(ErrorKind::type, "assign: ", name_of(x.tensor.dtype()), " into ", name_of(into.dtype()));
    while (x.tensor.rank() > into.rank() && x.tensor.size(0) == 1) x = squeeze(x.tensor, {0});
    const Shape& shape = x.tensor.shape();
    if (shape.rank() > into.rank() ||
        !(broadcast_shapes(shape, into.shape(), "assign") == into.shape()))
      fail(ErrorKind::value, "assign: shape ", shape, " does not broadcast into ", into.shape());
    if (change.changes_nothing(x.tensor)) return;
    x = change.before(x.tensor);
  } else {
    alignas(8) char slot[16];  // refused before the change is counted
    x.scalar.store(into.dtype(), slot, "full");
  }
  const Operand operands[] = {into, x};
  Ref<NodeBase> node;
  if (change.recorded()) node = OpNode::create(kAssign, operands, 2, {}, into);
  change.begin();
  apply_into(kAssign, operands, 2, {}, into);
  if (node)
    change.join_graph(into, [&](const Tensor& y) { attach(y, static_cast<OpNode*>(node.get())); });
}

namespace {

Tensor ones_like(const Tensor& x) {
  return apply(kOnesLike, {x}, AttributeList(2).set(0, kNone).set(1, kNone));
}
// The gradient of a real input of a complex result is the real part.
Tensor as_type_of_input(const Tensor& g, DType dtype) {
  return astype_operand(is_complex(dtype) ? g : real(g), dtype);
}
Tensor add_tensors(const Tensor& a, const Tensor& b) { return add(a, b); }
void add_in_place(const Tensor& into, const Tensor& x) {
  Operand operands[] = {into, x};
  pointwise_in_place(PointwiseOp::add, operands);
}

bool has_nan(const Tensor& x) {
  const GradModeGuard off(false);
  return holds_any(isnan(x), "detect_anomaly");
}

[[maybe_unused]] const bool registered = [] {
  set_gradient_arithmetic(
      {add_tensors, add_in_place, copy, ones_like, sum_to, as_type_of_input, has_nan, apply});
  return true;
}();

}  // namespace

}  // namespace tw
