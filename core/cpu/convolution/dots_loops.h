// The weights' gradient with pixels in the lanes: a tile of channels by taps, each a vector of
// sums, stays in registers over the pixels of some rows. Nothing is transposed, and lanes are added
// up once at the end.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

template <class T, int channels, int taps>
void dots_tile(const ConvolutionDots& p, const T* g, const std::int32_t* taps_at, T* sums) {
  constexpr int lanes = kLanes<T>;
  typename Vec<T>::Raw total[channels][taps] = {};
  const T* x[taps];
#pragma GCC unroll 4
  for (int t = 0; t < taps; ++t) x[t] = (const T*)p.x + taps_at[t];
  const auto add = [&](std::int64_t at, int count) TW_LAMBDA_INLINE {
    typename Vec<T>::Raw pixels[taps];
#pragma GCC unroll 4
    for (int t = 0; t < taps; ++t) pixels[t] = load_some(x[t] + at, count).v;
#pragma GCC unroll 8
    for (int c = 0; c < channels; ++c) {
      const typename Vec<T>::Raw y = load_some(g + c * p.g_plane + at, count).v;
#pragma GCC unroll 4
      for (int t = 0; t < taps; ++t) total[c][t] = fma(y, pixels[t], total[c][t]);
    }
  };
  for (std::int64_t row = 0; row < p.rows; ++row, g += p.columns) {
    std::int64_t at = 0;
    for (; at + lanes <= p.columns; at += lanes) add(at, lanes);
    if (at < p.columns) add(at, (int)(p.columns - at));
#pragma GCC unroll 4
    for (int t = 0; t < taps; ++t) x[t] += p.x_row;
  }
#pragma GCC unroll 8
  for (int c = 0; c < channels; ++c)
#pragma GCC unroll 4
    for (int t = 0; t < taps; ++t) {
      T* const sum = sums + (c * p.taps + t) * lanes;
      (Vec<T>(total[c][t]) + Vec<T>::load(sum)).store(sum);
    }
}

template <class T, int channels> void dots_channels(const ConvolutionDots& p, const T* g, T* sums) {
  const auto take = [&]<int taps>(std::int64_t t, std::integral_constant<int, taps>) {
    dots_tile<T, channels, taps>(p, g, p.taps_at + t, sums + t * kLanes<T>);
  };
  std::int64_t t = 0;
  for (; t + kTileVectors <= p.taps; t += kTileVectors)
    take(t, std::integral_constant<int, kTileVectors>());
  const auto rest = [&]<int taps>(std::integral_constant<int, taps> some) {
    if (p.taps - t == taps) take(t, some);
  };
  if constexpr (kTileVectors > 3) rest(std::integral_constant<int, 3>());
  if constexpr (kTileVectors > 2) rest(std::integral_constant<int, 2>());
  rest(std::integral_constant<int, 1>());
}

// Channels in tiles of nearly equal height.
template <class T> void add_dots(const ConvolutionDots& p) {
  constexpr std::int64_t most = tile_rows(kTileVectors);
  const std::int64_t tiles = (p.channels + most - 1) / most;
  std::int64_t channel = 0;
  const auto take = [&]<int height>(std::integral_constant<int, height>) {
    dots_channels<T, height>(p, (const T*)p.g + channel * p.g_plane,
                             (T*)p.sums + channel * p.taps * kLanes<T>);
  };
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t height = (p.channels - channel + tiles - i - 1) / (tiles - i);
    switch (height) {
      case 6: take(std::integral_constant<int, 6>()); break;
      case 5: take(std::integral_constant<int, 5>()); break;
      case 4: take(std::integral_constant<int, 4>()); break;
      case 3: take(std::integral_constant<int, 3>()); break;
      case 2: take(std::integral_constant<int, 2>()); break;
      default: take(std::integral_constant<int, 1>());
    }
    channel += height;
  }
  static_assert(most <= 6);
}

// to[i] = the sum of the lanes of vector i.
template <class T> void fold_dots(std::int64_t count, const void* sums, void* to) {
  for (std::int64_t i = 0; i < count; ++i)
    ((T*)to)[i] = sum_of_lanes(Vec<T>::load((const T*)sums + i * kLanes<T>));
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
