// Pointwise kernels: the rows of problems/pointwise.inc as functions over contiguous runs, and the
// driver that feeds them operands of any shape, stride and element type.
#pragma once
#include <cstdint>
#include <iterator>

#include "core/base/shape.h"
#include "core/problems/pointwise_rows.h"

namespace tw {

struct IsaKernels;

// Element types that kernels compute in; other types are converted on the way in and out.
// `bf16` is float32 between a load and a store of bfloat16, for rows that are cheap against copies
// of their operands.
enum class ComputeType : std::uint8_t { f32, f64, i32, i64, u64, u8, c64, c128, bf16 };
ComputeType compute_type_of(DType dtype);
DType dtype_of(ComputeType type);

// Where a kernel's operands are found: `in_l1`, in the first-level cache; `beyond_l1`, mostly
// beyond it. `nontemporal`: besides, y is 64-byte aligned and too large for the caches, so writes
// may be nontemporal: they go past the caches.
enum class Traffic : std::uint8_t { in_l1, beyond_l1, nontemporal };
// y[0..n) from inputs of the compute type. step[i] is 1 for an array, 0 for a constant repeated
// over at least 64 bytes. Truth results are bytes 0 or 1.
using PointwiseFn = void (*)(std::int64_t n, void* y, const void* const* inputs, const int* step,
                             Traffic traffic);

// Exponents by which one power of all elements is a few operations.
inline constexpr double kSimplePowers[] = {0, 1, 2, 3, 4, -1, -2, 0.5, -0.5};
inline constexpr int kSimplePowerCount = std::size(kSimplePowers);

// Functions of one floating type: values, and gradients whose inputs are g and then those of a, b,
// c, y that the formula mentions, in this order. Null where a row has none.
//
// logarithm and what follows: xlogy and its gradient by a, with log(b) as one more input.
struct PointwiseTable {
  PointwiseFn value[kPointwiseOps];
  PointwiseFn gradient[kPointwiseOps][3];
  PointwiseFn logarithm, xlogy_by_log, xlogy_slope_by_log;
  // pow by kSimplePowers[i], of a; its gradient by a for b = kSimplePowers[i] + 1, of g, a and b.
  PointwiseFn simple_power[kSimplePowerCount], simple_power_slope[kSimplePowerCount];
};
// `where` whose condition is of bytes, by log2 of an element's bytes; null: the condition becomes
// numbers of the compute type.
struct SelectTable {
  PointwiseFn of_size[4];
};
struct PointwiseIntegerTable {
  PointwiseFn value[6][kPointwiseOps];  // i32, i64, u64, u8, c64, c128
  SelectTable select;
};

struct PointwiseBFloat16Table {
  PointwiseFn value[kPointwiseOps];  // null: computed as f32
  PointwiseFn gradient[kPointwiseOps][3];
  PointwiseFn simple_power[kSimplePowerCount];
};

inline constexpr int kMaxPointwiseInputs = 5;  // g, a, b, c, y
// A function of one operand alone, of which a row makes the rest. Where that operand repeats, it is
// computed once for each element.
struct RepeatedPart {
  PointwiseFn part = nullptr;  // null: there is none
  PointwiseFn rest = nullptr;  // whose last input is the part
  int operand = 0;
};
// Operand 0 is y, the inputs follow. Neighbouring axes that every operand crosses in even steps are
// one; strides are in elements, 0 where an operand repeats.
struct PointwiseProblem {
  PointwiseFn fn;
  PointwiseFn select;  // in its place where the first input is a mask of bools; or null
  RepeatedPart repeated;
  std::int64_t count;  // elements of y
  void* data[kMaxPointwiseInputs + 1];
  ComputeType type;
  std::int8_t operands, rank;
  bool checks_exponents;  // of integers: a negative power is refused
  std::int8_t exponent;   // the operand that is the one exponent of a floating power; 0: none
  Traffic traffic;
  DType dtype[kMaxPointwiseInputs + 1];
  std::int64_t extent[kMaxRank];
  std::int64_t stride[kMaxPointwiseInputs + 1][kMaxRank];
};
// Runs the row's part first if it has one and that operand repeats; whether it did.
bool run_repeated_part(const PointwiseProblem& problem);
// Splits large problems over threads. y may be exactly one of the inputs, but not overlap partly.
void run_pointwise(const PointwiseProblem& problem);

// Of the instruction set in use, or of another one.
PointwiseFn pointwise_value(PointwiseOp op, ComputeType type);
PointwiseFn pointwise_gradient(PointwiseOp op, int input, ComputeType type);
PointwiseFn pointwise_value(PointwiseOp op, ComputeType type, const IsaKernels& kernels);
PointwiseFn pointwise_gradient(PointwiseOp op, int input, ComputeType type,
                               const IsaKernels& kernels);
// What a formula computes results of this type by.
PointwiseOp op_for(PointwiseOp op, DType type);
// The type in which functions write results.
DType result_type(const PointwiseProblem& problem);
// Raises ValueError for a negative power of integers.
void check_exponents(const PointwiseProblem& problem);

}  // namespace tw
