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

template <class T> constexpr void fill_extrema(ReduceTable& table, ReduceType type) {
  const int t = (int)type;
  table.rows[(int)Combine::max][t] = rows<Max<T>, T>;
  table.columns[(int)Combine::max][t] = columns<Max<T>, T>;
  table.rows[(int)Combine::min][t] = rows<Min<T>, T>;
  table.columns[(int)Combine::min][t] = columns<Min<T>, T>;
  table.arg_rows[0][t] = arg_rows<T, true>;
  table.arg_rows[1][t] = arg_rows<T, false>;
  table.arg_columns[0][t] = arg_columns<T, true>;
  table.arg_columns[1][t] = arg_columns<T, false>;
}
template <class T> constexpr void fill_floating(ReduceTable& table, ReduceType type) {
  const int t = (int)type;
  fill_extrema<T>(table, type);
  table.rows[(int)Combine::sum][t] = rows<Sum<T>, T>;
  table.columns[(int)Combine::sum][t] = columns<Sum<T>, T>;
  table.rows[(int)Combine::prod][t] = prod_rows<T>;
  table.columns[(int)Combine::prod][t] = prod_columns<T>;
  table.rows[(int)Combine::numbers][t] = rows<Sum<T>, T, T, Number>;
  table.columns[(int)Combine::numbers][t] = columns<Sum<T>, T, T, Number>;
  table.rows[(int)Combine::magnitudes][t] = rows<Sum<T>, T, T, Magnitude>;
  table.columns[(int)Combine::magnitudes][t] = columns<Sum<T>, T, T, Magnitude>;
  table.rows[(int)Combine::squares][t] = rows<Sum<T>, T, T, Square>;
  table.columns[(int)Combine::squares][t] = square_columns<T>;
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
// Wrapping sums and products of signed integers are those of unsigned ones.
constexpr void fill_wide(ReduceTable& table, ReduceType type) {
  const int t = (int)type;
  table.rows[(int)Combine::sum][t] = rows<Sum<uint64_t>, uint64_t>;
  table.columns[(int)Combine::sum][t] = columns<Sum<uint64_t>, uint64_t>;
  table.rows[(int)Combine::prod][t] = rows<Product<uint64_t>, uint64_t>;
  table.columns[(int)Combine::prod][t] = columns<Product<uint64_t>, uint64_t>;
}
template <class T> constexpr void fill_narrow(ReduceTable& table, ReduceType type) {
  fill_extrema<T>(table, type);
  table.rows[(int)Combine::sum][(int)type] = narrow_sum_rows<T>;
  table.columns[(int)Combine::sum][(int)type] = narrow_sum_columns<T>;
}
constexpr void fill_bfloat16(ReduceTable& table) {
#ifdef TW_HAS_MASKED_HALVES
  table.bfloat16_width = 1;
#else
  table.bfloat16_width = kLanes<Stored16>;
#endif
  table.bfloat16_rows[(int)Combine::sum] = rows<Sum<float>, float, BFloat16>;
  table.bfloat16_columns[(int)Combine::sum] = columns<Sum<float>, float, BFloat16>;
  table.bfloat16_rows[(int)Combine::numbers] = rows<Sum<float>, float, BFloat16, Number>;
  table.bfloat16_columns[(int)Combine::numbers] = columns<Sum<float>, float, BFloat16, Number>;
  table.bfloat16_rows[(int)Combine::magnitudes] = rows<Sum<float>, float, BFloat16, Magnitude>;
  table.bfloat16_columns[(int)Combine::magnitudes] =
      columns<Sum<float>, float, BFloat16, Magnitude>;
  table.bfloat16_rows[(int)Combine::squares] = rows<Sum<float>, float, BFloat16, Square>;
  table.bfloat16_product_rows = product_rows<float, BFloat16>;
  table.bfloat16_product_columns = product_columns<float, BFloat16>;
  table.bfloat16_rows[(int)Combine::max] = bfloat16_extremum_rows<true>;
  table.bfloat16_columns[(int)Combine::max] = bfloat16_extremum_columns<true>;
  table.bfloat16_rows[(int)Combine::min] = bfloat16_extremum_rows<false>;
  table.bfloat16_columns[(int)Combine::min] = bfloat16_extremum_columns<false>;
}
constexpr ReduceTable make_table() {
  ReduceTable table = {};
  fill_floating<float>(table, ReduceType::f32);
  fill_floating<double>(table, ReduceType::f64);
  fill_bfloat16(table);
  table.few_rows[0] = few_rows<false>;
  table.few_rows[1] = few_rows<true>;
  fill_extrema<int64_t>(table, ReduceType::i64);
  fill_extrema<uint64_t>(table, ReduceType::u64);
  fill_wide(table, ReduceType::i64);
  fill_wide(table, ReduceType::u64);
  fill_narrow<std::int32_t>(table, ReduceType::i32);
  fill_narrow<std::uint32_t>(table, ReduceType::u32);
  fill_narrow<std::int16_t>(table, ReduceType::i16);
  fill_narrow<std::uint16_t>(table, ReduceType::u16);
  fill_narrow<std::int8_t>(table, ReduceType::i8);
  fill_narrow<uint8_t>(table, ReduceType::u8);
  fill_extrema<uint8_t>(table, ReduceType::truth);
  table.rows[(int)Combine::max][(int)ReduceType::truth] = truth_rows<Max<uint8_t>>;
  table.rows[(int)Combine::min][(int)ReduceType::truth] = truth_rows<Min<uint8_t>>;
  return table;
}

}  // namespace

extern const ReduceTable reduce_table;
const ReduceTable reduce_table = make_table();

}  // namespace tw::TW_ISA_NAME
