// bfloat16 as lanes of float32: a vector as two, its even and its odd lanes, which takes no
// shuffles; or half a vector, in order.
#pragma once
#include "core/cpu/simd/rows.h"

namespace tw::TW_ISA_NAME {
namespace {

using Stored16 = std::int16_t;  // the bits of a number
using Bits32 = typename RawVec<std::uint32_t>::type;

// As many numbers as a vector of float32 has.
typedef std::uint16_t ShortLanes __attribute__((vector_size(kLanes<float> * 2)));
TW_INLINE Vec<float> bfloat16_of_bits(ShortLanes bits) {
#ifdef TW_HAS_WIDENING
  const Bits32 wide = widen_lanes(bits);
#else
  const Bits32 wide = __builtin_convertvector(bits, Bits32);
#endif
  return Vec<float>((typename Vec<float>::Raw)(wide << 16));
}
TW_INLINE Vec<float> load_bfloat16(const BFloat16* p) {
  ShortLanes bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return bfloat16_of_bits(bits);
}

// Of a single lane, where vectors have no more, only `even` counts.
struct FloatPair {
  Vec<float> even, odd;
};
template <class T> TW_INLINE FloatPair floats_of_bfloat16(Vec<T> x) {
  using Raw = typename Vec<float>::Raw;
  if constexpr (kLanes<T> == 1) {
    const Bits32 bits = {(std::uint32_t)(std::uint16_t)x[0] << 16};
    return {Vec<float>((Raw)bits), Vec<float>((Raw)bits)};
  } else {
    const auto bits = (Bits32)x.v;
    return {Vec<float>((Raw)(bits << 16)), Vec<float>((Raw)(bits & 0xffff0000u))};
  }
}

// Bits whose upper half is the bfloat16 nearest to x, ties to even; the lower half means nothing.
// Not for any float32: a NaN whose lower half is not 0 may become an infinity or a 0 by a carry.
// What processors compute from numbers of bfloat16 has none, since they give back an operand's NaN
// or their own.
TW_INLINE Bits32 rounded_to_bfloat16(Vec<float> x) {
  const auto bits = (Bits32)x.v;
  return bits + 0x7fffu + (bits >> 16 & 1u);
}
// The lanes whose bits are the upper halves of `even` and `odd`.
template <class T = Stored16> TW_INLINE Vec<T> from_upper_halves(Bits32 even, Bits32 odd) {
  if constexpr (kLanes<T> == 1)
    return Vec<T>((T)(even[0] >> 16));
  else
    return Vec<T>((typename Vec<T>::Raw)(even >> 16 | (odd & 0xffff0000u)));
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
