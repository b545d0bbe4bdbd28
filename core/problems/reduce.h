// A reduction as kernels are given it.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace tw {

// What elements are joined by: the rows of combinations.inc.
enum class ReduceOp : std::uint8_t {
#define TW_COMBINATION(name, ...) name,
#include "core/problems/combinations.inc"
};
enum class ReduceJoin : std::uint8_t {
#define TW_JOIN(name, ...) name,
#define TW_PICK(name, ...) name,
#include "core/problems/combinations.inc"
};
enum class ReduceKeeps : std::uint8_t { value, position, range };

struct ReduceCombination {
  ReduceJoin join;
  ReduceKeeps keeps;
  ReduceOp whole;
  const char* term;
  constexpr bool is_logic() const { return join == ReduceJoin::either || join == ReduceJoin::both; }
  constexpr bool is_additive() const {
    return join == ReduceJoin::sum || join == ReduceJoin::product;
  }
  constexpr bool is_arg() const { return keeps == ReduceKeeps::position; }
  constexpr bool takes_larger() const {
    return join == ReduceJoin::largest || join == ReduceJoin::either;
  }
  constexpr bool is_of_elements() const { return term[0] == 'x' && !term[1]; }
};
inline constexpr ReduceCombination kReduceCombinations[] = {
#define TW_COMBINATION(name, join, keeps, term, whole) \
  {ReduceJoin::join, ReduceKeeps::keeps, ReduceOp::whole, #term},
#include "core/problems/combinations.inc"
};
inline constexpr int kReduceOps = sizeof kReduceCombinations / sizeof *kReduceCombinations;
constexpr const ReduceCombination& combination_of(ReduceOp op) {
  return kReduceCombinations[static_cast<int>(op)];
}
constexpr ReduceJoin join_of(ReduceOp op) { return combination_of(op).join; }

// Whether a row holds something, by comparing with those that do: small calls ask often.
template <bool (ReduceCombination::*holds)() const, int row = 0>
[[gnu::always_inline]] constexpr bool is_where(ReduceOp op) {
  if constexpr (row == kReduceOps) {
    return false;
  } else {
    constexpr bool does = (kReduceCombinations[row].*holds)();
    return (does && op == static_cast<ReduceOp>(row)) || is_where<holds, row + 1>(op);
  }
}
// Of bools, whether elements are not 0.
constexpr bool is_logic(ReduceOp op) { return is_where<&ReduceCombination::is_logic>(op); }
constexpr bool is_additive(ReduceOp op) { return is_where<&ReduceCombination::is_additive>(op); }
// Whether an element stays: the largest or smallest, or where it is.
constexpr bool is_extremum(ReduceOp op) { return !is_logic(op) && !is_additive(op); }
constexpr bool is_arg(ReduceOp op) { return is_where<&ReduceCombination::is_arg>(op); }
// Larger ones are before others: true before false.
constexpr bool takes_larger(ReduceOp op) { return is_where<&ReduceCombination::takes_larger>(op); }
// As they are.
constexpr bool is_of_elements(ReduceOp op) { return combination_of(op).is_of_elements(); }

// What partial results are joined by: the combination of elements as they are.
struct JoiningOps {
  ReduceOp of[kReduceOps];
};
inline constexpr JoiningOps kJoiningOps = [] {
  JoiningOps joining = {};
  for (int i = 0; i < kReduceOps; ++i)
    for (int k = kReduceOps - 1; k >= 0; --k) {
      const ReduceCombination& other = kReduceCombinations[k];
      if (other.join == kReduceCombinations[i].join && !other.is_arg() && other.is_of_elements())
        joining.of[i] = static_cast<ReduceOp>(k);
    }
  return joining;
}();
constexpr ReduceOp joining(ReduceOp op) { return kJoiningOps.of[static_cast<int>(op)]; }

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
//   sums of terms    of floating types. numbers: what is no NaN; of whole numbers that is sum.
//                    Squares of float32 and bfloat16 neither overflow nor vanish, nor do those of
//                    float64 whose root is taken
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

}  // namespace tw
