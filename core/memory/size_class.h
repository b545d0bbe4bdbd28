// Block sizes of the pool: 64-byte steps (a cache line) up to 256 bytes, then four steps per power
// of two up to 1 MiB. Waste: below 64 bytes up to 256; above, less than a quarter of the request
// (a fifth of the block).
#pragma once
#include <cstddef>
#include <cstdint>

namespace tw {

inline constexpr std::size_t kLargestSmallBlock = 1 << 20;  // above: ranges of regions
inline constexpr int kSizeClasses = 52;  // 4 up to 256 bytes, 4 for each of 12 powers

// Class of a request of at most kLargestSmallBlock bytes.
constexpr int size_class_of(std::size_t bytes) {
  const std::size_t last = bytes - (bytes != 0);
  if (last < 256) return static_cast<int>(last >> 6);
  const int power = 63 - __builtin_clzll(last);
  return (power - 8) * 4 + static_cast<int>(last >> (power - 2));
}

constexpr std::size_t class_bytes(int size_class) {
  if (size_class < 4) return (static_cast<std::size_t>(size_class) + 1) << 6;
  return (static_cast<std::size_t>(size_class % 4) + 5) << (size_class / 4 + 5);
}

// Blocks of a class are cut from spans of this size, aligned to it. A span holds at least 8
// blocks up to 32 KiB, so the tail wastes under 1/8; larger blocks share a huge page, the tail
// wastes at most 1/4.
constexpr std::size_t span_bytes(int size_class) {
  return class_bytes(size_class) <= (32 << 10) ? 256 << 10 : 2 << 20;
}
constexpr int blocks_per_span(int size_class) {
  return static_cast<int>(span_bytes(size_class) / class_bytes(size_class));
}

static_assert(size_class_of(0) == 0 && size_class_of(64) == 0 && size_class_of(65) == 1);
static_assert(size_class_of(257) == 4 && class_bytes(4) == 320 && class_bytes(3) == 256);
static_assert(size_class_of(kLargestSmallBlock) == kSizeClasses - 1);
static_assert(class_bytes(kSizeClasses - 1) == kLargestSmallBlock);

}  // namespace tw
