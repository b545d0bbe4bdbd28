// Pointwise ops: checks, shape, type, choice of kernel, and the gradient of every row.
#include "core/ops/pointwise/pointwise.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/autograd/op_node.h"
#include "core/base/axis_order.h"
#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/ops/engine/apply.h"
#include "core/ops/pointwise/clip.h"
#include "core/ops/pointwise/complex.h"
#include "core/problems/complex_rows.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/gradient_formulas.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"
#include "core/runtime/choice.h"
#include "core/runtime/launch.h"
#include "core/runtime/registry.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

// ---- types and shapes ----

PointwiseOp op_of(const PointwiseRow& row) {
  return static_cast<PointwiseOp>(&row - kPointwiseRows);
}

std::string list_types(const Call& call) {
  std::string text;
  for (int i = 0; i < call.inputs; ++i)
    text += std::string(i ? ", " : "") + (call.in[i].number ? "number" : name_of(call.in[i].dtype));
  return text;
}

bool row_takes(const PointwiseRow& row, DType type) {
  const int kind = is_bool(type)      ? kind::b
                   : is_integer(type) ? kind::i
                   : is_complex(type) ? kind::c
                                      : kind::f;
  if (kind == kind::c && is_complex_row(op_of(row))) return true;
  return (row.kinds & kind) != 0;
}

// The common type of tensors with a number: numbers decide only where their kind is above.
DType with_number(DType tensors, DType number) {
  if (is_bool(number)) return tensors;
  if (is_integer(number)) return is_bool(tensors) ? DType::int64 : tensors;
  return is_complex(number) ? complex_beside(tensors) : floating_dtype(tensors);
}

// The type in which the op is computed.
DType common_dtype(const PointwiseRow& row, const Call& call) {
  const int first = (row.kinds & kind::condition) ? 1 : 0;
  bool any_tensor = false;
  DType type = DType::bool_;
  for (int i = first; i < call.inputs; ++i) {
    if (call.in[i].number) continue;
    type = any_tensor ? promote(type, call.in[i].dtype) : call.in[i].dtype;
    any_tensor = true;
  }
  for (int i = first; i < call.inputs; ++i) {
    if (!call.in[i].number) continue;
    type = any_tensor ? with_number(type, call.in[i].dtype) : promote(type, call.in[i].dtype);
  }
  if (row.kinds & kind::promotes) type = floating_dtype(type);
  if (!row_takes(row, type))
    fail(ErrorKind::type, row.name, ": no kernel for ", list_types(call),
         "; convert with astype first");
  return type;
}

// The shape that all broadcast to: one of theirs, or another one.
void infer_shape(const Call& call, Result& result) {
  int first = -1;
  bool alike = true;
  for (int i = 0; i < call.inputs; ++i) {
    if (call.in[i].number) continue;
    if (first < 0)
      first = i;
    else if (!(*call.in[i].shape == *call.in[first].shape))
      alike = false;
  }
  if (first >= 0 && alike) {
    result.like = first;
    return;
  }
  for (int i = 0; i < call.inputs; ++i)
    if (!call.in[i].number)
      result.shape = i == first ? *call.in[i].shape
                                : broadcast_shapes(result.shape, *call.in[i].shape, call.op->name);
}

bool is_stretched(const Meta& x) {
  for (int axis = 0; axis < x.rank(); ++axis)
    if ((*x.strides)[axis] == 0 && x.size(axis) > 1) return true;
  return false;
}

// Where all operands that fill the result's shape have one order of axes, the result has it, too:
// the op is one run then, but for gaps. Those that are stretched have no say.
void infer_layout(const Call& call, Result& result) {
  const Shape& shape = result.like >= 0 ? *call.in[result.like].shape : result.shape;
  int first = -1;
  for (int i = 0; i < call.inputs; ++i) {
    const Meta& x = call.in[i];
    if (x.number || x.absent || !(*x.shape == shape)) continue;
    if (x.contiguous) return;
    if (is_stretched(x)) continue;
    if (first < 0)
      first = i;
    else if (!lies_along(AxisOrder(*call.in[first].strides), shape, *x.strides))
      return;
  }
  if (first < 0 || !uses(Optimization::layout_propagation)) return;
  result.strides = dense_along(shape, *call.in[first].strides);
  result.like = first;
}

void infer(Call& call, Result* results) {
  const PointwiseRow& row = pointwise_row(*call.op);
  call.type = common_dtype(row, call);
  results[0].dtype = row.result == PointwiseResult::truth ? DType::bool_ : call.type;
  infer_shape(call, results[0]);
  infer_layout(call, results[0]);
}

Estimate estimate(const Call& call) {
  double bytes = static_cast<double>(size_of(call.out->dtype));
  for (int i = 0; i < call.inputs; ++i) bytes += static_cast<double>(size_of(call.in[i].dtype));
  const auto count = static_cast<double>(call.out->count);
  return {count, bytes * count};
}

// ---- comparisons with numbers that the tensor's type does not hold ----

// -1 below the type's least value, 1 above its greatest, 0 where the type holds the number.
int side_of(const Scalar& number, DType type) {
  if (number.reach == Scalar::Reach::wider) return number.re < 0 ? -1 : 1;
  if (number.reach == Scalar::Reach::uint64) return type == DType::uint64 ? 0 : 1;
  return visit(type, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (std::cmp_less(number.i, std::numeric_limits<T>::min())) return -1;
      if (std::cmp_greater(number.i, std::numeric_limits<T>::max())) return 1;
    }
    return 0;
  });
}

// What `a op b` is for every element where one side is a number beyond the type: its value alone
// decides, as in NumPy.
std::optional<bool> decided(PointwiseOp op, const Operand* operands, DType type) {
  if (op < PointwiseOp::equal || op > PointwiseOp::greater_equal || !is_integer(type)) return {};
  const bool left = !operands[0].is_tensor();
  const Operand& number = operands[left ? 0 : 1];
  const int side = number.is_tensor() ? 0 : side_of(number.scalar, type);
  if (side == 0) return {};
  const int order = left ? side : -side;  // of a against b
  switch (op) {
    case PointwiseOp::equal: return false;
    case PointwiseOp::not_equal: return true;
    case PointwiseOp::less:
    case PointwiseOp::less_equal: return order < 0;
    default: return order > 0;
  }
}

// ---- calls that take no kernel of the row, or a step less ----

// Floating tensors of one type, shape and row-major layout.
template <int inputs> [[gnu::hot]] bool quick(const OpRecord& op, const Operand* in, int,
                                              Attributes attributes, Tensor* out) {
  const PointwiseRow& row = pointwise_row(op);
  const TensorHeader* const a = in[0].tensor.get();
  if (!a || !a->contiguous || (a->dtype != DType::float32 && a->dtype != DType::float64) ||
      a->count > thresholds::kGrain || !(row.kinds & kind::f))
    return run_in_full(op, in, inputs, attributes, out);
  for (int i = 1; i < inputs; ++i) {
    const TensorHeader* const b = in[i].tensor.get();
    if (!b || b->dtype != a->dtype || !b->contiguous || !(b->shape == a->shape))
      return run_in_full(op, in, inputs, attributes, out);
  }
  Access at;
  const void* addresses[inputs];
  for (int i = 0; i < inputs; ++i) addresses[i] = at(in[i].tensor);
  const bool tells = row.result == PointwiseResult::truth;
  out[0] = Tensor::fresh(a->shape, a->strides, a->count, tells ? DType::bool_ : a->dtype);
  kernels_of(op).lowering->plain(a->dtype, a->count, at(out[0]), addresses);
  return true;
}

bool rewrite_complex(PointwiseOp op, const Tensor& z, Tensor* out) {
  if (!differs_for_complex(op)) return false;
  out[0] = op == PointwiseOp::abs ? magnitude(z) : direction(z);
  return true;
}

bool rewrite(const Use& use, Tensor* out) {
  const PointwiseRow& row = pointwise_row(use.op);
  const Operand* const in = use.in;
  if (row.arity == 1 && !in[0].is_tensor() && in[0].scalar.kind == Scalar::Kind::complex)
    return rewrite_complex(op_of(row), full(Shape(), in[0].scalar, in[0].scalar.natural_dtype()),
                           out);
  if (row.arity == 1 && in[0].is_tensor() && is_complex(in[0].tensor.dtype()))
    return rewrite_complex(op_of(row), in[0].tensor, out);
  if ((row.kinds & kind::condition) && in[0].is_tensor() && is_complex(in[0].tensor.dtype())) {
    out[0] = apply(use.op, {in[0].tensor != 0, in[1], in[2]});  // conversion drops a part
    return true;
  }
  if (row.result != PointwiseResult::truth || row.arity != 2) return false;
  if (in[0].is_tensor() == in[1].is_tensor()) return false;
  const int tensor = in[0].is_tensor() ? 0 : 1;
  const Tensor& x = in[tensor].tensor;
  const PointwiseOp op = op_of(row);
  const std::optional<bool> known = decided(op, in, weak_promote(x.dtype(), in[1 - tensor].scalar));
  if (!known) return false;
  out[0] = full(x.shape(), *known, DType::bool_);
  return true;
}

// ---- gradients ----

// A formula's op: from the gradient of the result and what the formula reads.
struct GradientRow {
  PointwiseOp op;
  int input;
};
const GradientRow& gradient_row(const OpRecord& op) {
  return *static_cast<const GradientRow*>(op.row);
}
std::uint8_t reads_of(const GradientRow& row) {
  return kPointwiseRows[static_cast<int>(row.op)].gradients[row.input].reads;
}

void infer_gradient(Call& call, Result* results) {
  call.type = call.in[0].dtype;
  results[0].dtype = call.type;
  results[0].like = 0;
  infer_layout(call, results[0]);
}

// In the type in which kernels compute a gradient of `type`, so that a step of the formula rounds
// and overflows no earlier than theirs; what is real stays so beside complex numbers.
Tensor as_computed(const Operand& x, DType type) {
  if (!x.is_tensor()) return full(Shape(), x.scalar, type);
  return astype(x.tensor, is_complex(x.tensor.dtype()) ? type : part_dtype(type));
}

void gradient_body(const Use& use, Tensor* out) {
  const GradientRow& row = gradient_row(use.op);
  const DType type = working_dtype(use.in[0].tensor.dtype());
  const Tensor g = astype(use.in[0].tensor, type);
  const bool has_condition = kPointwiseRows[static_cast<int>(row.op)].kinds & kind::condition;
  Tensor values[kMaxRowInputs + 1];  // a, b, c and the result
  for (int i = 0, at = 1; i <= kMaxRowInputs; ++i)
    if (reads_of(row) >> i & 1) {
      const Operand& x = use.in[at++];
      values[i] = has_condition && i == 0 && x.is_tensor() ? x.tensor : as_computed(x, type);
    }
  const auto formula = [&](const Tensor& g) {
    return gradient_formula(row.op, row.input, g, values);
  };
  // g times the conjugate of the derivative: formulas are linear in g with real coefficients.
  const Tensor dx = is_complex(type) ? conj(formula(conj(g))) : formula(g);
  out[0] = astype(dx, use.in[0].tensor.dtype());
}

// The records of all formulas, by op and input; names of the others are null.
struct GradientRecords {
  OpRecord records[kPointwiseOps][kMaxRowInputs];
  GradientRow rows[kPointwiseOps][kMaxRowInputs];
  std::string names[kPointwiseOps][kMaxRowInputs];

  GradientRecords() {
    for (int op = 0; op < kPointwiseOps; ++op)
      for (int input = 0; input < kMaxRowInputs; ++input)
        if (kPointwiseRows[op].gradients[input].form == GradientForm::formula) add(op, input);
  }
  void add(int op, int input) {
    names[op][input] = std::string(kPointwiseRows[op].name) + "_backward_" + std::to_string(input);
    rows[op][input] = {static_cast<PointwiseOp>(op), input};
    OpRecord& record = records[op][input];
    record.name = names[op][input].c_str();
    record.signature = "(g: Tensor, a: Operand, b: Operand, c: Operand, y: Tensor) -> Tensor";
    record.help = kPointwiseRows[op].gradients[input].text;
    record.infer = infer_gradient;
    record.estimate = estimate;
    record.body = gradient_body;
    record.row = &rows[op][input];
  }
};
const GradientRecords& gradient_records() {
  static const auto& instance = *new GradientRecords;
  return instance;
}

// Whether all operands that a formula reads repeat along an axis of g, which is longer than 1.
bool all_repeat(const Operand* operands, int count, int rank, int axis) {
  for (int i = 0; i < count; ++i) {
    const Tensor& x = operands[i].tensor;
    if (!x) continue;
    const int own = axis - (rank - x.rank());
    if (own >= 0 && x.size(own) != 1 && x.strides()[own] != 0) return false;
  }
  return true;
}
// The formula's op on what does not repeat; the result repeats as the operands do.
Tensor apply_once(const OpRecord& record, Operand* operands, int count) {
  const Shape shape = operands[0].tensor.shape();
  const int rank = shape.rank();
  std::uint32_t repeated = 0;
  for (int axis = 0; axis < rank; ++axis)
    if (shape[axis] > 1 && all_repeat(operands, count, rank, axis)) repeated |= 1u << axis;
  for (int i = 0; repeated && i < count; ++i) {
    const Tensor& x = operands[i].tensor;
    if (!x) continue;
    Shape once = x.shape();
    for (int own = 0; own < x.rank(); ++own)
      if (repeated >> (own + rank - x.rank()) & 1) once[own] = 1;
    operands[i].tensor = view_of(x, once, x.strides());
  }
  Tensor dx;
  apply(record, operands, count, {}, &dx);
  return repeated ? broadcast_to(dx, shape) : dx;
}

void give_formula(Vjp& v, PointwiseOp op, int input) {
  const OpRecord& record = gradient_records().records[static_cast<int>(op)][input];
  const std::uint8_t reads = reads_of(gradient_row(record));
  Operand operands[kMaxRowInputs + 2] = {v.g()};
  int count = 1;
  for (int i = 0; i < kMaxRowInputs; ++i)
    if (reads >> i & 1) operands[count++] = v.in(i);
  if (reads >> input_y & 1) operands[count++] = v.out();
  if (!modes.grad && !v.g().contiguous()) return v.give(input, apply_once(record, operands, count));
  Tensor dx;
  apply(record, operands, count, {}, &dx);
  v.give(input, std::move(dx));
}

void vjp(Vjp& v) {
  const auto op = op_of(pointwise_row(v.record()));
  const PointwiseGradient* const gradients = kPointwiseRows[static_cast<int>(op)].gradients;
  for (int i = 0; i < v.inputs(); ++i) {
    if (!v.wants(i)) continue;
    switch (gradients[i].form) {
      case GradientForm::none: break;
      case GradientForm::zero: v.give(i, zeros(v.own_shape(i), v.g().dtype())); break;
      case GradientForm::pass: v.give(i, v.g()); break;
      case GradientForm::formula:
        if (op != PointwiseOp::multiply || !give_sum_of_products(v, i)) give_formula(v, op, i);
    }
  }
}

bool rewrite_checked(const Use& use, Tensor* out) {
  check_settings(op_of(pointwise_row(use.op)), use.in);
  return rewrite(use, out);
}

constexpr Reads record_reads(std::uint8_t reads) {
  return {static_cast<std::uint16_t>(reads & 7), static_cast<std::uint16_t>(reads >> 3 & 1)};
}

constexpr const char* kSignatures[] = {"(x: Operand) -> Tensor",
                                       "(a: Operand, b: Operand) -> Tensor",
                                       "(a: Operand, b: Operand, c: Operand) -> Tensor"};

constexpr char kActivation[] = "(x: Operand, inplace: in_place = False) -> Tensor";

// Rows whose parameters have names and defaults of their own.
constexpr std::pair<PointwiseOp, const char*> kOwnSignatures[] = {
    {PointwiseOp::clip,
     "(x: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor"},
    {PointwiseOp::lerp, "(x: Operand, end: Operand, weight: Operand) -> Tensor"},
    {PointwiseOp::leaky_relu,
     "(x: Tensor, negative_slope: Operand = 0.01, inplace: in_place = False) -> Tensor"},
    {PointwiseOp::elu, "(x: Tensor, alpha: Number = 1.0, inplace: in_place = False) -> Tensor"},
    {PointwiseOp::celu, "(x: Tensor, alpha: Number = 1.0, inplace: in_place = False) -> Tensor"},
    {PointwiseOp::hardshrink, "(x: Tensor, lambd: Number = 0.5) -> Tensor"},
    {PointwiseOp::softshrink, "(x: Tensor, lambd: Number = 0.5) -> Tensor"},
    {PointwiseOp::softplus, "(x: Tensor, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor"},
    {PointwiseOp::hardtanh,
     "(x: Tensor, min_val: Number = -1.0, max_val: Number = 1.0, inplace: in_place = False) -> "
     "Tensor"},
    {PointwiseOp::threshold,
     "(x: Tensor, threshold: Number, value: Number, inplace: in_place = False) -> Tensor"},
    {PointwiseOp::relu, kActivation},
    {PointwiseOp::relu6, kActivation},
    {PointwiseOp::selu, kActivation},
    {PointwiseOp::silu, kActivation},
    {PointwiseOp::mish, kActivation},
    {PointwiseOp::hardsigmoid, kActivation},
    {PointwiseOp::hardswish, kActivation}};

constexpr decltype(OpRecord::quick) kQuick[] = {quick<1>, quick<2>, quick<3>};

bool has_no_gradient(int op) {
  for (int i = 0; i < kPointwiseRows[op].arity; ++i)
    if (kPointwiseRows[op].gradients[i].form != GradientForm::none) return false;
  return true;
}

// Whether other ops alone use the row.
bool is_part(const PointwiseRow& row) { return !std::strstr(row.help, "\nSource: "); }

int count_of(std::string_view text, std::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct ValueRecords {
  OpRecord records[kPointwiseOps];
  std::string help[kPointwiseOps];
  ValueRecords() {
    for (int i = 0; i < kPointwiseOps; ++i) {
      const PointwiseRow& row = kPointwiseRows[i];
      OpRecord& record = records[i];
      record.name = row.name;
      record.signature = kSignatures[row.arity - 1];
      record.flags = is_part(row) ? kBroadcasts : kFunction | kInPlace | kBroadcasts;
      if (row.result == PointwiseResult::truth || has_no_gradient(i)) record.flags |= kConstant;
      record.quick = kQuick[row.arity - 1];
      record.rewrite = rewrite;
      record.infer = infer;
      record.estimate = estimate;
      record.vjp = vjp;
      for (int k = 0; k < row.arity; ++k) record.reads[k] = record_reads(row.gradients[k].reads);
      record.row = &row;
    }
    record_of(PointwiseOp::where).flags &= static_cast<std::uint16_t>(~kInPlace);
    record_of(PointwiseOp::clip).rewrite = rewrite_bounds;
    for (const PointwiseOp op : {PointwiseOp::softshrink, PointwiseOp::celu, PointwiseOp::hardtanh})
      record_of(op).rewrite = rewrite_checked;
    for (const auto& [op, signature] : kOwnSignatures) record_of(op).signature = signature;
    for (int i = 0; i < kPointwiseOps; ++i) {
      const int numbers = count_of(records[i].signature, ": Number");
      help[i] = help_of(kPointwiseRows[i], kPointwiseRows[i].arity - numbers);
      records[i].help = help[i].c_str();
    }
  }
  OpRecord& record_of(PointwiseOp op) { return records[static_cast<int>(op)]; }
};

}  // namespace

void check_settings(PointwiseOp op, const Operand* in) {
  // Of an activation's parameter; numbers in tensors are not looked at.
  const auto setting = [&](int i) {
    return in[i].is_tensor() ? std::numeric_limits<double>::quiet_NaN() : in[i].scalar.re;
  };
  if (op == PointwiseOp::softshrink && setting(1) < 0)
    fail(ErrorKind::value, "softshrink: lambd is negative: ", setting(1));
  if (op == PointwiseOp::celu && setting(1) == 0)
    fail(ErrorKind::value, "celu: alpha must not be 0");
  if (op == PointwiseOp::hardtanh && setting(1) > setting(2))
    fail(ErrorKind::value, "hardtanh: min_val ", setting(1), " is above max_val ", setting(2));
}

std::atomic<const OpRecord*> known_value_records{nullptr};

const OpRecord* make_value_records() {
  static const OpRecord* const all = (new ValueRecords)->records;
  known_value_records.store(all, std::memory_order_release);
  return all;
}

std::optional<PointwiseOp> row_of(const OpRecord& op) {
  const OpRecord* const first = value_records();
  if (&op < first || &op >= first + kPointwiseOps) return {};
  return static_cast<PointwiseOp>(&op - first);
}

Tensor gradient_of(PointwiseOp op, int input, const Tensor& g,
                   std::initializer_list<Operand> reads) {
  const OpRecord& record = gradient_records().records[static_cast<int>(op)][input];
  Operand operands[kMaxRowInputs + 2] = {g};
  int count = 1;
  for (const Operand& x : reads) operands[count++] = x;
  Tensor dx;
  apply(record, operands, count, {}, &dx);
  return dx;
}

void append_gradient_records(std::vector<const OpRecord*>& records) {
  for (const auto& of_op : gradient_records().records)
    for (const OpRecord& record : of_op)
      if (record.name) records.push_back(&record);
}

}  // namespace tw
