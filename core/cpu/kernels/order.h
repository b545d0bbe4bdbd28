// Sorting networks over rows side by side: each lane of the vectors sorts a row of its own.
#pragma once
#include "core/cpu/order.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

template <class K> void exchange(K* a, K* b) {
  typedef K Row __attribute__((vector_size(kColumnBytes)));
  Row x, y;
  __builtin_memcpy(&x, a, sizeof x);
  __builtin_memcpy(&y, b, sizeof y);
  const Row low = x < y ? x : y, high = x < y ? y : x;
  __builtin_memcpy(a, &low, sizeof low);
  __builtin_memcpy(b, &high, sizeof high);
}

// Batcher's merge exchange for any n (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm
// M).
template <class K> void sort_columns(int64_t n, void* keys) {
  constexpr int64_t kLanes = kColumnBytes / sizeof(K);
  K* const rows = static_cast<K*>(keys);
  int64_t top = 1;
  while (2 * top < n) top *= 2;
  for (int64_t p = n > 1 ? top : 0; p > 0; p /= 2) {
    int64_t distance = p, residue = 0;
    for (int64_t q = top;; q /= 2) {
      for (int64_t first = residue; first + distance < n; first += 2 * p)
        for (int64_t i = first; i < first + p && i + distance < n; ++i)
          exchange(rows + i * kLanes, rows + (i + distance) * kLanes);
      if (q == p) break;
      distance = q - p;
      residue = p;
    }
  }
}

}  // namespace

extern const OrderTable order_table;
const OrderTable order_table = {{sort_columns<std::uint8_t>, sort_columns<std::uint16_t>,
                                 sort_columns<std::uint32_t>, sort_columns<std::uint64_t>}};

}  // namespace tw::TW_ISA_NAME
