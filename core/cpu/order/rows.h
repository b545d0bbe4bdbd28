// Orders of elements on raw pointers: stable sorts of rows by integer keys.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "core/base/cpu_info.h"
#include "core/base/dtype.h"
#include "core/base/thresholds.h"
#include "core/cpu/copy/convert.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/order/order.h"
#include "core/cpu/order/keys.h"
#include "core/memory/scratch.h"
#include "core/runtime/choice.h"
#include "core/runtime/thread_pool.h"

namespace tw {

// Of a row, which is shared between threads if it is long.
template <class F> void each_piece(std::int64_t n, F&& f) {
  parallel_ranges(n,
                  n < thresholds::kSharedRow ? thresholds::kSharedRow
                                             : (n + thresholds::kPieces - 1) / thresholds::kPieces,
                  f);
}

// ---- keys of elements, which are told apart by the size of a key from here on ----

// Calls `f` with a key of elements of an ordered type.
template <class F> void visit_key(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

// Elements by their bits.
template <class K> struct Row {
  DType dtype;
  std::int64_t n;
  const K* x;
  bool descending;

  // True where zeros must be put back in order.
  bool keys(K* to) const {
    std::atomic<bool> zeros = false;
    each_piece(n, [&](std::int64_t begin, std::int64_t end) {
      const auto keys = active_kernels().order->keys[index_of(dtype)];
      if (keys(end - begin, x + begin, descending, to + begin)) zeros = true;
    });
    return zeros;
  }
  void values(const K* keys, K* y) const {
    each_piece(n, [&](std::int64_t begin, std::int64_t end) {
      const auto values = active_kernels().order->values[index_of(dtype)];
      values(end - begin, keys + begin, descending, y + begin);
    });
  }
  // Zeros keep their order, whatever their signs are: keys do not tell them apart.
  void keep_zeros(K* y) const {
    const auto is_zero = [](K bits) { return static_cast<K>(bits << 1) == 0; };
    K* zero = std::find_if(y, y + n, is_zero);
    for (std::int64_t i = 0; i < n; ++i)
      if (is_zero(x[i])) *zero++ = x[i];
  }
};

// A key with its place in the row, so that equal ones keep their order: one number where that has
// room for both.
struct Placed {
  std::uint64_t key, place;
};
template <class K> using PlacedOf = std::conditional_t<sizeof(K) == 8, Placed, std::uint64_t>;

template <class K> void add_places(std::int64_t n, const K* keys, PlacedOf<K>* items) {
  each_piece(n, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if constexpr (sizeof(K) == 8)
        items[i] = {keys[i], static_cast<std::uint64_t>(i)};
      else
        items[i] = static_cast<std::uint64_t>(keys[i]) << 32 | static_cast<std::uint64_t>(i);
  });
}
template <class K>
void take_places(std::int64_t n, const PlacedOf<K>* items, K* keys, std::int64_t* places) {
  each_piece(n, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if constexpr (sizeof(K) == 8) {
        keys[i] = items[i].key;
        places[i] = static_cast<std::int64_t>(items[i].place);
      } else {
        keys[i] = static_cast<K>(items[i] >> 32);
        places[i] = static_cast<std::int64_t>(items[i] & 0xffffffff);
      }
  });
}

// ---- stable sorts ----

// A digit of keys: its 256 places to write to lie in the L1 cache.
inline constexpr int kDigitBits = 8, kDigitValues = 1 << kDigitBits;
// Counts have 32 bits.
inline constexpr std::int64_t kLongestRow = 0xffffffff;

template <class K> K key_in(K item) { return item; }
inline std::uint64_t key_in(const Placed& item) { return item.key; }
template <class Item> int digit_of(const Item& item, int digit) {
  return static_cast<int>(key_in(item) >> (digit * kDigitBits)) & (kDigitValues - 1);
}

// Sorts n items by digits, from `lowest` up to `past`, in the order of the digit before (Seward,
// 1954).
template <class Item, int lowest, int past> class DigitSort {
 public:
  using K = decltype(key_in(Item()));

  explicit DigitSort(std::int64_t n)
      : n_(n), shared_(n >= thresholds::kSharedRow && num_threads() > 1) {}

  // Where they lie then: in `items`, or in `spare`.
  Item* run(Item* items, Item* spare) {
    if (n_ <= thresholds::kInsertionRow) return insert(items);
    int digits[past];
    const int count = shared_ ? find_shared(items, digits) : count_digits(items, digits);
    for (int i = 0; i < count; ++i, std::swap(items, spare))
      shared_ ? shared_pass(digits[i], items, spare) : pass(digits[i], items, spare);
    return items;
  }

 private:
  Item* insert(Item* items) {
    for (std::int64_t i = 1; i < n_; ++i) {
      const Item item = items[i];
      std::int64_t at = i;
      for (; at > 0 && key_in(item) < key_in(items[at - 1]); --at) items[at] = items[at - 1];
      items[at] = item;
    }
    return items;
  }

  // Counts all digits in one pass; lists those that differ somewhere.
  int count_digits(const Item* items, int* digits) {
    for (auto& row : counts_) std::fill(std::begin(row), std::end(row), 0u);
    for (std::int64_t i = 0; i < n_; ++i)
      for (int d = lowest; d < past; ++d) ++counts_[d][digit_of(items[i], d)];
    int found = 0;
    for (int d = lowest; d < past; ++d)
      if (counts_[d][digit_of(items[0], d)] != n_) digits[found++] = d;
    return found;
  }
  // The bits in which keys differ: pieces count for themselves before each pass.
  int find_shared(const Item* items, int* digits) {
    std::atomic<K> differ = 0;
    each_piece(n_, [&](std::int64_t begin, std::int64_t end) {
      K some = 0;
      for (std::int64_t i = begin; i < end; ++i) some |= key_in(items[i]) ^ key_in(items[0]);
      differ |= some;
    });
    int found = 0;
    for (int d = lowest; d < past; ++d)
      if (digit_of(differ.load(), d)) digits[found++] = d;
    return found;
  }

  void pass(int digit, const Item* from, Item* to) {
    std::uint32_t* const at = counts_[digit];
    std::uint32_t before = 0;
    for (int v = 0; v < kDigitValues; ++v) before += std::exchange(at[v], before);
    for (std::int64_t i = 0; i < n_; ++i) to[at[digit_of(from[i], digit)]++] = from[i];
  }
  void shared_pass(int digit, const Item* from, Item* to) {
    const Scratch memory(thresholds::kPieces * kDigitValues * sizeof(std::uint32_t));
    auto* const counts = memory.as<std::uint32_t>();
    const std::int64_t piece = (n_ + thresholds::kPieces - 1) / thresholds::kPieces;
    each_piece(n_, [=](std::int64_t begin, std::int64_t end) {
      std::uint32_t own[kDigitValues] = {};
      for (std::int64_t i = begin; i < end; ++i) ++own[digit_of(from[i], digit)];
      std::copy(std::begin(own), std::end(own), counts + begin / piece * kDigitValues);
    });
    std::uint32_t before = 0;
    for (int v = 0; v < kDigitValues; ++v)
      for (std::int64_t i = 0; i * piece < n_; ++i)
        before += std::exchange(counts[i * kDigitValues + v], before);
    each_piece(n_, [=](std::int64_t begin, std::int64_t end) {
      std::uint32_t at[kDigitValues];
      std::copy_n(counts + begin / piece * kDigitValues, kDigitValues, at);
      for (std::int64_t i = begin; i < end; ++i) to[at[digit_of(from[i], digit)]++] = from[i];
    });
  }

  const std::int64_t n_;
  const bool shared_;  // between threads
  std::uint32_t counts_[past][kDigitValues];
};

template <class Item, int digits> inline constexpr std::int64_t kLongestAlone =
    digits < int{sizeof(Item)}
        ? thresholds::kNetworkRow
        : std::min<std::int64_t>(thresholds::kLongNetworkRow, (1 << 15) / sizeof(Item));
// Room for items that a network in registers puts in order: whole vectors of a power of two.
inline std::int64_t item_room(std::int64_t n, std::int64_t size) {
  if (n > thresholds::kLongNetworkRow) return n;
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(n, kWidestKeys / size))));
}
// Puts n items in order, stable; `spare` is as large. Returns where they lie.
template <int lowest, int past, class Item>
Item* sort_items(std::int64_t n, Item* items, Item* spare) {
  if constexpr (std::is_integral_v<Item>)
    if (n > thresholds::kInsertionRow / 4 && n <= kLongestAlone<Item, past - lowest>) {
      const std::int64_t room = item_room(n, sizeof(Item));
      std::fill(items + n, items + room, kAllBits<Item>);
      active_kernels().order->sort_row[std::countr_zero(sizeof(Item))](room, items);
      return items;
    }
  return DigitSort<Item, lowest, past>(n).run(items, spare);
}

// y = the row in order, stable; NaN last, or first where it descends. `room`: twice item_room.
template <class K> void sort_row(const Row<K>& row, K* y, K* room) {
  const bool zeros = row.keys(room);
  row.values(sort_items<0, sizeof(K)>(row.n, room, room + item_room(row.n, sizeof(K))), y);
  if (zeros) row.keep_zeros(y);
}
// The same with the places that the elements come from.
template <class K> void sort_row(const Row<K>& row, K* y, std::int64_t* places, PlacedOf<K>* room) {
  constexpr int kLowest = sizeof(K) == 8 ? 0 : 4;  // places are in order
  PlacedOf<K>* const other = room + item_room(row.n, sizeof(PlacedOf<K>));
  const bool zeros = row.keys(reinterpret_cast<K*>(other));
  add_places(row.n, reinterpret_cast<K*>(other), room);
  const PlacedOf<K>* const sorted = sort_items<kLowest, kLowest + sizeof(K)>(row.n, room, other);
  K* const keys = reinterpret_cast<K*>(sorted == room ? other : room);
  take_places(row.n, sorted, keys, places);
  row.values(keys, y);
  if (zeros) row.keep_zeros(y);
}

// ---- rows side by side ----

// Rows of keys, one after the other, and the same side by side for the networks.
template <class K> struct SideBySide {
  static constexpr int kSize = std::countr_zero(sizeof(K));
  const OrderTable& order = *active_kernels().order;
  const std::int64_t lanes = order.column_bytes / std::int64_t{sizeof(K)};
  // Keys in the memory of a group.
  std::int64_t room(std::int64_t n) const { return column_rows(n) * lanes; }
  // Copies the last of `count` rows to the lanes that are left.
  void fill(std::int64_t n, std::int64_t count, K* rows) const {
    for (std::int64_t lane = count; lane < lanes; ++lane) std::copy_n(rows, n, rows + lane * n);
  }
  void to_columns(std::int64_t n, const K* rows, K* columns) const {
    active_kernels().convert->transpose[kSize](lanes, n, rows, n * sizeof(K), columns,
                                               order.column_bytes, false);
  }
  void to_rows(std::int64_t n, const K* columns, K* rows) const {
    active_kernels().convert->transpose[kSize](n, lanes, columns, order.column_bytes, rows,
                                               n * sizeof(K), false);
  }
  void sort_columns(std::int64_t n, K* columns) const {
    // Timed on Zen 4, which takes 64 bytes in halves: comparing twice 0.8 of the time there.
    static const bool in_halves = cpu_info().vector_path_bits == 256;
    const bool compares = in_halves && !is_off(Optimization::network_by_comparing);
    (compares ? order.sort_columns_by_comparing : order.sort_columns)[kSize](n, columns);
  }
  void sort(std::int64_t n, std::int64_t count, K* rows, K* columns) const {
    fill(n, count, rows);
    to_columns(n, rows, columns);
    sort_columns(n, columns);
    to_rows(n, columns, rows);
  }
};
// body(networks, first row, rows, memory for `rooms` times the keys of a group) for groups that
// fill the lanes.
template <class K, class F>
void each_group(std::int64_t rows, std::int64_t n, int rooms, F&& body) {
  const SideBySide<K> networks;
  const std::int64_t lanes = networks.lanes;
  parallel_ranges(
      (rows + lanes - 1) / lanes, (1 << 14) / (n * lanes) + 1,
      [&](std::int64_t first, std::int64_t last) {
        const Scratch memory(static_cast<std::size_t>(rooms * networks.room(n)) * sizeof(K));
        for (std::int64_t i = first; i < last; ++i)
          body(networks, i * lanes, std::min(lanes, rows - i * lanes), memory.as<K>());
      });
}
// Rows one after the other, of which `first` is the first.
template <class K> Row<K> row_at(const Row<K>& first, std::int64_t row, std::int64_t count = 1) {
  return {first.dtype, first.n * count, first.x + row * first.n, first.descending};
}
template <class K> void sort_short_rows(std::int64_t rows, const Row<K>& first, K* y) {
  const std::int64_t n = first.n;
  each_group<K>(rows, n, 2, [&](const auto& networks, auto begin, auto count, K* room) {
    const Row<K> group = row_at(first, begin, count);
    bool zeros;
    if (count ==
        networks.lanes) {  // keys are made where the network reads them, in the first cache
      networks.to_columns(n, group.x, room);
      const Row<K> columns = {group.dtype, group.n, room, group.descending};
      zeros = columns.keys(room);
      networks.sort_columns(n, room);
      columns.values(room, room);
      networks.to_rows(n, room, y + begin * n);
    } else {
      zeros = group.keys(room);
      networks.sort(n, count, room, room + networks.room(n));
      group.values(room, y + begin * n);
    }
    for (std::int64_t row = begin; zeros && row < begin + count; ++row)
      row_at(first, row).keep_zeros(y + row * n);
  });
}

// Calls use(row, keys in order, their places, whether zeros must be put back) for each row.
template <class K, class F> void each_ordered_row(std::int64_t rows, const Row<K>& first, F&& use) {
  using Item = std::uint64_t;
  const std::int64_t n = first.n;
  each_group<Item>(rows, n, 4, [&](const auto& networks, auto begin, auto count, Item* room) {
    const std::int64_t whole = networks.room(n);
    Item* const items = room;
    auto* const places = reinterpret_cast<std::int64_t*>(room + whole);
    auto* const keys = reinterpret_cast<K*>(room + 2 * whole);
    const bool zeros =
        row_at(first, begin, count).keys(sizeof(K) == 8 ? reinterpret_cast<K*>(items) : keys);
    if constexpr (sizeof(K) == 8) {
      networks.fill(n, count, items);
      networks.to_columns(n, items, keys);
      networks.order.sort_columns_stably(n, keys, room + 3 * whole);
      networks.to_rows(n, room + 3 * whole, room + whole);
      networks.to_rows(n, keys, items);
      for (std::int64_t i = 0; i < count; ++i) use(begin + i, items + i * n, places + i * n, zeros);
    } else {
      for (std::int64_t i = 0; i < count; ++i) add_places(n, keys + i * n, items + i * n);
      networks.sort(n, count, items, room + 3 * whole);
      take_places(count * n, items, keys, places);
      for (std::int64_t i = 0; i < count; ++i) use(begin + i, keys + i * n, places + i * n, zeros);
    }
  });
}
template <class K>
void sort_short_rows(std::int64_t rows, const Row<K>& first, K* y, std::int64_t* places) {
  each_ordered_row(rows, first,
                   [&](std::int64_t at, const K* keys, const std::int64_t* from, bool zeros) {
                     const Row<K> row = row_at(first, at);
                     std::copy_n(from, row.n, places + at * row.n);
                     row.values(keys, y + at * row.n);
                     if (zeros) row.keep_zeros(y + at * row.n);
                   });
}

// ---- selections ----

// Key and place as one number, so that equal keys are ordered by their places.
template <class Wide> struct RankedNumber {
  static constexpr int kPlaceBits = 4 * sizeof(Wide);
  Wide word;
  static RankedNumber of(std::uint64_t key, std::int64_t place) {
    return {static_cast<Wide>(key) << kPlaceBits | static_cast<Wide>(place)};
  }
  std::uint64_t key() const { return static_cast<std::uint64_t>(word >> kPlaceBits); }
  std::int64_t place() const {
    return static_cast<std::int64_t>(word & ((Wide{1} << kPlaceBits) - 1));
  }
  bool operator<(const RankedNumber& other) const { return word < other.word; }
};
template <class K> using Ranked =
    RankedNumber<std::conditional_t<sizeof(K) == 8, unsigned __int128, std::uint64_t>>;

// A row as items; its keys pass through the L1 cache.
template <class K> void write_ranked(const Row<K>& row, Ranked<K>* items) {
  constexpr std::int64_t kAtOnce = thresholds::kStageBytes / 8;
  K keys[kAtOnce];
  for (std::int64_t at = 0; at < row.n; at += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, row.n - at);
    Row<K>{row.dtype, count, row.x + at, row.descending}.keys(keys);
    for (std::int64_t i = 0; i < count; ++i) items[at + i] = Ranked<K>::of(keys[i], at + i);
  }
}

// Elements of a row that are tested together: most blocks of a long row have none that counts.
inline constexpr std::int64_t kBlock = 32;

// Whether some element of a block may come before one with this key. NaN may.
template <class T> bool any_before(std::int64_t n, const T* x, Key<T> limit, Key<T> flip) {
  int any = 0;
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    const T bound = value_of<T>(static_cast<Key<T>>(limit ^ flip));
    if (flip)
      for (std::int64_t i = 0; i < n; ++i) any |= !(x[i] <= bound);
    else
      for (std::int64_t i = 0; i < n; ++i) any |= !(x[i] >= bound);
  } else {
    for (std::int64_t i = 0; i < n; ++i) any |= static_cast<Key<T>>(key_of(x[i]) ^ flip) < limit;
  }
  return any;
}

// Keeps the best k of `count` candidates, in no order.
template <class Item> std::int64_t keep_best(std::int64_t k, std::int64_t count, Item* room) {
  if (count > k) std::nth_element(room, room + k - 1, room + count);
  return std::min(count, k);
}

// The k elements that come first, by key ^ flip, into the first of `room`, in no order: candidates
// are gathered, and all but the best k dropped whenever there is no more room.
template <class T> void select_first(std::int64_t n, const T* x, std::int64_t k, Key<T> flip,
                                     Ranked<Key<T>>* room, std::int64_t capacity) {
  const auto ranked = [=](std::int64_t i) {
    return Ranked<Key<T>>::of(static_cast<Key<T>>(key_of(x[i]) ^ flip), i);
  };
  std::int64_t count = std::min(n, capacity);
  for (std::int64_t i = 0; i < count; ++i) room[i] = ranked(i);
  std::uint64_t limit = 0;
  const auto drop = [&] {
    count = keep_best(k, count, room);
    limit = room[k - 1].key();
  };
  if (n > capacity) drop();
  for (std::int64_t begin = capacity; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, n);
    if (!any_before(end - begin, x + begin, static_cast<Key<T>>(limit), flip)) continue;
    if (count + kBlock > capacity) drop();
    for (std::int64_t i = begin; i < end; ++i) {  // no branch, which would be taken by chance
      room[count] = ranked(i);
      count += room[count].key() < limit;
    }
  }
  keep_best(k, count, room);
}
// The first few in order: in a row without order few elements come before the best so far.
inline constexpr std::int64_t kFewest = 8;
template <class T>
void select_few(std::int64_t n, const T* x, std::int64_t k, Key<T> flip, Ranked<Key<T>>* best) {
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, n);
    if (begin && !any_before(end - begin, x + begin, static_cast<Key<T>>(best[k - 1].key()), flip))
      continue;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto item = Ranked<Key<T>>::of(static_cast<Key<T>>(key_of(x[i]) ^ flip), i);
      if (i >= k && !(item < best[k - 1])) continue;
      std::int64_t at = std::min(i, k - 1);
      for (; at > 0 && item < best[at - 1]; --at) best[at] = best[at - 1];
      best[at] = item;
    }
  }
}
// The same of a row of whole blocks: no element but those up to the k-th of the blocks' least ones
// can be among the first. `keys`: for the row and a key for each block, twice.
template <class K> void select_by_blocks(const Row<K>& row, std::int64_t k, K* keys,
                                         Ranked<K>* room, std::int64_t capacity) {
  const std::int64_t blocks = row.n / kKeyBlock;
  K *const least = keys + row.n, *const sorted = least + blocks;
  row.keys(keys);
  active_kernels().order->block_least[std::countr_zero(sizeof(K))](row.n, keys, least);
  std::copy_n(least, blocks, sorted);
  std::nth_element(sorted, sorted + k - 1, sorted + blocks);
  std::uint64_t limit = sorted[k - 1];
  std::int64_t count = 0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (least[block] > limit) continue;
    if (count + kKeyBlock > capacity) {
      count = keep_best(k, count, room);
      limit = std::min(limit, room[k - 1].key());
    }
    for (std::int64_t i = block * kKeyBlock; i < (block + 1) * kKeyBlock; ++i) {
      room[count] = Ranked<K>::of(keys[i], i);
      count += keys[i] <= limit;
    }
  }
  keep_best(k, count, room);
}
// Rows for which that takes less time than candidates one by one.
inline bool selects_by_blocks(std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kMostKeys = 1 << 16;
  return n % kKeyBlock == 0 && n <= kMostKeys && 2 * k <= n / kKeyBlock;
}

// Room that makes dropping rare: each costs as much as writing what it drops.
inline std::int64_t selection_room(std::int64_t n, std::int64_t k) {
  return std::min(n, std::max<std::int64_t>(2 * k, k + 128));
}

// Puts items in order; `spare` has room for as many.
template <class Item> void sort_ranked(std::int64_t n, Item* items, Item* spare) {
  if constexpr (sizeof(Item) == sizeof(std::uint64_t)) {
    if (n >= thresholds::kManyRanked) {
      const auto* sorted = DigitSort<std::uint64_t, 0, 8>(n).run(&items->word, &spare->word);
      if (sorted != &items->word) std::copy_n(spare, n, items);
      return;
    }
  }
  std::sort(items, items + n);
}

}  // namespace tw
