// Rows sorted side by side.
#pragma once
#include <cstdint>

namespace tw {

// The keys of as many rows as fit into so many bytes stand beside each other.
inline constexpr int kColumnBytes = 64;

// Sorts each column of n rows of unsigned keys.
struct OrderTable {
  void (*sort_columns[4])(std::int64_t n, void* keys);  // by log2 of the key's size
};

}  // namespace tw
