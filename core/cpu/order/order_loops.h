// Sorting networks: over rows side by side, where each lane of the vectors sorts a row of its own,
// and over one row across the lanes; keys of elements and back.
#pragma once
#include <utility>

#include "core/cpu/simd/rows.h"
#include "core/cpu/order/order.h"
#include "core/cpu/order/keys.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// A register: wider vectors than the processor has the compiler takes apart through memory.
inline constexpr int kColumnBytes = kVectorBytes < 16 ? 16 : kVectorBytes;
template <class K> struct Columns {
  typedef K type __attribute__((vector_size(kColumnBytes)));
};
// A row of columns, of which the greater of two is found by comparing, where that is as cheap as
// what greater_of does.
template <class K> struct ComparedRow {
  typename Columns<K>::type keys;
};
// The greater of two, of which the smaller is known: on Intel's processors one port alone compares
// whole numbers in 64 bytes, and another one has exclusive ors.
template <class Row> TW_INLINE Row greater_of(Row a, Row b, [[maybe_unused]] Row smaller) {
#ifdef __AVX512F__
  if constexpr (sizeof(Row) == 64)
    return (Row)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)smaller, 0x96);
#endif
  return a < b ? b : a;
}
template <class Row> TW_INLINE void exchange(Row& a, Row& b) {
  const Row low = a < b ? a : b, high = greater_of(a, b, low);
  a = low;
  b = high;
}
template <class K> TW_INLINE void exchange(ComparedRow<K>& a, ComparedRow<K>& b) {
  const auto low = a.keys < b.keys ? a.keys : b.keys, high = a.keys < b.keys ? b.keys : a.keys;
  a.keys = low;
  b.keys = high;
}

// Batcher's merge exchange for any n (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm
// M): swap(i, j) puts the smaller of two at i.
template <class F> TW_INLINE void merge_exchange(int64_t n, F swap) {
  int64_t top = 1;
  while (2 * top < n) top *= 2;
  for (int64_t p = n > 1 ? top : 0; p > 0; p /= 2) {
    int64_t distance = p, residue = 0;
    for (int64_t q = top;; q /= 2) {
      for (int64_t first = residue; first + distance < n; first += 2 * p)
        for (int64_t i = first; i < first + p && i + distance < n; ++i) swap(i, i + distance);
      if (q == p) break;
      distance = q - p;
      residue = p;
    }
  }
}

// Rows that stay in registers for several steps: stores are the price of a step in memory.
inline constexpr int kBlockRows = 16;

template <int distance, int count, class Row> TW_INLINE void merge_block(Row (&rows)[count]) {
  if constexpr (distance > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i)
      if (!(i & distance)) exchange(rows[i], rows[i + distance]);
    merge_block<distance / 2>(rows);
  }
}
template <int size, class Row> TW_INLINE void sort_block(Row (&rows)[kBlockRows]) {
  if constexpr (size <= kBlockRows) {
#pragma GCC unroll 16
    for (int i = 0; i < kBlockRows; ++i)
      if (i < (i ^ (size - 1))) exchange(rows[i], rows[i ^ (size - 1)]);
    merge_block<size / 4>(rows);
    sort_block<2 * size>(rows);
  }
}
template <class Row, class F> TW_INLINE void each_block(int64_t n, Row* x, F f) {
  for (int64_t begin = 0; begin < n; begin += kBlockRows) {
    Row rows[kBlockRows];
#pragma GCC unroll 16
    for (int i = 0; i < kBlockRows; ++i) rows[i] = x[begin + i];
    f(rows);
#pragma GCC unroll 16
    for (int i = 0; i < kBlockRows; ++i) x[begin + i] = rows[i];
  }
}
// Steps of a merge at once, the first one of that distance: `count` rows, as far apart as the last
// one reaches. The distance of the step that follows.
template <int count, class Row> TW_INLINE int64_t merge_steps(int64_t n, int64_t distance, Row* x) {
  const int64_t stride = 2 * distance / count;
  for (int64_t begin = 0; begin < n; begin += 2 * distance)
    for (Row *p = x + begin, *const end = p + stride; p < end; ++p) {
      Row rows[count];
#pragma GCC unroll 16
      for (int i = 0; i < count; ++i) rows[i] = p[i * stride];
      merge_block<count / 2>(rows);
#pragma GCC unroll 16
      for (int i = 0; i < count; ++i) p[i * stride] = rows[i];
    }
  return stride / 2;
}
// The same of the first steps of merges of runs of size / 2: the first one compares with the
// mirrored place, so that all runs ascend.
template <int count, class Row>
TW_INLINE int64_t merge_first_steps(int64_t n, int64_t size, Row* x) {
  const int64_t stride = size / count;
  for (int64_t begin = 0; begin < n; begin += size) {
    Row *low = x + begin, *high = low + size - 1, *const end = low + stride;
    for (; low < end; ++low, --high) {
      Row rows[count];
#pragma GCC unroll 16
      for (int i = 0; i < count / 2; ++i) {
        rows[i] = low[i * stride], rows[count - 1 - i] = high[-i * stride];
        exchange(rows[i], rows[count - 1 - i]);
      }
      merge_block<count / 4>(rows);
#pragma GCC unroll 16
      for (int i = 0; i < count / 2; ++i)
        low[i * stride] = rows[i], high[-i * stride] = rows[count - 1 - i];
    }
  }
  return stride / 2;
}
// As many of them as leave a block's own, and no more than two over rows so far apart that more
// would share a place in the first cache.
template <class Row> int64_t merge_first(int64_t n, int64_t size, Row* x) {
  switch (size / kBlockRows) {
    case 2: return merge_first_steps<2>(n, size, x);
    case 8: return merge_first_steps<8>(n, size, x);
    case 16: return merge_first_steps<16>(n, size, x);
    default: return merge_first_steps<4>(n, size, x);
  }
}
// All steps from that distance on.
template <class Row> void merge_rest(int64_t n, int64_t distance, Row* x) {
  while (distance >= kBlockRows) switch (distance / kBlockRows) {
      case 1: distance = merge_steps<2>(n, distance, x); break;
      case 4: distance = merge_steps<8>(n, distance, x); break;
      case 8: distance = merge_steps<16>(n, distance, x); break;
      default: distance = merge_steps<4>(n, distance, x);
    }
  each_block(n, x,
             [](Row(&rows)[kBlockRows]) TW_LAMBDA_INLINE { merge_block<kBlockRows / 2>(rows); });
}
// Batcher's bitonic sort of a power of two (Knuth, 5.3.4), in parts that stay in the first cache:
// few steps reach further.
template <class Row> void bitonic_columns(int64_t n, Row* x) {
  constexpr int64_t cached = (1 << 14) / sizeof(Row);
  const int64_t part = n < cached ? n : cached;
  for (int64_t begin = 0; begin < n; begin += part) {
    Row* const first = x + begin;
    each_block(part, first, [](Row(&rows)[kBlockRows]) TW_LAMBDA_INLINE { sort_block<2>(rows); });
    for (int64_t size = 2 * kBlockRows; size <= part; size *= 2)
      merge_rest(part, merge_first(part, size, first), first);
  }
  for (int64_t size = 2 * part; size <= n; size *= 2) {
    int64_t distance = merge_first(n, size, x);
    while (2 * distance > part) distance = merge_steps<4>(n, distance, x);
    for (int64_t begin = 0; begin < n; begin += part) merge_rest(part, distance, x + begin);
  }
}

template <class K, class Network> void sort_columns(int64_t n, void* keys) {
  using Row = typename Columns<K>::type;
  auto* const x = static_cast<Row*>(keys);
  const int64_t whole = column_rows(n);
  if (!is_nearly_power(n, sizeof(K), kColumnBytes))
    return merge_exchange(n, [x](int64_t i, int64_t j) TW_LAMBDA_INLINE {
      const Row a = x[i], b = x[j];  // soon read again: neither result waits for the other
      x[i] = a < b ? a : b;
      x[j] = a < b ? b : a;
    });
  for (int64_t i = n; i < whole; ++i) x[i] = ~Row{};
  bitonic_columns(whole, reinterpret_cast<Network*>(keys));
}
template <class K> void sort_columns(int64_t n, void* keys) {
  sort_columns<K, typename Columns<K>::type>(n, keys);
}
// Of 64 bits the compiler and the processor take longer to compare.
template <class K> void sort_columns_by_comparing(int64_t n, void* keys) {
#ifdef __AVX512F__
  if constexpr (sizeof(K) < 8) return sort_columns<K, ComparedRow<K>>(n, keys);
#endif
  sort_columns<K>(n, keys);
}

void exchange_stably(std::uint64_t* a, std::uint64_t* b, std::uint64_t* a_place,
                     std::uint64_t* b_place) {
  typedef std::uint64_t Row __attribute__((vector_size(kColumnBytes)));
  Row x, y, p, q;
  __builtin_memcpy(&x, a, sizeof x);
  __builtin_memcpy(&y, b, sizeof y);
  __builtin_memcpy(&p, a_place, sizeof p);
  __builtin_memcpy(&q, b_place, sizeof q);
  const auto stays = (x < y) | ((x == y) & (p < q));
  const Row low = stays ? x : y, high = stays ? y : x, first = stays ? p : q, last = stays ? q : p;
  __builtin_memcpy(a, &low, sizeof low);
  __builtin_memcpy(b, &high, sizeof high);
  __builtin_memcpy(a_place, &first, sizeof first);
  __builtin_memcpy(b_place, &last, sizeof last);
}
void sort_columns_stably(int64_t n, std::uint64_t* keys, std::uint64_t* places) {
  constexpr int64_t kLanes = kColumnBytes / sizeof(std::uint64_t);
  for (int64_t i = 0; i < n * kLanes; ++i) places[i] = (std::uint64_t)(i / kLanes);
  merge_exchange(n, [=](int64_t i, int64_t j) TW_LAMBDA_INLINE {
    exchange_stably(keys + i * kLanes, keys + j * kLanes, places + i * kLanes, places + j * kLanes);
  });
}

// ---- one row ----

template <class K, int flip, int... i>
TW_INLINE Vec<K> exchanged(Vec<K> x, std::integer_sequence<int, i...>) {
  return Vec<K>(__builtin_shufflevector(x.v, x.v, (i ^ flip)...));
}
template <class K, int bit, int... i>
TW_INLINE Vec<K> joined(Vec<K> low, Vec<K> high, std::integer_sequence<int, i...>) {
  return Vec<K>(__builtin_shufflevector(low.v, high.v, (i & bit ? i + (int)sizeof...(i) : i)...));
}
template <class K> TW_INLINE Vec<K> smaller(Vec<K> x, Vec<K> y) {
  return Vec<K>(x.v < y.v ? x.v : y.v);
}
template <class K> TW_INLINE Vec<K> larger(Vec<K> x, Vec<K> y) {
  return Vec<K>(greater_of(x.v, y.v, smaller(x, y).v));
}
// Each lane against the one at index ^ flip; the smaller goes where `bit` of the index is not set.
template <class K, int flip, int bit> TW_INLINE Vec<K> compare_lanes(Vec<K> x) {
  using All = std::make_integer_sequence<int, kLanes<K>>;
  const Vec<K> other = exchanged<K, flip>(x, All());
  return joined<K, bit>(smaller(x, other), larger(x, other), All());
}
// Bitonic sequences of 2 * distance lanes in order.
template <class K, int distance> TW_INLINE Vec<K> merge_lanes(Vec<K> x) {
  if constexpr (distance == 0)
    return x;
  else
    return merge_lanes<K, distance / 2>(compare_lanes<K, distance, distance>(x));
}
template <class K, int size> TW_INLINE Vec<K> sort_lanes(Vec<K> x) {
  if constexpr (size <= kLanes<K>) {
    x = merge_lanes<K, size / 4>(compare_lanes<K, size - 1, size / 2>(x));
    return sort_lanes<K, 2 * size>(x);
  } else {
    return x;
  }
}

// The same network over lanes and vectors of one row.
template <class K> void sort_row(int64_t n, void* keys) {
  constexpr int64_t lanes = kLanes<K>;
  using All = std::make_integer_sequence<int, lanes>;
  K* const x = static_cast<K*>(keys);
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; i += lanes) sort_lanes<K, 2>(Vec<K>::load(x + i)).store(x + i);
  for (int64_t size = 2 * lanes; size <= n; size *= 2) {
    for (int64_t begin = 0; begin < n; begin += size)
      for (int64_t i = 0; i < size / 2; i += lanes) {
        K *const low = x + begin + i, *const high = x + begin + size - lanes - i;
        const Vec<K> a = Vec<K>::load(low), b = exchanged<K, lanes - 1>(Vec<K>::load(high), All());
        smaller(a, b).store(low);
        exchanged<K, lanes - 1>(larger(a, b), All()).store(high);
      }
    for (int64_t distance = size / 4; distance >= lanes; distance /= 2)
      for (int64_t begin = 0; begin < n; begin += 2 * distance)
        for (int64_t i = begin; i < begin + distance; i += lanes) {
          const Vec<K> a = Vec<K>::load(x + i), b = Vec<K>::load(x + i + distance);
          smaller(a, b).store(x + i);
          larger(a, b).store(x + i + distance);
        }
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i += lanes)
      merge_lanes<K, lanes / 2>(Vec<K>::load(x + i)).store(x + i);
  }
}

// ---- keys ----

template <class K> void block_least(int64_t n, const void* keys, void* least) {
  const K* const x = static_cast<const K*>(keys);
  K* const out = static_cast<K*>(least);
  constexpr int lanes = kLanes<K> < kKeyBlock ? kLanes<K> : kKeyBlock;
  using Row = typename Lanes<K, lanes>::type;
  for (int64_t i = 0; i < n; i += kKeyBlock) {
    Row best;
    __builtin_memcpy(&best, x + i, sizeof best);
    for (int j = lanes; j < kKeyBlock; j += lanes) {
      Row next;
      __builtin_memcpy(&next, x + i + j, sizeof next);
      best = next < best ? next : best;
    }
    out[i / kKeyBlock] =
        fold_lanes<K, lanes>(best, [](auto a, auto b) TW_LAMBDA_INLINE { return a < b ? a : b; });
  }
}

// In vectors by hand: beside the keys the compiler makes neither loop one of vectors.
template <class T> bool has_negative_zero(int64_t n, const T* x) {
  using K = Key<T>;
  constexpr int L = kLanes<K>;
  typename Vec<K>::Raw found = {};
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    typename Vec<K>::Raw bits;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    found |= bits == kTopBit<K> ? ~typename Vec<K>::Raw{} : typename Vec<K>::Raw{};
  }
  K any = fold_lanes<K, L>(found, [](auto p, auto q) TW_LAMBDA_INLINE { return p | q; });
  for (; i < n; ++i) any |= __builtin_bit_cast(K, x[i]) == kTopBit<K> ? K(1) : K(0);
  return any != 0;
}
// Keys, and values again, may take the place of what they are made of.
template <class T> bool keys(int64_t n, const void* from, bool descending, void* to) {
  using K = Key<T>;
  const T* const x = static_cast<const T*>(from);
  K* const out = static_cast<K*>(to);
  const K flip = descending ? kAllBits<K> : K(0);
  bool zeros = false;
  if constexpr (kIsFloat<T>) zeros = has_negative_zero(n, x);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T element;
    __builtin_memcpy(&element, x + i, sizeof element);
    out[i] = static_cast<K>(key_of(element) ^ flip);
  }
  return zeros;
}
template <class T> void values(int64_t n, const void* from, bool descending, void* to) {
  using K = Key<T>;
  const K* const x = static_cast<const K*>(from);
  T* const out = static_cast<T*>(to);
  const K flip = descending ? kAllBits<K> : K(0);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T element = value_of<T>(static_cast<K>(x[i] ^ flip));
    __builtin_memcpy(out + i, &element, sizeof element);
  }
}

constexpr OrderTable make_order_table() {
  OrderTable table = {
      kColumnBytes,
      {sort_columns<std::uint8_t>, sort_columns<std::uint16_t>, sort_columns<std::uint32_t>,
       sort_columns<std::uint64_t>},
      {sort_columns_by_comparing<std::uint8_t>, sort_columns_by_comparing<std::uint16_t>,
       sort_columns_by_comparing<std::uint32_t>, sort_columns_by_comparing<std::uint64_t>},
      sort_columns_stably,
      {block_least<std::uint8_t>, block_least<std::uint16_t>, block_least<std::uint32_t>,
       block_least<std::uint64_t>},
      {sort_row<std::uint8_t>, sort_row<std::uint16_t>, sort_row<std::uint32_t>,
       sort_row<std::uint64_t>},
      {},
      {}};
  int at = 0;
  const auto add = [&]<class T>(T) {
    if constexpr (!is_complex_number<T>) {
      table.keys[at] = keys<T>;
      table.values[at] = values<T>;
    }
    ++at;
  };
#define TW_ROW(type, id, text) add(type{});
  TW_DTYPES(TW_ROW)
#undef TW_ROW
  return table;
}

}  // namespace

extern const OrderTable order_table;
constexpr OrderTable order_table = make_order_table();

}  // namespace tw::TW_ISA_NAME
