// Sums of elements of planes at places, each times a weight: y[n, c, i] is the sum over k of
// weights[n, k, i] x[n, c, places[n, k, i]], where a place below 0 stands for none; and the two
// that make x and weights from the rest. Setting: TW_TYPE.
#include "prelude.cuh"
#include "taps_parameters.h"
using T = TW_TYPE;
using Taps = TapsOf<T>;

TW_KERNEL(sum_taps, Taps, kBlockThreads) {
  const int64_t all = p.batch * p.channels * p.points, step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t at = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; at < all; at += step) {
    const int64_t i = at % p.points, plane = at / p.points, n = plane / p.channels;
    T sum = 0;
    for (int64_t k = 0; k < p.taps; ++k) {
      const int64_t tap = (n * p.taps + k) * p.points + i;
      const int32_t place = p.places[tap];
      sum += p.second[tap] * (place < 0 ? T(0) : p.first[plane * p.size + place]);
    }
    p.made[at] = sum;
  }
}

TW_KERNEL(multiply_taps, Taps, kBlockThreads) {
  const int64_t all = p.batch * p.taps * p.points, step = int64_t(gridDim.x) * kBlockThreads;
  for (int64_t at = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x; at < all; at += step) {
    const int64_t i = at % p.points, n = at / p.points / p.taps;
    const int32_t place = p.places[at];
    T sum = 0;
    for (int64_t plane = n * p.channels; plane < (n + 1) * p.channels; ++plane)
      sum += p.first[plane * p.points + i] * (place < 0 ? T(0) : p.second[plane * p.size + place]);
    p.made[at] = sum;
  }
}

// A thread has one place of some channels and looks through all taps of the sample, so that what
// meets in a place is added in one order. Comparing is what takes time: channels share it.
constexpr int kChannels = kSpreadChannels;
TW_KERNEL(spread_taps, Taps, kBlockThreads) {
  __shared__ int32_t places[kBlockThreads];
  const int64_t n = blockIdx.z, mine = int64_t(blockIdx.x) * kBlockThreads + threadIdx.x;
  const int64_t channel = int64_t(blockIdx.y) * kChannels, all = p.taps * p.points;
  const int channels = int(p.channels - channel < kChannels ? p.channels - channel : kChannels);
  const T* weights = p.second + n * all;
  const T* y = p.first + (n * p.channels + channel) * p.points;
  T sums[kChannels] = {};
  for (int64_t first = 0; first < all; first += kBlockThreads) {
    __syncthreads();
    if (first + threadIdx.x < all) places[threadIdx.x] = p.places[n * all + first + threadIdx.x];
    __syncthreads();
    const int some = all - first < kBlockThreads ? int(all - first) : kBlockThreads;
    for (int k = 0; k < some; ++k) {
      if (places[k] != mine) continue;
      const int64_t i = (first + k) % p.points;
#pragma unroll
      for (int c = 0; c < kChannels; ++c)
        if (c < channels) sums[c] += weights[first + k] * y[c * p.points + i];
    }
  }
  if (mine >= p.size) return;
#pragma unroll
  for (int c = 0; c < kChannels; ++c)
    if (c < channels) p.made[(n * p.channels + channel + c) * p.size + mine] = sums[c];
}
