// Complex numbers as a vector of one lane, so that pointwise formulas compile for them unchanged.
#pragma once
#include "core/cpu/simd/vec.h"

namespace tw::TW_ISA_NAME {
namespace {

template <class Part> struct Mask<Complex<Part>> {
  std::int64_t v;  // 0 or -1
  friend TW_INLINE Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
  friend TW_INLINE Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
  friend TW_INLINE Mask operator^(Mask a, Mask b) { return {a.v ^ b.v}; }
  friend TW_INLINE Mask operator!(Mask a) { return {~a.v}; }
  TW_INLINE void store_bytes_01(std::uint8_t* out, int count) const {
    if (count > 0) *out = (std::uint8_t)(v & 1);
  }
};

template <class Part> struct Vec<Complex<Part>> {
  using Element = Complex<Part>;
  static constexpr int lanes = 1;
  Part re, im;

  Vec() = default;
  TW_INLINE Vec(Element z) : re(z.re), im(z.im) {}
  TW_INLINE Vec(Part re, Part im) : re(re), im(im) {}
  template <class S>
    requires std::is_arithmetic_v<S>
  TW_INLINE Vec(S real) : re((Part)real), im(0) {}

  static TW_INLINE Vec load(const Element* p) { return Vec(*p); }
  static TW_INLINE Vec load(const Element* p, int count) { return count > 0 ? Vec(*p) : Vec(0); }
  TW_INLINE void store(Element* p) const { *p = {re, im}; }
  TW_INLINE void store(Element* p, int count) const {
    if (count > 0) *p = {re, im};
  }
  TW_INLINE Element operator[](int) const { return {re, im}; }

  friend TW_INLINE Vec operator+(Vec a, Vec b) { return {a.re + b.re, a.im + b.im}; }
  friend TW_INLINE Vec operator-(Vec a, Vec b) { return {a.re - b.re, a.im - b.im}; }
  friend TW_INLINE Vec operator-(Vec a) { return {-a.re, -a.im}; }
  // In double, where the products of floats are exact and nothing of theirs overflows.
  friend TW_INLINE Vec operator*(Vec a, Vec b) {
    const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
    return {(Part)(ar * br - ai * bi), (Part)(ar * bi + ai * br)};
  }
  // By the smaller of b's parts over the larger (R. Smith, 1962): no square overflows.
  friend TW_INLINE Vec operator/(Vec a, Vec b) {
    if (b.re == 0 && b.im == 0) return {a.re / b.re, a.im / b.re};
    const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
    if (__builtin_fabs(br) >= __builtin_fabs(bi)) {
      const double ratio = bi / br, size = br + bi * ratio;
      return {(Part)((ar + ai * ratio) / size), (Part)((ai - ar * ratio) / size)};
    }
    const double ratio = br / bi, size = br * ratio + bi;
    return {(Part)((ar * ratio + ai) / size), (Part)((ai * ratio - ar) / size)};
  }
  friend TW_INLINE Mask<Element> operator==(Vec a, Vec b) {
    return {-(std::int64_t)(a.re == b.re && a.im == b.im)};
  }
  friend TW_INLINE Mask<Element> operator!=(Vec a, Vec b) { return !(a == b); }
  TW_INLINE Vec& operator+=(Vec b) { return *this = *this + b; }
};

template <class Part> TW_INLINE Vec<Complex<Part>> where(Mask<Complex<Part>> c,
                                                         Vec<Complex<Part>> a,
                                                         Vec<Complex<Part>> b) {
  return c.v ? a : b;
}
template <class Part> TW_INLINE Mask<Complex<Part>> isnan(Vec<Complex<Part>> z) {
  return {-(std::int64_t)(__builtin_isnan(z.re) || __builtin_isnan(z.im))};
}
template <class Part> TW_INLINE Mask<Complex<Part>> isinf(Vec<Complex<Part>> z) {
  return {-(std::int64_t)(__builtin_isinf(z.re) || __builtin_isinf(z.im))};
}
template <class Part> TW_INLINE Mask<Complex<Part>> isfinite(Vec<Complex<Part>> z) {
  return !(isnan(z) | isinf(z));
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
