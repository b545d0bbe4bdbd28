// Pointwise ops: checks, shape, type, choice of kernel, and the gradient of every row.
#include "core/ops/pointwise.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/cpu/reduce.h"
#include "core/ops/copy.h"
#include "core/ops/create.h"
#include "core/ops/in_place.h"
#include "core/ops/reduce.h"
#include "core/ops/view.h"
#include "core/runtime/profile.h"
#include "core/tensor/access.h"

namespace tw {

namespace {

constexpr int kMaxInputs = 3;
const char* kArgumentNames[] = {"first input", "second input", "third input"};

const PointwiseRow& row_of(PointwiseOp op) { return kPointwiseRows[static_cast<int>(op)]; }

// ---- what a gradient formula reads, from its text ----

enum Reads : std::uint8_t { reads_a = 1, reads_b = 2, reads_c = 4, reads_y = 8 };
constexpr std::uint8_t reads_of(std::string_view text) {
  return (mentions(text, "a") || mentions(text, "x") ? reads_a : 0) |
         (mentions(text, "b") ? reads_b : 0) | (mentions(text, "c") ? reads_c : 0) |
         (mentions(text, "y") ? reads_y : 0);
}
enum class Form : std::uint8_t { none, zero, pass, formula };
constexpr Form form_of(std::string_view text) {
  return text == "none" ? Form::none
         : text == "0"  ? Form::zero
         : text == "g"  ? Form::pass
                        : Form::formula;
}
struct GradientRule {
  Form form[kMaxInputs];
  std::uint8_t reads[kMaxInputs];
};
constexpr GradientRule rule(std::string_view a, std::string_view b = "none",
                            std::string_view c = "none") {
  return {{form_of(a), form_of(b), form_of(c)}, {reads_of(a), reads_of(b), reads_of(c)}};
}
constexpr GradientRule kRules[kPointwiseOps] = {
#define TW_UNARY(name, types, result, formula, gradient, help) rule(#gradient),
#define TW_BINARY(name, types, result, formula, ga, gb, help) rule(#ga, #gb),
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help) rule(#ga, #gb, #gc),
#include "core/ops/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};

// ---- the gradient formulas over tensors, for gradients of gradients ----

// The formulas' functions that are no rows; core/cpu/math has them for vectors.
Tensor quotient_or_0(const Tensor& a, const Tensor& b) {
  const Tensor zero = b == 0;
  return where(zero, 0, a / where(zero, 1, b));
}
// Where b is 0 as b a^b / a, whose derivatives are those of b a^(b - 1) without its powers of 1 /
// a.
Tensor power_slope(const Tensor& a, const Tensor& b) {
  const Tensor zero = b == 0;
  const Tensor base = where(zero & (a != 0) & (a == a), a, 1);
  return where(zero, b * pow(base, where(zero, b, 0)) / base, b * pow(where(zero, 1, a), b - 1));
}
Tensor over_squared_length(const Tensor& x, const Tensor& a, const Tensor& b) {
  const Tensor length = hypot(a, b);
  return quotient_or_0(quotient_or_0(x, length), length);
}

struct None {};
constexpr None none;
Tensor as_tensor(const Tensor& x) { return x; }
Tensor as_tensor(None) { return Tensor(); }
Tensor as_tensor(int) { return Tensor(); }

using TensorGradient = Tensor (*)(int input, const Tensor& g, const Tensor& a, const Tensor& b,
                                  const Tensor& c, const Tensor& y);
#define TW_UNARY(name, types, result, formula, gradient, help)                                    \
  Tensor name##_gradient(int, [[maybe_unused]] const Tensor& g, [[maybe_unused]] const Tensor& x, \
                         const Tensor&, const Tensor&, [[maybe_unused]] const Tensor& y) {        \
    return as_tensor(gradient);                                                                   \
  }
#define TW_BINARY(name, types, result, formula, ga, gb, help)                                \
  Tensor name##_gradient(int input, [[maybe_unused]] const Tensor& g,                        \
                         [[maybe_unused]] const Tensor& a, [[maybe_unused]] const Tensor& b, \
                         const Tensor&, [[maybe_unused]] const Tensor& y) {                  \
    return input == 0 ? as_tensor(ga) : as_tensor(gb);                                       \
  }
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help)                             \
  Tensor name##_gradient(int input, [[maybe_unused]] const Tensor& g,                          \
                         [[maybe_unused]] const Tensor& a, [[maybe_unused]] const Tensor& b,   \
                         [[maybe_unused]] const Tensor& c, [[maybe_unused]] const Tensor& y) { \
    return input == 0 ? as_tensor(ga) : input == 1 ? as_tensor(gb) : as_tensor(gc);            \
  }
#include "core/ops/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
constexpr TensorGradient kTensorGradients[kPointwiseOps] = {
#define TW_UNARY(name, ...) name##_gradient,
#define TW_BINARY(name, ...) name##_gradient,
#define TW_TERNARY(name, ...) name##_gradient,
#include "core/ops/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};

// ---- types and shapes ----

std::string list_types(const Operand* operands, int arity) {
  std::string text;
  for (int i = 0; i < arity; ++i)
    text += std::string(i ? ", " : "") +
            (operands[i].is_tensor() ? name_of(operands[i].tensor.dtype()) : "number");
  return text;
}

bool row_takes(const PointwiseRow& row, DType type) {
  const int kind = is_bool(type)      ? kind::b
                   : is_integer(type) ? kind::i
                   : is_complex(type) ? kind::c
                                      : kind::f;
  return (row.kinds & kind) != 0;
}

// The type in which the op is computed.
DType common_dtype(const PointwiseRow& row, const Operand* operands) {
  const int first = (row.kinds & kind::condition) ? 1 : 0;
  bool any_tensor = false;
  DType type = DType::bool_;
  for (int i = first; i < row.arity; ++i) {
    if (!operands[i].is_tensor()) continue;
    type = any_tensor ? promote(type, operands[i].tensor.dtype()) : operands[i].tensor.dtype();
    any_tensor = true;
  }
  for (int i = first; i < row.arity; ++i) {
    if (operands[i].is_tensor()) continue;
    type = any_tensor ? weak_promote(type, operands[i].scalar)
                      : promote(type, operands[i].scalar.natural_dtype());
  }
  if (row.kinds & kind::promotes) type = floating_dtype(type);
  if (!row_takes(row, type))
    fail(ErrorKind::type, row.name, ": no kernel for ", list_types(operands, row.arity),
         "; convert with astype first");
  return type;
}

Shape common_shape(const PointwiseRow& row, const Operand* operands) {
  Shape shape;
  bool any = false;
  for (int i = 0; i < row.arity; ++i) {
    if (!operands[i].is_tensor()) continue;
    const Shape& other = operands[i].tensor.shape();
    if (!any)
      shape = other;
    else if (!(shape == other))
      shape = broadcast_shapes(shape, other, row.name);
    any = true;
  }
  return shape;
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

// bool has no arithmetic: its sum and product are the logical ones.
PointwiseOp op_for(PointwiseOp op, DType type) {
  if (!is_bool(type)) return op;
  if (op == PointwiseOp::add) return PointwiseOp::logical_or;
  if (op == PointwiseOp::multiply) return PointwiseOp::logical_and;
  return op;
}

// ---- running a kernel ----

Strides broadcast_strides(const Tensor& x, const Shape& shape) {
  const int lead = shape.rank() - x.rank();
  Strides strides(shape.rank(), 0);
  for (int i = 0; i < x.rank(); ++i)
    strides[lead + i] = x.size(i) == 1 && shape[lead + i] != 1 ? 0 : x.strides()[i];
  return strides;
}

PointwiseOperand as_operand(Access& at, const Tensor& x, const Shape& shape) {
  return {at(x), x.dtype(), broadcast_strides(x, shape)};
}

// Memory for numbers that take part as operands.
struct ScalarSlots {
  alignas(8) char bytes[kMaxInputs][16];
};
PointwiseOperand as_operand(Access& at, const Operand& operand, const Shape& shape, DType type,
                            void* slot, const char* op) {
  if (operand.is_tensor()) return as_operand(at, operand.tensor, shape);
  operand.scalar.store(type, slot, op);
  return {slot, type, Strides(shape.rank(), 0)};
}

void run_described(const PointwiseProblem& problem, const char* op) {
  double bytes = static_cast<double>(size_of(problem.y_dtype));
  for (int i = 0; i < problem.inputs; ++i)
    bytes += static_cast<double>(size_of(problem.input[i].dtype));
  double count = 1;
  for (std::int64_t extent : problem.shape) count *= static_cast<double>(extent);
  dispatch(
      count, bytes * count, [&] { run_pointwise(problem); },
      [&](Observation& seen) {
        seen.op = op;
        seen.kernel = "vector";
        seen.isa = name_of(active_isa());
        seen.problem = std::string(name_of(problem.y_dtype)) + " " + to_string(problem.shape);
      });
}

std::int64_t lowest(const Tensor& x) {
  std::int64_t found = 0;
  Access at;
  const void* const first = at(x);
  launch([&] {
    char item[8];
    reduce({ReduceOp::min, x.dtype(), x.dtype(), {}, {}, x.shape(), x.strides(), first, item});
    convert_elements(x.dtype(), DType::int64, 1, item, 0, &found, 0);
  });
  return found;
}

// Whole numbers have no fractions: pow(2, -1) of integers would be 0.
void check_exponents(PointwiseOp op, const Operand* operands, DType type) {
  if (op != PointwiseOp::pow || !is_signed_int(type)) return;
  const Operand& exponent = operands[1];
  std::int64_t power = exponent.scalar.i;
  if (exponent.is_tensor()) {
    const Tensor& x = exponent.tensor;
    power = is_signed_int(x.dtype()) && x.count() > 0 ? lowest(x) : 0;
  }
  if (power < 0)
    fail(ErrorKind::value, "pow: integers to the negative power ", power,
         " are no integers; convert with astype(float32) first");
}

void compute(PointwiseOp op, const Operand* operands, DType type, const Tensor& y) {
  const PointwiseRow& row = row_of(op);
  PointwiseProblem problem;
  problem.type = compute_type_of(type);
  problem.fn = pointwise_value(op_for(op, type), problem.type);
  problem.shape = y.shape();
  problem.inputs = row.arity;
  ScalarSlots slots;
  Access at;
  for (int i = 0; i < row.arity; ++i)
    problem.input[i] = as_operand(at, operands[i], y.shape(), type, slots.bytes[i], row.name);
  problem.y = at(y);
  problem.y_dtype = y.dtype();
  problem.y_strides = y.strides();
  run_described(problem, row.name);
}

// ---- the graph ----

struct PointwiseNode final : Node {
  PointwiseOp row;
  Edge storage[kMaxInputs];
  SavedTensor saved[kMaxInputs], saved_y;
  Scalar scalars[kMaxInputs];  // where the operand is a number
  bool is_number[kMaxInputs];
  DType dtypes[kMaxInputs];
  Shape shapes[kMaxInputs];
  ResultPlace place;

  PointwiseNode(PointwiseOp op, const Operand* operands) : Node(row_of(op).name), row(op) {
    edges = storage;
    places = &place;
    inputs = row_of(op).arity;
    for (int i = 0; i < inputs; ++i) {
      const Operand& x = operands[i];
      is_number[i] = !x.is_tensor();
      if (is_number[i]) {
        scalars[i] = x.scalar;
        continue;
      }
      storage[i] = Edge::of(x.tensor);
      dtypes[i] = x.tensor.dtype();
      shapes[i] = x.tensor.shape();
    }
  }

  // Saves what the wanted gradients read.
  void save(const Operand* operands, const Tensor& y) {
    const std::uint8_t reads = wanted_reads();
    for (int i = 0; i < inputs; ++i)
      if ((reads >> i & 1) && !is_number[i]) saved[i] = SavedTensor(operands[i].tensor);
    if (reads & reads_y) saved_y = SavedTensor::result(y);
  }
  std::uint8_t wanted_reads() const {
    const GradientRule& r = kRules[static_cast<int>(row)];
    std::uint8_t reads = 0;
    for (int i = 0; i < inputs; ++i)
      if (wants(i)) reads |= r.reads[i];
    return reads;
  }

  void apply(const Tensor* gs, Tensor* dx) override {
    const Tensor& g = *gs;
    if (released && wanted_reads()) fail_released(*this);
    for (int i = 0; i < inputs; ++i) {
      if (!wants(i)) continue;
      Tensor raw = raw_gradient(i, g);
      if (!raw) continue;
      if (!(raw.shape() == shapes[i])) raw = sum_to(raw, shapes[i]);
      dx[i] = raw.dtype() == dtypes[i] ? raw : astype(raw, dtypes[i]);
    }
  }
  void release() override {
    for (SavedTensor& s : saved) s = SavedTensor();
    saved_y = SavedTensor();
    released = true;
  }
  void each_saved(SavedVisitor visit, void* context) const override {
    for (const SavedTensor& s : saved) visit(context, s);
    visit(context, saved_y);
  }

  Tensor raw_gradient(int input, const Tensor& g) {
    switch (kRules[static_cast<int>(row)].form[input]) {
      case Form::none: return Tensor();
      case Form::zero: return zeros(g.shape(), g.dtype());
      case Form::pass: return g;
      case Form::formula: break;
    }
    return modes.grad ? formula_gradient(input, g) : kernel_gradient(input, g);
  }

  Tensor saved_input(int i, const Tensor& g) const {
    if (is_number[i]) return full(Shape(), scalars[i], g.dtype());
    return saved[i].get(*this, kArgumentNames[i]);
  }

  Tensor formula_gradient(int input, const Tensor& g) {
    const std::uint8_t reads = kRules[static_cast<int>(row)].reads[input];
    Tensor in[kMaxInputs], y;
    for (int i = 0; i < inputs; ++i)
      if (reads >> i & 1) in[i] = saved_input(i, g);
    if (reads & reads_y) y = saved_y.get(*this, "result");
    return kTensorGradients[static_cast<int>(row)](input, g, in[0], in[1], in[2], y);
  }

  Tensor kernel_gradient(int input, const Tensor& g) {
    const std::uint8_t reads = kRules[static_cast<int>(row)].reads[input];
    PointwiseProblem problem;
    problem.type = compute_type_of(g.dtype());
    problem.fn = pointwise_gradient(row, input, problem.type);
    problem.shape = g.shape();
    problem.inputs = 0;
    // Saved values first: a checkpoint may run again for one.
    Tensor in[kMaxInputs], y;
    for (int i = 0; i < inputs; ++i)
      if ((reads >> i & 1) && !is_number[i]) in[i] = saved[i].get(*this, kArgumentNames[i]);
    if (reads & reads_y) y = saved_y.get(*this, "result");
    Access at;
    problem.input[problem.inputs++] = as_operand(at, g, g.shape());
    ScalarSlots slots;
    for (int i = 0; i < inputs; ++i) {
      if (!(reads >> i & 1)) continue;
      const Operand operand = is_number[i] ? Operand(scalars[i]) : Operand(in[i]);
      problem.input[problem.inputs++] =
          as_operand(at, operand, g.shape(), dtype_of(problem.type), slots.bytes[i], op);
    }
    if (y) problem.input[problem.inputs++] = as_operand(at, y, g.shape());
    Tensor dx = Tensor::empty_like(g);
    problem.y = at(dx);
    problem.y_dtype = dx.dtype();
    problem.y_strides = dx.strides();
    run_described(problem, (std::string(op) + " gradient").c_str());
    return dx;
  }

  static void* operator new(std::size_t) { return FreeList<PointwiseNode>::take(); }
  static void operator delete(void* memory) { FreeList<PointwiseNode>::give(memory); }
};

bool differentiable(const PointwiseRow& row, DType type) {
  return row.result == PointwiseResult::same && is_floating(type);
}

bool wants_recording(const PointwiseRow& row, const Operand* operands) {
  if (!modes.grad) return false;
  bool any = false;  // all are asked: each may be a stale view
  for (int i = 0; i < row.arity; ++i) any |= records(operands[i].tensor);
  return any;
}

// The common case, checked first: floating tensors of one type, shape and row-major layout.
bool is_plain(const PointwiseRow& row, const Operand* operands) {
  const Tensor& a = operands[0].tensor;
  if (!a || !a.contiguous() || (a.dtype() != DType::float32 && a.dtype() != DType::float64))
    return false;
  for (int i = 1; i < row.arity; ++i) {
    const Tensor& b = operands[i].tensor;
    if (!b || b.dtype() != a.dtype() || !b.contiguous() || !(b.shape() == a.shape())) return false;
  }
  return row_takes(row, a.dtype());
}

// Below this many elements one thread and one run of the kernel are best.
constexpr std::int64_t kPlainElements = 32768;

bool try_plain(PointwiseOp op, const PointwiseRow& row, const Operand* operands, Tensor& y) {
  if (!modes.plain || logs_memory() || !is_plain(row, operands)) return false;
  const Tensor& a = operands[0].tensor;
  if (a.count() > kPlainElements) return false;
  const DType type = row.result == PointwiseResult::truth ? DType::bool_ : a.dtype();
  Access at;
  const void* inputs[kMaxInputs];
  for (int i = 0; i < row.arity; ++i) inputs[i] = at(operands[i].tensor);
  y = Tensor::empty_like(a, type);
  constexpr int kSteps[kMaxInputs] = {1, 1, 1};
  pointwise_value(op, a.dtype() == DType::float32 ? ComputeType::f32 : ComputeType::f64)(
      a.count(), at(y), inputs, kSteps, false);
  return true;
}

}  // namespace

void record_pointwise(PointwiseOp op, const Operand* operands, const Tensor& y) {
  auto* node = new PointwiseNode(op, operands);
  node->save(operands, y);
  attach(y, node);
}

Tensor pointwise(PointwiseOp op, const Operand* operands) {
  const PointwiseRow& row = row_of(op);
  Tensor y;
  if (!try_plain(op, row, operands, y)) {
    const DType type = common_dtype(row, operands);
    if (row.result == PointwiseResult::truth) [[unlikely]]
      if (const std::optional<bool> known = decided(op, operands, type))
        return full(common_shape(row, operands), *known, DType::bool_);
    check_exponents(op, operands, type);
    Access at;  // inputs stay while memory for the result is found
    for (int i = 0; i < row.arity; ++i)
      if (operands[i].is_tensor()) at(operands[i].tensor);
    y = Tensor::empty(common_shape(row, operands),
                      row.result == PointwiseResult::truth ? DType::bool_ : type);
    compute(op, operands, type, y);
  }
  if (wants_recording(row, operands) && differentiable(row, y.dtype()))
    record_pointwise(op, operands, y);
  return y;
}

namespace {

void check_in_place(const PointwiseRow& row, const Operand* operands, DType type) {
  const Tensor& a = operands[0].tensor;
  const Shape shape = common_shape(row, operands);
  if (!(shape == a.shape()))
    fail(ErrorKind::value, row.name, ": a result of shape ", shape,
         " cannot be written in place into ", a.shape());
  check_kind_in_place(row.name, row.result == PointwiseResult::truth ? DType::bool_ : type, a);
  ScalarSlots slots;  // numbers that do not fit are refused before the change is counted
  for (int i = 0; i < row.arity; ++i)
    if (!operands[i].is_tensor()) operands[i].scalar.store(type, slots.bytes[i], row.name);
}

}  // namespace

void pointwise_in_place(PointwiseOp op, Operand* operands) {
  const PointwiseRow& row = row_of(op);
  const DType type = common_dtype(row, operands);
  check_in_place(row, operands, type);
  check_exponents(op, operands, type);
  Tensor& a = operands[0].tensor;
  static const Tensor none;
  const InPlaceChange change(row.name, a, row.arity > 1 ? operands[1].tensor : none,
                             row.arity > 2 ? operands[2].tensor : none);
  for (int i = 1; i < row.arity; ++i)
    if (change.overwrites(operands[i].tensor))
      operands[i].tensor = change.apart(operands[i].tensor);
  PointwiseNode* node = change.recorded() ? new PointwiseNode(op, operands) : nullptr;
  const Ref<NodeBase> owner(node);
  Operand before[kMaxInputs] = {operands[0], row.arity > 1 ? operands[1] : operands[0],
                                row.arity > 2 ? operands[2] : operands[0]};
  for (int i = 0; node && i < row.arity; ++i)
    if ((node->wanted_reads() >> i & 1) && change.overwrites(before[i].tensor))
      before[i].tensor = copy(before[i].tensor);
  change.begin();
  compute(op, operands, type, a);
  if (!node) return;
  change.join_graph(a, [&](const Tensor& y) {
    node->save(before, y);
    attach(y, node);
  });
}

}  // namespace tw
