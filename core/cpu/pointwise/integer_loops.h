// The pointwise rows for whole numbers, bools and complex numbers; these have no gradients.
#pragma once
#include "core/cpu/pointwise/pointwise_loops.h"
#include "core/cpu/pointwise/select_loops.h"

namespace tw::TW_ISA_NAME {

#define TW_UNARY(name, ...) value_function<name##_row, T, 1>(),
#define TW_BINARY(name, ...) value_function<name##_row, T, 2>(),
#define TW_TERNARY(name, ...) value_function<name##_row, T, 3>(),
namespace {
struct IntegerFunctions {
  PointwiseFn value[kPointwiseOps];
};
template <class T> constexpr IntegerFunctions integer_functions() {
  return {{
#include "core/problems/pointwise.inc"
  }};
}
constexpr PointwiseIntegerTable make_integer_table() {
  PointwiseIntegerTable table = {};
  const IntegerFunctions types[6] = {
      integer_functions<std::int32_t>(),  integer_functions<std::int64_t>(),
      integer_functions<std::uint64_t>(), integer_functions<std::uint8_t>(),
      integer_functions<Complex64>(),     integer_functions<Complex128>()};
  for (int t = 0; t < 6; ++t)
    for (int op = 0; op < kPointwiseOps; ++op) table.value[t][op] = types[t].value[op];
  table.select = make_select_table();
  return table;
}
}  // namespace
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY

extern const PointwiseIntegerTable pointwise_integer_table;
constexpr PointwiseIntegerTable pointwise_integer_table = make_integer_table();

}  // namespace tw::TW_ISA_NAME
