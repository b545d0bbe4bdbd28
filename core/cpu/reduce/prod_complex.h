// Products of complex numbers along rows and down columns, in double. Chains of factors multiply on
// their own, so that each is a value and a power of two.
#pragma once
#include "core/cpu/reduce/prod.h"
#include "core/cpu/simd/complex.h"

namespace tw::TW_ISA_NAME {
namespace {

// Factors of a chain between two looks at its range, and chains that hide the latency of a product.
inline constexpr int64_t kFactorsBetween = 64;
inline constexpr int kComplexChains = 4;

// Pairs of lanes are complex numbers times 2^power, which is the same in both.
struct ScaledPairs {
  Wide value;
  Power power = (int64_t)0;

  TW_INLINE ScaledPairs() {
    for (int i = 0; i < kLanes<double>; ++i) value.v[i] = i % 2 ? 0.0 : 1.0;
  }
  // Brings the larger part near 1. Beyond that power there is no number to scale by; 0, infinities
  // and NaN stay what they are.
  TW_INLINE void normalize() {
    const Power each = exponent_of(value), other = Power(exchanged(each.v));
    const Power larger(each.v > other.v ? each.v : other.v);
    const Power taken = within(larger - Power((int64_t)1023), 1000);
    value = value * two_to_power(Power((int64_t)0) - taken);
    power += taken;
  }
};

// y = x 2^power, rounded once.
TW_INLINE double scaled_by(double x, int64_t power) {
  return __builtin_ldexp(x, (int)(power < -5000 ? -5000 : power > 5000 ? 5000 : power));
}
struct ComplexNumber {
  double re, im;
  TW_INLINE void multiply(double x, double y) {
    const double real = fma(re, x, -im * y);
    im = fma(re, y, im * x);
    re = real;
  }
};

// Multiplies n factors of type Part, `step` parts apart, into each chain; of the last `parts`
// parts. False where something left the range of double on the way.
template <int chains, class Part> TW_INLINE bool multiply_pairs(int64_t n, const Part* x,
                                                                int64_t step, int parts,
                                                                ScaledPairs (&total)[chains]) {
  constexpr int L = kLanes<double>;
  for (int64_t i = 0; i < n; i += kFactorsBetween) {
    const int64_t past = n - i < kFactorsBetween ? n : i + kFactorsBetween;
    Wide value[chains];
    for (int c = 0; c < chains; ++c) value[c] = total[c].value;
    const RangeWatch range(x);
    for (int64_t j = i; j < past; ++j)
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c)
        value[c] = product(load_wider<double>(x + j * step + c * L, parts).v, value[c].v);
    range.await(value);
    if (range.left()) return false;
    for (int c = 0; c < chains; ++c) {
      total[c].value = value[c];
      total[c].normalize();
    }
  }
  return true;
}

// The product of n numbers that follow each other; false where it must be found one after the
// other.
template <class Part> bool complex_row(int64_t n, const void* from, double* y) {
  constexpr int L = kLanes<double>, width = kComplexChains * L;
  const auto* x = (const Part*)from;
  const int64_t steps = 2 * n / width;
  ScaledPairs chains[kComplexChains];
  if (!multiply_pairs(steps, x, width, L, chains)) return false;
  ComplexNumber all = {1, 0};
  int64_t power = 0;
  for (const ScaledPairs& chain : chains)
    for (int i = 0; i < L; i += 2) {
      all.multiply(chain.value.v[i], chain.value.v[i + 1]);
      power += chain.power.v[i];
    }
  const RangeWatch range(x);
  for (int64_t i = steps * width; i < 2 * n; i += 2) all.multiply(x[i], x[i + 1]);
  range.await(all.re);
  range.await(all.im);
  const bool left = range.left();
  y[0] = scaled_by(all.re, power);
  y[1] = scaled_by(all.im, power);
  return !left;
}

// The products of the n numbers of each of m columns; rows are `step` parts apart.
template <class Part>
bool complex_columns(int64_t m, int64_t n, const void* from, int64_t step, double* y) {
  constexpr int L = kLanes<double>;
  const auto* x = (const Part*)from;
  const auto take = [&](auto& columns, int64_t at, int parts) TW_LAMBDA_INLINE {
    if (!multiply_pairs(n, x + at, step, parts, columns)) return false;
    for (auto& column : columns)
      for (int i = 0; i < L && at < 2 * m; ++i, ++at)
        y[at] = scaled_by(column.value.v[i], column.power.v[i]);
    return true;
  };
  int64_t at = 0;
  for (; at + kComplexChains * L <= 2 * m; at += kComplexChains * L) {
    ScaledPairs columns[kComplexChains];
    if (!take(columns, at, L)) return false;
  }
  for (; at < 2 * m; at += L) {
    ScaledPairs column[1];
    if (!take(column, at, 2 * m - at < L ? (int)(2 * m - at) : L)) return false;
  }
  return true;
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
