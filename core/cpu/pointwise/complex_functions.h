// Functions of complex numbers, compiled once for all instruction sets.
#pragma once
#include "core/cpu/pointwise/pointwise.h"

namespace tw {

// The kernel of a row for complex numbers of such parts; null for rows that are not in
// complex_rows.h. Special cases are those of C99's Annex G, which the Array API takes over, but for
// the sign of a zero (tanh). Two cases of sqrt that the API's text gives otherwise than Annex G,
// of infinite real parts, stay Annex G's: sqrt(inf + i) is inf, not inf i.
template <class Part> PointwiseFn complex_value(PointwiseOp op);

// Of elements of a complex type.
struct ConjugateProblem {
  std::int64_t count;
  DType dtype;
  const void* x;
  void* y;
};

}  // namespace tw
