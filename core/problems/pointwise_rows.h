// The rows of pointwise.inc as data, for ops and kernels.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/problems/formula.h"

namespace tw {

enum class PointwiseOp : std::uint8_t {
#define TW_UNARY(name, ...) name,
#define TW_BINARY(name, ...) name,
#define TW_TERNARY(name, ...) name,
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};
#define TW_UNARY(name, ...) +1
#define TW_BINARY(name, ...) +1
#define TW_TERNARY(name, ...) +1
inline constexpr int kPointwiseOps = 0
#include "core/problems/pointwise.inc"
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

inline constexpr int kMaxRowInputs = 3;

// What formulas speak of, by number: operands (x is a), the result, its gradient.
enum PointwiseInput : std::uint8_t { input_a, input_b, input_c, input_y, input_g };
inline constexpr int kPointwiseInputs = 5;

// How an operand gets its gradient: not at all, as zeros, as that of the result, by a formula.
enum class GradientForm : std::uint8_t { none, zero, pass, formula };
struct PointwiseGradient {
  GradientForm form = GradientForm::none;
  std::uint8_t reads = 0;  // which of a, b, c and y beside g, a bit each by their numbers
  formula::Formula graph;
  const char* text = "none";
};

// The parts of a row that are data.
struct PointwiseRow {
  const char* name;
  int arity;
  int kinds;
  PointwiseResult result;
  const char* text;
  formula::Formula graph;
  PointwiseGradient gradients[kMaxRowInputs];
  const char* help;
};
extern const PointwiseRow kPointwiseRows[kPointwiseOps];

// The largest errors of CPU results in ulp (accuracy.inc); 0 where none is stated.
struct PointwiseAccuracy {
  double float32 = 0, float64 = 0;
};
PointwiseAccuracy accuracy_of(PointwiseOp op);

}  // namespace tw
