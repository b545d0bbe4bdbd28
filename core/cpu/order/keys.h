// Keys to sort by: unsigned integers in the order of values. For kernels of every instruction set
// too, so nothing here may become a function of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/base/dtype.h"

namespace tw {

// ---- keys: unsigned integers in the order of values, NaN behind all others ----

template <std::size_t bytes> struct UnsignedOf;
template <> struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <> struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <> struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <> struct UnsignedOf<8> {
  using type = std::uint64_t;
};
template <class T> using Key = typename UnsignedOf<sizeof(T)>::type;

template <class T> inline constexpr Key<T> kInfinityBits = 0;  // 0: no floating type
template <> inline constexpr std::uint16_t kInfinityBits<Half> = 0x7c00;
template <> inline constexpr std::uint16_t kInfinityBits<BFloat16> = 0x7f80;
template <> inline constexpr std::uint32_t kInfinityBits<float> = 0x7f800000;
template <> inline constexpr std::uint64_t kInfinityBits<double> = 0x7ff0000000000000;
template <class T> inline constexpr bool kIsFloat = kInfinityBits<T> != 0;

template <class K> inline constexpr K kTopBit = static_cast<K>(K{1} << (8 * sizeof(K) - 1));
template <class K> inline constexpr K kAllBits = static_cast<K>(~K{0});

// The zeros of both signs have one key, so have all NaN.
template <class T> [[gnu::always_inline]] inline Key<T> key_of(T x) {
  using K = Key<T>;
  const K bits = __builtin_bit_cast(K, x);
  if constexpr (kIsFloat<T>) {
    const K magnitude = bits & static_cast<K>(~kTopBit<K>);
    const K ordered = bits & kTopBit<K> ? static_cast<K>(~bits) : static_cast<K>(bits | kTopBit<K>);
    const K key = magnitude == 0 ? kTopBit<K> : ordered;
    return magnitude > kInfinityBits<T> ? kAllBits<K> : key;
  } else if constexpr (std::is_signed_v<T>) {
    return bits ^ kTopBit<K>;
  } else {
    return bits;
  }
}
template <class T> [[gnu::always_inline]] inline T value_of(Key<T> key) {
  using K = Key<T>;
  if constexpr (kIsFloat<T>)
    return __builtin_bit_cast(
        T, key & kTopBit<K> ? static_cast<K>(key ^ kTopBit<K>) : static_cast<K>(~key));
  else if constexpr (std::is_signed_v<T>)
    return __builtin_bit_cast(T, static_cast<K>(key ^ kTopBit<K>));
  else
    return __builtin_bit_cast(T, key);
}

}  // namespace tw
