// Rows in order, by merges of sorted runs: each element finds its place in the other run by bisection,
// so that equals keep their order. Settings: TW_TYPE.
#include "prelude.cuh"
#include "order_parameters.h"
using T = TW_TYPE;
using Rows = SortedRowsOf<T>;
using Picks = PicksOf<T>;
using Search = SearchOf<T>;

TW_DEVICE float in_order(half x) { return to_float(x); }
TW_DEVICE float in_order(bfloat16 x) { return to_float(x); }
template <class U> TW_DEVICE U in_order(U x) { return x; }

// NaN is behind all others, and before them in descending order.
TW_DEVICE bool is_before(T a_in, T b_in, bool descending) {
  const auto a = in_order(a_in), b = in_order(b_in);
  if (descending) return a != a ? b == b : a > b;
  return b != b ? a == a : a < b;
}

TW_KERNEL(start_rows, Rows, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.rows * p.n; i += step) {
    p.y[i] = p.x[i];
    p.places[i] = i % p.n;
  }
}

TW_KERNEL(merge_rows, Rows, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.rows * p.n; i += step) {
    const int64_t row = i / p.n, at = i - row * p.n;
    const T* x = p.from + row * p.n;
    const int64_t pair = at / (2 * p.run) * 2 * p.run, middle = pair + p.run;
    const bool is_left = at < middle;
    const int64_t begin = is_left ? middle : pair;
    int64_t low = begin < p.n ? begin : p.n;
    int64_t high = is_left ? (middle + p.run < p.n ? middle + p.run : p.n)
                           : (middle < p.n ? middle : p.n);
    const int64_t start = low;
    const T value = x[at];
    while (low < high) {
      const int64_t half_way = (low + high) / 2;
      // Elements of the left run come before their equals of the right one.
      const bool before = is_left ? is_before(x[half_way], value, p.descending)
                                  : !is_before(value, x[half_way], p.descending);
      if (before)
        low = half_way + 1;
      else
        high = half_way;
    }
    const int64_t own = is_left ? at - pair : at - middle;
    const int64_t to = row * p.n + pair + own + (low - start);
    p.y[to] = value;
    p.places[to] = p.from_places[i];
  }
}

// The first k of sorted rows, or one of each.
TW_KERNEL(pick_rows, Picks, kBlockThreads) {
  const int64_t each = p.which == kFirstOfRow ? p.k : 1, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.rows * each; i += step) {
    const int64_t row = i / each;
    const T* x = p.from + row * p.n;
    int64_t at = i - row * each;
    if (p.which == kOneOfRow) at = p.k - 1;
    if (p.which >= kMedian) {
      int64_t low = 0, high = p.n;  // NaN stands at the end
      while (low < high) {
        const int64_t half_way = (low + high) / 2;
        const auto value = in_order(x[half_way]);
        if (value == value)
          low = half_way + 1;
        else
          high = half_way;
      }
      at = p.which == kMedianOfNumbers ? (low ? (low - 1) / 2 : 0) : low == p.n ? (p.n - 1) / 2 : low;
    }
    p.y[i] = x[at];
    p.places[i] = p.from_places[row * p.n + at];
  }
}

TW_KERNEL(search_rows, Search, kBlockThreads) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.rows * p.queries; i += step) {
    const T* x = p.x + i / p.queries * p.n;
    const T value = p.values[i];
    int64_t low = 0, high = p.n;
    while (low < high) {
      const int64_t half_way = (low + high) / 2;
      const bool before = p.right ? !is_before(value, x[half_way], false)
                                  : is_before(x[half_way], value, false);
      if (before)
        low = half_way + 1;
      else
        high = half_way;
    }
    p.y[i] = low;
  }
}
