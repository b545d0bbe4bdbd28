// Orders of elements on raw pointers: stable sorts of rows by integer keys.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "core/base/dtype.h"
#include "core/cpu/convert.h"
#include "core/cpu/isa.h"
#include "core/cpu/order.h"
#include "core/cpu/order_keys.h"
#include "core/memory/scratch.h"
#include "core/runtime/thread_pool.h"

namespace tw {

template <class T> bool is_negative_zero(T x) {
  return kIsFloat<T> && std::bit_cast<Key<T>>(x) == kTopBit<Key<T>>;
}

// An element's key and its place in the row.
template <class K> struct Placed {
  K key;
  std::conditional_t<sizeof(K) == 8, std::uint64_t, std::uint32_t> place;
};
template <class K> [[gnu::always_inline]] inline K key_in(K item) { return item; }
template <class K> [[gnu::always_inline]] inline K key_in(const Placed<K>& item) {
  return item.key;
}

// ---- stable sorts ----

// Rows up to this long are sorted by insertion: counting digits takes as long as that.
inline constexpr std::int64_t kInsertionRow = 40;
// A digit of keys: its 256 places to write to lie in the L1 cache.
inline constexpr int kDigitBits = 8, kDigitValues = 1 << kDigitBits;
// Counts have 32 bits.
inline constexpr std::int64_t kLongestRow = 0xffffffff;
// From this length on a row is shared between threads, cut into so many pieces.
inline constexpr std::int64_t kSharedRow = 1 << 17, kPieces = 16;

template <class K> int digit_at(K key, int digit) {
  return static_cast<int>(key >> (digit * kDigitBits)) & (kDigitValues - 1);
}

// Sorts what `load(i)` yields for i < n and hands it to `store(place, item)`. `room`: for 2 * n
// items. From the last digit to the first, in the order of the digit before (Seward, 1954).
template <class Item, class Load, class Store> class DigitSort {
 public:
  using K = decltype(key_in(Item()));
  static constexpr int kDigits = 8 * sizeof(K) / kDigitBits;

  DigitSort(std::int64_t n, Item* room, Load load, Store store)
      : n_(n),
        shared_(n >= kSharedRow && num_threads() > 1),
        rooms_{room, room + n},
        load_(load),
        store_(store) {}

  void run() {
    if (n_ <= kInsertionRow) return insert();
    int digits[kDigits];
    const int count = shared_ ? count_shared(digits) : count_digits(digits);
    if (count == 0) {
      for (std::int64_t i = 0; i < n_; ++i) store_(i, load_(i));
      return;
    }
    const auto put = [this](int room) {
      return [to = rooms_[room]](std::int64_t at, const Item& item) { to[at] = item; };
    };
    const auto take = [this](int room) {
      return [from = rooms_[room]](std::int64_t at) { return from[at]; };
    };
    if (count == 1) return pass(digits[0], load_, store_);
    pass(digits[0], load_, put(0));
    for (int i = 1; i < count - 1; ++i) pass(digits[i], take(1 - i % 2), put(i % 2));
    pass(digits[count - 1], take(count % 2), store_);
  }

 private:
  void insert() {
    Item* const items = rooms_[0];
    for (std::int64_t i = 0; i < n_; ++i) {
      const Item item = load_(i);
      std::int64_t at = i;
      for (; at > 0 && key_in(item) < key_in(items[at - 1]); --at) items[at] = items[at - 1];
      items[at] = item;
    }
    for (std::int64_t i = 0; i < n_; ++i) store_(i, items[i]);
  }

  // Counts all digits in one pass; lists those that differ somewhere.
  int count_digits(int* digits) {
    for (auto& row : counts_) std::fill(std::begin(row), std::end(row), 0u);
    K last = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      last = key_in(load_(i));
      for (int d = 0; d < kDigits; ++d) ++counts_[d][digit_at(last, d)];
    }
    int found = 0;
    for (int d = 0; d < kDigits; ++d)
      if (counts_[d][digit_at(last, d)] != n_) digits[found++] = d;
    return found;
  }
  // The bits in which keys differ: pieces count for themselves before each pass.
  int count_shared(int* digits) {
    K every[kPieces], any[kPieces];
    parallel_ranges(n_, piece(), [&](std::int64_t begin, std::int64_t end) {
      K all = kAllBits<K>, some = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        const K key = key_in(load_(i));
        all &= key;
        some |= key;
      }
      every[begin / piece()] = all;
      any[begin / piece()] = some;
    });
    K differ = 0, all = kAllBits<K>;
    for (std::int64_t i = 0; i * piece() < n_; ++i) {
      all &= every[i];
      differ |= any[i];
    }
    differ &= static_cast<K>(~all);
    int found = 0;
    for (int d = 0; d < kDigits; ++d)
      if (digit_at(differ, d)) digits[found++] = d;
    return found;
  }
  std::int64_t piece() const { return (n_ + kPieces - 1) / kPieces; }

  template <class From, class To> void pass(int digit, From from, To to) {
    if (shared_) return shared_pass(digit, from, to);
    std::uint32_t* const at = counts_[digit];
    std::uint32_t before = 0;
    for (int v = 0; v < kDigitValues; ++v) before += std::exchange(at[v], before);
    for (std::int64_t i = 0; i < n_; ++i) {
      const Item item = from(i);
      to(at[digit_at(key_in(item), digit)]++, item);
    }
  }
  template <class From, class To> void shared_pass(int digit, From from, To to) {
    const Scratch memory(kPieces * kDigitValues * sizeof(std::uint32_t));
    auto* const counts = memory.as<std::uint32_t>();
    parallel_ranges(n_, piece(), [&](std::int64_t begin, std::int64_t end) {
      std::uint32_t own[kDigitValues] = {};
      for (std::int64_t i = begin; i < end; ++i) ++own[digit_at(key_in(from(i)), digit)];
      std::copy(std::begin(own), std::end(own), counts + begin / piece() * kDigitValues);
    });
    const std::int64_t pieces = (n_ + piece() - 1) / piece();
    std::uint32_t before = 0;
    for (int v = 0; v < kDigitValues; ++v)
      for (std::int64_t i = 0; i < pieces; ++i)
        before += std::exchange(counts[i * kDigitValues + v], before);
    parallel_ranges(n_, piece(), [&](std::int64_t begin, std::int64_t end) {
      std::uint32_t at[kDigitValues];
      std::copy_n(counts + begin / piece() * kDigitValues, kDigitValues, at);
      for (std::int64_t i = begin; i < end; ++i) {
        const Item item = from(i);
        to(at[digit_at(key_in(item), digit)]++, item);
      }
    });
  }

  const std::int64_t n_;
  const bool shared_;  // between threads
  Item* const rooms_[2];
  const Load load_;
  const Store store_;
  std::uint32_t counts_[kDigits][kDigitValues];
};

// Zeros keep their order, whatever their signs are: keys do not tell them apart.
template <class T> void keep_zeros(std::int64_t n, const T* x, T* y) {
  if (std::none_of(x, x + n, is_negative_zero<T>)) return;
  const auto is_zero = [](T value) { return key_of(value) == kTopBit<Key<T>>; };
  T* zero = std::find_if(y, y + n, is_zero);
  for (std::int64_t i = 0; i < n; ++i)
    if (is_zero(x[i])) *zero++ = x[i];
}

// y = x in order, stable; NaN last, or first where it descends.
template <class T> void sort_row(std::int64_t n, const T* x, T* y, bool descending, Key<T>* room) {
  using K = Key<T>;
  const K flip = descending ? kAllBits<K> : K{0};
  const auto load = [=](std::int64_t i) { return static_cast<K>(key_of(x[i]) ^ flip); };
  const auto store = [=](std::int64_t at, K key) {
    y[at] = value_of<T>(static_cast<K>(key ^ flip));
  };
  DigitSort<K, decltype(load), decltype(store)>(n, room, load, store).run();
  if constexpr (kIsFloat<T>) keep_zeros(n, x, y);
}

// The same with the places in x that the elements come from.
template <class T> void sort_row(std::int64_t n, const T* x, T* y, std::int64_t* places,
                                 bool descending, Placed<Key<T>>* room) {
  using K = Key<T>;
  using Place = decltype(Placed<K>::place);
  const K flip = descending ? kAllBits<K> : K{0};
  const auto load = [=](std::int64_t i) {
    return Placed<K>{static_cast<K>(key_of(x[i]) ^ flip), static_cast<Place>(i)};
  };
  const auto store = [=](std::int64_t at, const Placed<K>& item) {
    y[at] = value_of<T>(static_cast<K>(item.key ^ flip));
    places[at] = static_cast<std::int64_t>(item.place);
  };
  DigitSort<Placed<K>, decltype(load), decltype(store)>(n, room, load, store).run();
  if constexpr (kIsFloat<T>) keep_zeros(n, x, y);
}

// ---- rows side by side ----

// Up to this length the exchanges of a network cost less than counting digits.
inline constexpr std::int64_t kNetworkRow = 1024;
// Of fewer rows too many lanes would idle.
inline constexpr std::int64_t kNetworkRows = 4;

// Keys of a row of n elements, and elements of keys. True where zeros must be put back in order.
template <class T> bool keys_of_row(std::int64_t n, const T* x, bool descending, Key<T>* keys) {
  return active_kernels().order->keys[index_of(DTypeOf<T>::value)](n, x, descending, keys);
}
template <class T> void values_of_row(std::int64_t n, const Key<T>* keys, bool descending, T* y) {
  active_kernels().order->values[index_of(DTypeOf<T>::value)](n, keys, descending, y);
}

// Rows of keys, one after the other, and the same side by side for the networks.
template <class K> struct SideBySide {
  static constexpr std::int64_t kLanes = kColumnBytes / sizeof(K);
  static constexpr int kSize = std::countr_zero(sizeof(K));
  // Keys in the memory of a group.
  static std::int64_t room(std::int64_t n) { return column_rows(n) * kLanes; }
  // Copies the last of `count` rows to the lanes that are left.
  static void fill(std::int64_t n, std::int64_t count, K* rows) {
    for (std::int64_t lane = count; lane < kLanes; ++lane) std::copy_n(rows, n, rows + lane * n);
  }
  static void to_columns(std::int64_t n, const K* rows, K* columns) {
    active_kernels().convert->transpose[kSize](kLanes, n, rows, n * sizeof(K), columns,
                                               kColumnBytes, false);
  }
  static void to_rows(std::int64_t n, const K* columns, K* rows) {
    active_kernels().convert->transpose[kSize](n, kLanes, columns, kColumnBytes, rows,
                                               n * sizeof(K), false);
  }
  static void sort(std::int64_t n, std::int64_t count, K* rows, K* columns) {
    fill(n, count, rows);
    to_columns(n, rows, columns);
    active_kernels().order->sort_columns[kSize](n, columns);
    to_rows(n, columns, rows);
  }
};
// body(first row, rows, memory for `rooms` times the keys of a group) for groups that fill the
// lanes.
template <class K, class F>
void each_group(std::int64_t rows, std::int64_t n, int rooms, F&& body) {
  constexpr std::int64_t kLanes = SideBySide<K>::kLanes;
  parallel_ranges(
      (rows + kLanes - 1) / kLanes, (1 << 14) / (n * kLanes) + 1,
      [&](std::int64_t first, std::int64_t last) {
        const Scratch memory(static_cast<std::size_t>(rooms * column_rows(n) * kColumnBytes));
        for (std::int64_t i = first; i < last; ++i)
          body(i * kLanes, std::min(kLanes, rows - i * kLanes), memory.as<K>());
      });
}
template <class T>
void sort_short_rows(std::int64_t rows, std::int64_t n, const T* x, T* y, bool descending) {
  using K = Key<T>;
  each_group<K>(rows, n, 2, [&](std::int64_t begin, std::int64_t count, K* room) {
    const bool zeros = keys_of_row(count * n, x + begin * n, descending, room);
    SideBySide<K>::sort(n, count, room, room + SideBySide<K>::room(n));
    values_of_row(count * n, room, descending, y + begin * n);
    for (std::int64_t row = begin; zeros && row < begin + count; ++row)
      keep_zeros(n, x + row * n, y + row * n);
  });
}

// Keys up to 32 bits with their places behind them in one number: equal ones keep their order.
template <class K> void add_places(std::int64_t n, const K* keys, std::uint64_t* items) {
  for (std::int64_t i = 0; i < n; ++i)
    items[i] = static_cast<std::uint64_t>(keys[i]) << 32 | static_cast<std::uint64_t>(i);
}
template <class K>
void take_places(std::int64_t n, const std::uint64_t* items, K* keys, std::int64_t* places) {
  for (std::int64_t i = 0; i < n; ++i) {
    keys[i] = static_cast<K>(items[i] >> 32);
    places[i] = static_cast<std::int64_t>(items[i] & 0xffffffff);
  }
}
// Calls use(row, keys in order, their places) for each row.
template <class T, class F>
void each_ordered_row(std::int64_t rows, std::int64_t n, const T* x, bool descending, F&& use) {
  using K = Key<T>;
  using Item = std::uint64_t;
  each_group<Item>(rows, n, 4, [&](std::int64_t begin, std::int64_t count, Item* room) {
    const std::int64_t whole = SideBySide<Item>::room(n);
    Item* const items = room;
    auto* const places = reinterpret_cast<std::int64_t*>(room + whole);
    auto* const keys = reinterpret_cast<K*>(room + 2 * whole);
    if constexpr (sizeof(K) == 8) {
      keys_of_row(count * n, x + begin * n, descending, items);
      SideBySide<Item>::fill(n, count, items);
      SideBySide<Item>::to_columns(n, items, keys);
      active_kernels().order->sort_columns_stably(n, keys, room + 3 * whole);
      SideBySide<Item>::to_rows(n, room + 3 * whole, room + whole);
      SideBySide<Item>::to_rows(n, keys, items);
      for (std::int64_t i = 0; i < count; ++i) use(begin + i, items + i * n, places + i * n);
    } else {
      keys_of_row(count * n, x + begin * n, descending, keys);
      for (std::int64_t i = 0; i < count; ++i) add_places(n, keys + i * n, items + i * n);
      SideBySide<Item>::sort(n, count, items, room + 3 * whole);
      take_places(count * n, items, keys, places);
      for (std::int64_t i = 0; i < count; ++i) use(begin + i, keys + i * n, places + i * n);
    }
  });
}
template <class T> void sort_short_rows(std::int64_t rows, std::int64_t n, const T* x, T* y,
                                        std::int64_t* places, bool descending) {
  each_ordered_row(rows, n, x, descending,
                   [&](std::int64_t row, const Key<T>* keys, const std::int64_t* at) {
                     std::copy_n(at, n, places + row * n);
                     values_of_row(n, keys, descending, y + row * n);
                     if constexpr (kIsFloat<T>) keep_zeros(n, x + row * n, y + row * n);
                   });
}

// ---- one row in registers ----

// Whole vectors of a power of two, filled up with the last key.
inline std::int64_t network_room(std::int64_t n, std::int64_t size) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(n, kColumnBytes / size))));
}
template <class K> void sort_in_registers(std::int64_t n, K* keys) {
  const std::int64_t whole = network_room(n, sizeof(K));
  std::fill(keys + n, keys + whole, kAllBits<K>);
  active_kernels().order->sort_row[std::countr_zero(sizeof(K))](whole, keys);
}
template <class T> void sort_network_row(std::int64_t n, const T* x, T* y, bool descending) {
  const Scratch memory(static_cast<std::size_t>(network_room(n, sizeof(T))) * sizeof(T));
  auto* const keys = memory.as<Key<T>>();
  const bool zeros = keys_of_row(n, x, descending, keys);
  sort_in_registers(n, keys);
  values_of_row(n, keys, descending, y);
  if (zeros) keep_zeros(n, x, y);
}
template <class T>
void sort_network_row(std::int64_t n, const T* x, T* y, std::int64_t* places, bool descending) {
  const std::int64_t whole = network_room(n, sizeof(std::uint64_t));
  const Scratch memory(static_cast<std::size_t>(2 * whole) * sizeof(std::uint64_t));
  auto* const items = memory.as<std::uint64_t>();
  auto* const keys = reinterpret_cast<Key<T>*>(items + whole);
  keys_of_row(n, x, descending, keys);
  add_places(n, keys, items);
  sort_in_registers(n, items);
  take_places(n, items, keys, places);
  values_of_row(n, keys, descending, y);
  if constexpr (kIsFloat<T>) keep_zeros(n, x, y);
}

// ---- selections ----

// Key and place as one number, so that equal keys are ordered by their places.
template <class K> struct Ranked {
  using Wide = std::conditional_t<sizeof(K) == 8, unsigned __int128, std::uint64_t>;
  static constexpr int kPlaceBits = 4 * sizeof(Wide);
  Wide word;
  static Ranked of(K key, std::int64_t place) {
    return {static_cast<Wide>(key) << kPlaceBits | static_cast<Wide>(place)};
  }
  K key() const { return static_cast<K>(word >> kPlaceBits); }
  std::int64_t place() const {
    return static_cast<std::int64_t>(word & ((Wide{1} << kPlaceBits) - 1));
  }
  bool operator<(const Ranked& other) const { return word < other.word; }
};

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

// The k elements that come first, by key ^ flip, into the first of `room`, in no order: candidates
// are gathered, and all but the best k dropped whenever there is no more room.
template <class T> void select_first(std::int64_t n, const T* x, std::int64_t k, Key<T> flip,
                                     Ranked<Key<T>>* room, std::int64_t capacity) {
  using K = Key<T>;
  const auto ranked = [=](std::int64_t i) {
    return Ranked<K>::of(static_cast<K>(key_of(x[i]) ^ flip), i);
  };
  std::int64_t count = std::min(n, capacity);
  for (std::int64_t i = 0; i < count; ++i) room[i] = ranked(i);
  K limit = 0;
  const auto drop = [&] {
    if (count > k) std::nth_element(room, room + k - 1, room + count);
    count = k;
    limit = room[k - 1].key();
  };
  if (n > capacity) drop();
  for (std::int64_t begin = capacity; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, n);
    if (!any_before(end - begin, x + begin, limit, flip)) continue;
    if (count + kBlock > capacity) drop();
    for (std::int64_t i = begin; i < end; ++i) {  // no branch, which would be taken by chance
      room[count] = ranked(i);
      count += room[count].key() < limit;
    }
  }
  drop();
}
// The same of a row of whole blocks: no element but those up to the k-th of the blocks' least ones
// can be among the first. `keys`: for the row and a key for each block, twice.
template <class T> void select_by_blocks(std::int64_t n, const T* x, std::int64_t k,
                                         bool descending, Key<T>* keys, Ranked<Key<T>>* room,
                                         std::int64_t capacity) {
  using K = Key<T>;
  const std::int64_t blocks = n / kKeyBlock;
  K *const least = keys + n, *const sorted = least + blocks;
  keys_of_row(n, x, descending, keys);
  active_kernels().order->block_least[std::countr_zero(sizeof(K))](n, keys, least);
  std::copy_n(least, blocks, sorted);
  std::nth_element(sorted, sorted + k - 1, sorted + blocks);
  K limit = sorted[k - 1];
  std::int64_t count = 0;
  const auto drop = [&] {
    if (count > k) std::nth_element(room, room + k - 1, room + count);
    count = std::min(count, k);
  };
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (least[block] > limit) continue;
    if (count + kKeyBlock > capacity) {
      drop();
      limit = std::min(limit, room[k - 1].key());
    }
    for (std::int64_t i = block * kKeyBlock; i < (block + 1) * kKeyBlock; ++i) {
      room[count] = Ranked<K>::of(keys[i], i);
      count += keys[i] <= limit;
    }
  }
  drop();
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

// From this many on, counting the digits of key and place takes less time than comparing.
inline constexpr std::int64_t kManyRanked = 400;

// Puts items in order; `spare` has room for twice as many. So many differ in two digits at least,
// so that none is written over before it was read.
template <class K> void sort_ranked(std::int64_t n, Ranked<K>* items, Ranked<K>* spare) {
  if constexpr (sizeof(K) <= 4) {
    if (n >= kManyRanked) {
      const auto load = [=](std::int64_t i) { return items[i].word; };
      const auto store = [=](std::int64_t at, std::uint64_t word) { items[at].word = word; };
      return DigitSort<std::uint64_t, decltype(load), decltype(store)>(n, &spare->word, load, store)
          .run();
    }
  }
  std::sort(items, items + n);
}

}  // namespace tw
