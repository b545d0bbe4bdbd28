// Normalisation of sets whose squares leave the range of their type: scaled by a power of two, and
// computed in double, number by number.
#pragma once
#include "core/cpu/normalization/norm_sets_loops.h"

namespace tw::TW_ISA_NAME {
namespace {

// Mean squares (with eps) that have lost nothing. Squares of float32 vanish below 2^-75.
template <class T> inline constexpr double kLeastSquare = sizeof(T) == 4 ? 1e-30 : 1e-290;
template <class T> TW_INLINE bool is_safe_square(double x) {
  return x >= kLeastSquare<T> && x < __builtin_inf();
}
// Inverse deviations whose squares, times gradients, are in range.
template <class T> inline constexpr double kMostInverse = sizeof(T) == 4 ? 1e12 : 1e140;
template <class T> TW_INLINE bool is_unsafe_inverse(double x) {
  return x < 1 / kMostInverse<T> || x > kMostInverse<T>;
}

// f(element, its scale's place) of a set; of plain rows each element has a scale.
template <class F> TW_INLINE void each_element(const NormSet& set, bool plain, F f) {
  for (int64_t i = 0; i < set.count; ++i)
    for (int64_t j = 0; j < set.length; ++j)
      f(set.start + i * set.stride + j, set.scale + i * set.scale_step + (plain ? j : 0));
}

// The scale that brings the largest magnitude of a set near 1; 0 where there is nothing to scale.
template <class T> double scale_of_set(const T* x, const NormSet& set) {
  double top = 0;
  each_element(set, false, [&](int64_t at, int64_t) {
    const double size = __builtin_fabs((double)x[at]);
    top = size <= top || top != top ? top : size;
  });
  if (!(top > 0 && top < __builtin_inf())) return 0;
  int exponent;
  __builtin_frexp(top, &exponent);
  constexpr int most = 1020;
  return __builtin_ldexp(1.0, exponent < -most ? most : exponent > most ? -most : -exponent);
}

// Whether the set could be scaled: its statistics and results are then written anew.
template <class T> __attribute__((noinline)) bool normalize_wide(const NormProblem& p,
                                                                 const NormSet& set, bool plain) {
  const T* x = (const T*)p.x;
  const double scale = scale_of_set(x, set), n = set.elements();
  if (scale == 0) return false;
  double mean = 0, squares = 0;
  if (p.centered)
    each_element(set, plain, [&](int64_t at, int64_t) { mean += (double)x[at] * scale / n; });
  each_element(set, plain, [&](int64_t at, int64_t) {
    const double d = fma((double)x[at], scale, -mean);
    squares = fma(d, d, squares);
  });
  const double variance = squares / n, rstd = 1 / __builtin_sqrt(variance + p.eps * scale * scale);
  ((T*)p.mean)[set.number] = (T)(mean / scale);
  ((T*)p.rstd)[set.number] = (T)(rstd * scale);
  if (p.variance) ((T*)p.variance)[set.number] = (T)(variance / scale / scale);
  each_element(set, plain, [&](int64_t at, int64_t scale_at) {
    const double y = fma((double)x[at], scale, -mean) * rstd;
    ((T*)p.y)[at] =
        (T)fma(y, (double)scale_of<T>(p.weight, scale_at), (double)shift_of<T>(p.bias, scale_at));
  });
  return true;
}

// dx of a set; g and g * y of each element, y normalised, go to keep(its scale's place, g, g * y).
template <class T, class Keep>
__attribute__((noinline)) void differentiate_wide(const NormProblem& p, const NormSet& set,
                                                  bool plain, Keep keep) {
  const T *x = (const T*)p.x, *g = (const T*)p.g;
  const double mean = (double)((const T*)p.mean)[set.number],
               rstd = (double)((const T*)p.rstd)[set.number], n = set.elements();
  const auto normalized = [&](int64_t at) { return fma((double)x[at], rstd, -mean * rstd); };
  double sum = 0, product = 0;
  each_element(set, plain, [&](int64_t at, int64_t scale_at) {
    const double v = (double)g[at], gw = v * (double)scale_of<T>(p.weight, scale_at);
    sum += gw;
    product = fma(gw, normalized(at), product);
    keep(scale_at, v, v * normalized(at));
  });
  if (!p.centered) sum = 0;
  each_element(set, plain, [&](int64_t at, int64_t scale_at) {
    const double centred = fma((double)g[at], (double)scale_of<T>(p.weight, scale_at), -sum / n);
    ((T*)p.dx)[at] = (T)(rstd * fma(-normalized(at), product / n, centred));
  });
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
