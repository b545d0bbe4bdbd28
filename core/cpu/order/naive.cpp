// The definitions of sorts, selections, searches and counts: insertion into a row that is in order,
// and loops that count. NaN comes behind all numbers; of equal elements the first stays first.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/order/keys.h"
#include "core/cpu/order/problems.h"

namespace tw {
namespace {

using std::int64_t;

template <class T> bool is_before(T a, T b, bool descending) {
  return descending ? key_of(a) > key_of(b) : key_of(a) < key_of(b);
}
// The places of a row's elements, in the elements' order.
template <class T> std::vector<int64_t> places_in_order(int64_t n, const T* x, bool descending) {
  std::vector<int64_t> places(n);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = i;
    for (; at > 0 && is_before(x[i], x[places[at - 1]], descending); --at)
      places[at] = places[at - 1];
    places[at] = i;
  }
  return places;
}
// Calls f(number of the row, its elements, their places in order).
template <class T, class F> void each_row(const OrderProblem& p, F f) {
  for (int64_t row = 0; row < p.rows; ++row) {
    const T* const x = static_cast<const T*>(p.x) + row * p.n;
    f(row, x, places_in_order(p.n, x, p.flag));
  }
}

struct First {  // `count` of each row
  template <class T> static void write(const OrderProblem& p, int64_t count) {
    each_row<T>(p, [&](int64_t row, const T* x, const std::vector<int64_t>& places) {
      for (int64_t i = 0; i < count; ++i) {
        static_cast<T*>(p.y)[row * count + i] = x[places[i]];
        if (p.places) p.places[row * count + i] = places[i];
      }
    });
  }
};
struct Sort {
  template <class T> static void run(const OrderProblem& p) { First::write<T>(p, p.n); }
};
struct TopK {
  template <class T> static void run(const OrderProblem& p) { First::write<T>(p, p.k); }
};
// NaN counts as the median of rows that have one.
struct Kth {
  template <class T> static void run(const OrderProblem& p) {
    each_row<T>(p, [&](int64_t row, const T* x, const std::vector<int64_t>& places) {
      int64_t numbers = 0;
      for (int64_t i = 0; i < p.n; ++i) numbers += !kIsFloat<T> || key_of(x[i]) != kAllBits<Key<T>>;
      int64_t k = p.k - 1;
      if (p.k == -kMedian) k = numbers == p.n ? (p.n - 1) / 2 : numbers;
      if (p.k == -kNanMedian) k = numbers ? (numbers - 1) / 2 : 0;
      static_cast<T*>(p.y)[row] = x[places[k]];
      p.places[row] = places[k];
    });
  }
};

// How many elements come before a value, or up to it.
struct Search {
  template <class T> static void run(const SearchProblem& p) {
    for (int64_t i = 0; i < p.rows * p.queries; ++i) {
      const T* const x = static_cast<const T*>(p.x) + i / p.queries * p.n;
      const T value = static_cast<const T*>(p.values)[i];
      int64_t count = 0;
      while (count < p.n &&
             (p.right ? !is_before(value, x[count], false) : is_before(x[count], value, false)))
        ++count;
      p.y[i] = count;
    }
  }
};

// The largest of whole numbers, none of which may be negative; -1 of none.
struct LastBin {
  template <class T> static void run(const BinsProblem& p) {
    if constexpr (std::is_integral_v<T>) {
      *p.y = -1;
      for (int64_t i = 0; i < p.n; ++i) {
        const T x = static_cast<const T*>(p.x)[i];
        if constexpr (std::is_signed_v<T>)
          if (x < 0) fail(ErrorKind::value, "bincount: negative element ", int64_t{x});
        if (static_cast<std::uint64_t>(x) > std::uint64_t{1} << 62)
          fail(ErrorKind::value, "bincount: too large an element, ", static_cast<std::uint64_t>(x));
        *p.y = std::max(*p.y, static_cast<int64_t>(x));
      }
    }
  }
};
struct CountBins {
  template <class T> static void run(const BinsProblem& p) {
    if constexpr (std::is_integral_v<T>) {
      for (int64_t bin = 0; bin < p.bins; ++bin) p.y[bin] = 0;
      for (int64_t i = 0; i < p.n; ++i) {
        const auto bin = static_cast<std::uint64_t>(static_cast<const T*>(p.x)[i]);
        if (bin < static_cast<std::uint64_t>(p.bins)) ++p.y[bin];
      }
    }
  }
};
struct CountEvenBins {
  template <class T> static void run(const BinsProblem& p) {
    if constexpr (std::is_floating_point_v<T>) {
      const T low = static_cast<const T*>(p.limits)[0], high = static_cast<const T*>(p.limits)[1];
      const T bins = static_cast<T>(p.bins), width = high - low;
      if (!std::isfinite(width * bins) || width < 0)
        fail(ErrorKind::value, "histc: no bins between ", low, " and ", high);
      for (int64_t bin = 0; bin < p.bins; ++bin) p.y[bin] = 0;
      for (int64_t i = 0; i < p.n; ++i) {
        const T x = static_cast<const T*>(p.x)[i];
        if (x >= low && x <= high)
          ++p.y[std::min(static_cast<int64_t>((x - low) * bins / width), p.bins - 1)];
      }
    }
  }
};

// What is true up to each piece of the mask.
void count_true(const void* problem) {
  const auto& p = *static_cast<const CountsProblem*>(problem);
  int64_t count = 0, at = 0;
  for (int64_t piece = 0; piece <= p.pieces; ++piece) {
    for (; at < std::min(p.count, piece * p.piece); ++at) count += p.x[at] != 0;
    p.y[piece] = count;
  }
}
// The axes' indices of what is true. Of a mask that another thread changes after it was counted,
// as many as there is room for, and 0 for those that are no longer there.
void find_true(const void* problem) {
  const auto& p = *static_cast<const PositionsProblem*>(problem);
  std::fill_n(p.y, p.rank * p.found, 0);
  int64_t column = 0;
  for (int64_t at = 0; at < p.count && column < p.found; ++at) {
    if (!p.x[at]) continue;
    int64_t rest = at;
    for (int axis = p.rank - 1; axis >= 0; rest /= p.extents[axis--])
      p.y[axis * p.found + column] = rest % p.extents[axis];
    ++column;
  }
}

template <class Op, class Problem> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (!is_complex_number<T>) Op::template run<T>(p);
  });
}

}  // namespace

void register_naive_order_kernels() {
  add_definition("sort_rows", run<Sort, OrderProblem>);
  add_definition("sort_rows_with_places", run<Sort, OrderProblem>);
  add_definition("topk_rows", run<TopK, OrderProblem>);
  add_definition("kth_rows", run<Kth, OrderProblem>);
  add_definition("search_rows", run<Search, SearchProblem>);
  add_definition("last_bin", run<LastBin, BinsProblem>);
  add_definition("count_bins", run<CountBins, BinsProblem>);
  add_definition("count_even_bins", run<CountEvenBins, BinsProblem>);
  add_definition("nonzero_counts", count_true);
  add_definition("nonzero_positions", find_true);
}

}  // namespace tw
