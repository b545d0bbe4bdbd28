// The table of reductions along rows and down columns: sums, products, extrema and their positions.
#pragma once
#include "core/cpu/reduce/along_rows.h"
#include "core/cpu/reduce/down_columns.h"
#include "core/cpu/reduce/extrema_backward.h"
#include "core/cpu/reduce/extrema_bfloat16.h"
#include "core/cpu/reduce/extrema_positions.h"
#include "core/cpu/reduce/few_rows.h"
#include "core/cpu/reduce/integer_sums.h"
#include "core/cpu/reduce/prod.h"
#include "core/cpu/reduce/prod_complex.h"
#include "core/cpu/reduce/reduce.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;
using std::uint64_t;
using std::uint8_t;

// Bytes 0 and 1: a row is read until it is decided.
template <class Op>
void truth_rows(int64_t m, int64_t n, const void* x, int64_t row_bytes, void* acc) {
  auto* a = (uint8_t*)acc;
  constexpr uint8_t decided = 1 - Op::identity % 2;
  for (int64_t i = 0; i < m; ++i) {
    const auto* row = (const uint8_t*)x + i * row_bytes;
    for (int64_t at = 0; at < n && a[i] != decided; at += kBlock<uint8_t>) {
      const int64_t count = n - at < kBlock<uint8_t> ? n - at : kBlock<uint8_t>;
      a[i] = Op::one(a[i], block_of_row<Op, uint8_t>(count, row + at));
    }
  }
}

// The loops of a combination of elements of a type.
template <class T, ReduceType type, ReduceOp op> constexpr void fill(ReduceTable& table) {
  constexpr int at = (int)op, t = (int)type;
  constexpr bool floats = std::is_floating_point_v<T>, truths = type == ReduceType::truth;
  constexpr bool wide = sizeof(T) == sizeof(uint64_t), larger = takes_larger(op);
  using Of = TermOf<op>;
  static_assert(is_of_elements(op) || join_of(op) == ReduceJoin::sum, "loops join elements");
  if constexpr (is_arg(op)) {
    table.arg_rows[!larger][t] = arg_rows<T, larger>;
    table.arg_columns[!larger][t] = arg_columns<T, larger>;
  } else if constexpr (is_extremum(op) || (is_logic(op) && truths)) {
    using Op = Extremum<T, larger>;
    if constexpr (truths)
      table.rows[at][t] = truth_rows<Op>;
    else
      table.rows[at][t] = rows<Op, T>;
    table.columns[at][t] = columns<Op, T>;
  } else if constexpr (join_of(op) == ReduceJoin::sum && floats) {
    table.rows[at][t] = rows<Sum<T>, T, T, Of>;
    if constexpr (std::is_same_v<Of, Square>)
      table.columns[at][t] = square_columns<T>;
    else
      table.columns[at][t] = columns<Sum<T>, T, T, Of>;
  } else if constexpr (join_of(op) == ReduceJoin::sum && is_of_elements(op) && !truths) {
    if constexpr (wide) {  // wrapping sums of signed integers are those of unsigned ones
      table.rows[at][t] = rows<Sum<uint64_t>, uint64_t>;
      table.columns[at][t] = columns<Sum<uint64_t>, uint64_t>;
    } else {
      table.rows[at][t] = narrow_sum_rows<T>;
      table.columns[at][t] = narrow_sum_columns<T>;
    }
  } else if constexpr (join_of(op) == ReduceJoin::product && floats) {
    table.rows[at][t] = prod_rows<T>;
    table.columns[at][t] = prod_columns<T>;
  } else if constexpr (join_of(op) == ReduceJoin::product && wide) {
    table.rows[at][t] = rows<Product<uint64_t>, uint64_t>;
    table.columns[at][t] = columns<Product<uint64_t>, uint64_t>;
  }
}
template <class T, ReduceType type> constexpr void fill_all(ReduceTable& table) {
#define TW_COMBINATION(name, ...) fill<T, type, ReduceOp::name>(table);
#include "core/problems/combinations.inc"
}
template <class T, ReduceType type> constexpr void fill_floating(ReduceTable& table) {
  constexpr int t = (int)type;
  fill_all<T, type>(table);
  if constexpr (kLanes<T> > 1) table.pair_rows[t] = pair_rows<T>;
  table.squares_rows[t] = squares_rows<T>;
  table.squares_columns[t] = squares_columns<T>;
  table.product_rows[t] = product_rows<T, T>;
  if constexpr (kLanes<double> > 1) {
    table.complex_row[t] = complex_row<T>;
    table.complex_columns[t] = complex_columns<T>;
  }
  table.product_columns[t] = product_columns<T, T>;
  table.rows_backward[(int)Gradient::prod][t] = prod_rows_backward<T>;
  table.columns_backward[(int)Gradient::prod][t] = prod_columns_backward<T>;
  table.rows_backward[(int)Gradient::extremum][t] = extremum_rows_backward<T>;
  table.columns_backward[(int)Gradient::extremum][t] = extremum_columns_backward<T>;
  table.matches[t] = matches<T>;
  table.share[t] = share<T>;
}
template <ReduceOp op> constexpr void fill_bfloat16(ReduceTable& table) {
  constexpr int at = (int)op;
  using Of = TermOf<op>;
  if constexpr (join_of(op) == ReduceJoin::sum) {
    table.bfloat16_rows[at] = rows<Sum<float>, float, BFloat16, Of>;
    if constexpr (!std::is_same_v<Of, Square>)
      table.bfloat16_columns[at] = columns<Sum<float>, float, BFloat16, Of>;
  } else if constexpr (is_extremum(op) && !is_arg(op)) {
    table.bfloat16_rows[at] = bfloat16_extremum_rows<takes_larger(op)>;
    table.bfloat16_columns[at] = bfloat16_extremum_columns<takes_larger(op)>;
  }
}
constexpr void fill_bfloat16(ReduceTable& table) {
#ifdef TW_HAS_MASKED_HALVES
  table.bfloat16_width = 1;
#else
  table.bfloat16_width = kLanes<Stored16>;
#endif
#define TW_COMBINATION(name, ...) fill_bfloat16<ReduceOp::name>(table);
#include "core/problems/combinations.inc"
  table.bfloat16_product_rows = product_rows<float, BFloat16>;
  table.bfloat16_product_columns = product_columns<float, BFloat16>;
}
constexpr ReduceTable make_table() {
  ReduceTable table = {};
  fill_floating<float, ReduceType::f32>(table);
  fill_floating<double, ReduceType::f64>(table);
  fill_bfloat16(table);
  table.few_rows[0] = few_rows<false>;
  table.few_rows[1] = few_rows<true>;
  fill_all<int64_t, ReduceType::i64>(table);
  fill_all<uint64_t, ReduceType::u64>(table);
  fill_all<std::int32_t, ReduceType::i32>(table);
  fill_all<std::uint32_t, ReduceType::u32>(table);
  fill_all<std::int16_t, ReduceType::i16>(table);
  fill_all<std::uint16_t, ReduceType::u16>(table);
  fill_all<std::int8_t, ReduceType::i8>(table);
  fill_all<uint8_t, ReduceType::u8>(table);
  fill_all<uint8_t, ReduceType::truth>(table);
  return table;
}

}  // namespace

extern const ReduceTable reduce_table;
const ReduceTable reduce_table = make_table();

}  // namespace tw::TW_ISA_NAME
