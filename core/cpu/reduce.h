// Reductions on raw pointers: the problem, and the table of one instruction set's loops.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace tw {

// What elements are joined by: the combinations of the rows of ops/reductions.inc.
enum class ReduceOp : std::uint8_t {
  sum,
  prod,
  max,
  min,
  argmax,
  argmin,
  any,
  all,
  numbers,
  magnitudes,
  squares
};

// How many elements are combined. Several divisions take the time of a pass over memory: a product
// is exact where the count is a power of two, and as good where results are rounded once more.
struct ReducedCount {
  double count, inverse;  // 0: divide
  ReducedCount(std::int64_t elements, DType out)
      : count(static_cast<double>(elements)),
        inverse(out != DType::float64 && out != DType::complex128  ? 1 / count
                : elements > 0 && (elements & (elements - 1)) == 0 ? 1 / count
                                                                   : 0) {}
  friend double operator/(double y, const ReducedCount& by) {
    return by.inverse != 0 ? y * by.inverse : y / by.count;
  }
};
// Makes results of n combinations of `count` elements each.
using ReduceFinish = void (*)(std::int64_t n, ReducedCount count, double* y);

// y[kept...] = op over `reduced` of x[kept..., reduced...]; strides of x in elements, any sign or
// zero; y is contiguous over the kept axes in their order. Axes may come in any order, except that
// argmax and argmin count positions row-major over `reduced` as given. What is computed:
//   sum, prod        in the wider of in and out; float16, bfloat16 and float32 sums accumulate in
//                    float32 blocks that are added up in float64; integers in 64 bits, wrapping
//   numbers          the sum of what is no NaN
//   magnitudes, squares  the sums of those, of floating types; squares of float32 and bfloat16
//                    neither overflow nor vanish, nor do those of float64 whose root is taken
//   max, min         NaN where there is one; out has in's dtype (any wider one works)
//   argmax, argmin   out int64; first of equals, first NaN
//   any, all         out bool; x != 0
// Complex numbers: sum, prod, any, all. Over no elements: sum 0, prod 1, any false, all true; the
// others must not be asked. Where there is a `finish`, results are what it makes of the
// combinations and of the number of elements in each, in double. The result does not depend on the
// number of threads. With a centre for each result, of in's type (float32 or float64), a sum is
// that of (x - centre)^2, and out float64. With factors, which are of in's type and lie as x does,
// one of the axes without gaps, a sum is that of x * factor. `by_place`: x is row-major, kept and
// reduced axes take turns, and the bits of a result do not depend on how many there are, none of
// which must be told from strides along one element.
struct ReduceProblem {
  ReduceOp op;
  DType in, out;
  PlainDims kept, kept_strides;
  PlainDims reduced, reduced_strides;
  const void* x;
  void* y;
  const void* centres = nullptr;
  ReduceFinish finish = nullptr;
  const void* factors = nullptr;
  bool by_place = false;
};

void reduce(const ReduceProblem& problem);
// Of roots of sums of squares of float64: those whose squares left the range, anew.
void find_lost_norms(const ReduceProblem& problem);
// prod of complex numbers.
void complex_product(const ReduceProblem& problem);

// Types that the loops exist for; others are converted block by block. `truth` is bytes 0 and 1.
enum class ReduceType : std::uint8_t { f32, f64, i64, u64, i32, u32, i16, u16, i8, u8, truth };
inline constexpr int kReduceTypes = 11;
// What a loop combines with; any and all are max and min of truths. Sums of numbers, magnitudes and
// squares are of floating types.
enum class Combine : std::uint8_t { sum, prod, max, min, numbers, magnitudes, squares };
inline constexpr int kCombines = 7;

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
inline constexpr int kStripBackward = 256, kExtremumColumns = 1024;  // whole cache lines
using RowsBackward = void (*)(std::int64_t m, std::int64_t n, const void* x, const void* y,
                              const void* g, void* dx);
using ColumnsBackward = void (*)(std::int64_t m, std::int64_t n, std::int64_t step, const void* x,
                                 const void* y, const void* g, void* dx);

inline constexpr int kFewRows = 8, kFewFactors = 7;

struct ReduceTable {
  ReduceFunction rows[kCombines]
                     [kReduceTypes];  // null: sums of truths, products of narrow integers
  ReduceFunction columns[kCombines][kReduceTypes];
  // As f32, of bfloat16 as it lies; null: products, columns of squares.
  ReduceFunction bfloat16_rows[kCombines];
  ReduceFunction bfloat16_columns[kCombines];
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

}  // namespace tw
