// Resampling: the rows that one of the result is made of are added up first, then elements along
// that sum.
#pragma once
#include "core/cpu/kernels/lanes.h"
#include "core/cpu/resample.h"

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
      sum += Vec<T>(rows[i].weight) * load_some(rows[i].at + at, some);
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
      sum += weight != 0 ? weight * x : (T)0;
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

}  // namespace

extern const ResampleTable resample_table;
const ResampleTable resample_table = {{resample_rows<float>}, {resample_rows<double>}};

}  // namespace tw::TW_ISA_NAME
