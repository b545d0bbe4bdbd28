// The pointwise ops as functions and operators on tensors, one for each row of pointwise.inc.
#pragma once
#include <atomic>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/engine/apply.h"
#include "core/problems/pointwise_rows.h"
#include "core/runtime/op.h"
#include "core/tensor/operand.h"

namespace tw {

// The rows' records, made on first use.
extern std::atomic<const OpRecord*> known_value_records;
[[gnu::cold]] const OpRecord* make_value_records();
inline const OpRecord* value_records() {
  const OpRecord* const known = known_value_records.load(std::memory_order_acquire);
  return known ? known : make_value_records();
}
inline const OpRecord& record_of(PointwiseOp op) { return value_records()[static_cast<int>(op)]; }
// Broadcasts, promotes, computes and records. Raises TypeError for element types the row is not
// for, ValueError for shapes that do not broadcast.
inline Tensor pointwise(PointwiseOp op, const Operand* operands) {
  Tensor y;
  apply(record_of(op), operands, kPointwiseRows[static_cast<int>(op)].arity, {}, &y);
  return y;
}
// The same, written into operands[0]'s memory; the handle gets a new place in the graph where the
// op is recorded. Raises where the result's shape or kind does not fit, for leaves that require
// grad, and for recorded changes of a view.
void pointwise_in_place(PointwiseOp op, Operand* operands);
// The same for any op with one result; rows compute it there, others beside it first.
// Raises ValueError for parameters of an activation that leave its formula without a meaning.
void check_settings(PointwiseOp op, const Operand* in);
void apply_in_place_of_first(const OpRecord& op, Operand* operands, int inputs,
                             Attributes attributes);

// The row whose values an op computes, if it is one.
std::optional<PointwiseOp> row_of(const OpRecord& op);
// The row's help, formula, types, errors and gradients (pointwise/help.cpp).
// `tensors`: how many of its operands may be tensors.
std::string help_of(const PointwiseRow& row, int tensors);
// The row that a value's record is made from.
inline const PointwiseRow& pointwise_row(const OpRecord& op) {
  return *static_cast<const PointwiseRow*>(op.row);
}
// The gradient of an input of a row, from that of the result and what the row's formula reads.
Tensor gradient_of(PointwiseOp op, int input, const Tensor& g,
                   std::initializer_list<Operand> reads);
// Those of the gradient formulas, from the gradient of the result and what the formula reads.
void append_gradient_records(std::vector<const OpRecord*>& records);

#define TW_UNARY(name, ...) \
  inline Tensor name(const Operand& x) { return pointwise(PointwiseOp::name, &x); }
#define TW_BINARY(name, ...)                               \
  inline Tensor name(const Operand& a, const Operand& b) { \
    const Operand operands[] = {a, b};                     \
    return pointwise(PointwiseOp::name, operands);         \
  }
#define TW_TERNARY(name, ...)                                                \
  inline Tensor name(const Operand& a, const Operand& b, const Operand& c) { \
    const Operand operands[] = {a, b, c};                                    \
    return pointwise(PointwiseOp::name, operands);                           \
  }
#include "core/problems/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY

inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return subtract(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return multiply(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return divide(a, b); }
inline Tensor operator-(const Tensor& x) { return negative(x); }
inline Tensor operator<(const Operand& a, const Operand& b) { return less(a, b); }
inline Tensor operator>(const Operand& a, const Operand& b) { return greater(a, b); }
inline Tensor operator<=(const Operand& a, const Operand& b) { return less_equal(a, b); }
inline Tensor operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b); }
inline Tensor operator==(const Operand& a, const Operand& b) { return equal(a, b); }
inline Tensor operator!=(const Operand& a, const Operand& b) { return not_equal(a, b); }
inline Tensor operator&(const Operand& a, const Operand& b) { return logical_and(a, b); }
inline Tensor operator|(const Operand& a, const Operand& b) { return logical_or(a, b); }
inline Tensor operator^(const Operand& a, const Operand& b) { return logical_xor(a, b); }

}  // namespace tw
