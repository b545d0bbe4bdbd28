// The rows of problems/updates.inc: a launch for up to 64 parameters of one type.
#include <new>

#include "core/cuda/gpu/families.h"
#include "core/cuda/gpu/add_kernel.h"
#include "core/cuda/optim/steps_parameters.h"
#include "core/problems/update_factors.h"
#include "core/problems/update_graphs.h"

namespace tw::cuda {

namespace {

using Slice = SliceOf<void, void>;
using Parameter = UpdateOf<void, void, void>;
using Factors = FactorsOf<void, void>;
static_assert(sizeof(Parameter) <= 4096);
static_assert(kMostFactors == kMaxFactors);

struct Row {
  const char* name;
  const char* factors;
  int states;
};
constexpr Row kRows[] = {
#define TW_UPDATE(name, states, tensors, attributes, help, factors, ...) {#name, #factors, states},
#include "core/problems/updates.inc"
#undef TW_UPDATE
};

struct Typed {
  Slice slice;
  DType dtype;
};
// The slices lie behind it.
struct Problem {
  int row, count;
  // Of step and lr; a change has the latter alone.
  DType types[2] = {};
  bool is_number[2] = {true, true};
  double numbers[2] = {1, 0};
  const void* at[2] = {};  // where they are tensors
  int attributes = 0;
  Attribute attribute[kMostAttributes] = {};
  Typed* slices() { return reinterpret_cast<Typed*>(this + 1); }
  const Typed* slices() const { return reinterpret_cast<const Typed*>(this + 1); }
};

template <int states> struct Layout {
  static constexpr int operands = 2 + states, numbers = states < 0 ? 1 : 2;
  static int parameters(const Call& call) { return (call.inputs - numbers) / operands; }
};
template <int states> std::uint32_t problem_bytes(const Call& call) {
  return static_cast<std::uint32_t>(sizeof(Problem) +
                                    sizeof(Typed) * Layout<states>::parameters(call));
}
template <int row, int states> void set_up(const Call& call, void* memory) {
  constexpr int operands = Layout<states>::operands, numbers = Layout<states>::numbers;
  Problem& p = *new (memory) Problem{.row = row, .count = Layout<states>::parameters(call)};
  for (int i = 2 - numbers; i < 2; ++i) {
    const Meta& number = call.in[call.inputs - 2 + i];
    p.types[i] = number.dtype;
    p.is_number[i] = number.number;
  }
  p.attributes = call.attributes.count;
  for (int i = 0; i < p.attributes; ++i) p.attribute[i] = call.attributes[i];
  for (int i = 0; i < p.count; ++i) {
    const Meta& param = call.in[i * operands];
    new (p.slices() + i)
        Typed{{.n = param.count, .param = nullptr, .grad = nullptr, .states = {}}, param.dtype};
  }
}
template <int states> void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  for (int i = 0; i < p.count; ++i) {
    Slice& slice = p.slices()[i].slice;
    slice.param = *at++;
    if (states >= 0) slice.grad = *at++;
    for (int s = 0; s < states; ++s) slice.states[s] = *at++;
  }
  for (int i = 2 - Layout<states>::numbers; i < 2; ++i, ++at) {
    if (p.is_number[i])
      p.numbers[i] = number_value(p.types[i], *at);
    else
      p.at[i] = *at;
  }
}

// What becomes of parameter and states, as statements.
std::string text_of_update(int row) {
  constexpr const char* kNames[formula::kUpdateInputs] = {"p",    "s1",   "s2",   "s3",   "g",
                                                          "f[0]", "f[1]", "f[2]", "f[3]", "f[4]",
                                                          "f[5]", "f[6]", "f[7]", "f[8]", "f[9]"};
  const formula::UpdateGraph& update = formula::kUpdateGraphs[row];
  const formula::Text text = formula::text_of({update.graph.begin(), update.graph.size()}, kNames);
  std::string all = text.steps;
  for (int i = 0; i < formula::kUpdated; ++i)
    if (const std::string& value = text.values[update.results[i]]; value != kNames[i])
      all += std::string(kNames[i]) + " = " + value + "; ";
  return all;
}

void launch(const Problem& p, DType dtype, const Parameter& parameter, int count,
            std::int64_t longest) {
  static const char place = 0;
  const Row& row = kRows[p.row];
  const std::uint64_t key =
      (static_cast<std::uint64_t>(p.row) * 32 + static_cast<std::uint64_t>(dtype)) * 32 +
      static_cast<std::uint64_t>(p.types[1]);
  const Function kernel = kernel_of(&place, key, "steps.cuh", "update", [&] {
    const DType type = compute_dtype(dtype);
    return define("TW_TYPE", type_name(type)) +
           define("TW_IS_FLOAT", std::to_string(size_of(type))) +
           define("TW_MEMORY", type_name(dtype)) + define("TW_NUMBER", type_name(p.types[1])) +
           define("TW_STATES", std::to_string(row.states)) +
           define("TW_UPDATE", text_of_update(p.row));
  });
  Grid grid = grid_for(longest, 8);
  grid.blocks[1] = static_cast<unsigned>(count);
  Gpu::current().launch(kernel, grid, &parameter);
}

void make_factors(const Problem& p, double* made) {
  static const char place = 0;
  Factors parameter = {p.at[0], p.at[1], p.numbers[0], p.numbers[1], {}, made};
  const Attributes attributes = {p.attribute, p.attributes};
  for (int i = 0; i < p.attributes; ++i) {
    parameter.attributes.reals[i] = attributes.real(i);
    parameter.attributes.numbers[i] = attributes[i];
  }
  const std::uint64_t key =
      (static_cast<std::uint64_t>(p.row) * 32 + static_cast<std::uint64_t>(p.types[0])) * 32 +
      static_cast<std::uint64_t>(p.types[1]);
  const Function kernel = kernel_of(&place, key, "step_factors.cuh", "update_factors", [&] {
    return define("TW_STEP", type_name(p.types[0])) + define("TW_RATE", type_name(p.types[1])) +
           define("TW_FACTORS", kRows[p.row].factors);
  });
  Gpu::current().launch(kernel, {{1, 1, 1}, 1, 0}, &parameter);
}

void launch_all(const Problem& p, Parameter& parameter) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    int count = 0;
    std::int64_t longest = 0;
    for (int i = 0; i < p.count; ++i) {
      const Typed& typed = p.slices()[i];
      if (typed.dtype != dtype || typed.slice.n == 0) continue;
      parameter.slices[count++] = typed.slice;
      longest = std::max(longest, typed.slice.n);
      if (count < kMostSlices) continue;
      launch(p, dtype, parameter, count, longest);
      count = 0;
      longest = 0;
    }
    if (count) launch(p, dtype, parameter, count, longest);
  }
}

void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  Parameter parameter = {};
  const bool is_change = kRows[p.row].states < 0;
  if (is_change || (p.is_number[0] && p.is_number[1])) {
    parameter.number = p.at[1];
    kUpdateFactors[p.row](p.numbers[0], p.numbers[1], {p.attribute, p.attributes},
                          parameter.factors);
    return launch_all(p, parameter);
  }
  constexpr std::size_t kBytes = sizeof parameter.factors;
  auto* const made = static_cast<double*>(Gpu::current().pool.allocate(kBytes));
  parameter.made = made;
  make_factors(p, made);
  launch_all(p, parameter);
  Gpu::current().pool.release(made, kBytes);
}

std::string describe(const void* problem) {
  return std::to_string(static_cast<const Problem*>(problem)->count) + " tensors";
}

}  // namespace

void register_update_kernels() {
#define TW_UPDATE(row, states, ...)                                                            \
  {                                                                                            \
    Lowering& lowering =                                                                       \
        add_kernel<Problem>(#row, "every array read and written once, 64 parameters a launch", \
                            {.set_up = set_up<static_cast<int>(UpdateOp::row), states>,        \
                             .bind = bind<states>,                                             \
                             .run = run,                                                       \
                             .name = "slices"});                                               \
    lowering.bytes = problem_bytes<states>;                                                    \
    lowering.describe = describe;                                                              \
  }
#include "core/problems/updates.inc"
#undef TW_UPDATE
}

}  // namespace tw::cuda
