// Softmax and its relatives along rows and down columns: maximum, sum of exponentials, scaling.
#pragma once
#include "core/base/thresholds.h"
#include "core/cpu/math/softmax_weights.h"
#include "core/cpu/normalization/softmax.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// NaN is passed over: it comes back with the sum of the exponentials.
template <class T> TW_INLINE T max_of_row(int64_t n, const T* x) {
  constexpr int L = kLanes<T>;
  if (n < L) return max_of_lanes(fill_after(Vec<T>::load(x, (int)n), (int)n, (T)-kInfinity));
  Vec<T> best[4];
  for (auto& b : best) b = Vec<T>((T)-kInfinity);
  int64_t at = 0;
  for (; at + 4 * L <= n; at += 4 * L)
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) best[c] = larger(Vec<T>::load(x + at + c * L), best[c]);
  for (; at + L <= n; at += L) best[0] = larger(Vec<T>::load(x + at), best[0]);
  best[1] = larger(Vec<T>::load(x + n - L), best[1]);
  return max_of_lanes(larger(larger(best[0], best[1]), larger(best[2], best[3])));
}

// A slope given, softmax is a gradient of logsumexp, slope * exp(x - y): beside +infinity that is 0
// and not NaN, unless an element is NaN. For what has come out as NaN, x's elements `step` apart.
template <class T> void mend_beside_infinity(int64_t n, int64_t step, const T* x, T slope, T* y) {
  bool infinite = false;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i * step] != x[i * step]) return;
    infinite |= x[i * step] == (T)kInfinity;
  }
  for (int64_t i = 0; infinite && i < n; ++i)
    if (x[i * step] != (T)kInfinity) y[i * step] = 0 * slope;
}

// slope * softmax(x); returns the sum of exponentials, which go to `e`, y itself or, where y is
// written around the caches, a buffer.
template <class T, bool stream>
TW_INLINE T softmax_row(int64_t n, const T* x, T slope, T* e, T* y) {
  const T top = max_of_row(n, x);
  const T sum = (T)sum_of_row<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
    const Vec<T> v = exp_below(load_some(x + at, count) - top);
    store_some(e + at, v, count);
    return v;
  });
  const Vec<T> scale = slope / sum;
  each_vector<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
    __builtin_prefetch(x + at + n, 0, 2);  // of the next row, while this one's results are written
    put<stream>(y + at, load_some(e + at, count) * scale, count);
  });
  return sum;
}
template <class T> TW_INLINE T short_softmax_row(int count, const T* x, T slope, T* y) {
  const Vec<T> v = fill_after(Vec<T>::load(x, count), count, (T)-kInfinity);
  const Vec<T> e = exp_below(v - max_of_lanes(v));
  const T sum = (T)sum_of_lanes(e);
  (e * (slope / sum)).store(y, count);
  return sum;
}
// Longest row whose exponentials stay in the first-level cache beside the row itself.
template <class T> inline constexpr int64_t kBuffered = thresholds::kHalfL1Bytes / sizeof(T);

template <class T> void softmax_rows(int64_t rows, int64_t n, const void* x, const void* slopes,
                                     void* y, bool stream) {
  auto* in = (const T*)x;
  auto* out = (T*)y;
  alignas(64) T e[kBuffered<T>];
  stream = stream && n <= kBuffered<T>;
  for (int64_t i = 0; i < rows; ++i, in += n, out += n) {
    const T slope = slopes ? ((const T*)slopes)[i] : 1;
    const T sum = n <= kLanes<T> ? short_softmax_row((int)n, in, slope, out)
                  : stream       ? softmax_row<T, true>(n, in, slope, e, out)
                                 : softmax_row<T, false>(n, in, slope, out, out);
    if (slopes && sum != sum) mend_beside_infinity(n, 1, in, slope, out);
  }
  if (stream) finish_streams();
}

// Of rows that fit, so many are taken together that one vector logarithm serves all of them.
template <class T> TW_INLINE int rows_together(int64_t n, int64_t rows) {
  const int64_t m = n * kLanes<T> <= thresholds::kJointRows ? kLanes<T> : 1;
  return (int)(m < rows ? m : rows);
}
template <class T, bool stream>
TW_INLINE void log_softmax_rows_together(int m, int64_t n, const T* x, T* y) {
  T top[kLanes<T>], log_sum[kLanes<T>] = {};
  for (int i = 0; i < m; ++i) {
    const T* row = x + i * n;
    const Vec<T> shift = top[i] = max_of_row(n, row);
    log_sum[i] = (T)sum_of_row<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      return exp_below(load_some(row + at, count) - shift);
    });
  }
  log(Vec<T>::load(log_sum)).store(log_sum);
  for (int i = 0; i < m; ++i) {
    const T* row = x + i * n;
    T* out = y + i * n;
    const Vec<T> first = top[i], second = log_sum[i];
    each_vector<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      put<stream>(out + at, load_some(row + at, count) - first - second, count);
    });
  }
}
template <class T>
void log_softmax_rows(int64_t rows, int64_t n, const void* x, void* y, bool stream) {
  for (int64_t i = 0; i < rows;) {
    const int m = rows_together<T>(n, rows - i);
    auto* in = (const T*)x + i * n;
    auto* out = (T*)y + i * n;
    if (stream)
      log_softmax_rows_together<T, true>(m, n, in, out);
    else
      log_softmax_rows_together<T, false>(m, n, in, out);
    i += m;
  }
  if (stream) finish_streams();
}

// From the maximum and the sum of e^(x - shift_of(top)). An infinite maximum is the result itself,
// unless the sum shows that there is a NaN.
template <class T> TW_INLINE Vec<T> shift_of(Vec<T> top) { return where(isinf(top), 0, top); }
template <class T> TW_INLINE Vec<T> lse_of(Vec<T> top, Vec<T> sum) {
  const Mask<T> plain = {~isinf(top).v | (sum != sum).v};
  return where(plain, log(sum) + top, top);
}
template <class T> TW_INLINE Vec<T> exp_at_most_one(Vec<T> x) {
  return exp_below(at_most(x, (T)0));
}

template <class T> void logsumexp_rows(int64_t rows, int64_t n, const void* x, void* y, bool) {
  for (int64_t i = 0; i < rows;) {
    const int m = rows_together<T>(n, rows - i);
    T top[kLanes<T>] = {}, sum[kLanes<T>] = {};
    for (int k = 0; k < m; ++k) {
      auto* row = (const T*)x + (i + k) * n;
      top[k] = max_of_row(n, row);
      const Vec<T> shift = __builtin_isinf(top[k]) ? 0 : top[k];
      sum[k] = (T)sum_of_row<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
        return exp_at_most_one(load_some(row + at, count) - shift);
      });
    }
    store_some((T*)y + i, lse_of(Vec<T>::load(top), Vec<T>::load(sum)), m);
    i += m;
  }
}

template <class T> void softmax_backward_rows(int64_t rows, int64_t n, const void* y, const void* g,
                                              bool one_row, void* dx) {
  for (int64_t i = 0; i < rows; ++i) {
    auto *yi = (const T*)y + i * n, *gi = (const T*)g + (one_row ? 0 : i * n);
    auto* di = (T*)dx + i * n;
    const Vec<T> dot = (T)sum_of_row<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      return ProductTerm<Vec<T>>{load_some(yi + at, count), load_some(gi + at, count)};
    });
    each_vector<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      __builtin_prefetch(yi + at + n, 0, 2);
      if (!one_row) __builtin_prefetch(gi + at + n, 0, 2);
      store_some(di + at, load_some(yi + at, count) * (load_some(gi + at, count) - dot), count);
    });
  }
}
template <class T> void log_softmax_backward_rows(int64_t rows, int64_t n, const void* y,
                                                  const void* g, bool one_row, void* dx) {
  for (int64_t i = 0; i < rows; ++i) {
    auto *yi = (const T*)y + i * n, *gi = (const T*)g + (one_row ? 0 : i * n);
    auto* di = (T*)dx + i * n;
    const Vec<T> sum = (T)sum_of_row<T>(
        n, [=](int64_t at, int count) TW_LAMBDA_INLINE { return load_some(gi + at, count); });
    each_vector<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      const Vec<T> p = exp_below(load_some(yi + at, count));
      store_some(di + at, fma(-p, sum, load_some(gi + at, count)), count);
    });
  }
}

// Columns: strips of them, row by row, so that rows are read one after the other and what is known
// of the columns stays in the caches. A vector of columns at a time, down all rows, takes twice as
// long where rows are a power of two apart: their lines share a few sets of the cache.

inline constexpr int64_t kStripColumns = thresholds::kWideStrip;
// One value for each column of a strip.
template <class T> struct Columns {
  alignas(64) T value[kStripColumns];
  TW_INLINE Vec<T> at(int64_t j, int count) const { return load_some(value + j, count); }
  TW_INLINE void set(int64_t j, Vec<T> v, int count) { store_some(value + j, v, count); }
  TW_INLINE void fill(int64_t width, T with) {
    for (int64_t j = 0; j < width; ++j) value[j] = with;
  }
};

// Calls f(first, width) for each strip.
template <class F> TW_INLINE void each_strip(int64_t width, F f) {
  for (int64_t j = 0; j < width; j += kStripColumns)
    f(j, width - j < kStripColumns ? width - j : kStripColumns);
}
template <class T>
void max_of_columns(int64_t n, int64_t width, int64_t inner, const T* x, Columns<T>& top) {
  top.fill(width, (T)-kInfinity);
  for (int64_t i = 0; i < n; ++i)
    each_vector<T>(width, [&, row = x + i * inner](int64_t j, int count) TW_LAMBDA_INLINE {
      top.set(j, larger(load_some(row + j, count), top.at(j, count)), count);
    });
}
// Sums of term(element, j, count), where element is that of row i and column j.
template <class T, class F>
TW_INLINE void sum_columns(int64_t n, int64_t width, int64_t inner, Columns<T>& sum, F term) {
  sum.fill(width, 0);
  for (int64_t i = 0; i < n;) {
    const int64_t past = n - i > 64 ? i + 64 : n;  // bounds the rounding error as in rows
    Columns<T> block;
    block.fill(width, 0);
    for (; i < past; ++i)
      each_vector<T>(width, [&](int64_t j, int count) TW_LAMBDA_INLINE {
        block.set(j, block.at(j, count) + term(i * inner + j, j, count), count);
      });
    each_vector<T>(width, [&](int64_t j, int count) TW_LAMBDA_INLINE {
      sum.set(j, sum.at(j, count) + block.at(j, count), count);
    });
  }
}
template <class T, class F>
TW_INLINE void each_of_columns(int64_t n, int64_t width, int64_t inner, F f) {
  for (int64_t i = 0; i < n; ++i)
    each_vector<T>(width,
                   [&](int64_t j, int count) TW_LAMBDA_INLINE { f(i * inner + j, j, count); });
}

template <class T> void softmax_columns(int64_t n, int64_t width, int64_t inner, const void* x,
                                        const void* slopes, void* y) {
  each_strip(width, [=](int64_t first, int64_t some) TW_LAMBDA_INLINE {
    auto* in = (const T*)x + first;
    auto* out = (T*)y + first;
    Columns<T> top, sum;
    max_of_columns(n, some, inner, in, top);
    sum_columns(n, some, inner, sum, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      const Vec<T> e = exp_below(load_some(in + at, count) - top.at(j, count));
      store_some(out + at, e, count);
      return e;
    });
    each_vector<T>(some, [&](int64_t j, int count) TW_LAMBDA_INLINE {
      const Vec<T> slope = slopes ? load_some((const T*)slopes + first + j, count) : Vec<T>((T)1);
      sum.set(j, slope / sum.at(j, count), count);
    });
    each_of_columns<T>(n, some, inner, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      store_some(out + at, load_some(out + at, count) * sum.at(j, count), count);
    });
    for (int64_t j = 0; slopes && j < some; ++j)
      if (sum.value[j] != sum.value[j])
        mend_beside_infinity(n, inner, in + j, ((const T*)slopes)[first + j], out + j);
  });
}
template <class T>
void log_softmax_columns(int64_t n, int64_t width, int64_t inner, const void* x, void* y) {
  each_strip(width, [=](int64_t first, int64_t some) TW_LAMBDA_INLINE {
    auto* in = (const T*)x + first;
    auto* out = (T*)y + first;
    Columns<T> top, sum;
    max_of_columns(n, some, inner, in, top);
    sum_columns(n, some, inner, sum, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      return exp_below(load_some(in + at, count) - top.at(j, count));
    });
    each_vector<T>(some, [&](int64_t j, int count)
                             TW_LAMBDA_INLINE { sum.set(j, log(sum.at(j, count)), count); });
    each_of_columns<T>(n, some, inner, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      const Vec<T> shifted = load_some(in + at, count) - top.at(j, count);
      store_some(out + at, shifted - sum.at(j, count), count);
    });
  });
}
template <class T>
void logsumexp_columns(int64_t n, int64_t width, int64_t inner, const void* x, void* y) {
  each_strip(width, [=](int64_t first, int64_t some) TW_LAMBDA_INLINE {
    auto* in = (const T*)x + first;
    Columns<T> top, shift, sum;
    max_of_columns(n, some, inner, in, top);
    each_vector<T>(some, [&](int64_t j, int count)
                             TW_LAMBDA_INLINE { shift.set(j, shift_of(top.at(j, count)), count); });
    sum_columns(n, some, inner, sum, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      return exp_at_most_one(load_some(in + at, count) - shift.at(j, count));
    });
    each_vector<T>(some, [&](int64_t j, int count) TW_LAMBDA_INLINE {
      store_some((T*)y + first + j, lse_of(top.at(j, count), sum.at(j, count)), count);
    });
  });
}
template <class T> void softmax_backward_columns(int64_t n, int64_t width, int64_t inner,
                                                 const void* y, const void* g, bool one_row,
                                                 void* dx) {
  each_strip(width, [=](int64_t first, int64_t some) TW_LAMBDA_INLINE {
    auto *yj = (const T*)y + first, *gj = (const T*)g + first;
    auto* to = (T*)dx + first;
    Columns<T> dot;
    sum_columns(n, some, inner, dot, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      return ProductTerm<Vec<T>>{load_some(yj + at, count),
                                 load_some(gj + (one_row ? j : at), count)};
    });
    each_of_columns<T>(n, some, inner, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      const Vec<T> d = load_some(gj + (one_row ? j : at), count) - dot.at(j, count);
      store_some(to + at, load_some(yj + at, count) * d, count);
    });
  });
}
template <class T> void log_softmax_backward_columns(int64_t n, int64_t width, int64_t inner,
                                                     const void* y, const void* g, bool one_row,
                                                     void* dx) {
  each_strip(width, [=](int64_t first, int64_t some) TW_LAMBDA_INLINE {
    auto *yj = (const T*)y + first, *gj = (const T*)g + first;
    auto* to = (T*)dx + first;
    Columns<T> sum;
    sum_columns(n, some, inner, sum, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      return load_some(gj + (one_row ? j : at), count);
    });
    each_of_columns<T>(n, some, inner, [&](int64_t at, int64_t j, int count) TW_LAMBDA_INLINE {
      const Vec<T> p = exp_below(load_some(yj + at, count));
      const Vec<T> d = fma(-p, sum.at(j, count), load_some(gj + (one_row ? j : at), count));
      store_some(to + at, d, count);
    });
  });
}

template <class T> void cross_entropy_norms(int64_t rows, int64_t n, const void* x, void* norms) {
  for (int64_t i = 0; i < rows;) {
    const int m = rows_together<T>(n, rows - i);
    T top[kLanes<T>] = {}, sum[kLanes<T>] = {};
    for (int k = 0; k < m; ++k) {
      auto* row = (const T*)x + (i + k) * n;
      top[k] = max_of_row(n, row);
      const Vec<T> shift = top[k];
      sum[k] = (T)sum_of_row<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
        return exp_below(load_some(row + at, count) - shift);
      });
    }
    const Vec<T> log_sums = log(Vec<T>::load(sum));
    auto* to = (T*)norms + 2 * i;
    for (int k = 0; k < m; ++k) {
      to[2 * k] = top[k];
      to[2 * k + 1] = log_sums[k];
    }
    i += m;
  }
}
template <class T> void cross_entropy_backward_rows(const CrossEntropyProblem& problem,
                                                    int64_t first, int64_t past, const void* norms,
                                                    const void* g, int64_t g_step, void* dx) {
  const int64_t n = problem.classes;
  for (int64_t i = first; i < past; ++i) {
    auto* x = (const T*)problem.x + i * n;
    auto* d = (T*)dx + i * n;
    const int64_t target = problem.targets[i];
    const bool ignored = target == problem.ignore_index;
    const T top = ((const T*)norms)[2 * i], log_sum = ((const T*)norms)[2 * i + 1];
    const T scale = ((const T*)g)[i * g_step];
    each_vector<T>(n, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      const Vec<T> p = exp_below((load_some(x + at, count) - top) - log_sum);
      store_some(d + at, ignored ? Vec<T>((T)0) : p * scale, count);
    });
    if (!ignored) d[target] -= scale;
  }
}

template <class T> constexpr SoftmaxLoops loops() {
  return {log_softmax_rows<T>,
          logsumexp_rows<T>,
          log_softmax_columns<T>,
          logsumexp_columns<T>,
          softmax_rows<T>,
          softmax_columns<T>,
          softmax_backward_rows<T>,
          log_softmax_backward_rows<T>,
          softmax_backward_columns<T>,
          log_softmax_backward_columns<T>,
          cross_entropy_norms<T>,
          cross_entropy_backward_rows<T>};
}

}  // namespace

extern const SoftmaxTable softmax_table;
const SoftmaxTable softmax_table = {loops<float>(), loops<double>()};

}  // namespace tw::TW_ISA_NAME
