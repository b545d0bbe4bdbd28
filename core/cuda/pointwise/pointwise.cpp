// Rows of problems/pointwise.inc and their gradients: each formula becomes a kernel when it is
// first used with operands of some types.
#include <cstring>

#include "core/base/axis_order.h"
#include "core/base/error.h"
#include "core/cuda/gpu/axes.h"
#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/pointwise/pointwise_parameters.h"
#include "core/problems/pointwise_rows.h"

namespace tw::cuda {

namespace {

// A formula and what it is given, in order.
struct Given {
  formula::Formula formula;
  std::uint8_t inputs[kMaxInputs];
};

struct Problem {
  Pointwise parameter;
  const Given* given;
  std::int8_t inputs;
  bool apart;
  bool is_number[kMaxInputs];
  DType type, out, in[kMaxInputs];
};

void set_up(const Call& call, const Given& given, void* problem) {
  Problem& p = *new (problem) Problem;
  p.given = &given;
  p.inputs = static_cast<std::int8_t>(call.inputs);
  p.type = compute_dtype(call.type);
  p.out = call.out->dtype;
  const Shape& shape = *call.out->shape;
  Axes<kMaxInputs + 1> axes(call.inputs + 1);
  for (int i = 0; i < call.inputs; ++i) {
    p.in[i] = call.in[i].dtype;
    p.is_number[i] = call.in[i].number;
  }
  const AxisOrder order(*call.out->strides);
  for (int k = 0; k < shape.rank(); ++k) {
    const int axis = order.at[k];
    std::int64_t steps[kMaxInputs + 1] = {(*call.out->strides)[axis]};
    for (int i = 0; i < call.inputs; ++i)
      steps[i + 1] = p.is_number[i] ? steps[0] : step_along(call.in[i], shape, axis);
    axes.push(shape[axis], steps);
  }
  p.apart = !axes.is_one_run();
  axes.finish();
  p.parameter.count = call.out->count;
  p.parameter.extents = axes.extents;
  p.parameter.y_strides = axes.strides[0];
  for (int i = 0; i < call.inputs; ++i) p.parameter.strides[i] = axes.strides[i + 1];
}

// Numbers come as addresses on the host, in the call's type.
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.parameter.y = at[p.inputs];
  for (int i = 0; i < p.inputs; ++i) {
    p.parameter.in[i] = at[i];
    if (p.is_number[i]) std::memcpy(p.parameter.numbers[i], at[i], size_of(p.in[i]));
  }
}

// Elements that a thread takes at once: 16 bytes of the widest operand, where addresses allow.
int pack_of(const Problem& p) {
  if (p.apart) return 1;
  std::size_t widest = size_of(p.out);
  for (int i = 0; i < p.inputs; ++i)
    if (!p.is_number[i]) widest = std::max(widest, size_of(p.in[i]));
  std::int64_t pack = static_cast<std::int64_t>(16 / widest);
  const auto fits = [&pack](const void* at, DType dtype) {
    const auto bytes = static_cast<std::size_t>(pack) * size_of(dtype);
    return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
  };
  bool all = p.parameter.count % pack == 0 && fits(p.parameter.y, p.out);
  for (int i = 0; i < p.inputs; ++i)
    all = all && (p.is_number[i] || fits(p.parameter.in[i], p.in[i]));
  return all ? static_cast<int>(pack) : 1;
}

constexpr const char* kNames[kPointwiseInputs] = {"a", "b", "c", "y", "g"};

std::string settings_of(const Problem& p, int pack) {
  std::string load, take;
  for (int i = 0; i < p.inputs; ++i) {
    const std::string v = "v" + std::to_string(i), i_text = std::to_string(i);
    const std::string memory = type_name(p.in[i]), name = kNames[p.given->inputs[i]];
    load += p.is_number[i] ? "const L " + v + " = number<" + memory + ">(p, " + i_text + "); "
                           : "const Pack<" + memory + "> " + v + " = load<" + memory + ">(p, " +
                                 i_text + ", pack); ";
    take += "const L " + name + " = " + (p.is_number[i] ? v : "convert<T>(" + v + ".at[k])") + "; ";
  }
  const formula::Text text = formula::text_of(p.given->formula, kNames);
  const bool floats = is_floating(p.type);
  return define("TW_TYPE", type_name(p.type)) +
         define("TW_IS_COMPLEX", is_complex(p.type) ? "1" : "0") +
         define("TW_IS_FLOAT", floats ? std::to_string(size_of(p.type)) : "0") +
         define("TW_FORMULA", text.values.back()) + define("TW_OUT", type_name(p.out)) +
         define("TW_PACK", std::to_string(pack)) + define("TW_APART", p.apart ? "1" : "0") +
         define("TW_LOAD", load) + define("TW_TAKE", take + text.steps);
}

// Says all that the settings depend on.
std::uint64_t key_of(const Problem& p, int pack) {
  std::uint64_t key = static_cast<std::uint64_t>(pack) * 2 + p.apart;
  key = key * 32 + static_cast<std::uint64_t>(p.out);
  key = key * 32 + static_cast<std::uint64_t>(p.type);
  for (int i = 0; i < p.inputs; ++i)
    key = key * 64 + static_cast<std::uint64_t>(p.in[i]) * 2 + p.is_number[i];
  return key;
}

void run(const void* problem) {
  const Problem& p = *static_cast<const Problem*>(problem);
  if (p.parameter.count == 0) return;
  const int pack = pack_of(p);
  const Function kernel = kernel_of(p.given, key_of(p, pack), "pointwise.cuh", "pointwise",
                                    [&] { return settings_of(p, pack); });
  Pointwise parameter = p.parameter;
  parameter.count /= pack;
  Gpu::current().launch(kernel, grid_for(parameter.count), &parameter);
}

const char* refuses_gradient(const Call& call) {
  return is_complex(call.type) ? "gradients of complex numbers are made of other ops" : nullptr;
}

constexpr char kHelp[] = "the table row's formula, 16 bytes a thread at once where operands lie so";

template <int op> struct Values {
  static inline Given given, of_bools;
  static void set_up_value(const Call& call, void* problem) {
    set_up(call, is_bool(call.type) ? of_bools : given, problem);
  }
};
template <int op, int input> struct Gradients {
  static inline Given given;
  static void set_up_gradient(const Call& call, void* problem) { set_up(call, given, problem); }
};

// bool has no arithmetic: its sum and product are the logical ones.
const formula::Formula& formula_of_bools(PointwiseOp op) {
  if (op == PointwiseOp::add) op = PointwiseOp::logical_or;
  if (op == PointwiseOp::multiply) op = PointwiseOp::logical_and;
  return kPointwiseRows[static_cast<int>(op)].graph;
}

template <int op> void add_value() {
  const PointwiseRow& row = kPointwiseRows[op];
  Given& given = Values<op>::given;
  given.formula = row.graph;
  for (int i = 0; i < row.arity; ++i) given.inputs[i] = static_cast<std::uint8_t>(i);
  Values<op>::of_bools = given;
  Values<op>::of_bools.formula = formula_of_bools(static_cast<PointwiseOp>(op));
  add_kernel<Problem>(row.name, kHelp,
                      {.set_up = Values<op>::set_up_value, .bind = bind, .run = run});
}

// Inputs are g and then those of a, b, c, y that the formula reads.
template <int op, int input> void add_gradient(const char* name) {
  const PointwiseGradient& gradient = kPointwiseRows[op].gradients[input];
  if (gradient.form != GradientForm::formula) return;
  Given& given = Gradients<op, input>::given;
  given.formula = gradient.graph;
  int count = 0;
  given.inputs[count++] = input_g;
  for (std::uint8_t i = 0; i < input_g; ++i)
    if (gradient.reads >> i & 1) given.inputs[count++] = i;
  add_kernel<Problem>(name, kHelp,
                      {.refuses = refuses_gradient,
                       .set_up = Gradients<op, input>::set_up_gradient,
                       .bind = bind,
                       .run = run});
}

}  // namespace

void register_pointwise_kernels() {
#define TW_GRADIENT(name, input) \
  add_gradient<static_cast<int>(PointwiseOp::name), input>(#name "_backward_" #input);
#define TW_UNARY(name, types, result, formula, ga, help) \
  add_value<static_cast<int>(PointwiseOp::name)>();      \
  TW_GRADIENT(name, 0)
#define TW_BINARY(name, types, result, formula, ga, gb, help) \
  add_value<static_cast<int>(PointwiseOp::name)>();           \
  TW_GRADIENT(name, 0) TW_GRADIENT(name, 1)
#define TW_TERNARY(name, types, result, formula, ga, gb, gc, help) \
  add_value<static_cast<int>(PointwiseOp::name)>();                \
  TW_GRADIENT(name, 0) TW_GRADIENT(name, 1) TW_GRADIENT(name, 2)
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
#undef TW_GRADIENT
}

}  // namespace tw::cuda
