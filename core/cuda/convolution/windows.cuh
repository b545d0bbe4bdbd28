// Windows of planes of up to three axes: pooling and its gradient, unfold and fold, and elements of
// planes by their places. Settings: TW_TYPE.
#include "prelude.cuh"
#include "windows_parameters.h"
using T = TW_TYPE;
using Windows = WindowsOf<T>;
using Places = PlacesOf<T>;

#define TW_FOR_EACH(i, n)                                                          \
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x,                 \
               tw_step = int64_t(gridDim.x) * blockDim.x; i < (n); i += tw_step)

// Elements first, first + dilation, ... below past, of which a mean counts `counted`.
struct Window {
  int64_t first, past, counted;
};
TW_DEVICE Window window_of(const Windows& p, int d, int64_t i) {
  const int64_t n = p.x[d];
  if (!p.stride[d]) {
    const int64_t first = i * n / p.y[d], past = ((i + 1) * n + p.y[d] - 1) / p.y[d];
    return {first, past, past - first};
  }
  const int64_t start = i * p.stride[d] - p.before[d], step = p.dilation[d];
  const int64_t end = start + step * (p.kernel[d] - 1) + 1;
  const int64_t first = start < 0 ? start + (-start + step - 1) / step * step : start;
  const int64_t past = end < n ? end : n;
  const int64_t with = start + p.kernel[d] < n + p.before[d] ? p.kernel[d] : n + p.before[d] - start;
  return {first, past, p.include_padding ? with : past - first};
}
struct Place {
  int64_t plane, at[3];
};
TW_DEVICE Place place_in(const int64_t (&sizes)[3], int64_t i) {
  Place place;
  for (int d = 2; d >= 0; --d) {
    const int64_t rest = i / sizes[d];
    place.at[d] = i - rest * sizes[d];
    i = rest;
  }
  place.plane = i;
  return place;
}

// The first of the largest, and the last NaN where there is one.
TW_KERNEL(max_windows, Windows, kBlockThreads) {
  TW_FOR_EACH(i, p.count) {
    const Place y = place_in(p.y, i);
    Window w[3];
    bool any = true;
    for (int d = 0; d < 3; ++d) {
      w[d] = window_of(p, d, y.at[d]);
      any &= w[d].first < w[d].past;
    }
    T best = -T(TW_INFINITY);
    int64_t at = any ? (w[0].first * p.x[1] + w[1].first) * p.x[2] + w[2].first : -1;
    const T* x = p.from + y.plane * p.x[0] * p.x[1] * p.x[2];
    for (int64_t a = w[0].first; a < w[0].past; a += p.dilation[0])
      for (int64_t b = w[1].first; b < w[1].past; b += p.dilation[1])
        for (int64_t c = w[2].first; c < w[2].past; c += p.dilation[2]) {
          const int64_t here = (a * p.x[1] + b) * p.x[2] + c;
          const T value = x[here];
          if (value > best || value != value) {
            best = value;
            at = here;
          }
        }
    p.to[i] = best;
    if (p.indexed) p.indices[i] = int32_t(at);
  }
}

TW_DEVICE T share(const Windows& p, const Window (&w)[3]) {
  const int64_t counted = p.divisor ? p.divisor : w[0].counted * w[1].counted * w[2].counted;
  return T(1) / T(counted);
}
TW_KERNEL(mean_windows, Windows, kBlockThreads) {
  TW_FOR_EACH(i, p.count) {
    const Place y = place_in(p.y, i);
    Window w[3];
    for (int d = 0; d < 3; ++d) w[d] = window_of(p, d, y.at[d]);
    T sum = T(0);
    const T* x = p.from + y.plane * p.x[0] * p.x[1] * p.x[2];
    for (int64_t a = w[0].first; a < w[0].past; a += p.dilation[0])
      for (int64_t b = w[1].first; b < w[1].past; b += p.dilation[1])
        for (int64_t c = w[2].first; c < w[2].past; c += p.dilation[2])
          sum += x[(a * p.x[1] + b) * p.x[2] + c];
    p.to[i] = sum * share(p, w);
  }
}

// The windows along one axis that may hold an element.
TW_DEVICE Window holders(const Windows& p, int d, int64_t x) {
  if (!p.stride[d]) {
    const int64_t last = ((x + 1) * p.y[d] + p.x[d] - 1) / p.x[d];
    return {x * p.y[d] / p.x[d], last < p.y[d] ? last : p.y[d], 0};
  }
  const int64_t reach = (p.kernel[d] - 1) * p.dilation[d], from = x + p.before[d];
  const int64_t first = from > reach ? (from - reach + p.stride[d] - 1) / p.stride[d] : 0;
  const int64_t last = from / p.stride[d] + 1;
  return {first, last < p.y[d] ? last : p.y[d], 0};
}
TW_DEVICE bool holds(const Windows& p, int d, const Window& w, int64_t x) {
  return x >= w.first && x < w.past && (x - w.first) % p.dilation[d] == 0;
}
// What each element gets of its windows.
TW_KERNEL(spread_windows, Windows, kBlockThreads) {
  TW_FOR_EACH(i, p.count) {
    const Place x = place_in(p.x, i);
    Window h[3];
    for (int d = 0; d < 3; ++d) h[d] = holders(p, d, x.at[d]);
    const T* y = p.from + x.plane * p.y[0] * p.y[1] * p.y[2];
    T sum = T(0);
    for (int64_t a = h[0].first; a < h[0].past; ++a)
      for (int64_t b = h[1].first; b < h[1].past; ++b)
        for (int64_t c = h[2].first; c < h[2].past; ++c) {
          const Window w[3] = {window_of(p, 0, a), window_of(p, 1, b), window_of(p, 2, c)};
          bool inside = true;
          for (int d = 0; d < 3; ++d) inside &= holds(p, d, w[d], x.at[d]);
          if (inside) sum += y[(a * p.y[1] + b) * p.y[2] + c] * share(p, w);
        }
    p.to[i] = sum;
  }
}

// ---- unfold: [planes, taps, windows] of planes, and fold: the sums of what went where ----

TW_DEVICE int64_t under(const Windows& p, const int64_t (&y)[3], const int64_t (&tap)[3]) {
  int64_t at = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t x = y[d] * p.stride[d] - p.before[d] + tap[d] * p.dilation[d];
    if (x < 0 || x >= p.x[d]) return -1;
    at = at * p.x[d] + x;
  }
  return at;
}
TW_KERNEL(unfold, Windows, kBlockThreads) {
  const int64_t size = p.x[0] * p.x[1] * p.x[2];
  TW_FOR_EACH(i, p.count) {
    const Place y = place_in(p.y, i), tap = place_in(p.kernel, y.plane);
    const int64_t at = under(p, y.at, tap.at);
    p.to[i] = at < 0 ? T(0) : p.from[tap.plane * size + at];
  }
}
TW_KERNEL(fold, Windows, kBlockThreads) {
  const int64_t windows = p.y[0] * p.y[1] * p.y[2];
  const int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
  TW_FOR_EACH(i, p.count) {
    const Place x = place_in(p.x, i);
    T sum = T(0);
    for (int64_t t = 0; t < taps; ++t) {
      const Place tap = place_in(p.kernel, t);
      int64_t at = 0;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int64_t from = x.at[d] + p.before[d] - tap.at[d] * p.dilation[d];
        const int64_t y = from / p.stride[d];
        inside &= from >= 0 && y * p.stride[d] == from && y < p.y[d];
        at = at * p.y[d] + y;
      }
      if (inside) sum += p.from[(x.plane * taps + t) * windows + at];
    }
    p.to[i] = sum;
  }
}

// ---- elements of planes by their places; negative ones are nowhere ----

TW_KERNEL(gather_in_planes, Places, kBlockThreads) {
  TW_FOR_EACH(i, p.planes * p.places) {
    const int32_t at = p.at[i];
    p.to[i] = at >= 0 ? p.from[i / p.places * p.size + at] : T(0);
  }
}
// Places that meet are added in their order: each element looks for its own.
TW_KERNEL(scatter_in_planes, Places, kBlockThreads) {
  TW_FOR_EACH(i, p.planes * p.size) {
    const int64_t plane = i / p.size, mine = i - plane * p.size;
    T sum = T(0);
    for (int64_t k = 0; k < p.places; ++k)
      if (p.at[plane * p.places + k] == mine) sum += p.from[plane * p.places + k];
    p.to[i] = sum;
  }
}
