// Sorts, selections, searches and counts along rows, on raw pointers.
#include <cmath>

#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/order/problems.h"
#include "core/cpu/order/rows.h"
#include "core/runtime/choice.h"

namespace tw {

namespace {

using std::int64_t;

template <class F> void each_rows(int64_t rows, int64_t row, F&& body) {
  parallel_ranges(rows, thresholds::kHeavyGrain / (row + 1) + 1, body);
}
// Calls `f` with an object of the C++ type behind an ordered type.
template <class F> void visit_ordered(DType dtype, F&& f) {
  visit(dtype, [&](auto sample) {
    if constexpr (!is_complex_number<decltype(sample)>) f(sample);
  });
}

// ---- rows in order ----

using RowsProblem = OrderProblem;

void set_up_rows(const Call& call, RowsProblem& p) {
  const Meta& x = call.in[0];
  p = {.dtype = x.dtype, .n = x.size(x.rank() - 1)};
  p.rows = p.n ? x.count / p.n : 0;
}
void set_up_sort(const Call& call, void* problem) {
  auto& p = *static_cast<RowsProblem*>(problem);
  set_up_rows(call, p);
  p.flag = call.attributes.flag(0);
}
void bind_sort(void* problem, void* const* at) {
  auto& p = *static_cast<RowsProblem*>(problem);
  p.x = at[0];
  p.y = at[1];
}
void bind_sort_places(void* problem, void* const* at) {
  bind_sort(problem, at);
  static_cast<RowsProblem*>(problem)->places = static_cast<int64_t*>(at[2]);
}
const char* refuses_long(const Call& call) {
  const Meta& x = call.in[0];
  return x.size(x.rank() - 1) > kLongestRow ? "no kernel for rows of 2^32 elements" : nullptr;
}
// About a nanosecond for each element and byte of its key.
double cost_of_sort(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  return 100 + static_cast<double>(p.rows * p.n) * static_cast<double>(size_of(p.dtype));
}

bool is_short(const RowsProblem& p) {
  return p.n > 0 && p.n <= thresholds::kNetworkRow && p.rows >= thresholds::kNetworkRows &&
         uses(Optimization::sorting_networks);
}
// Whether networks sort rows side by side: longer ones where all lanes are in use, and with places
// where keys have four digits to count and little is filled up.
bool is_side_by_side(const RowsProblem& p, bool with_places) {
  if (is_short(p)) return true;
  const int64_t key = size_of(p.dtype), item = with_places ? 8 : key;
  if (p.n <= thresholds::kNetworkRow || p.n > thresholds::kLongNetworkRow) return false;
  const int64_t column = active_kernels().order->column_bytes;
  if (p.rows * item < column) return false;
  const bool worth = !with_places || (key == 4 && is_nearly_power(p.n, item, column));
  return worth && uses(Optimization::sorting_networks);
}
template <class K> Row<K> row_of(const RowsProblem& p, int64_t row = 0) {
  return {p.dtype, p.n, static_cast<const K*>(p.x) + row * p.n, p.flag};
}

void run_sort(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  visit_key(p.dtype, [&]<class K>(K) {
    K* const y = static_cast<K*>(p.y);
    if (is_side_by_side(p, false)) return sort_short_rows(p.rows, row_of<K>(p), y);
    each_rows(p.rows, p.n, [&](int64_t begin, int64_t end) {
      const Scratch room(2 * static_cast<std::size_t>(item_room(p.n, sizeof(K))) * sizeof(K));
      for (int64_t row = begin; row < end; ++row)
        sort_row(row_of<K>(p, row), y + row * p.n, room.as<K>());
    });
  });
}
void run_sort_places(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  visit_key(p.dtype, [&]<class K>(K) {
    using Item = PlacedOf<K>;
    K* const y = static_cast<K*>(p.y);
    if (is_side_by_side(p, true) || (sizeof(K) == 8 && p.n > 0 && p.n <= thresholds::kNetworkPair))
      return sort_short_rows(p.rows, row_of<K>(p), y, p.places);
    each_rows(p.rows, p.n, [&](int64_t begin, int64_t end) {
      const Scratch room(2 * static_cast<std::size_t>(item_room(p.n, sizeof(Item))) * sizeof(Item));
      for (int64_t row = begin; row < end; ++row)
        sort_row(row_of<K>(p, row), y + row * p.n, p.places + row * p.n, room.as<Item>());
    });
  });
}

// ---- the first of rows ----

// Attributes: k, largest, sorted.
void set_up_topk(const Call& call, void* problem) {
  auto& p = *static_cast<RowsProblem*>(problem);
  set_up_rows(call, p);
  p.k = call.attributes[0];
  p.flag = call.attributes.flag(1);
  p.sorted = call.attributes.flag(2);
}
double cost_of_selection(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  return 100 + static_cast<double>(p.rows * p.n);
}
template <class K> void write_item(const RowsProblem& p, int64_t row, int64_t at, int64_t place) {
  static_cast<K*>(p.y)[at] = static_cast<const K*>(p.x)[row * p.n + place];
  p.places[at] = place;
}
bool orders_rows(const RowsProblem& p, int64_t k) {
  return is_short(p) && k * thresholds::kFewFirst >= p.n;
}

// Calls select(row, room for some candidates, how many) for each row and writes the first k of
// them.
template <class K, class Select> void each_selection(const RowsProblem& p, Select select) {
  const int64_t capacity = std::max(selection_room(p.n, p.k), p.k + kKeyBlock);
  each_rows(p.rows, p.n, [&](int64_t begin, int64_t end) {
    const Scratch memory(static_cast<std::size_t>(capacity + p.k) * sizeof(Ranked<K>));
    auto* const room = memory.as<Ranked<K>>();
    for (int64_t row = begin; row < end; ++row) {
      select(row, room, capacity);
      if (p.sorted) sort_ranked(p.k, room, room + capacity);
      for (int64_t i = 0; i < p.k; ++i) write_item<K>(p, row, row * p.k + i, room[i].place());
    }
  });
}
void run_topk(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  if (p.k == 0) return;
  if (p.k <= kFewest && (p.n <= kFewest || !orders_rows(p, p.k)) && !selects_by_blocks(p.n, p.k))
    return visit_ordered(p.dtype, [&]<class T>(T) {
      using K = Key<T>;
      each_rows(p.rows, p.n, [&](int64_t begin, int64_t end) {
        Ranked<K> best[kFewest];
        for (int64_t row = begin; row < end; ++row) {
          select_few(p.n, static_cast<const T*>(p.x) + row * p.n, p.k, p.flag ? kAllBits<K> : K{0},
                     best);
          for (int64_t i = 0; i < p.k; ++i) write_item<K>(p, row, row * p.k + i, best[i].place());
        }
      });
    });
  if (orders_rows(p, p.k))
    return visit_key(p.dtype, [&]<class K>(K) {
      each_ordered_row(p.rows, row_of<K>(p),
                       [&](int64_t row, const K*, const int64_t* places, bool) {
                         for (int64_t i = 0; i < p.k; ++i)
                           write_item<K>(p, row, row * p.k + i, places[i]);
                       });
    });
  if (selects_by_blocks(p.n, p.k))
    return visit_key(p.dtype, [&]<class K>(K) {
      each_selection<K>(p, [&](int64_t row, Ranked<K>* room, int64_t capacity) {
        const Scratch keys(static_cast<std::size_t>(2 * p.n) * sizeof(K));
        select_by_blocks(row_of<K>(p, row), p.k, keys.as<K>(), room, capacity);
      });
    });
  visit_ordered(p.dtype, [&]<class T>(T) {
    using K = Key<T>;
    each_selection<K>(p, [&](int64_t row, Ranked<K>* room, int64_t capacity) {
      select_first(p.n, static_cast<const T*>(p.x) + row * p.n, p.k, p.flag ? kAllBits<K> : K{0},
                   room, std::min(capacity, p.n));
    });
  });
}

// Attributes: which (in the order of the signature), k.
void set_up_kth(const Call& call, void* problem) {
  auto& p = *static_cast<RowsProblem*>(problem);
  set_up_rows(call, p);
  p.k = call.attributes[0] == kNth ? call.attributes[1] : -call.attributes[0];
}
// From 0 on. NaN counts as the median of rows that have one.
template <class F> int64_t place_in_order(const RowsProblem& p, F is_nan) {
  if (p.k > 0) return p.k - 1;
  int64_t numbers = p.n;
  for (int64_t i = 0; i < p.n; ++i) numbers -= is_nan(i);
  if (p.k == -kNanMedian) return numbers ? (numbers - 1) / 2 : 0;
  return numbers == p.n ? (p.n - 1) / 2 : numbers;
}
// Moves the items to the front whose keys share the leading digits of the one at place k, in their
// order, and makes n and k theirs: two passes a digit, of which the first drops most of a long row.
constexpr int kDigitBits = 11;
constexpr int64_t kMostCompared = 1 << kDigitBits;  // counts of digits take longer
template <class K> void keep_digits_of(Ranked<K>* items, int64_t& n, int64_t& k) {
  for (int bits = 8 * static_cast<int>(sizeof(K)); bits > 0 && n > kMostCompared;) {
    const int digit_bits = std::min(kDigitBits, bits);
    bits -= digit_bits;
    const auto digit = [bits](const Ranked<K>& item) {
      return static_cast<std::size_t>(item.key() >> bits & ((1u << kDigitBits) - 1));
    };
    // Two tables, as a counter is ready again some cycles after it was counted up.
    std::uint32_t counts[2][1 << kDigitBits] = {};
    for (int64_t i = 0; i < n; ++i) ++counts[i % 2][digit(items[i])];
    std::size_t chosen = 0;
    int64_t before = 0, own = 0;
    for (;; ++chosen, before += own) {
      own = int64_t{counts[0][chosen]} + counts[1][chosen];
      if (before + own > k) break;
    }
    if (own == n) continue;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      items[kept] = items[i];
      kept += digit(items[i]) == chosen;
    }
    n = own;
    k -= before;
  }
}
void run_kth(const void* problem) {
  const auto& p = *static_cast<const RowsProblem*>(problem);
  visit_key(p.dtype, [&]<class K>(K) {
    const auto is_nan = [floats = is_floating(p.dtype)](std::uint64_t key) {
      return floats && key == kAllBits<K>;
    };
    if (is_short(p))
      return each_ordered_row(
          p.rows, row_of<K>(p), [&](int64_t row, const K* keys, const int64_t* places, bool) {
            const int64_t k = place_in_order(p, [&](int64_t i) { return is_nan(keys[i]); });
            write_item<K>(p, row, row, places[k]);
          });
    const bool counts = p.n > kMostCompared && uses(Optimization::radix_select);
    each_rows(p.rows, p.n, [&](int64_t begin, int64_t end) {
      using Item = Ranked<K>;
      const Scratch memory(static_cast<std::size_t>(p.n) * sizeof(Item));
      auto* const items = memory.as<Item>();
      for (int64_t row = begin; row < end; ++row) {
        write_ranked(row_of<K>(p, row), items);
        int64_t n = p.n, k = place_in_order(p, [&](int64_t i) { return is_nan(items[i].key()); });
        if (counts) keep_digits_of<K>(items, n, k);
        std::nth_element(items, items + k, items + n);
        write_item<K>(p, row, row, items[k].place());
      }
    });
  });
}

// ---- searches ----

void set_up_search(const Call& call, void* problem) {
  const Meta &x = call.in[0], &values = call.in[1];
  auto& p = *static_cast<SearchProblem*>(problem);
  p = {.dtype = x.dtype, .right = call.attributes.flag(0), .n = x.size(x.rank() - 1)};
  p.rows = x.rank() == 1 ? 1 : element_count(*x.shape) / std::max<int64_t>(p.n, 1);
  if (x.rank() > 1 && p.n == 0) p.rows = 1;
  p.queries = p.rows ? values.count / p.rows : 0;
}
void bind_search(void* problem, void* const* at) {
  auto& p = *static_cast<SearchProblem*>(problem);
  p.x = at[0];
  p.values = at[1];
  p.y = static_cast<int64_t*>(at[2]);
}
double cost_of_search(const void* problem) {
  const auto& p = *static_cast<const SearchProblem*>(problem);
  return 100 + static_cast<double>(p.rows * p.queries) * std::log2(static_cast<double>(p.n) + 2);
}

// Searches that run in step, so that the memory they wait for arrives together.
constexpr int kTogether = 16;

// How many elements of a row come before each value, or up to it; NaN elements do not.
template <class T, bool right, int together>
void count_before(int64_t n, const T* x, int count, const T* values, int64_t* y) {
  const T* at[together];
  T value[together];
  for (int j = 0; j < together; ++j) at[j] = x, value[j] = values[std::min(j, count - 1)];
  const auto before = [](T a, T b) { return right ? a <= b : a < b; };
  int64_t left = n;
  for (; left > 1; left -= left / 2) {
    const int64_t half = left / 2;
    for (int j = 0; j < together; ++j)  // no branch, which would be taken by chance
      at[j] += half & -static_cast<int64_t>(before(at[j][half - 1], value[j]));
  }
  for (int j = 0; j < count; ++j) y[j] = at[j] - x + before(*at[j], value[j]);
}
// NaN comes behind all others.
template <class T> int64_t search_nan(int64_t n, const T* x, bool right) {
  return right ? n : std::partition_point(x, x + n, [](T a) { return a == a; }) - x;
}
template <class T, int together>
void search(const SearchProblem& p, const T* x, int64_t count, const T* values, int64_t* y) {
  if (p.n == 0) return static_cast<void>(std::fill_n(y, count, 0));
  for (int64_t i = 0; i < count; i += together) {
    const int some = static_cast<int>(std::min<int64_t>(together, count - i));
    p.right ? count_before<T, true, together>(p.n, x, some, values + i, y + i)
            : count_before<T, false, together>(p.n, x, some, values + i, y + i);
    if constexpr (kIsFloat<T>)
      for (int64_t j = i; j < i + some; ++j)
        if (values[j] != values[j]) y[j] = search_nan(p.n, x, p.right);
  }
}
void run_search(const void* problem) {
  const auto& p = *static_cast<const SearchProblem*>(problem);
  const bool in_step = p.queries > 1 && uses(Optimization::interleaved_searches);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
      for (int64_t row = 0; row < p.rows; ++row) {
        const auto* values = static_cast<const T*>(p.values) + row * p.queries;
        parallel_ranges(p.queries, thresholds::kHeavyGrain, [&](int64_t begin, int64_t end) {
          (in_step ? search<T, kTogether> : search<T, 1>)(p, static_cast<const T*>(p.x) + row * p.n,
                                                          end - begin, values + begin,
                                                          p.y + row * p.queries + begin);
        });
      }
  });
}
const char* refuses_search(const Call& call) {
  const DType dtype = call.in[0].dtype;
  const bool is_narrow = is_floating(dtype) && size_of(dtype) == 2;
  return is_bool(dtype) || is_complex(dtype) || is_narrow ? "no kernel for this type" : nullptr;
}

// ---- counts ----

// Of few bins each, so that equal neighbours do not wait for one another.
constexpr int kCounters = 4;

void set_up_last_bin(const Call& call, void* problem) {
  *static_cast<BinsProblem*>(problem) = {
      .dtype = call.in[0].dtype, .n = call.in[0].count, .bins = 0};
}
void bind_bins(void* problem, void* const* at) {
  auto& p = *static_cast<BinsProblem*>(problem);
  p.x = at[0];
  p.y = static_cast<int64_t*>(at[1]);
}
template <class F> void visit_integer(DType dtype, F&& f) {
  visit(dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f(sample);
  });
}
void run_last_bin(const void* problem) {
  const auto& p = *static_cast<const BinsProblem*>(problem);
  visit_integer(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    const T* const x = static_cast<const T*>(p.x);
    Key<T> tops[kCounters] = {}, top = 0;  // negative numbers have the top bit
    for (int64_t i = 0; i < p.n / kCounters; ++i)
      for (int c = 0; c < kCounters; ++c)
        tops[c] = std::max(tops[c], static_cast<Key<T>>(x[i * kCounters + c]));
    for (int64_t i = p.n / kCounters * kCounters; i < p.n; ++i)
      top = std::max(top, static_cast<Key<T>>(x[i]));
    for (const Key<T> each : tops) top = std::max(top, each);
    const T high = static_cast<T>(top);
    if constexpr (std::is_signed_v<T>)
      if (high < 0) fail(ErrorKind::value, "bincount: negative element ", int64_t{high});
    if (top > std::uint64_t{1} << 62)
      fail(ErrorKind::value, "bincount: too large an element, ", std::uint64_t{top});
    *p.y = p.n ? static_cast<int64_t>(high) : -1;
  });
}

void set_up_bins(const Call& call, void* problem) {
  *static_cast<BinsProblem*>(problem) = {
      .dtype = call.in[0].dtype, .n = call.in[0].count, .bins = call.attributes[0]};
}
void add_counts(int64_t parts, int64_t bins, const int64_t* counts, int64_t* y) {
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t bin = 0; bin < bins; ++bin) y[bin] += counts[part * bins + bin];
}
template <class T, class BinOf>
void count_bins(int64_t n, const T* x, int64_t bins, int64_t* y, BinOf bin_of) {
  std::fill_n(y, bins, 0);
  int64_t i = 0;
  if (bins <= thresholds::kFewBins && uses(Optimization::privatized_histogram)) {
    const Scratch memory(static_cast<std::size_t>(kCounters * bins) * sizeof(int64_t));
    auto* const counts = memory.as<int64_t>();
    std::fill_n(counts, kCounters * bins, 0);
    for (; i + kCounters <= n; i += kCounters)
      for (int c = 0; c < kCounters; ++c)
        if (const int64_t bin = bin_of(x[i + c]); bin >= 0) ++counts[c * bins + bin];
    add_counts(kCounters, bins, counts, y);
  }
  for (; i < n; ++i)
    if (const int64_t bin = bin_of(x[i]); bin >= 0) ++y[bin];
}
// In pieces that count for themselves, where the bins are few beside the elements.
template <class T, class BinOf> void share_bins(const BinsProblem& p, BinOf bin_of) {
  const T* const x = static_cast<const T*>(p.x);
  const int64_t piece = (p.n + thresholds::kPieces - 1) / thresholds::kPieces;
  if (num_threads() == 1 || piece < thresholds::kHeavyGrain || p.bins > piece / 4 ||
      !uses(Optimization::privatized_histogram))
    return count_bins(p.n, x, p.bins, p.y, bin_of);
  const Scratch memory(static_cast<std::size_t>(thresholds::kPieces * p.bins) * sizeof(int64_t));
  auto* const counts = memory.as<int64_t>();
  const int64_t pieces = (p.n + piece - 1) / piece;
  parallel_ranges(p.n, piece, [&](int64_t begin, int64_t end) {
    count_bins(end - begin, x + begin, p.bins, counts + begin / piece * p.bins, bin_of);
  });
  std::fill_n(p.y, p.bins, 0);
  add_counts(pieces, p.bins, counts, p.y);
}
// An element that another thread changed since the bins were counted has none.
void run_bins(const void* problem) {
  const auto& p = *static_cast<const BinsProblem*>(problem);
  visit_integer(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    const auto bins = static_cast<std::uint64_t>(p.bins);
    share_bins<T>(p, [bins](T x) {
      const auto bin = static_cast<std::uint64_t>(x);
      return bin < bins ? static_cast<int64_t>(bin) : -1;
    });
  });
}

void bind_even_bins(void* problem, void* const* at) {
  auto& p = *static_cast<BinsProblem*>(problem);
  p.x = at[0];
  p.limits = at[1];
  p.y = static_cast<int64_t*>(at[2]);
}
void run_even_bins(const void* problem) {
  const auto& p = *static_cast<const BinsProblem*>(problem);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_floating_point_v<T>) {
      const T low = static_cast<const T*>(p.limits)[0], high = static_cast<const T*>(p.limits)[1];
      const T bins = static_cast<T>(p.bins), width = high - low;
      if (!std::isfinite(width * bins) || width < 0)
        fail(ErrorKind::value, "histc: no bins between ", low, " and ", high);
      share_bins<T>(p, [=](T x) {
        if (!(x >= low && x <= high)) return int64_t{-1};
        const auto bin = static_cast<int64_t>((x - low) * bins / width);
        return std::min(bin, p.bins - 1);
      });
    }
  });
}

// ---- shares ----

void set_up_shares(const Call& call, void* problem) {
  *static_cast<SharesProblem*>(problem) = {call.in[0].count, nullptr, nullptr};
}
void bind_shares(void* problem, void* const* at) {
  auto& p = *static_cast<SharesProblem*>(problem);
  p.q = static_cast<const double*>(at[0]);
  p.y = static_cast<double*>(at[1]);
}
void run_shares(const void* problem) {
  const auto& p = *static_cast<const SharesProblem*>(problem);
  for (int64_t i = 0; i < p.n; ++i) {
    if (!(p.q[i] >= 0 && p.q[i] <= 1))
      fail(ErrorKind::value, "quantile: q must be from 0 to 1, got ", p.q[i]);
    p.y[i] = p.q[i];
  }
}

}  // namespace

void register_order_kernels() {
  add_kernel<RowsProblem>("sort_rows",
                          "short rows side by side in networks, long ones by the digits of keys",
                          {.refuses = refuses_long,
                           .set_up = set_up_sort,
                           .bind = bind_sort,
                           .cost_ns = cost_of_sort,
                           .run = run_sort,
                           .contiguous = 1,
                           .name = "radix"});
  add_kernel<RowsProblem>("sort_rows_with_places",
                          "short rows side by side in networks, long ones by the digits of keys",
                          {.refuses = refuses_long,
                           .set_up = set_up_sort,
                           .bind = bind_sort_places,
                           .cost_ns = cost_of_sort,
                           .run = run_sort_places,
                           .contiguous = 1,
                           .name = "radix"});
  add_kernel<RowsProblem>("topk_rows", "candidates above the least of the best so far",
                          {.refuses = refuses_long,
                           .set_up = set_up_topk,
                           .bind = bind_sort_places,
                           .cost_ns = cost_of_selection,
                           .run = run_topk,
                           .contiguous = 1,
                           .name = "selection"});
  add_kernel<RowsProblem>("kth_rows", "keys of the digits at the place, then parted",
                          {.refuses = refuses_long,
                           .set_up = set_up_kth,
                           .bind = bind_sort_places,
                           .cost_ns = cost_of_selection,
                           .run = run_kth,
                           .contiguous = 1,
                           .name = "selection"});
  add_kernel<SearchProblem>("search_rows", "sixteen searches in step",
                            {.refuses = refuses_search,
                             .set_up = set_up_search,
                             .bind = bind_search,
                             .cost_ns = cost_of_search,
                             .run = run_search,
                             .contiguous = 3,
                             .name = "bisection"});
  add_kernel<BinsProblem>("last_bin", "the largest of whole numbers",
                          {.set_up = set_up_last_bin,
                           .bind = bind_bins,
                           .run = run_last_bin,
                           .contiguous = 1,
                           .name = "counters"});
  add_kernel<BinsProblem>("count_bins", "several counters a bin, pieces shared between threads",
                          {.set_up = set_up_bins,
                           .bind = bind_bins,
                           .run = run_bins,
                           .contiguous = 1,
                           .name = "counters"});
  add_kernel<BinsProblem>("count_even_bins",
                          "several counters a bin, pieces shared between threads",
                          {.set_up = set_up_bins,
                           .bind = bind_even_bins,
                           .run = run_even_bins,
                           .contiguous = 3,
                           .name = "counters"});
  add_kernel<SharesProblem>(
      "checked_shares", "one after the other",
      {.set_up = set_up_shares, .bind = bind_shares, .run = run_shares, .contiguous = 1});
  add_definition("checked_shares", run_shares);  // whose loop is the definition
}

}  // namespace tw
