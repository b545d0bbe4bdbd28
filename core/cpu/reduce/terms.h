// What reductions combine: where elements are read, and what of them is combined.
#pragma once
#include "core/cpu/simd/bfloat16.h"
#include "core/cpu/math/basic.h"
#include "core/problems/reduce.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// Where elements are read: a pointer, or the products of the elements that two pointers point to.
template <class S> struct Products {
  const S *x, *y;
  friend TW_INLINE Products operator+(Products p, int64_t n) { return {p.x + n, p.y + n}; }
};
template <class S> TW_INLINE const S* beyond(const S* p, int64_t bytes) {
  return (const S*)((const char*)p + bytes);
}
template <class S> TW_INLINE Products<S> beyond(Products<S> p, int64_t bytes) {
  return {beyond(p.x, bytes), beyond(p.y, bytes)};
}
// Elements from there on, as T: bfloat16 is widened on the way, in the order of its numbers.
template <class T> TW_INLINE T one_as(const T* p) { return *p; }
template <class T> TW_INLINE T one_as(const BFloat16* p) {
  return __builtin_bit_cast(T, (std::uint32_t)p->bits << 16);
}
template <class T, class S> TW_INLINE ProductTerm<T> one_as(Products<S> p) {
  return {one_as<T>(p.x), one_as<T>(p.y)};
}
template <class T> TW_INLINE Vec<T> load_as(const T* p) { return Vec<T>::load(p); }
template <class T> TW_INLINE Vec<T> load_as(const T* p, int count) {
  return Vec<T>::load(p, count);
}
template <class T> TW_INLINE Vec<T> load_as(const BFloat16* p) { return load_bfloat16(p); }
template <class T> TW_INLINE Vec<T> load_as(const BFloat16* p, int count) {
#ifdef TW_HAS_MASKED_HALVES
  return bfloat16_of_bits(load_half_of_bytes<ShortLanes>(p, count * (int)sizeof(BFloat16)));
#else
  BFloat16 all[kLanes<T>] = {};
  __builtin_memcpy(all, p, count * sizeof(BFloat16));
  return load_bfloat16(all);
#endif
}
template <class T, class S> TW_INLINE ProductTerm<Vec<T>> load_as(Products<S> p) {
  return {load_as<T>(p.x), load_as<T>(p.y)};
}
template <class T, class S> TW_INLINE ProductTerm<Vec<T>> load_as(Products<S> p, int count) {
  return {load_as<T>(p.x, count), load_as<T>(p.y, count)};
}

// What formulas of terms are made of, for one number as for vectors of them.
template <class T> TW_INLINE T where(bool c, T a, std::type_identity_t<T> b) { return c ? a : b; }
template <class T>
  requires std::is_arithmetic_v<T>
TW_INLINE T abs(T x) {
  return x < 0 ? -x : x;
}
// What of an element is combined.
struct Itself {
  template <class V> TW_INLINE V operator()(V x) const { return x; }
};
template <class V> TW_INLINE ProductTerm<V> product_term(V a, V b) { return {a, b}; }
template <ReduceOp op> struct Term;
#define TW_COMBINATION(name, join, keeps, term, whole)                       \
  template <> struct Term<ReduceOp::name> {                                  \
    template <class V> TW_INLINE auto operator()(V x) const { return term; } \
  };
#include "core/problems/combinations.inc"
template <ReduceOp op> using TermOf = std::conditional_t<is_of_elements(op), Itself, Term<op>>;
using Square = TermOf<ReduceOp::squares>;

template <class T> struct SquaredDistance {
  Vec<T> centre;
  TW_INLINE ProductTerm<Vec<T>> operator()(Vec<T> x) const {
    const Vec<T> distance = x - centre;
    return {distance, distance};
  }
};

}  // namespace
}  // namespace tw::TW_ISA_NAME
