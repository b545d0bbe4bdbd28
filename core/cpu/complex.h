// Functions of complex numbers, compiled once for all instruction sets.
#pragma once
#include "core/cpu/pointwise.h"

namespace tw {

// The kernel of a row for complex numbers of such parts; null for rows that are not in
// complex_rows.h. Special cases are those of C99's Annex G, which the Array API takes over.
template <class Part> PointwiseFn complex_value(PointwiseOp op);

}  // namespace tw
