// Complex numbers over vectors of their parts, which lie in pairs, so that pointwise formulas
// compile for them unchanged. Products and quotients of complex64 are computed in double: the
// products of floats are exact there, and nothing of theirs overflows.
#pragma once
#include <utility>

#include "core/cpu/simd/vec.h"

namespace tw::TW_ISA_NAME {
namespace {

// Parts of a vector of complex numbers, and lanes of a double for each of its numbers' parts.
template <class Part> inline constexpr int kPairLanes = 2 * kLanes<Complex<Part>>;
template <class T, int lanes> struct PairsOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};

// Truths of the numbers, each once for either part.
template <class Part> struct Mask<Complex<Part>> {
  using Raw = typename PairsOf<IntLike<Part>, kPairLanes<Part>>::type;
  Raw v;
  friend TW_INLINE Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
  friend TW_INLINE Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
  friend TW_INLINE Mask operator^(Mask a, Mask b) { return {a.v ^ b.v}; }
  friend TW_INLINE Mask operator!(Mask a) { return {~a.v}; }
  TW_INLINE void store_bytes_01(std::uint8_t* out, int count) const {
    using Bytes = typename BytesOf<kPairLanes<Part>>::type;
    const Bytes bytes = __builtin_convertvector(v, Bytes) & 1;
    for (int i = 0; i < count; ++i) out[i] = (std::uint8_t)bytes[2 * i];
  }
};

// ---- pairs of numbers, real and imaginary parts in even and odd lanes ----

template <class Raw, int... i> TW_INLINE Raw real_twice(Raw z, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(z, z, (i & ~1)...);
}
template <class Raw, int... i> TW_INLINE Raw imag_twice(Raw z, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(z, z, (i | 1)...);
}
template <class Raw, int... i> TW_INLINE Raw exchanged(Raw z, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(z, z, (i ^ 1)...);
}
template <class Raw> inline constexpr int kLanesOf = sizeof(Raw) / sizeof(Raw{}[0]);
template <class Raw> using Order = std::make_integer_sequence<int, kLanesOf<Raw>>;
template <class Raw> TW_INLINE Raw real_twice(Raw z) { return real_twice(z, Order<Raw>()); }
template <class Raw> TW_INLINE Raw imag_twice(Raw z) { return imag_twice(z, Order<Raw>()); }
template <class Raw> TW_INLINE Raw exchanged(Raw z) { return exchanged(z, Order<Raw>()); }

// Of each pair the part `odd`, negated.
template <class Raw> TW_INLINE Raw negated(Raw z, int odd) {
  using Part = std::remove_cvref_t<decltype(z[0])>;
  using Bits = typename PairsOf<IntLike<Part>, kLanesOf<Raw>>::type;
  constexpr auto sign = (IntLike<Part>)((IntLike<Part>)1 << (8 * sizeof(Part) - 1));
  Bits signs;
  for (int i = 0; i < kLanesOf<Raw>; ++i) signs[i] = i % 2 == odd ? sign : 0;
  return (Raw)((Bits)z ^ signs);
}

template <class Raw> TW_INLINE Raw product(Raw a, Raw b) {
  return fma(real_twice(a), b, negated(imag_twice(a) * exchanged(b), 0));
}
// By the smaller of b's parts over the larger (R. Smith, 1962): no square overflows.
template <class Raw> TW_INLINE Raw quotient(Raw a, Raw b) {
  const Raw re = real_twice(b), im = imag_twice(b), turned = negated(exchanged(a), 1);
  const auto leads = (re < 0 ? -re : re) >= (im < 0 ? -im : im);
  const auto zero = (re == 0) & (im == 0);
  const Raw larger = leads ? re : im, smaller = leads ? im : re;
  const Raw ratio = smaller / larger;
  const Raw size = fma(smaller, ratio, larger);
  const Raw scaled = fma(leads ? turned : a, ratio, leads ? a : turned);
  return (zero ? a : scaled) / (zero ? re : size);
}

// f of pairs of doubles, of which float has twice as many as a vector holds.
template <class Raw, int... i>
TW_INLINE auto in_double(Raw a, Raw b, auto f, std::integer_sequence<int, i...>) {
  constexpr int half = sizeof...(i);
  using Wide = typename PairsOf<double, half>::type;
  using Narrow = typename PairsOf<float, half>::type;
  const auto of = [&](auto first) TW_LAMBDA_INLINE {
    constexpr int at = first;
    const Narrow x = __builtin_shufflevector(a, a, (at + i)...);
    const Narrow y = __builtin_shufflevector(b, b, (at + i)...);
    if constexpr (half == kLanes<double>)
      return narrowed(Vec<double>((Wide)f(widened(x).v, widened(y).v)));
    else
      return __builtin_convertvector(
          (Wide)f(__builtin_convertvector(x, Wide), __builtin_convertvector(y, Wide)), Narrow);
  };
  const Narrow low = of(std::integral_constant<int, 0>());
  if constexpr (2 * half > kLanesOf<Raw>) {
    return low;
  } else {
    const Narrow high = of(std::integral_constant<int, half>());
    return __builtin_shufflevector(low, high, i..., (half + i)...);
  }
}
template <class Part, class Raw> TW_INLINE Raw in_double(Raw a, Raw b, auto f) {
  constexpr int lanes = kLanesOf<Raw>;
  if constexpr (sizeof(Part) == sizeof(double))
    return f(a, b);
  else
    return in_double(a, b, f, std::make_integer_sequence<int, (lanes > 2 ? lanes / 2 : lanes)>());
}

template <class Part> struct Vec<Complex<Part>> {
  using Element = Complex<Part>;
  static constexpr int lanes = kLanes<Element>;
  using Raw = typename PairsOf<Part, kPairLanes<Part>>::type;
  Raw v;

  Vec() = default;
  TW_INLINE Vec(Raw raw) : v(raw) {}
  template <class S>
    requires std::is_arithmetic_v<S>
  TW_INLINE Vec(S real) {
    for (int i = 0; i < 2 * lanes; ++i) v[i] = i % 2 ? (Part)0 : (Part)real;
  }

  static TW_INLINE Vec load(const Element* p) {
    Vec out;
    __builtin_memcpy(&out.v, p, sizeof(Raw));
    return out;
  }
  TW_INLINE void store(Element* p) const { __builtin_memcpy(p, &v, sizeof(Raw)); }
  TW_INLINE void stream(Element* p) const { stream_line(p, v); }
  static TW_INLINE Vec load(const Element* p, int count) {
#ifdef TW_HAS_PARTS
    return Vec(load_bytes<Raw>(p, count * (int)sizeof(Element)));
#else
    Vec out = 0;
    __builtin_memcpy(&out.v, p, count * sizeof(Element));
    return out;
#endif
  }
  TW_INLINE void store(Element* p, int count) const {
#ifdef TW_HAS_PARTS
    store_bytes(p, v, count * (int)sizeof(Element));
#else
    __builtin_memcpy(p, &v, count * sizeof(Element));
#endif
  }

  friend TW_INLINE Vec operator+(Vec a, Vec b) { return a.v + b.v; }
  friend TW_INLINE Vec operator-(Vec a, Vec b) { return a.v - b.v; }
  friend TW_INLINE Vec operator-(Vec a) { return -a.v; }
  friend TW_INLINE Vec operator*(Vec a, Vec b) {
    return in_double<Part>(a.v, b.v, [](auto x, auto y) TW_LAMBDA_INLINE { return product(x, y); });
  }
  friend TW_INLINE Vec operator/(Vec a, Vec b) {
    return in_double<Part>(a.v, b.v,
                           [](auto x, auto y) TW_LAMBDA_INLINE { return quotient(x, y); });
  }
  friend TW_INLINE Mask<Element> operator==(Vec a, Vec b) { return of_both(a.v == b.v); }
  friend TW_INLINE Mask<Element> operator!=(Vec a, Vec b) { return !(a == b); }
  TW_INLINE Vec& operator+=(Vec b) { return *this = *this + b; }

  // What holds of both parts.
  static TW_INLINE Mask<Element> of_both(typename Mask<Element>::Raw parts) {
    return {parts & exchanged(parts)};
  }
};

template <class Part> TW_INLINE Vec<Complex<Part>> where(Mask<Complex<Part>> c,
                                                         Vec<Complex<Part>> a,
                                                         Vec<Complex<Part>> b) {
  return c.v ? a.v : b.v;
}
template <class Part> TW_INLINE Mask<Complex<Part>> isnan(Vec<Complex<Part>> z) { return z != z; }
template <class Part> TW_INLINE Mask<Complex<Part>> isfinite(Vec<Complex<Part>> z) {
  return z - z == Vec<Complex<Part>>(0);
}
template <class Part> TW_INLINE Mask<Complex<Part>> isinf(Vec<Complex<Part>> z) {
  const auto size = z.v < 0 ? -z.v : z.v;
  return !Vec<Complex<Part>>::of_both(size != (Part)__builtin_inf());
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
