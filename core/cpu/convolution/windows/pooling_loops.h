// Pooling. Windows of stride 1 and 2 have a result in each lane, which reads every second element;
// means add up the rows of a window first, then along the sum.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/math/functions.h"
#include "core/cpu/convolution/windows/pooling.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// ---- the largest ----

// A copy of a plane with -inf around it.
template <class T> inline void pad_plane(const PoolingProblem& p, const T* x, T* padded) {
  const int64_t count = p.padded[0] * p.padded[1] * p.padded[2];
  each_vector<T>(count, [=](int64_t at, int some) TW_LAMBDA_INLINE {
    store_some(padded + at, Vec<T>((T)-kInfinity), some);
  });
  for (int64_t d = 0; d < p.x[0]; ++d)
    for (int64_t h = 0; h < p.x[1]; ++h) {
      const T* row = x + (d * p.x[1] + h) * p.x[2];
      T* to =
          padded + ((d + p.before[0]) * p.padded[1] + h + p.before[1]) * p.padded[2] + p.before[2];
      each_vector<T>(p.x[2], [=](int64_t at, int some) TW_LAMBDA_INLINE {
        store_some(to + at, load_some(row + at, some), some);
      });
    }
}

template <class T>
TW_INLINE void store_places(std::int32_t* to, Vec<IntLike<T>> places, int count) {
  constexpr int L = kLanes<T>;
  using Narrow = typename Lanes<std::int32_t, L>::type;
  const Narrow narrow = __builtin_convertvector(places.v, Narrow);
  if (count == L)
    __builtin_memcpy(to, &narrow, sizeof narrow);
  else
    for (int i = 0; i < count; ++i) to[i] = narrow[i];
}

// The first of the largest, and the last NaN where there is one, as in PyTorch.
template <class T> struct Best {
  Vec<T> value = (T)-kInfinity;
  Vec<IntLike<T>> place = (IntLike<T>)0;
  template <bool indexed> TW_INLINE void see(Vec<T> v, Vec<IntLike<T>> at) {
    const Mask<T> wins = (v > value) | (v != v);
    value = where(wins, v, value);
    if constexpr (indexed) place = Vec<IntLike<T>>(wins.v ? at.v : place.v);
  }
};

// One row of results, at (d, h). `x`: the plane with its padding. `taps`: windows are squares of so
// many elements; 0: of any size.
template <class T, int stride, int taps, bool indexed>
TW_INLINE void max_row(const PoolingProblem& p, int64_t d, int64_t h, const T* x, T* y,
                       std::int32_t* places) {
  using I = IntLike<T>;
  const int64_t k[3] = {taps ? 1 : p.kernel[0], taps ? taps : p.kernel[1],
                        taps ? taps : p.kernel[2]};
  const int64_t a[3] = {taps ? 1 : p.dilation[0], taps ? 1 : p.dilation[1],
                        taps ? 1 : p.dilation[2]};
  const auto& s = p.stride;
  const int64_t step = stride ? stride : s[2];
  const T* corner = x + (d * s[0] * p.padded[1] + h * s[1]) * p.padded[2];
  const int64_t first = (p.windows[0][d].first * p.x[1] + p.windows[1][h].first) * p.x[2];
  const int64_t row = ((d * s[0] - p.before[0]) * p.x[1] + h * s[1] - p.before[1]) * p.x[2];
  Vec<I> lane;
  for (int i = 0; i < kLanes<T>; ++i) lane.v[i] = (I)(i * step);
  each_vector<T>(p.y[2], [&](int64_t w, int count) TW_LAMBDA_INLINE {
    Best<T> best;
    const int64_t start = w * step - p.before[2];
    if constexpr (indexed) {
      if (start >= 0 && count == kLanes<T>)
        best.place = lane + Vec<I>((I)(first + start));
      else
        for (int i = 0; i < count; ++i) best.place.v[i] = (I)(first + p.windows[2][w + i].first);
    }
    for (int64_t i = 0; i < k[0]; ++i)
      for (int64_t j = 0; j < k[1]; ++j) {
        const T* from = corner + (i * a[0] * p.padded[1] + j * a[1]) * p.padded[2] + w * step;
        const int64_t at = row + (i * a[0] * p.x[1] + j * a[1]) * p.x[2] + start;
        for (int64_t l = 0; l < k[2]; ++l)
          best.template see<indexed>(load_every<stride>(from + l * a[2], step, count),
                                     lane + Vec<I>((I)(at + l * a[2])));
      }
    store_some(y + w, best.value, count);
    if constexpr (indexed) store_places<T>(places + w, best.place, count);
  });
}

// One window, whatever it is like.
template <class T> inline void max_window(const PoolingProblem& p, const PoolingWindow& d,
                                          const PoolingWindow& h, const PoolingWindow& w,
                                          const T* x, T* y, std::int32_t* place) {
  T best = (T)-kInfinity;
  int64_t at = d.first < d.past && h.first < h.past && w.first < w.past
                   ? (d.first * p.x[1] + h.first) * p.x[2] + w.first
                   : -1;
  for (int64_t i = d.first; i < d.past; i += p.dilation[0])
    for (int64_t j = h.first; j < h.past; j += p.dilation[1])
      for (int64_t l = w.first; l < w.past; l += p.dilation[2]) {
        const int64_t here = (i * p.x[1] + j) * p.x[2] + l;
        // No branch: which element wins cannot be foretold.
        const bool wins = (x[here] > best) | (x[here] != x[here]);
        best = wins ? x[here] : best;
        at = wins ? here : at;
      }
  *y = best;
  if (place) *place = (std::int32_t)at;
}

// The same where rows are wide, an element a lane.
template <class T> inline void max_wide_window(const PoolingProblem& p, const PoolingWindow& d,
                                               const PoolingWindow& h, const PoolingWindow& w,
                                               const T* x, T* y, std::int32_t* place) {
  using I = IntLike<T>;
  Vec<I> lane;
  for (int i = 0; i < kLanes<T>; ++i) lane.v[i] = (I)i;
  Best<T> best;
  best.place = (I)((d.first * p.x[1] + h.first) * p.x[2] + w.first);
  for (int64_t i = d.first; i < d.past; i += p.dilation[0])
    for (int64_t j = h.first; j < h.past; j += p.dilation[1]) {
      const int64_t at = (i * p.x[1] + j) * p.x[2] + w.first;
      each_vector<T>(w.past - w.first, [&](int64_t l, int count) TW_LAMBDA_INLINE {
        const Vec<T> v = load_some(x + at + l, count);
        best.template see<true>(count == kLanes<T> ? v : fill_after(v, count, (T)-kInfinity),
                                lane + Vec<I>((I)(at + l)));
      });
    }
  const Mask<T> odd = best.value != best.value;
  if (any(odd)) {  // the last NaN
    *y = (T)__builtin_nan("");
    if (place) *place = (std::int32_t)max_of_lanes(Vec<I>(odd.v ? best.place.v : Vec<I>((I)-1).v));
    return;
  }
  *y = max_of_lanes(best.value);
  const Mask<T> wins = best.value == Vec<T>(*y);
  const Vec<I> none = (I)INT32_MAX;
  if (place) *place = (std::int32_t)min_of_lanes(Vec<I>(wins.v ? best.place.v : none.v));
}

template <class T, int stride, int taps, bool indexed>
inline void max_rows(const PoolingProblem& p, const T* x, T* y, std::int32_t* places) {
  for (int64_t d = 0; d < p.y[0]; ++d)
    for (int64_t h = 0; h < p.y[1]; ++h) {
      const int64_t at = (d * p.y[1] + h) * p.y[2];
      max_row<T, stride, taps, indexed>(p, d, h, x, y + at, places + (indexed ? at : 0));
    }
}
template <class T>
inline void max_windows(const PoolingProblem& p, const T* x, T* y, std::int32_t* places) {
  const auto window = p.kernel[2] >= kLanes<T> / 2 && p.dilation[2] == 1 && !p.gaps
                          ? max_wide_window<T>
                          : max_window<T>;
  for (int64_t d = 0; d < p.y[0]; ++d)
    for (int64_t h = 0; h < p.y[1]; ++h)
      for (int64_t w = 0; w < p.y[2]; ++w, ++y, places += places != nullptr)
        window(p, p.windows[0][d], p.windows[1][h], p.windows[2][w], x, y, places);
}

template <class T>
using MaxLoop = void (*)(const PoolingProblem& p, const T* x, T* y, std::int32_t* places);
template <class T, bool indexed> inline MaxLoop<T> max_loop_for(const PoolingProblem& p) {
  const bool flat = p.kernel[0] == 1 && p.kernel[1] == p.kernel[2];
  const bool dense = p.dilation[1] == 1 && p.dilation[2] == 1;
  if (flat && dense && p.stride[2] == 2 && p.kernel[2] == 2) return max_rows<T, 2, 2, indexed>;
  if (flat && dense && p.stride[2] == 2 && p.kernel[2] == 3) return max_rows<T, 2, 3, indexed>;
  if (p.stride[2] == 2) return max_rows<T, 2, 0, indexed>;
  return p.stride[2] == 1 ? max_rows<T, 1, 0, indexed> : max_rows<T, 0, 0, indexed>;
}

template <class T>
void max_planes(const PoolingProblem& p, int64_t first, int64_t past, void* scratch) {
  const int64_t x_size = p.x[0] * p.x[1] * p.x[2], y_size = p.y[0] * p.y[1] * p.y[2];
  const MaxLoop<T> loop = !p.lanes    ? max_windows<T>
                          : p.indexed ? max_loop_for<T, true>(p)
                                      : max_loop_for<T, false>(p);
  for (int64_t plane = first; plane < past; ++plane) {
    const T* x = (const T*)p.from + plane * x_size;
    T* y = (T*)p.to + plane * y_size;
    std::int32_t* places = p.indexed ? p.indices + plane * y_size : nullptr;
    if (p.lanes && p.pads) {
      pad_plane(p, x, (T*)scratch);
      x = (const T*)scratch;
    }
    loop(p, x, y, places);
  }
}

// ---- means ----

template <class T> TW_INLINE void fill_row(T* p, int64_t n, T value) {
  each_vector<T>(
      n, [=](int64_t at, int count) TW_LAMBDA_INLINE { store_some(p + at, Vec<T>(value), count); });
}

// The sum of a window's rows.
template <class T> TW_INLINE void sum_rows(const PoolingProblem& p, const PoolingWindow& d,
                                           const PoolingWindow& h, const T* x, T* sum) {
  each_vector<T>(p.x[2], [&](int64_t w, int count) TW_LAMBDA_INLINE {
    Vec<T> total = (T)0;
    for (int64_t i = d.first; i < d.past; ++i)
      total += sum_of_columns<T>(h.past - h.first, [&](int64_t j) TW_LAMBDA_INLINE {
        return load_some(x + (i * p.x[1] + h.first + j) * p.x[2] + w, count);
      });
    store_some(sum + w, total, count);
  });
}
// What a sum over rows is multiplied by: the inverse of the elements' number but along the row.
inline double row_scale(const PoolingProblem& p, int64_t d, int64_t h) {
  if (p.divisor) return 1.0 / (double)p.divisor;
  return 1.0 / (double)(p.windows[0][d].counted * p.windows[1][h].counted);
}
inline double column_scale(const PoolingProblem& p, int64_t w) {
  return p.divisor ? 1.0 : 1.0 / (double)p.windows[2][w].counted;
}

// `sum` has the padding of its axis around it.
template <class T, int stride>
TW_INLINE void mean_row(const PoolingProblem& p, const T* sum, const T* scales, T scale, T* y) {
  const int64_t step = stride ? stride : p.stride[2];
  each_vector<T>(p.y[2], [&](int64_t w, int count) TW_LAMBDA_INLINE {
    Vec<T> total = load_every<stride>(sum + w * step, step, count);
    for (int64_t l = 1; l < p.kernel[2]; ++l)
      total += load_every<stride>(sum + w * step + l, step, count);
    store_some(y + w, total * (load_some(scales + w, count) * scale), count);
  });
}
template <class T>
TW_INLINE void mean_windows(const PoolingProblem& p, const T* row, const T* scales, T scale, T* y) {
  for (int64_t w = 0; w < p.y[2]; ++w) {
    const PoolingWindow& at = p.windows[2][w];
    const double total =
        sum_of_row<T>(at.past - at.first, [=, &at](int64_t i, int count) TW_LAMBDA_INLINE {
          return load_some(row + at.first + i, count);
        });
    y[w] = (T)total * (scales[w] * scale);
  }
}

// Whether each plane is one window, as lowerings make it of whole images.
inline bool are_whole(const PoolingProblem& p) {
  return p.x[0] * p.x[1] == 1 && p.y[0] * p.y[1] * p.y[2] == 1 && p.kernel[2] == p.x[2] &&
         p.padded[2] == p.x[2];
}
template <class T> TW_INLINE T sum_of_few(int64_t n, const T* x) {
  constexpr int L = kLanes<T>;
  Vec<T> a = (T)0, b = (T)0;
  int64_t at = 0;
  for (; at + 2 * L <= n; at += 2 * L) {
    a += Vec<T>::load(x + at);
    b += Vec<T>::load(x + at + L);
  }
  for (; at + L <= n; at += L) a += Vec<T>::load(x + at);
  if (at < n) b += Vec<T>::load(x + at, (int)(n - at));
  return sum_of_lanes(a + b);
}
template <class T> inline void mean_wholes(const PoolingProblem& p, int64_t first, int64_t past) {
  const int64_t n = p.x[2];
  const double scale = row_scale(p, 0, 0) * column_scale(p, 0);
  const auto means = [&](auto sum) TW_LAMBDA_INLINE {
    for (int64_t i = first; i < past; ++i)
      ((T*)p.to)[i] = (T)((double)sum((const T*)p.from + i * n) * scale);
  };
  if (n <= 16 * kLanes<T>)
    means([n](const T* x) TW_LAMBDA_INLINE { return sum_of_few(n, x); });
  else
    means([n](const T* x) TW_LAMBDA_INLINE {
      return sum_of_row<T>(
          n, [x](int64_t at, int count) TW_LAMBDA_INLINE { return load_some(x + at, count); });
    });
}

template <class T>
void mean_planes(const PoolingProblem& p, int64_t first, int64_t past, void* scratch) {
  if (are_whole(p)) return mean_wholes<T>(p, first, past);
  const int64_t x_size = p.x[0] * p.x[1] * p.x[2];
  T* const scales = (T*)scratch;
  T* const sum = scales + p.y[2];
  for (int64_t w = 0; w < p.y[2]; ++w) scales[w] = (T)column_scale(p, w);
  if (p.lanes) fill_row(sum, p.padded[2], (T)0);
  const bool lanes = p.lanes, pads = p.padded[2] != p.x[2];
  T* y = (T*)p.to + first * p.y[0] * p.y[1] * p.y[2];
  for (int64_t plane = first; plane < past; ++plane) {
    const T* x = (const T*)p.from + plane * x_size;
    for (int64_t d = 0; d < p.y[0]; ++d)
      for (int64_t h = 0; h < p.y[1]; ++h, y += p.y[2]) {
        const PoolingWindow &deep = p.windows[0][d], &high = p.windows[1][h];
        const T scale = (T)row_scale(p, d, h);
        const bool alone = deep.past - deep.first == 1 && high.past - high.first == 1;
        const T* row = x + (deep.first * p.x[1] + high.first) * p.x[2];
        if (!alone || (lanes && pads)) {
          sum_rows(p, deep, high, x, sum + (lanes ? p.before[2] : 0));
          row = sum;
        }
        if (!lanes)
          mean_windows(p, row, scales, scale, y);
        else
          with_stride(p.stride[2],
                      [&]<int stride>() { mean_row<T, stride>(p, row, scales, scale, y); });
      }
  }
}

// ---- the transpose of means ----

// Shares of one row of windows along the row: out[i] is the sum of g over the windows that hold i.
// `g` has zeros around it.
template <class T, int stride>
TW_INLINE void spread_row(const PoolingProblem& p, const T* g, T* out) {
  constexpr int L = kLanes<T>;
  using All = typename CountTo<L>::type;
  // Element stride * j + r is in the windows j + (r + before - l) / stride, for the taps l for
  // which that is whole.
  const auto share = [&](int64_t j, int r, int count) TW_LAMBDA_INLINE {
    const int64_t top = r + p.before[2];
    Vec<T> total = (T)0;
    for (int64_t l = top % stride; l < p.kernel[2]; l += stride)
      total += load_some(g + j + (top - l) / stride, count);
    return total;
  };
  const int64_t n = p.x[2];
  if constexpr (stride == 1 || L == 1) {
    if constexpr (stride == 1)
      each_vector<T>(n, [&](int64_t j, int count)
                            TW_LAMBDA_INLINE { store_some(out + j, share(j, 0, count), count); });
    else
      for (int64_t i = 0; i < n; ++i) share(i / 2, (int)(i % 2), 1).store(out + i);
  } else {
    for (int64_t j = 0; 2 * j < n; j += L) {
      const Vec<T> even = share(j, 0, L), odd = share(j, 1, L);
      const Vec<T> halves[2] = {alternated<T, 0>(even, odd, All()),
                                alternated<T, 1>(even, odd, All())};
      for (int i = 0; i < 2; ++i) {
        const int64_t at = 2 * j + i * L, rest = n - at;
        if (rest > 0) store_some(out + at, halves[i], rest < L ? (int)rest : L);
      }
    }
  }
}
template <class T> TW_INLINE void spread_windows(const PoolingProblem& p, const T* g, T* out) {
  fill_row(out, p.x[2], (T)0);
  for (int64_t w = 0; w < p.y[2]; ++w) {
    T* to = out + p.windows[2][w].first;
    each_vector<T>(p.windows[2][w].past - p.windows[2][w].first,
                   [&](int64_t at, int count) TW_LAMBDA_INLINE {
                     store_some(to + at, load_some(to + at, count) + Vec<T>(g[w]), count);
                   });
  }
}

template <class T> struct Spreading {
  const PoolingProblem& p;
  T *scales, *g, *shares;  // g: a row of windows' gradients, scaled, with zeros around it
  bool lanes;

  void share(const T* from, T scale, T* out) const {
    each_vector<T>(p.y[2], [&](int64_t w, int count) TW_LAMBDA_INLINE {
      store_some(g + w, load_some(from + w, count) * (load_some(scales + w, count) * scale), count);
    });
    if (!lanes)
      spread_windows(p, g, out);
    else if (p.stride[2] == 1)
      spread_row<T, 1>(p, g, out);
    else
      spread_row<T, 2>(p, g, out);
  }
  // Adds the shares to a row, or writes them where the row has none yet.
  void put(T* row, bool fresh) const {
    each_vector<T>(p.x[2], [&](int64_t w, int count) TW_LAMBDA_INLINE {
      const Vec<T> v = load_some(shares + w, count);
      store_some(row + w, fresh ? v : load_some(row + w, count) + v, count);
    });
  }
  // Windows begin in order: slices from `deep_seen` on, and in them rows from `seen` on, are fresh.
  void plane(const T* from, T* dx) const {
    int64_t deep_seen = 0;
    const int64_t slice = p.x[1] * p.x[2];
    for (int64_t d = 0; d < p.y[0]; ++d) {
      const PoolingWindow& deep = p.windows[0][d];
      if (deep.first > deep_seen)
        fill_row(dx + deep_seen * slice, (deep.first - deep_seen) * slice, (T)0);
      int64_t seen = 0;
      for (int64_t h = 0; h < p.y[1]; ++h, from += p.y[2]) {
        const PoolingWindow& high = p.windows[1][h];
        share(from, (T)row_scale(p, d, h), shares);
        for (int64_t i = deep.first; i < deep.past; ++i) {
          T* const at = dx + i * slice;
          if (i >= deep_seen && high.first > seen)
            fill_row(at + seen * p.x[2], (high.first - seen) * p.x[2], (T)0);
          for (int64_t j = high.first; j < high.past; ++j)
            put(at + j * p.x[2], i >= deep_seen && j >= seen);
        }
        seen = high.past > seen ? high.past : seen;
      }
      for (int64_t i = deep_seen; i < deep.past; ++i)
        if (i >= deep.first)
          fill_row(dx + i * slice + seen * p.x[2], (p.x[1] - seen) * p.x[2], (T)0);
      deep_seen = deep.past > deep_seen ? deep.past : deep_seen;
    }
    fill_row(dx + deep_seen * slice, (p.x[0] - deep_seen) * slice, (T)0);
  }
};

template <class T>
void spread_planes(const PoolingProblem& p, int64_t first, int64_t past, void* scratch) {
  if (are_whole(p)) {
    const T scale = (T)(row_scale(p, 0, 0) * column_scale(p, 0));
    for (int64_t i = first; i < past; ++i)
      fill_row((T*)p.to + i * p.x[2], p.x[2], ((const T*)p.from)[i] * scale);
    return;
  }
  T* const scales = (T*)scratch;
  T* const shares = scales + p.y[2];
  T* const room = shares + p.x[2];
  const bool lanes = p.lanes && p.stride[2] <= 2;
  const int64_t front = lanes ? p.kernel[2] + 1 : 0;
  if (lanes) fill_row(room, front + p.padded[2] + 2 * kLanes<T>, (T)0);
  for (int64_t w = 0; w < p.y[2]; ++w) scales[w] = (T)column_scale(p, w);
  const Spreading<T> spreading = {p, scales, room + front, shares, lanes};
  const int64_t x_size = p.x[0] * p.x[1] * p.x[2], y_size = p.y[0] * p.y[1] * p.y[2];
  for (int64_t plane = first; plane < past; ++plane)
    spreading.plane((const T*)p.from + plane * y_size, (T*)p.to + plane * x_size);
}

}  // namespace

extern const PoolingTable pooling_table;
const PoolingTable pooling_table = {
    {max_planes<float>, mean_planes<float>, spread_planes<float>},
    {max_planes<double>, mean_planes<double>, spread_planes<double>}};

}  // namespace tw::TW_ISA_NAME
