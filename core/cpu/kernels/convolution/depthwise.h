// Convolution of one channel at a time, for groups of one channel: pixels lie in the lanes.
#pragma once

namespace tw::TW_ISA_NAME {
namespace {

// Every step-th row from `y` on, of its columns the i-th of each step.
template <class T, int stride>
TW_INLINE void spread_phase(const DepthwisePlane& p, std::int64_t first, std::int64_t count,
                            std::int64_t y, std::int64_t i, const T* from, T* to) {
  using std::int64_t;
  const int64_t step = stride ? stride : p.step[1];
  const int64_t left = p.low[1] + i, right = p.source[1] - p.low[1];
  const int64_t past = right < p.size[1] ? right : p.size[1];
  const int64_t begin = left < 0 ? (step - 1 - left) / step : 0;
  const int64_t inside = (past > i ? (past - i + step - 1) / step : 0) - begin;
  const int64_t all = (p.size[1] - i + step - 1) / step;
  const int64_t rows = p.source[0], row_step = p.step[0], row = p.row;
  for (; y < count; y += row_step, to += row) {
    const int64_t source = first + y + p.low[0];
    if (source < 0 || source >= rows) {
      each_vector<T>(all, [=](int64_t at, int some)
                              TW_LAMBDA_INLINE { store_some(to + at, Vec<T>((T)0), some); });
      continue;
    }
    if (inside <= 0) continue;  // padding alone
    const T* const x = from + source * p.source[1] + left + begin * step;
    const auto copy = [=](int64_t at, int some) TW_LAMBDA_INLINE {
      store_some(to + begin + at, load_every<stride>(x + at * step, step, some), some);
    };
    if (inside < kLanes<T>)  // one mask for all rows
      copy(0, (int)inside);
    else
      each_vector<T>(inside, copy);
  }
}
template <class T> void depthwise_spread(const DepthwisePlane& p, std::int64_t first,
                                         std::int64_t count, const void* from, void* to) {
  with_stride(p.step[1], [&]<int stride>() TW_LAMBDA_INLINE {
    for (std::int64_t y = 0; y < p.step[0]; ++y)
      for (std::int64_t i = 0; i < p.step[1]; ++i)
        spread_phase<T, stride>(p, first, count, y, i, (const T*)from,
                                (T*)to + y * p.phase[0] + i * p.phase[1]);
  });
}

template <class T, int vectors>
TW_INLINE void depthwise_sums(const DepthwiseTaps& taps, const T* x, const T* w, T bias, T* sums) {
  constexpr int L = kLanes<T>;
  typename Vec<T>::Raw sum[vectors];
#pragma GCC unroll 8
  for (int i = 0; i < vectors; ++i) sum[i] = Vec<T>(bias).v;
  for (std::int64_t k = 0; k < taps.taps; ++k) {
    const typename Vec<T>::Raw factor = Vec<T>(w[k]).v;
    const T* const from = x + taps.at[k];
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) sum[i] += factor * Vec<T>::load(from + i * L).v;
  }
#pragma GCC unroll 8
  for (int i = 0; i < vectors; ++i) Vec<T>(sum[i]).store(sums + i * L);
}

// Several vectors at once: chains that hide the latency of multiply-adds, and each weight is
// broadcast once for all.
template <class T> void depthwise(std::int64_t count, const DepthwiseTaps& taps, const void* x,
                                  const void* w, double bias, void* sums) {
  constexpr int L = kLanes<T>;
  std::int64_t at = 0;
  const auto take = [&](auto vectors) TW_LAMBDA_INLINE {
    constexpr int n = decltype(vectors)::value;
    for (; count - at > (n - 1) * L; at += n * L)
      depthwise_sums<T, n>(taps, (const T*)x + at, (const T*)w, (T)bias, (T*)sums + at);
  };
  take(std::integral_constant<int, 8>());
  take(std::integral_constant<int, 4>());
  take(std::integral_constant<int, 2>());
  take(std::integral_constant<int, 1>());
}

template <class T> void depthwise_collect(const DepthwiseRows& p, const void* sums, void* result) {
  using std::int64_t;
  constexpr int L = kLanes<T>;
  const T* from = (const T*)sums;
  T* to = (T*)result;
  const int64_t rows = p.rows, columns = p.columns, row = p.row, result_row = p.result_row;
  if (p.classes == 1 && columns < L) {  // one mask for all rows
    for (int64_t y = 0; y < rows; ++y, from += row, to += result_row)
      Vec<T>::load(from).store(to, (int)columns);
    return;
  }
  for (int64_t y = 0; y < rows; ++y, from += row, to += result_row) {
    if (p.classes == 1) {
      each_vector<T>(columns, [=](int64_t at, int count) TW_LAMBDA_INLINE {
        store_some(to + at, load_some(from + at, count), count);
      });
    } else if (p.classes == 2 && L > 1) {
      using All = typename CountTo<L>::type;
      for (int64_t at = 0; at < columns; at += 2 * L) {
        const Vec<T> even = Vec<T>::load(from + at / 2);
        const Vec<T> odd = Vec<T>::load(from + p.class_size + at / 2);
        const int64_t rest = columns - at;
        store_some(to + at, alternated<T, 0>(even, odd, All()), rest < L ? (int)rest : L);
        if (rest > L)
          store_some(to + at + L, alternated<T, 1>(even, odd, All()),
                     rest < 2 * L ? (int)rest - L : L);
      }
    } else {
      for (int64_t x = 0; x < columns; ++x)
        to[x] = from[x % p.classes * p.class_size + x / p.classes];
    }
  }
}

// Several taps at once over all of g: their sums are the chains that hide the latency.
template <class T, int taps>
TW_INLINE void weights_of_taps(std::int64_t rows, std::int64_t columns, std::int64_t x_row,
                               const std::int32_t* taps_at, const T* x, const T* g, T* sums) {
  typename Vec<T>::Raw sum[taps] = {};
  for (std::int64_t row = 0; row < rows; ++row)
    each_vector<T>(columns, [&](std::int64_t at, int count) TW_LAMBDA_INLINE {
      const typename Vec<T>::Raw y = load_some(g + row * columns + at, count).v;
      const T* const from = x + row * x_row + at;
#pragma GCC unroll 9
      for (int k = 0; k < taps; ++k) sum[k] += y * load_some(from + taps_at[k], count).v;
    });
#pragma GCC unroll 9
  for (int k = 0; k < taps; ++k) {
    T* const to = sums + k * kLanes<T>;
    Vec<T>(Vec<T>::load(to).v + sum[k]).store(to);
  }
}

template <class T> void depthwise_weights(std::int64_t rows, std::int64_t columns,
                                          std::int64_t x_row, const DepthwiseTaps& taps,
                                          const void* x, const void* g, void* sums) {
  std::int64_t k = 0;
  const auto take = [&](auto count) TW_LAMBDA_INLINE {
    constexpr int n = decltype(count)::value;
    for (; k + n <= taps.taps; k += n)
      weights_of_taps<T, n>(rows, columns, x_row, taps.at + k, (const T*)x, (const T*)g,
                            (T*)sums + k * kLanes<T>);
  };
  take(std::integral_constant<int, kRegisters >= 32 ? 9 : 5>());
  take(std::integral_constant<int, 3>());
  take(std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace tw::TW_ISA_NAME
