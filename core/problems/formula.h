// Formulas as graphs. A formula of a table is C++ text, which kernels compile over vectors. Over
// `Traced`, here, the same text gives its graph: what is computed of what. From the graph follows
// everything else that is known of a formula: what it reads, whether a narrow type holds its
// result, its text for a GPU, its value over tensors.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tw::formula {

enum class Function : std::uint8_t {
  input,
  number,
#define TW_OPERATOR(name, ...) name,
#define TW_FUNCTION(name, ...) name,
#define TW_TENSOR_FUNCTION(name, ...) name,
#include "core/problems/formula_functions.inc"
#undef TW_OPERATOR
#undef TW_FUNCTION
};

inline constexpr int kMaxOperands = 3;

// A step: a function of earlier steps, an input, or a number.
struct Node {
  Function function = Function::number;
  std::uint8_t of[kMaxOperands] = {};  // of an input its number
  double number = 0;

  constexpr bool operator==(const Node& other) const {
    for (int i = 0; i < kMaxOperands; ++i)
      if (of[i] != other.of[i]) return false;
    return function == other.function &&
           std::bit_cast<std::uint64_t>(number) == std::bit_cast<std::uint64_t>(other.number);
  }
};

// The steps of one formula or of several, each once, operands before what is made of them.
class Graph {
 public:
  constexpr int size() const { return size_; }
  constexpr const Node& operator[](int at) const { return nodes_[at]; }
  constexpr const Node* begin() const { return nodes_; }
  // Where the step is, which may have been there before.
  constexpr int add(const Node& node) {
    for (int at = 0; at < size_; ++at)
      if (nodes_[at] == node) return at;
    nodes_[size_] = node;
    return size_++;
  }

 private:
  static constexpr int kMostNodes = 64;
  Node nodes_[kMostNodes];
  int size_ = 0;
};

// A value while its formula is traced: a step, or an input or a number that becomes one when a
// function reads it.
class Traced {
 public:
  constexpr Traced(double number) : leaf_{Function::number, {}, number} {}
  constexpr Traced(Graph& graph, std::uint8_t input)
      : graph_(&graph), leaf_{Function::input, {input}, 0} {}

  template <class... Values>
  static constexpr Traced of(Function function, const Values&... values) {
    Traced result(0);
    ((result.graph_ = result.graph_ ? result.graph_ : values.graph_), ...);
    Node node;
    node.function = function;
    int count = 0;
    ((node.of[count++] = static_cast<std::uint8_t>(values.in(*result.graph_))), ...);
    result.at_ = result.graph_->add(node);
    return result;
  }
  // Which step of the graph it is.
  constexpr int in(Graph& graph) const { return at_ < 0 ? graph.add(leaf_) : at_; }

 private:
  Graph* graph_ = nullptr;
  int at_ = -1;
  Node leaf_;
};

#define TW_OPERATOR(name, symbol, ...)                                 \
  constexpr Traced operator symbol(const Traced& a, const Traced& b) { \
    return Traced::of(Function::name, a, b);                           \
  }
#define TW_FUNCTION(name, arity, ...) TW_FUNCTION_OF_##arity(name)
#define TW_FUNCTION_OF_1(name) \
  constexpr Traced name(const Traced& x) { return Traced::of(Function::name, x); }
#define TW_FUNCTION_OF_2(name)                              \
  constexpr Traced name(const Traced& a, const Traced& b) { \
    return Traced::of(Function::name, a, b);                \
  }
#define TW_FUNCTION_OF_3(name)                                               \
  constexpr Traced name(const Traced& a, const Traced& b, const Traced& c) { \
    return Traced::of(Function::name, a, b, c);                              \
  }
#include "core/problems/formula_functions.inc"
#undef TW_OPERATOR
#undef TW_FUNCTION
#undef TW_FUNCTION_OF_1
#undef TW_FUNCTION_OF_2
#undef TW_FUNCTION_OF_3
constexpr Traced operator-(const Traced& x) { return negative(x); }
constexpr Traced& operator+=(Traced& a, const Traced& b) { return a = a + b; }
constexpr Traced& operator-=(Traced& a, const Traced& b) { return a = a - b; }

// Where a table says that there is no formula.
struct None {};
inline constexpr None none;

// The graph of f(inputs...), numbered from 0; the result is the last step. Of `none` no step.
template <int inputs, class F> constexpr Graph trace(F f) {
  Graph graph;
  const auto run = [&]<int... input>(std::integer_sequence<int, input...>) {
    return f(Traced(graph, input)...);
  };
  const auto result = run(std::make_integer_sequence<int, inputs>());
  if constexpr (!std::is_same_v<decltype(result), const None>) Traced(result).in(graph);
  return graph;
}

// ---- what is known of a function ----

enum class Result : std::uint8_t { number, truth, either, chosen, whole };
enum class Cost : std::uint8_t { light, heavy };
struct FunctionFacts {
  const char* name;
  const char* symbol;  // of an operator; else null
  int arity;
  Result result;
  Cost cost;
};
inline constexpr FunctionFacts kFunctions[] = {
    {"input", nullptr, 0, Result::number, Cost::light},
    {"number", nullptr, 0, Result::number, Cost::light},
#define TW_OPERATOR(name, symbol, result, cost) {#name, #symbol, 2, Result::result, Cost::cost},
#define TW_FUNCTION(name, arity, result, cost) {#name, nullptr, arity, Result::result, Cost::cost},
#define TW_TENSOR_FUNCTION(name, arity) {#name, nullptr, arity, Result::number, Cost::heavy},
#include "core/problems/formula_functions.inc"
#undef TW_OPERATOR
#undef TW_FUNCTION
};
constexpr const FunctionFacts& facts(const Node& node) {
  return kFunctions[static_cast<int>(node.function)];
}

constexpr int operands_of(const Node& node) { return facts(node).arity; }

// ---- what follows from a graph ----

// The inputs that it reads, a bit each by their numbers.
constexpr std::uint32_t inputs_of(const Graph& graph) {
  std::uint32_t inputs = 0;
  for (int at = 0; at < graph.size(); ++at)
    if (graph[at].function == Function::input) inputs |= 1u << graph[at].of[0];
  return inputs;
}
constexpr bool is_number(const Graph& graph, double number) {
  return graph.size() == 1 && graph[0] == Node{Function::number, {}, number};
}
constexpr bool is_input(const Graph& graph, std::uint8_t input) {
  return graph.size() == 1 && graph[0] == Node{Function::input, {input}, 0};
}
constexpr bool is_light(const Graph& graph) {
  for (int at = 0; at < graph.size(); ++at)
    if (facts(graph[at]).cost == Cost::heavy) return false;
  return true;
}

// Whether a step's values are -1, 0, 1 or NaN alone, by which products are exact.
constexpr bool is_sign(const Graph& graph, int at) {
  const Node& node = graph[at];
  switch (node.function) {
    case Function::sign: return true;
    case Function::copysign:
    case Function::negative: return is_sign(graph, node.of[0]);
    default: return false;
  }
}
constexpr bool holds_in_bfloat16(double number) {
  const auto narrow = static_cast<float>(number);
  return narrow == number && (std::bit_cast<std::uint32_t>(narrow) & 0xffff) == 0;
}
// Whether bfloat16 holds what a step makes of numbers that it holds.
constexpr bool is_exact_in_bfloat16(const Graph& graph, int at) {
  const Node& node = graph[at];
  const FunctionFacts& known = facts(node);
  if (node.function == Function::input || known.result == Result::truth) return true;
  if (node.function == Function::number) return holds_in_bfloat16(node.number);
  if (node.function == Function::multiply)
    return (is_sign(graph, node.of[0]) && is_exact_in_bfloat16(graph, node.of[1])) ||
           (is_sign(graph, node.of[1]) && is_exact_in_bfloat16(graph, node.of[0]));
  if (known.result == Result::number) return false;
  if (node.function == Function::sign) return true;
  for (int i = node.function == Function::where; i < operands_of(node); ++i)
    if (!is_exact_in_bfloat16(graph, node.of[i])) return false;
  return true;
}
constexpr bool is_exact_in_bfloat16(const Graph& graph) {
  return is_exact_in_bfloat16(graph, graph.size() - 1);
}

// Whether signs, sizes, zeros and NaN decide alone, without arithmetic: a formula over numbers'
// bits.
constexpr bool is_of_bits(const Graph& graph) {
  const auto is = [&](int at, Function function) { return graph[at].function == function; };
  const auto is_0 = [&](int at) { return graph[at] == Node(); };
  for (int at = 0; at < graph.size(); ++at) {
    const Node& node = graph[at];
    switch (node.function) {
      case Function::number:
        if (node.number != 0) return false;
        break;
      case Function::equal:
      case Function::not_equal:
        if (is_0(node.of[0])) return false;
        break;
      case Function::less_equal:
        if (!is(node.of[0], Function::abs) || !is(node.of[1], Function::abs)) return false;
        break;
      case Function::input:
      case Function::negative:
      case Function::abs:
      case Function::isnan:
      case Function::isinf:
      case Function::isfinite:
      case Function::signbit:
      case Function::bitwise_and:
      case Function::bitwise_or:
      case Function::bitwise_xor: break;
      case Function::copysign:
      case Function::nextafter:
      case Function::where:
        for (int i = 0; i < operands_of(node); ++i)
          if (is(node.of[i], Function::number)) return false;
        break;
      default: return false;
    }
  }
  return true;
}

// ---- graphs of a running program ----

// The steps of a graph in memory that lasts; the last is the result. Without steps: no formula.
struct Formula {
  const Node* nodes = nullptr;
  int size = 0;
};
template <const Graph& graph> struct Kept {
  struct Nodes {
    Node at[graph.size() ? graph.size() : 1];
  };
  static constexpr Nodes copied() {
    Nodes nodes = {};
    for (int at = 0; at < graph.size(); ++at) nodes.at[at] = graph[at];
    return nodes;
  }
  static constexpr Nodes nodes = copied();
};
template <const Graph& graph> inline constexpr Formula kept = {Kept<graph>::nodes.at, graph.size()};

// C++ of a formula: its steps as declarations of t0, t1 and so on, and an expression for the value
// of each. `names` are the inputs'.
struct Text {
  std::string steps;
  std::vector<std::string> values;
};
Text text_of(const Formula& formula, const char* const* names);

}  // namespace tw::formula
