// Normalisation of x as [outer, groups, channels, inner], over rows (channels and inner of a group) or
// over channels (outer and inner): a block or a warp a set, forward and backward. Settings: TW_TYPE,
// TW_WIDTH (threads that share a set: 32 or 256), TW_OF_CHANNELS.
#include "prelude.cuh"
#include "norm_parameters.h"
using T = TW_TYPE;
using Norm = NormOf<T>;

TW_DEVICE T combined(T value) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(TW_ALL_LANES, value, bits);
#if TW_WIDTH > 32
  __shared__ T warps[8];
  __syncthreads();  // the last use of them is over
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = warps[0];
#pragma unroll
  for (int i = 1; i < 8; ++i) value += warps[i];
#endif
  return value;
}
TW_DEVICE float root(float x) { return ::sqrtf(x); }
TW_DEVICE double root(double x) { return ::sqrt(x); }

// A set of elements, and the scale that belongs to each.
struct Set {
  int64_t index, count;
  int lane;
  bool inside;
};
TW_DEVICE Set set_of(const Norm& p) {
  const int64_t sets = TW_OF_CHANNELS ? p.channels : p.outer * p.groups;
  const int64_t index = (int64_t(blockIdx.x) * kBlockThreads + threadIdx.x) / TW_WIDTH;
  const bool inside = index < sets;
  return {inside ? index : 0, TW_OF_CHANNELS ? p.outer * p.inner : p.channels * p.inner,
          int(threadIdx.x % TW_WIDTH), inside};
}
TW_DEVICE int64_t element(const Norm& p, const Set& s, int64_t i) {
#if TW_OF_CHANNELS
  const int64_t o = i / p.inner;
  return (o * p.channels + s.index) * p.inner + (i - o * p.inner);
#else
  return s.index * s.count + i;
#endif
}
TW_DEVICE int64_t scale_of(const Norm& p, const Set& s, int64_t i) {
  return TW_OF_CHANNELS ? s.index : s.index % p.groups * p.channels + i / p.inner;
}

TW_KERNEL(normalize, Norm, kBlockThreads) {
  const Set s = set_of(p);
  T mean = T(0);
  if (p.centered) {
    for (int64_t i = s.lane; i < s.count; i += TW_WIDTH) mean += p.x[element(p, s, i)];
    mean = combined(mean) / T(s.count);
  }
  T squares = T(0);
  for (int64_t i = s.lane; i < s.count; i += TW_WIDTH) {
    const T distance = p.x[element(p, s, i)] - mean;
    squares += distance * distance;
  }
  const T variance = combined(squares) / T(s.count), rstd = 1 / root(variance + T(p.eps));
  if (!s.inside) return;
  for (int64_t i = s.lane; i < s.count; i += TW_WIDTH) {
    const int64_t at = element(p, s, i), scale = scale_of(p, s, i);
    T y = (p.x[at] - mean) * rstd;
    if (p.weight) y *= p.weight[scale];
    if (p.bias) y += p.bias[scale];
    p.y[at] = y;
  }
  if (s.lane) return;
  p.mean[s.index] = mean;
  p.rstd[s.index] = rstd;
  if (p.variance) p.variance[s.index] = variance;
}

TW_KERNEL(normalize_backward, Norm, kBlockThreads) {
  const Set s = set_of(p);
  const T mean = p.mean_in[s.index], rstd = p.rstd_in[s.index];
  T along = T(0), whole = T(0), plain_along = T(0), plain_whole = T(0);
  for (int64_t i = s.lane; i < s.count; i += TW_WIDTH) {
    const int64_t at = element(p, s, i);
    const T g = p.g[at], y = (p.x[at] - mean) * rstd;
    const T gw = p.weight ? g * p.weight[scale_of(p, s, i)] : g;
    along += gw * y;
    whole += gw;
    plain_along += g * y;
    plain_whole += g;
  }
  along = combined(along) / T(s.count);
  whole = p.centered ? combined(whole) / T(s.count) : T(0);
#if TW_OF_CHANNELS
  plain_along = combined(plain_along);
  plain_whole = combined(plain_whole);
#endif
  if (!s.inside) return;
  for (int64_t i = s.lane; i < s.count; i += TW_WIDTH) {
    const int64_t at = element(p, s, i);
    const T y = (p.x[at] - mean) * rstd;
    const T gw = p.weight ? p.g[at] * p.weight[scale_of(p, s, i)] : p.g[at];
    p.dx[at] = (gw - y * along - whole) * rstd;
  }
#if TW_OF_CHANNELS
  if (s.lane || !p.dweight) return;
  p.dweight[s.index] = plain_along;
  p.dbias[s.index] = plain_whole;
#endif
}

// Gradients of scales of rows: sums over outer and inner, 32 scales a block and eight lines of rows.
TW_KERNEL(scales_backward, Norm, kBlockThreads) {
  __shared__ T sums[2][8][kBlockScales];
  const int lane = threadIdx.x % kBlockScales, line = threadIdx.x / kBlockScales;
  const int64_t scales = p.groups * p.channels;
  const int64_t scale = int64_t(blockIdx.x) * kBlockScales + lane;
  T along = T(0), whole = T(0);
  if (scale < scales)
    for (int64_t k = line; k < p.outer * p.inner; k += 8) {
      const int64_t o = k / p.inner, at = (o * scales + scale) * p.inner + (k - o * p.inner);
      const int64_t set = o * p.groups + scale / p.channels;
      along += p.g[at] * ((p.x[at] - p.mean_in[set]) * p.rstd_in[set]);
      whole += p.g[at];
    }
  sums[0][line][lane] = along;
  sums[1][line][lane] = whole;
  __syncthreads();
  if (line || scale >= scales) return;
  for (int i = 1; i < 8; ++i) {
    along += sums[0][i][lane];
    whole += sums[1][i][lane];
  }
  p.dweight[scale] = along;
  p.dbias[scale] = whole;
}
