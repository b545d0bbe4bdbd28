// Complex numbers as a vector of one lane, so that pointwise formulas compile for them unchanged.
// Arithmetic in float, elementary functions through float or double libm calls.
#pragma once
#include "core/cpu/simd/vec.h"

namespace tw::TW_ISA_NAME {
namespace {

template <> struct Mask<Complex64> {
  std::int64_t v;  // 0 or -1
  friend TW_INLINE Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
  friend TW_INLINE Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
  friend TW_INLINE Mask operator^(Mask a, Mask b) { return {a.v ^ b.v}; }
  friend TW_INLINE Mask operator!(Mask a) { return {~a.v}; }
  TW_INLINE void store_bytes_01(std::uint8_t* out, int count) const {
    if (count > 0) *out = (std::uint8_t)(v & 1);
  }
};

template <> struct Vec<Complex64> {
  using Element = Complex64;
  static constexpr int lanes = 1;
  float re, im;

  Vec() = default;
  TW_INLINE Vec(Complex64 z) : re(z.re), im(z.im) {}
  TW_INLINE Vec(float re, float im) : re(re), im(im) {}
  template <class S>
    requires std::is_arithmetic_v<S>
  TW_INLINE Vec(S real) : re((float)real), im(0) {}

  static TW_INLINE Vec load(const Complex64* p) { return Vec(*p); }
  static TW_INLINE Vec load(const Complex64* p, int count) { return count > 0 ? Vec(*p) : Vec(0); }
  TW_INLINE void store(Complex64* p) const { *p = {re, im}; }
  TW_INLINE void store(Complex64* p, int count) const {
    if (count > 0) *p = {re, im};
  }
  TW_INLINE Complex64 operator[](int) const { return {re, im}; }

  friend TW_INLINE Vec operator+(Vec a, Vec b) { return {a.re + b.re, a.im + b.im}; }
  friend TW_INLINE Vec operator-(Vec a, Vec b) { return {a.re - b.re, a.im - b.im}; }
  friend TW_INLINE Vec operator-(Vec a) { return {-a.re, -a.im}; }
  // In double, where the products of floats are exact and nothing overflows.
  friend TW_INLINE Vec operator*(Vec a, Vec b) {
    const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
    return {(float)(ar * br - ai * bi), (float)(ar * bi + ai * br)};
  }
  friend TW_INLINE Vec operator/(Vec a, Vec b) {
    const double ar = a.re, ai = a.im, br = b.re, bi = b.im, norm = br * br + bi * bi;
    if (norm == 0) return {a.re / b.re, a.im / b.re};
    return {(float)((ar * br + ai * bi) / norm), (float)((ai * br - ar * bi) / norm)};
  }
  friend TW_INLINE Mask<Complex64> operator==(Vec a, Vec b) {
    return {-(std::int64_t)(a.re == b.re && a.im == b.im)};
  }
  friend TW_INLINE Mask<Complex64> operator!=(Vec a, Vec b) { return !(a == b); }
  TW_INLINE Vec& operator+=(Vec b) { return *this = *this + b; }
};

using Complex = Vec<Complex64>;

TW_INLINE Complex where(Mask<Complex64> c, Complex a, Complex b) { return c.v ? a : b; }

TW_INLINE Complex real(Complex z) { return {z.re, 0}; }
TW_INLINE Complex imag(Complex z) { return {z.im, 0}; }
TW_INLINE Complex conj(Complex z) { return {z.re, -z.im}; }
// The magnitude, as a complex number.
TW_INLINE Complex abs(Complex z) { return {__builtin_hypotf(z.re, z.im), 0}; }
TW_INLINE Mask<Complex64> isnan(Complex z) {
  return {-(std::int64_t)(__builtin_isnan(z.re) || __builtin_isnan(z.im))};
}
TW_INLINE Mask<Complex64> isinf(Complex z) {
  return {-(std::int64_t)(__builtin_isinf(z.re) || __builtin_isinf(z.im))};
}
TW_INLINE Mask<Complex64> isfinite(Complex z) { return !(isnan(z) | isinf(z)); }

TW_INLINE Complex exp(Complex z) {
  if (z.im == 0) return {__builtin_expf(z.re), z.im};
  const double scale = __builtin_exp(z.re);
  return {(float)(scale * __builtin_cos(z.im)), (float)(scale * __builtin_sin(z.im))};
}
TW_INLINE Complex log(Complex z) {
  const double modulus = __builtin_hypot((double)z.re, (double)z.im);
  return {(float)__builtin_log(modulus), __builtin_atan2f(z.im, z.re)};
}
// The root in the right half-plane, from half the sum of modulus and real part.
TW_INLINE Complex sqrt(Complex z) {
  if (__builtin_isinf(z.im)) return {__builtin_inff(), z.im};
  if (z.re == 0 && z.im == 0) return {0, z.im};
  const double modulus = __builtin_hypot((double)z.re, (double)z.im);
  const double root = __builtin_sqrt((modulus + __builtin_fabs(z.re)) / 2);
  const double other = __builtin_isinf(z.re) ? 0 : __builtin_fabs(z.im) / (2 * root);
  const bool left = z.re < 0;
  return {(float)(left ? other : root), (float)__builtin_copysign(left ? root : other, z.im)};
}
TW_INLINE Complex sin(Complex z) {
  const double re = z.re, im = z.im;
  return {(float)(__builtin_sin(re) * __builtin_cosh(im)),
          (float)(__builtin_cos(re) * __builtin_sinh(im))};
}
TW_INLINE Complex cos(Complex z) {
  const double re = z.re, im = z.im;
  return {(float)(__builtin_cos(re) * __builtin_cosh(im)),
          (float)(-__builtin_sin(re) * __builtin_sinh(im))};
}
// tanh(a + bi) = (sinh 2a + i sin 2b) / (cosh 2a + cos 2b), the double angles avoided.
TW_INLINE Complex tanh(Complex z) {
  const double t = __builtin_tanh(z.re);
  const double s = __builtin_sin(z.im), c = __builtin_cos(z.im);
  const double norm = c * c + t * t * s * s;
  return {(float)(t / norm), (float)((1 - t * t) * s * c / norm)};
}
TW_INLINE Complex pow(Complex a, Complex b) {
  if (b.re == 0 && b.im == 0) return {1, 0};
  if (a.re == 0 && a.im == 0 && b.im == 0) return b.re > 0 ? Complex(0) : Complex(1) / Complex(0);
  const double modulus = __builtin_hypot((double)a.re, (double)a.im);
  const double length = __builtin_log(modulus), angle = __builtin_atan2(a.im, a.re);
  const double scale = __builtin_exp(b.re * length - b.im * angle);
  const double turn = b.im * length + b.re * angle;
  return {(float)(scale * __builtin_cos(turn)), (float)(scale * __builtin_sin(turn))};
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
