// Rows of pointwise.inc that complex numbers take through plain functions
// (core/cpu/pointwise/complex_functions.cpp): what costs tens of nanoseconds an element gains
// nothing from kernels for each instruction set.
#pragma once
#include "core/problems/pointwise_rows.h"

namespace tw {

// clang-format off
#define TW_COMPLEX_ROWS(ROW)                                                               \
  ROW(reciprocal) ROW(round) ROW(sqrt) ROW(exp) ROW(expm1) ROW(log) ROW(log2) ROW(log10)   \
  ROW(log1p) ROW(sin) ROW(cos) ROW(tan) ROW(asin) ROW(acos) ROW(atan) ROW(sinh) ROW(cosh)  \
  ROW(tanh) ROW(asinh) ROW(acosh) ROW(atanh) ROW(pow)
// clang-format on

constexpr bool is_complex_row(PointwiseOp op) {
  switch (op) {
#define TW_ROW(name) case PointwiseOp::name:
    TW_COMPLEX_ROWS(TW_ROW)
#undef TW_ROW
    return true;
    default: return false;
  }
}

// Rows whose result or gradient is another one for complex numbers, which other ops compute.
constexpr bool differs_for_complex(PointwiseOp op) {
  return op == PointwiseOp::abs || op == PointwiseOp::sign;
}

}  // namespace tw
