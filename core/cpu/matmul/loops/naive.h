// Rung 1, naive: the definition, three loops. Any element type, any strides; the reference that the
// other rungs are held against.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

template <class T> struct Sum;  // how an element type is added up

template <class T> inline void naive_one(const MatmulProblem& p, const T* a, const T* b, T* c) {
  using S = Sum<T>;
  const typename S::type alpha = S::factor(p.alpha), beta = S::factor(p.beta), zero = {};
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      typename S::type sum = {};
      for (std::int64_t l = 0; l < p.k; ++l)
        sum = S::multiply_add(S::load(a[i * p.a_row + l * p.a_col]),
                              S::load(b[l * p.b_row + j * p.b_col]), sum);
      T& out = c[i * p.c_row + j * p.c_col];
      if (p.alpha != 1) sum = S::multiply_add(alpha, sum, zero);
      if (p.beta != 0) sum = S::multiply_add(beta, S::load(out), sum);
      out = S::store(sum);
    }
  if constexpr (std::is_floating_point_v<T>)
    apply_epilogue(p.m, p.n, c, p.c_row, p.c_col, p.epilogue);
}

template <class T> void naive(const MatmulProblem& p, const MatmulBlocks&, void*) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    naive_one(p, (const T*)p.a + i * p.a_batch, (const T*)p.b + i * p.b_batch,
              (T*)p.c + i * p.c_batch);
}

// ---- how an element type is added up ----

// Integers wrap around (computed unsigned, where that is defined), 16-bit floats are widened to
// float.
template <class T> struct Sum {
  using type = T;
  static TW_INLINE type load(T x) { return x; }
  static TW_INLINE T store(type x) { return x; }
  static TW_INLINE type multiply_add(type x, type y, type sum) { return fma(x, y, sum); }
  static TW_INLINE type factor(double x) { return (type)x; }
};
template <class T>
  requires std::is_integral_v<T>
struct Sum<T> {
  using type = std::uint64_t;
  static TW_INLINE type load(T x) { return (type)x; }
  static TW_INLINE T store(type x) { return (T)x; }
  static TW_INLINE type multiply_add(type x, type y, type sum) { return sum + x * y; }
  static TW_INLINE type factor(double x) { return (type)(std::int64_t)x; }
};
template <> struct Sum<bool> {
  using type = bool;
  static TW_INLINE type load(bool x) { return x; }
  static TW_INLINE bool store(type x) { return x; }
  static TW_INLINE type multiply_add(type x, type y, type sum) { return sum | (x & y); }
  static TW_INLINE type factor(double x) { return x != 0; }
};
template <class Part> struct Sum<Complex<Part>> {
  using type = Complex<Part>;
  static TW_INLINE type load(type x) { return x; }
  static TW_INLINE type store(type x) { return x; }
  static TW_INLINE type multiply_add(type x, type y, type sum) {
    return {fma(-x.im, y.im, fma(x.re, y.re, sum.re)), fma(x.im, y.re, fma(x.re, y.im, sum.im))};
  }
  static TW_INLINE type factor(double x) { return {(Part)x, 0}; }
};
template <> struct Sum<BFloat16> : Sum<float> {
  static TW_INLINE float load(BFloat16 x) {
    return __builtin_bit_cast(float, (std::uint32_t)x.bits << 16);
  }
  // Round to nearest, ties to even; the carry out of the mantissa is the exponent's. NaN stays NaN.
  static TW_INLINE BFloat16 store(float x) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
    if (x != x) return {(std::uint16_t)(bits >> 16 | 0x40)};
    return {(std::uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
};
template <> struct Sum<Half> : Sum<float> {
  static TW_INLINE float load(Half x) {
    const std::uint32_t sign = (std::uint32_t)(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff;
    if (rest >= 0x7c00) return __builtin_bit_cast(float, sign | 0x7f800000 | (rest & 0x3ff) << 13);
    // Exponent 15 - 127 as a factor: exact for normal and denormal values alike.
    const float magnitude = __builtin_bit_cast(float, rest << 13) * 0x1p112f;
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, magnitude) | sign);
  }
  static TW_INLINE Half store(float x) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x), rest = bits & 0x7fffffff;
    const std::uint16_t sign = (std::uint16_t)(bits >> 16 & 0x8000);
    if (rest > 0x7f800000) return {(std::uint16_t)(sign | 0x7e00)};
    if (rest >= 0x477ff000) return {(std::uint16_t)(sign | 0x7c00)};  // rounds beyond 65504
    if (rest < 0x38800000) {  // denormal in 16 bits: adding 0.5 rounds at 2^-24
      const float shifted = __builtin_bit_cast(float, rest) + 0.5f;
      return {(std::uint16_t)(sign | (__builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000))};
    }
    return {(std::uint16_t)(sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13)};
  }
};

}  // namespace
}  // namespace tw::TW_ISA_NAME
