// Convolution of groups of one channel: planes lie in the lanes.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// So many pixels at a time: their sums hide the latency of multiply-adds and share a load of the
// weights.
inline constexpr int kPixels = kRegisters >= 32 ? 14 : 8;

// Three taps that read neighbouring pixels: each pixel is loaded once for all of them.
template <class T, int pixels> TW_INLINE void add_three_taps(const T* x, const T* const (&w)[3],
                                                             typename Vec<T>::Raw (&sums)[pixels]) {
  typename Vec<T>::Raw factors[3];
#pragma GCC unroll 3
  for (int t = 0; t < 3; ++t) factors[t] = Vec<T>::load(w[t]).v;
#pragma GCC unroll 16
  for (int i = 0; i < pixels + 2; ++i) {
    const typename Vec<T>::Raw pixel = Vec<T>::load(x + i * kLanes<T>).v;
#pragma GCC unroll 3
    for (int t = 0; t < 3; ++t)
      if (i >= t && i - t < pixels) sums[i - t] = fma(factors[t], pixel, sums[i - t]);
  }
}
template <class T, int pixels, int known> TW_INLINE void pixel_sums(const DepthwisePixels& p,
                                                                    const DepthwiseTaps& taps,
                                                                    const T* x, const T* w, T* y) {
  constexpr int L = kLanes<T>;
  const std::int64_t step = (known ? known : p.x_step) * L;
  typename Vec<T>::Raw sums[pixels] = {};
  for (std::int64_t k = 0; k < taps.taps; ++k) {
    const T* const from = x + taps.at[k];
    if constexpr (known == 1)
      if (k + 2 < taps.taps && taps.at[k + 1] == taps.at[k] + L &&
          taps.at[k + 2] == taps.at[k] + 2 * L) {
        const T* const weights[3] = {w + taps.weights[k], w + taps.weights[k + 1],
                                     w + taps.weights[k + 2]};
        add_three_taps<T>(from, weights, sums);
        k += 2;
        continue;
      }
    const typename Vec<T>::Raw factor = Vec<T>::load(w + taps.weights[k]).v;
#pragma GCC unroll 16
    for (int i = 0; i < pixels; ++i)
      sums[i] = fma(factor, Vec<T>::load(from + i * step).v, sums[i]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < pixels; ++i) Vec<T>(sums[i]).store(y + i * p.y_step * L);
}
template <class T, int known> struct PixelSums {
  using Function = void (*)(const DepthwisePixels&, const DepthwiseTaps&, const T*, const T*, T*);
  Function at[kPixels + 1];
  template <int pixels> constexpr void fill() {
    if constexpr (pixels > 0) {
      at[pixels] = [](const DepthwisePixels& p, const DepthwiseTaps& taps, const T* x, const T* w,
                      T* y) { pixel_sums<T, pixels, known>(p, taps, x, w, y); };
      fill<pixels - 1>();
    }
  }
  constexpr PixelSums() : at{} { fill<kPixels>(); }
};
template <class T, int known> constexpr PixelSums<T, known> pixel_sums_of;

template <class T> void depthwise(const DepthwisePixels& p, const DepthwiseTaps& taps,
                                  const void* x, const void* w, void* y) {
  constexpr int L = kLanes<T>;
  with_stride(p.x_step, [&]<int known>() TW_LAMBDA_INLINE {
    const std::int64_t pieces = (p.columns + kPixels - 1) / kPixels;
    for (std::int64_t row = 0; row < p.rows; ++row) {
      std::int64_t at = 0;
      for (std::int64_t left = pieces; left > 0; --left) {  // of nearly equal length
        const std::int64_t count = (p.columns - at + left - 1) / left;
        pixel_sums_of<T, known>.at[count](p, taps, (const T*)x + row * p.x_row + at * p.x_step * L,
                                          (const T*)w, (T*)y + row * p.y_row + at * p.y_step * L);
        at += count;
      }
    }
  });
}

template <class T, int taps> TW_INLINE void weights_of_taps(const DepthwisePixels& p,
                                                            const std::int32_t* taps_at, const T* x,
                                                            const T* g, T* sums) {
  constexpr int L = kLanes<T>;
  typename Vec<T>::Raw sum[taps] = {};
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const T *from = x + row * p.x_row, *y = g + row * p.y_row;
    for (std::int64_t i = 0; i < p.columns; ++i, from += p.x_step * L, y += L) {
      const typename Vec<T>::Raw factor = Vec<T>::load(y).v;
#pragma GCC unroll 9
      for (int k = 0; k < taps; ++k)
        sum[k] = fma(factor, Vec<T>::load(from + taps_at[k]).v, sum[k]);
    }
  }
#pragma GCC unroll 9
  for (int k = 0; k < taps; ++k) {
    T* const to = sums + k * L;
    Vec<T>(Vec<T>::load(to).v + sum[k]).store(to);
  }
}
template <class T> void depthwise_weights(const DepthwisePixels& p, const DepthwiseTaps& taps,
                                          const void* x, const void* g, void* sums) {
  std::int64_t k = 0;
  const auto take = [&](auto count) TW_LAMBDA_INLINE {
    constexpr int n = decltype(count)::value;
    for (; k + n <= taps.taps; k += n)
      weights_of_taps<T, n>(p, taps.at + k, (const T*)x, (const T*)g, (T*)sums + k * kLanes<T>);
  };
  take(std::integral_constant<int, 9>());
  take(std::integral_constant<int, 3>());
  take(std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
