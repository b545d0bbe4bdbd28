// Resampling: the rows that one of the result is made of are added up first, then elements along
// that sum.
#pragma once
#include "core/cpu/simd/rows.h"
#include "core/cpu/convolution/windows/resample.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

template <class T> struct WeightedRow {
  const T* at;
  T weight;
};

template <class T>
TW_INLINE void add_rows(const WeightedRow<T>* rows, int64_t count, int64_t n, T* y) {
  each_vector<T>(n, [=](int64_t at, int some) TW_LAMBDA_INLINE {
    Vec<T> sum = (T)0;
    if (count) sum = Vec<T>(rows[0].weight) * load_some(rows[0].at + at, some);
    for (int64_t i = 1; i < count; ++i)
      sum = fma(Vec<T>(rows[i].weight), load_some(rows[i].at + at, some), sum);
    store_some(y + at, sum, some);
  });
}

// The compiler makes gathers of these loops where the instruction set has them.
template <class T, int known>
TW_INLINE void add_taps(const ResampleAxis& a, const T* row, T* __restrict y) {
  const std::int32_t* const first = a.first;
  const T* const weights = (const T*)a.weights;
  const int taps = known ? known : a.taps;
  for (int64_t j = 0; j < a.to; ++j) {
    T sum = 0;
#pragma GCC unroll 4
    for (int t = 0; t < taps; ++t) {
      const T weight = weights[t * a.to + j], x = row[first[j] + t];
      sum = weight != 0 ? fma(weight, x, sum) : sum;
    }
    y[j] = sum;
  }
}
template <class T> void along(const ResampleAxis& a, const T* row, T* y) {
  switch (a.taps) {
    case 1: return add_taps<T, 1>(a, row, y);
    case 2: return add_taps<T, 2>(a, row, y);
    case 3: return add_taps<T, 3>(a, row, y);
    case 4: return add_taps<T, 4>(a, row, y);
    default: return add_taps<T, 0>(a, row, y);
  }
}

// The rows of a plane that row (d, h) of the result is made of.
template <class T>
int64_t rows_of(const ResampleProblem& p, const T* x, int64_t d, int64_t h, WeightedRow<T>* rows) {
  const ResampleAxis &a = p.axes[0], &b = p.axes[1];
  int64_t count = 0;
  for (int s = 0; s < a.taps; ++s)
    for (int t = 0; t < b.taps; ++t) {
      const T weight = ((const T*)a.weights)[s * a.to + d] * ((const T*)b.weights)[t * b.to + h];
      const int64_t row = (a.first[d] + s) * b.from + b.first[h] + t;
      if (weight != 0) rows[count++] = {x + row * p.axes[2].from, weight};
    }
  return count;
}

template <class T>
void resample_rows(const ResampleProblem& p, int64_t first, int64_t past, void* scratch) {
  const ResampleAxis &a = p.axes[0], &b = p.axes[1], &c = p.axes[2];
  auto* const rows = (WeightedRow<T>*)scratch;
  T* const sum = (T*)(rows + a.taps * b.taps);
  for (int64_t i = first; i < past; ++i) {
    const int64_t h = i % b.to, d = i / b.to % a.to, plane = i / b.to / a.to;
    const T* const x = (const T*)p.from + plane * a.from * b.from * c.from;
    T* const y = (T*)p.to + i * c.to;
    const int64_t count = rows_of(p, x, d, h, rows);
    const bool whole = count == 1 && rows[0].weight == 1 && !c.same;
    if (!whole) add_rows(rows, count, c.from, c.same ? y : sum);
    if (!c.same) along(c, whole ? rows[0].at : sum, y);
  }
}

// ---- sums at places ----

template <class T> using Places = typename Lanes<std::int32_t, kLanes<T>>::type;

template <class T> TW_INLINE Places<T> load_places(const std::int32_t* p, int count) {
  constexpr int L = kLanes<T>;
  Places<T> places = {};
  if (count == L) {
    __builtin_memcpy(&places, p, sizeof places);
    return places;
  }
  for (int i = 0; i < L; ++i) places[i] = i < count ? p[i] : -1;
  return places;
}

// Elements of a plane, 0 where there is none.
template <class T> TW_INLINE Vec<T> elements_at(const T* x, Places<T> places) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const __mmask16 there = ~_mm512_movepi32_mask((__m512i)places);
    return Vec<T>((typename Vec<T>::Raw)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), there,
                                                                 (__m512i)places, x, 4));
  } else {
    const __mmask8 there = ~_mm256_movepi32_mask((__m256i)places);
    return Vec<T>((typename Vec<T>::Raw)_mm512_mask_i32gather_pd(_mm512_setzero_pd(), there,
                                                                 (__m256i)places, x, 8));
  }
#else
  Vec<T> out = (T)0;
  for (int i = 0; i < kLanes<T>; ++i)
    if (places[i] >= 0) out.v[i] = x[places[i]];
  return out;
#endif
}

template <class T> void sum_taps(const TapsProblem& p, int64_t n, int64_t first, int64_t past) {
  const int64_t tap = n * p.taps * p.points + first;
  const std::int32_t* const places = p.places + tap;
  const T* const weights = (const T*)p.second + tap;
  for (int64_t c = 0; c < p.channels; ++c) {
    const T* const x = (const T*)p.first + (n * p.channels + c) * p.size;
    T* const y = (T*)p.made + (n * p.channels + c) * p.points + first;
    each_vector<T>(past - first, [=, &p](int64_t at, int some) TW_LAMBDA_INLINE {
      Vec<T> sum = (T)0;
      for (int64_t k = 0; k < p.taps; ++k) {
        const int64_t from = k * p.points + at;
        sum = fma(load_some(weights + from, some),
                  elements_at(x, load_places<T>(places + from, some)), sum);
      }
      store_some(y + at, sum, some);
    });
  }
}

template <class T>
void multiply_taps(const TapsProblem& p, int64_t n, int64_t first, int64_t past) {
  for (int64_t k = 0; k < p.taps; ++k) {
    const int64_t tap = (n * p.taps + k) * p.points + first;
    const std::int32_t* const places = p.places + tap;
    const T* const y = (const T*)p.first + n * p.channels * p.points + first;
    const T* const x = (const T*)p.second + n * p.channels * p.size;
    T* const made = (T*)p.made + tap;
    each_vector<T>(past - first, [=, &p](int64_t at, int some) TW_LAMBDA_INLINE {
      const Places<T> own = load_places<T>(places + at, some);
      Vec<T> sum = (T)0;
      for (int64_t c = 0; c < p.channels; ++c)
        sum = fma(load_some(y + c * p.points + at, some), elements_at(x + c * p.size, own), sum);
      store_some(made + at, sum, some);
    });
  }
}

template <class T> void spread_taps(const TapsProblem& p, int64_t first, int64_t past) {
  for (int64_t plane = first; plane < past; ++plane) {
    const int64_t n = plane / p.channels;
    const T* const y = (const T*)p.first + plane * p.points;
    T* const x = (T*)p.made + plane * p.size;
    each_vector<T>(p.size, [=](int64_t at, int some)
                               TW_LAMBDA_INLINE { store_some(x + at, Vec<T>((T)0), some); });
    for (int64_t k = 0; k < p.taps; ++k) {
      const int64_t at = (n * p.taps + k) * p.points;
      const std::int32_t* const places = p.places + at;
      const T* const weights = (const T*)p.second + at;
      for (int64_t i = 0; i < p.points; ++i)
        if (places[i] >= 0) x[places[i]] = fma(weights[i], y[i], x[places[i]]);
    }
  }
}

}  // namespace

extern const ResampleTable resample_table;
const ResampleTable resample_table = {
    {resample_rows<float>, sum_taps<float>, multiply_taps<float>, spread_taps<float>},
    {resample_rows<double>, sum_taps<double>, multiply_taps<double>, spread_taps<double>}};

}  // namespace tw::TW_ISA_NAME
