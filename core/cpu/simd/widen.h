// float32 as float64 lanes, and back.
#pragma once
#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

// The lower or the upper lanes of float32 that a vector has of float64.
template <bool upper, class T> TW_INLINE Vec<double> widened_half(Vec<T> x) {
  if constexpr (kLanes<T> == kLanes<double>) {
    return widened(x.v);
  } else {
    using Half = typename CountTo<kLanes<double>>::type;
    return widened(half_of<T, kLanes<T>>(x.v, Half(), upper));
  }
}

// A and T are the same type, or A is float64 and T float32; others than the first `count` are 0.
template <class A, class T> TW_INLINE Vec<A> load_wider(const T* p, int count) {
  if constexpr (std::is_same_v<A, T>) {
    return load_some(p, count);
  } else {
    NarrowLanes narrow = {};
    if (count == kLanes<A>)
      __builtin_memcpy(&narrow, p, sizeof narrow);
    else
#ifdef TW_HAS_PARTS
      narrow = load_floats(p, count);
#else
      for (int i = 0; i < count; ++i) narrow[i] = p[i];
#endif
    return widened(narrow);
  }
}
template <class A, class T> TW_INLINE void store_narrower(T* p, Vec<A> v, int count) {
  if constexpr (std::is_same_v<A, T>) {
    store_some(p, v, count);
  } else {
    const NarrowLanes narrow = narrowed(v);
    if (count == kLanes<A>)
      __builtin_memcpy(p, &narrow, sizeof narrow);
    else
      for (int i = 0; i < count; ++i) p[i] = narrow[i];
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
