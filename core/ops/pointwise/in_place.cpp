// Ops whose result takes the place of their first operand.
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/clip.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/in_place.h"
#include "core/ops/pointwise/pointwise.h"

namespace tw {

namespace {

// What the result would be, from metadata alone.
void check_in_place(const OpRecord& op, const Operand* operands) {
  const PointwiseRow& row = pointwise_row(op);
  const Tensor& a = operands[0].tensor;
  Meta metas[kMaxRowInputs];
  for (int i = 0; i < row.arity; ++i) describe_operand(operands[i], metas[i]);
  Call call{&op, metas, row.arity, nullptr, {}};
  Result result;
  op.infer(call, &result);
  const Shape& shape = result.like >= 0 ? *metas[result.like].shape : result.shape;
  if (!(shape == a.shape()))
    fail(ErrorKind::value, row.name, ": a result of shape ", shape,
         " cannot be written in place into ", a.shape());
  check_kind_in_place(row.name, result.dtype, a);
  alignas(8) char slot[16];  // numbers that do not fit are refused before the change is counted
  for (int i = 0; i < row.arity; ++i)
    if (!operands[i].is_tensor()) operands[i].scalar.store(call.type, slot, row.name);
}

// Whether the row's kernel writes the result, and its gradient is the change's: what is constant,
// or another op for complex numbers, is computed beside it.
bool writes_result(const OpRecord& op, const Operand* operands) {
  if (op.flags & kConstant) return false;
  return pointwise_row(op).arity > 1 || !is_complex(operands[0].tensor.dtype());
}

}  // namespace

void apply_in_place_of_first(const OpRecord& op, Operand* operands, int inputs,
                             Attributes attributes) {
  const std::optional<PointwiseOp> row = row_of(op);
  if (row == PointwiseOp::clip) complete_bounds(operands[0], operands[1], operands[2]);
  if (row && writes_result(op, operands)) return pointwise_in_place(*row, operands);
  Tensor& x = operands[0].tensor;
  std::vector<Operand> sources(operands, operands + inputs);
  bool recorded = false;
  for (const Operand& source : sources)
    recorded |= InPlaceChange(op.name, x, source.tensor).recorded();  // raises where it may not be
  if (recorded)  // what the op is made of may read them for the gradient
    for (Operand& source : sources)
      if (source.tensor) source.tensor = InPlaceChange(op.name, x).before(source.tensor);
  Tensor y;
  apply(op, sources.data(), inputs, attributes, &y);
  if (y.get() == sources[0].tensor.get()) return;  // as dropout gives what it need not change
  if (!(y.shape() == x.shape()))
    fail(ErrorKind::value, op.name, ": a result of shape ", y.shape(),
         " cannot be written in place into ", x.shape());
  check_kind_in_place(op.name, y.dtype(), x);
  assign(x, y);
}

void pointwise_in_place(PointwiseOp op, Operand* operands) {
  check_settings(op, operands);
  const OpRecord& record = record_of(op);
  const int arity = pointwise_row(record).arity;
  check_in_place(record, operands);
  Tensor& a = operands[0].tensor;
  static const Tensor none;
  const InPlaceChange change(record.name, a, arity > 1 ? operands[1].tensor : none,
                             arity > 2 ? operands[2].tensor : none);
  for (int i = 1; i < arity; ++i)
    if (change.overwrites(operands[i].tensor))
      operands[i].tensor = change.apart(operands[i].tensor);
  Ref<NodeBase> node;
  Operand before[kMaxRowInputs];
  if (change.recorded()) {
    const Reads reads = OpNode::reads_of(record, operands, arity);
    for (int i = 0; i < arity; ++i) {
      before[i] = operands[i];
      if (reads.inputs >> i & 1) before[i].tensor = change.before(before[i].tensor);
    }
    node = OpNode::create(record, operands, arity, {}, a);
  }
  apply_into(record, operands, arity, {}, a);
  change.begin();
  if (!node) return;
  change.join_graph(a, [&](const Tensor& y) {
    OpNode* const made = static_cast<OpNode*>(node.get());
    made->save(before, &y);
    attach(y, made);
  });
}

}  // namespace tw
