// Truth values of lanes, all bits or none, as bytes 0 or 1.
#pragma once
#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

// Whether the masks of several vectors become bytes together, by shuffles.
#ifdef TW_HAS_NARROWING
template <class T> inline constexpr bool kPacksMasks =
    sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8;
#else
template <class T> inline constexpr bool kPacksMasks = kLanes<T> > 1;
#endif
// Masks whose lanes, a byte each, fill a vector.
template <class T> inline constexpr int kMasksAtOnce = kPacksMasks<T> ? (int)sizeof(T) : 1;

// The low half of each lane, of a and then of b.
template <class Narrow, class Wide, int... i>
TW_INLINE Narrow low_halves(Wide a, Wide b, Indices<i...>) {
  return __builtin_shufflevector((Narrow)a, (Narrow)b, (2 * i)...);
}
// The low byte of each lane, all bits or none, of n vectors.
template <int n, class Wide> TW_INLINE auto low_bytes(const Wide (&wide)[n]) {
  if constexpr (n == 1) {
    return wide[0];
#ifdef TW_HAS_NARROWING
  } else if constexpr (n >= 4) {
    return pack_masks(wide);
#elif defined TW_HAS_PACKS
  } else if constexpr (n < 8) {
    return pack_masks(wide);
#endif
  } else {
    using Part = typename IntOfSize<n / 2>::type;
    using Narrow = typename RawVec<Part>::type;
    Narrow narrow[n / 2];
#pragma GCC unroll 4
    for (int i = 0; i < n / 2; ++i)
      narrow[i] =
          low_halves<Narrow>(wide[2 * i], wide[2 * i + 1], typename CountTo<kLanes<Part>>::type());
    return low_bytes<n / 2>(narrow);
  }
}
// Writes the lanes of as many masks as fill a vector as bytes 0 or 1.
template <class T, int n> TW_INLINE void store_mask(std::uint8_t* y, const Mask<T> (&masks)[n]) {
  typename Mask<T>::Raw wide[n];
  for (int i = 0; i < n; ++i) wide[i] = masks[i].v;
  const auto bytes = low_bytes<n>(wide) & 1;
  __builtin_memcpy(y, &bytes, sizeof bytes);
}
// The first `count` lanes of one. Where no instruction narrows lanes, the compiler's own conversion
// goes one by one.
template <class T> TW_INLINE void store_mask(std::uint8_t* y, Mask<T> mask, int count) {
#ifdef TW_HAS_NARROWING
  constexpr bool narrows = sizeof(T) > 1;
#else
  constexpr bool narrows = !kPacksMasks<T>;
#endif
  if constexpr (narrows) {
    mask.store_bytes_01(y, count);
  } else {
    const Mask<T> masks[kMasksAtOnce<T>] = {mask};
    std::uint8_t bytes[kVectorBytes];
    store_mask<T>(bytes, masks);
    if (count == kLanes<T>) {
      __builtin_memcpy(y, bytes, kLanes<T>);
    } else {
      for (int i = 0; i < count; ++i) y[i] = bytes[i];
    }
  }
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
