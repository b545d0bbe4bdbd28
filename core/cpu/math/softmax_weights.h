// Exponentials of what is at most 0, as softmax and attention weigh by, and the maximum before
// them.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/math/functions.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class T> TW_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) { return a.v > b.v ? a.v : b.v; }

// e^x for x <= 0 (or NaN), and 0 where it is below the smallest normal number: a denormal result
// can cost a hundred cycles, and beside a sum that is at least 1 it is nothing.
template <class T> TW_INLINE Vec<T> exp_below(Vec<T> x) {
  constexpr T lowest = std::is_same_v<T, float> ? -87.33654f : -708.396418532264;
#ifdef TW_HAS_LANE_TABLES
  if constexpr (std::is_same_v<T, double>) {
    const WideExp parts = wide_exp(at_least(x, lowest));
    return where(x < lowest, 0, fma(parts.t, wide_exp_rest(parts), parts.t));
  }
#endif
#ifndef TW_HAS_MASKED_ACCESS
  // The power of two goes into the last multiply-add, beside the chain that leads there.
  if constexpr (std::is_same_v<T, float> && kFused) {
    const FloatExp e = float_exp(at_least(x, lowest));
    const Vec<T> power = add_exponent(1, e.power.bits), y = fma(power * e.r, e.w, power);
    return x.v < lowest ? Vec<T>((T)0).v : y.v;
  }
#endif
  const auto reduced = reduce_exp(at_least(x, lowest));
  const Vec<T> y = exp_reduced(reduced) * two_to(reduced.n);
  return x.v < lowest ? Vec<T>((T)0).v : y.v;
}

// The same for weights that are added up: within |x| / 2^24 of itself, which beside a sum of 1 is
// less than a rounding.
template <class T> TW_INLINE Vec<T> weight_below(Vec<T> x) {
#ifdef TW_HAS_MASKED_ACCESS
  if constexpr (std::is_same_v<T, float>) {
    using Raw = typename Vec<T>::Raw;
    const __m512 power = (__m512)(x * kLog2e).v;
    const Vec<T> f = (Raw)_mm512_maskz_reduce_ps(0xffff, power, _MM_FROUND_TO_NEG_INF);
    // 2^f for 0 <= f <= 1, within 2^-28.8.
    const Vec<T> p = polynomial(f, 1, 0.69314706, 0.24022907, 0.05548629, 0.009673505, 0.0012485106,
                                0.00021555494);
    const __mmask16 normal = _mm512_cmp_ps_mask(power, _mm512_set1_ps(-126), _CMP_NLT_UQ);
    return (Raw)_mm512_maskz_scalef_ps(normal, (__m512)p.v, power);
  }
#endif
  return exp_below(x);
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
