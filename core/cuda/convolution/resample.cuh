// Images of another size: each axis is a band matrix, a few neighbouring elements for each element
// of the result. A small launch makes the bands, one sums by all axes at once. Settings: TW_TYPE,
// TW_METHOD (a ResampleMethod).
#include "prelude.cuh"
#include "resample_parameters.h"
using T = TW_TYPE;
using Axis = ResampledAxis<T>;
using Resample = ResampleOf<T>;
using Method = tw::ResampleMethod;
constexpr Method kMethod = Method(TW_METHOD);

TW_DEVICE float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
TW_DEVICE double fused(double a, double b, double c) { return ::fma(a, b, c); }
TW_DEVICE double at_least(double x, double low) { return x < low ? low : x; }
TW_DEVICE int64_t clamped(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// In the type of the elements but for the last step, as PyTorch does: the choice between two
// neighbours is one of rounding.
TW_DEVICE void nearest_band(const Axis& a, int64_t j) {
  const T scale = a.scale == 0 ? T(a.from) / T(a.to) : T(a.scale);
  double at = T(j) * scale;
  if (kMethod == Method::nearest_exact) {
    const T middle = fused(scale, T(j) + T(0.5), T(-0.5));
    at = double(middle < 0 ? T(0) : middle) + 0.5;
  }
  a.first[j] = int32_t(clamped(int64_t(::floorf(float(at))), 0, a.from - 1));
  a.weights[j] = 1;
}

TW_DEVICE double cubic(double x, double a) {
  x = ::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Neighbours beyond the ends count as the ends.
TW_DEVICE void smooth_band(const Resample& p, const Axis& a, int64_t j) {
  constexpr int reach = kMethod == Method::cubic ? 4 : 2;
  const int64_t last = a.from - 1;
  double at = p.align_corners ? double(j) * a.scale : (double(j) + 0.5) * a.scale - 0.5;
  if (kMethod == Method::linear) at = at_least(at, 0);
  const double floor = ::floor(at), low = floor < double(last) ? floor : double(last);
  const double rest = at - low < 0 ? 0 : at - low > 1 ? 1 : at - low;
  const int64_t begin = int64_t(low) - (kMethod == Method::cubic), first = clamped(begin, 0, a.from - a.taps);
  double sums[reach] = {};
#pragma unroll
  for (int t = 0; t < reach; ++t) {
    const double distance = rest - double(begin + t) + low;
    const double w = kMethod == Method::cubic ? cubic(distance, -0.75) : 1 - ::fabs(distance);
    const int to = int(clamped(begin + t, 0, last) - first);
#pragma unroll
    for (int k = 0; k < reach; ++k) sums[k] += k == to ? w : 0;
  }
  a.first[j] = int32_t(first);
#pragma unroll
  for (int t = 0; t < reach; ++t)
    if (t < a.taps) a.weights[t * a.to + j] = T(sums[t]);
}

// The filter is stretched over the elements that one of the result stands for.
TW_DEVICE void antialiased_band(const Axis& a, int64_t j) {
  const double stretch = at_least(a.scale, 1);
  const double support = (kMethod == Method::cubic ? 2 : 1) * stretch;
  const double center = a.scale * (double(j) + 0.5);
  const int64_t begin = clamped(int64_t(center - support + 0.5), 0, a.from - 1);
  int64_t past = int64_t(center + support + 0.5);
  past = past < a.from ? past : a.from;
  past = past < begin + a.taps ? past : begin + a.taps;
  const int64_t first = begin < a.from - a.taps ? begin : a.from - a.taps;
  const auto weight = [&](int64_t i) {
    const double x = (double(i) - center + 0.5) / stretch;
    return kMethod == Method::cubic ? cubic(x, -0.5) : at_least(1 - ::fabs(x), 0);
  };
  double total = 0;
  for (int64_t i = begin; i < past; ++i) total += weight(i);
  a.first[j] = int32_t(first);
  for (int64_t t = 0; t < a.taps; ++t) {
    const int64_t i = first + t;
    const double w = i >= begin && i < past ? weight(i) : 0;
    a.weights[t * a.to + j] = T(total != 0 ? w / total : w);
  }
}

// A thread a row of any axis.
TW_KERNEL(resample_bands, Resample, kBlockThreads) {
  int64_t j = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    const Axis& a = p.axes[axis];
    if (j >= 0 && j < a.to) {
      if (kMethod < Method::linear)
        nearest_band(a, j);
      else if (p.antialias)
        antialiased_band(a, j);
      else
        smooth_band(p, a, j);
    }
    j -= a.to;
  }
}

// What has weight 0 does not count, whatever it is.
TW_DEVICE void add(T& sum, T weight, T x) {
  if (weight != 0) sum += weight * x;
}

TW_KERNEL(resample, Resample, kBlockThreads) {
  const Axis &a = p.axes[0], &b = p.axes[1], &c = p.axes[2];
  const int64_t step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t i = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; i < p.count; i += step) {
    const int64_t w = i % c.to, line = i / c.to, h = line % b.to, slice = line / b.to;
    const int64_t d = slice % a.to, plane = slice / a.to;
    T sum = 0;
    for (int64_t r = 0; r < a.taps; ++r)
      for (int64_t s = 0; s < b.taps; ++s) {
        const T weight = a.weights[r * a.to + d] * b.weights[s * b.to + h];
        if (weight == 0) continue;
        const T* row = p.x + ((plane * a.from + a.first[d] + r) * b.from + b.first[h] + s) * c.from;
        T along = 0;
        for (int64_t t = 0; t < c.taps; ++t)
          add(along, c.weights[t * c.to + w], row[c.first[w] + t]);
        sum += weight * along;
      }
    p.y[i] = sum;
  }
}

// Rows [begin, end) are all that may have element i in their band.
struct Range { int64_t begin, end; };
TW_DEVICE int64_t rows_before(const Axis& a, int64_t first) {
  int64_t low = 0, high = a.to;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a.first[middle] < first) low = middle + 1;
    else high = middle;
  }
  return low;
}
TW_DEVICE Range rows_with(const Axis& a, int64_t i) {
  return {rows_before(a, i - a.taps + 1), rows_before(a, i + 1)};
}
TW_DEVICE T weight_of(const Axis& a, int64_t j, int64_t i) {
  return a.weights[(i - a.first[j]) * a.to + j];
}

TW_KERNEL(resample_transposed, Resample, kBlockThreads) {
  const Axis &a = p.axes[0], &b = p.axes[1], &c = p.axes[2];
  const int64_t step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t i = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; i < p.count; i += step) {
    const int64_t w = i % c.from, line = i / c.from, h = line % b.from, slice = line / b.from;
    const int64_t d = slice % a.from, plane = slice / a.from;
    const Range slices = rows_with(a, d), lines = rows_with(b, h), places = rows_with(c, w);
    T sum = 0;
    for (int64_t r = slices.begin; r < slices.end; ++r)
      for (int64_t s = lines.begin; s < lines.end; ++s) {
        const T weight = weight_of(a, r, d) * weight_of(b, s, h);
        if (weight == 0) continue;
        const T* row = p.x + ((plane * a.to + r) * b.to + s) * c.to;
        T along = 0;
        for (int64_t t = places.begin; t < places.end; ++t) add(along, weight_of(c, t, w), row[t]);
        sum += weight * along;
      }
    p.y[i] = sum;
  }
}
