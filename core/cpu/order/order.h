// Rows sorted by networks: side by side, or one in registers.
#pragma once
#include <cstdint>

#include "core/base/dtype.h"

namespace tw {

// The widest vector of keys, in bytes.
inline constexpr int kWidestKeys = 64;

// Keys whose least is found at once.
inline constexpr int kKeyBlock = 32;

// Rows that memory for n rows side by side must have: networks work on powers of two.
inline constexpr std::int64_t column_rows(std::int64_t n) {
  std::int64_t rows = 16;
  while (rows < n) rows *= 2;
  return rows;
}

// Whether filling up costs less than merges of any length, which pass through memory at each step:
// less of it where an exchange is several instructions, of 64 bits in vectors that are not the
// widest.
inline constexpr bool is_nearly_power(std::int64_t n, std::int64_t key_bytes,
                                      std::int64_t column_bytes) {
  return column_rows(n) <= n + n / (key_bytes < 8 || column_bytes == 64 ? 2 : 4);
}

struct OrderTable {
  // The keys of as many rows as fit into so many bytes, a vector, stand beside each other.
  int column_bytes;
  // Sorts each column of n rows of unsigned keys, in memory for column_rows(n).
  void (*sort_columns[4])(std::int64_t n, void* keys);  // by log2 of the key's size
  // The same for processors that compare whole numbers in several places at once.
  void (*sort_columns_by_comparing[4])(std::int64_t n, void* keys);
  // The same of 64 bits, with places made beside them: equal keys keep their order.
  void (*sort_columns_stably)(std::int64_t n, std::uint64_t* keys, std::uint64_t* places);
  // The least of each kKeyBlock keys; n is a multiple of it.
  void (*block_least[4])(std::int64_t n, const void* keys, void* least);
  // Sorts n keys, a power of two of at least kWidestKeys.
  void (*sort_row[4])(std::int64_t n, void* keys);
  // Keys of n elements (keys.h), inverted where they descend, and back; null for complex.
  // Tells whether there is a negative zero, whose sign a key does not keep.
  bool (*keys[kDTypes])(std::int64_t n, const void* x, bool descending, void* keys);
  void (*values[kDTypes])(std::int64_t n, const void* keys, bool descending, void* y);
};

}  // namespace tw
