// Reductions on raw pointers, and the table of one instruction set's loops.
#pragma once
#include <cstdint>

#include "core/base/thresholds.h"
#include "core/problems/reduce.h"

namespace tw {

void reduce(const ReduceProblem& problem);
// Of roots of sums of squares of float64: those whose squares left the range, anew.
void find_lost_norms(const ReduceProblem& problem);
// prod of complex numbers.
void complex_product(const ReduceProblem& problem);

// Types that the loops exist for; others are converted block by block. `truth` is bytes 0 and 1.
enum class ReduceType : std::uint8_t { f32, f64, i64, u64, i32, u32, i16, u16, i8, u8, truth };
inline constexpr int kReduceTypes = 11;
// Row i of x starts at x + i * row_bytes, its elements are contiguous. Accumulators have x's type,
// except that f32 sums and products have double, and sums of integers 64 bits.
//   rows:    acc[i] = acc[i] op x[i][0] op ... op x[i][n-1], i < m
//   columns: acc[j] = acc[j] op x[0][j] op ... op x[m-1][j], j < n
using ReduceFunction = void (*)(std::int64_t m, std::int64_t n, const void* x,
                                std::int64_t row_bytes, void* acc);
// The same for positions: `base` is the position of row element 0 (rows) or of row 0 (columns);
// index < 0 means that there is no best yet.
using ArgFunction = void (*)(std::int64_t m, std::int64_t n, const void* x, std::int64_t row_bytes,
                             std::int64_t base, void* best, std::int64_t* index);

// The same for sums with a second operand of x's type: of (x - centre)^2, where each accumulator
// has a centre, and of x * y, where y lies as x does.
using SecondFunction = void (*)(std::int64_t m, std::int64_t n, const void* x,
                                std::int64_t row_bytes, const void* second, void* acc);

// Gradients that read x again, from g and, for an extremum, y, of which each row or column has one.
//   prod      g * the product of all other factors, whatever the range of products on the way; what
//             holds of zeros, infinities and NaN is what multiplying the others gives
//   extremum  g shared by the elements that equal y, 0 for the others; NaN where y is
// Rows: m contiguous rows of n. Columns: m columns of n elements that are `step` apart, m at most
// kStripBackward, of extrema kExtremumColumns: pages are read faster where a row is long, and what
// is known of so many columns stays in the first-level cache.
enum class Gradient : std::uint8_t { prod, extremum };
inline constexpr int kGradients = 2;
inline constexpr int kStripBackward = thresholds::kStrip,
                     kExtremumColumns = thresholds::kExtremumStrip;
using RowsBackward = void (*)(std::int64_t m, std::int64_t n, const void* x, const void* y,
                              const void* g, void* dx);
using ColumnsBackward = void (*)(std::int64_t m, std::int64_t n, std::int64_t step, const void* x,
                                 const void* y, const void* g, void* dx);

inline constexpr int kFewRows = 8, kFewFactors = 7;

struct ReduceTable {
  // Null: positions, sums of bools, products of narrow integers, terms of integers.
  ReduceFunction rows[kReduceOps][kReduceTypes];
  ReduceFunction columns[kReduceOps][kReduceTypes];
  // As f32, of bfloat16 as it lies; null: products, columns of squares.
  ReduceFunction bfloat16_rows[kReduceOps];
  ReduceFunction bfloat16_columns[kReduceOps];
  int bfloat16_width;  // fewer columns take less time when they are converted before
  // [0] sums down the columns of 2 to kFewRows rows of float32, [1] products of 2 to kFewFactors:
  // into float32, y[j] of n.
  ReduceFunction few_rows[2];
  // Sums along rows of n / 2 pairs, which lie apart in two accumulators of float64: [0] float32,
  // [1] float64. Null where a vector has one lane.
  ReduceFunction pair_rows[2];
  ArgFunction arg_rows[2][kReduceTypes];  // [0] largest, [1] smallest
  ArgFunction arg_columns[2][kReduceTypes];
  // [0] float32, [1] float64
  SecondFunction squares_rows[2];
  SecondFunction squares_columns[2];
  SecondFunction product_rows[2];
  SecondFunction product_columns[2];
  SecondFunction bfloat16_product_rows;
  SecondFunction bfloat16_product_columns;
  // The product of a row of n complex numbers, and of m columns of n, whose rows are `step` parts
  // apart, as parts of double; false where factors must be multiplied one after the other, since
  // something left the range on the way. [0] parts of float32, [1] float64. Null where a vector has
  // one lane.
  bool (*complex_row[2])(std::int64_t n, const void* x, double* y);
  bool (*complex_columns[2])(std::int64_t m, std::int64_t n, const void* x, std::int64_t step,
                             double* y);
  RowsBackward rows_backward[kGradients][2];
  ColumnsBackward columns_backward[kGradients][2];
  // An extremum's gradient in two steps, for parts of a long row: how many elements equal *y, and
  // *g shared by so many.
  std::int64_t (*matches[2])(std::int64_t n, const void* x, const void* y);
  void (*share[2])(std::int64_t n, const void* x, const void* y, const void* g, std::int64_t count,
                   void* dx);
};

// Gradients of products and extrema: x and dx are [outer, n, inner], y and g are [outer, inner];
// products have no y.
struct GradientProblem {
  DType dtype;
  std::int64_t outer, n, inner;
  bool are_rows;
  const void *x, *y, *g;
  void* dx;
};

}  // namespace tw
