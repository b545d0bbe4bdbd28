// Pointwise kernels: the rows of ops/pointwise.inc as functions over contiguous runs, and the
// driver that feeds them operands of any shape, stride and element type.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace tw {

enum class PointwiseOp : std::uint8_t {
#define TW_UNARY(name, ...) name,
#define TW_BINARY(name, ...) name,
#define TW_TERNARY(name, ...) name,
#include "core/ops/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};
#define TW_UNARY(name, ...) +1
#define TW_BINARY(name, ...) +1
#define TW_TERNARY(name, ...) +1
inline constexpr int kPointwiseOps = 0
#include "core/ops/pointwise.inc"
    ;
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY

// Kinds of element types a row is for.
namespace kind {
inline constexpr int f = 1, i = 2, b = 4, c = 8;  // floating, integer, bool, complex
// `promotes`: integers and bool are computed as the default floating type.
// `condition`: the first operand is a truth value and takes no part in promotion.
inline constexpr int promotes = 16, condition = 32;
inline constexpr int numeric = f | i | c, real = f | i, ordered = f | i | b, any = f | i | b | c;
inline constexpr int floating = f | promotes, complex = f | c | promotes, bits = i | b;
inline constexpr int chosen = f | i | b | c | condition;
}  // namespace kind

enum class PointwiseResult : std::uint8_t { same, truth };

// The parts of a row that are data.
struct PointwiseRow {
  const char* name;
  int arity;
  int kinds;
  PointwiseResult result;
  const char* formula;
  const char* gradients[3];  // "none" where there is none
  const char* help;
};
extern const PointwiseRow kPointwiseRows[kPointwiseOps];

// Element types that kernels compute in; other types are converted on the way in and out.
enum class ComputeType : std::uint8_t { f32, f64, i32, i64, u64, u8, c64 };
ComputeType compute_type_of(DType dtype);
DType dtype_of(ComputeType type);

// y[0..n) from inputs of the compute type. step[i] is 1 for an array, 0 for a constant repeated
// over at least 64 bytes. Truth results are bytes 0 or 1. stream: y is 64-byte aligned and too
// large for the caches, so writes may go around them.
using PointwiseFn = void (*)(std::int64_t n, void* y, const void* const* inputs, const int* step,
                             bool stream);

// Functions of one floating type: values, and gradients whose inputs are g and then those of a, b,
// c, y that the formula mentions, in this order. Null where a row has none.
struct PointwiseTable {
  PointwiseFn value[kPointwiseOps];
  PointwiseFn gradient[kPointwiseOps][3];
};
struct PointwiseIntegerTable {
  PointwiseFn value[5][kPointwiseOps];  // i32, i64, u64, u8, c64
};

// Whether the identifier `name` occurs in a formula's text.
constexpr bool mentions(std::string_view text, std::string_view name) {
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const bool starts = at == 0 || !part(text[at - 1]);
    const bool ends = at + name.size() == text.size() || !part(text[at + name.size()]);
    if (starts && ends) return true;
  }
  return false;
}

inline constexpr int kMaxPointwiseInputs = 5;  // g, a, b, c, y
// Operand 0 is y, the inputs follow. Neighbouring axes that every operand crosses in even steps are
// one; strides are in elements, 0 where an operand repeats.
struct PointwiseProblem {
  PointwiseFn fn;
  std::int64_t count;  // elements of y
  void* data[kMaxPointwiseInputs + 1];
  ComputeType type;
  std::int8_t operands, rank;
  bool checks_exponents;  // of integers: a negative power is refused
  DType dtype[kMaxPointwiseInputs + 1];
  std::int64_t extent[kMaxRank];
  std::int64_t stride[kMaxPointwiseInputs + 1][kMaxRank];
};
// Splits large problems over threads. y may be exactly one of the inputs, but not overlap partly.
void run_pointwise(const PointwiseProblem& problem);

PointwiseFn pointwise_value(PointwiseOp op, ComputeType type);
PointwiseFn pointwise_gradient(PointwiseOp op, int input, ComputeType type);

}  // namespace tw
