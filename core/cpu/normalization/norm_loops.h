// Normalisation: mean, variance about it, scaling; and the gradients, whose sums and results are
// made while a set lies in the cache.
#pragma once
#include "core/cpu/normalization/norm_wide_loops.h"

namespace tw::TW_ISA_NAME {
namespace {

using std::int64_t;

// A set is read from memory for its sums and from the cache for its results: meanwhile the next one
// is fetched.
template <class T> TW_INLINE void fetch(const T* p) { __builtin_prefetch(p, 0, 2); }

// Sums of two kinds of terms at once: add(at, count, a, b) adds a vector to each, whose lanes from
// count on are 0.
struct TwoSums {
  double a = 0, b = 0;
};
template <class T, class F> TW_INLINE TwoSums two_sums_of_row(int64_t n, F add) {
  constexpr int L = kLanes<T>;
  TwoSums total;
  for (int64_t at = 0; at < n;) {
    const int64_t past = n - at > 256 * L ? at + 256 * L : n;  // bounds the rounding error
    Vec<T> a[4], b[4];
    for (int i = 0; i < 4; ++i) a[i] = b[i] = Vec<T>((T)0);
    for (; at + 4 * L <= past; at += 4 * L)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) add(at + i * L, L, a[i], b[i]);
    for (; at + L <= past; at += L) add(at, L, a[0], b[0]);
    if (at < past) {
      add(at, (int)(past - at), a[1], b[1]);
      at = past;
    }
    total.a += sum_of_lanes((a[0] + a[1]) + (a[2] + a[3]));
    total.b += sum_of_lanes((b[0] + b[1]) + (b[2] + b[3]));
  }
  return total;
}

// Sums of x - near and of its squares.
template <class T> TW_INLINE TwoSums sums_about(const T* x, const NormSet& set, T near) {
  TwoSums total;
  for (int64_t i = 0; i < set.count; ++i) {
    const T* run = x + i * set.stride;
    const TwoSums sums = two_sums_of_row<T>(
        set.length, [=](int64_t at, int count, Vec<T>& a, Vec<T>& b) TW_LAMBDA_INLINE {
          Vec<T> d = load_some(run + at, count) - near;
          if (count < kLanes<T>) d = fill_after(d, count, (T)0);
          a += d;
          b = fma(d, d, b);
        });
    total.a += sums.a;
    total.b += sums.b;
  }
  return total;
}
// Writes the set's statistics, and returns whether no square left the range. Squares of distances
// from a number near the mean lose nothing to cancellation: the mean of the first few elements is
// one, and where it turns out to be further than a standard deviation away, the mean itself is
// taken in a second pass.
template <class T> TW_INLINE bool find_moments(const NormProblem& p, const NormSet& set) {
  const T* x = (const T*)p.x + set.start;
  const double n = set.elements();
  const int few = set.length < kLanes<T> ? (int)set.length : kLanes<T>;
  T near = p.centered && few ? sum_of_lanes(load_some(x, few)) / (T)few : (T)0;
  TwoSums sums = sums_about(x, set, near);
  double off = p.centered ? sums.a / n : 0;
  if (off * off > sums.b / n - off * off) {
    near = (T)((double)near + off);
    sums = sums_about(x, set, near);
    off = sums.a / n;
  }
  double variance = sums.b / n - off * off;
  if (variance < 0) variance = 0;
  ((T*)p.mean)[set.number] = (T)((double)near + off);
  ((T*)p.rstd)[set.number] = (T)(1 / __builtin_sqrt(variance + p.eps));
  if (p.variance) ((T*)p.variance)[set.number] = (T)variance;
  return is_safe_square<T>(variance + p.eps);
}

template <class T, bool stream, bool has_weight, bool has_bias>
TW_INLINE void scale_row(const NormProblem& p, const NormSet& set) {
  const T *x = (const T*)p.x + set.start, *w = (const T*)p.weight + set.scale,
          *b = (const T*)p.bias + set.scale;
  T* y = (T*)p.y + set.start;
  const Vec<T> mean = ((const T*)p.mean)[set.number], rstd = ((const T*)p.rstd)[set.number];
  each_vector<T>(set.length, [=](int64_t at, int count) TW_LAMBDA_INLINE {
    fetch(x + at + set.next);
    Vec<T> v = load_some(x + at, count) - mean, factor = rstd;
    if (has_weight) {
      v = v * rstd;
      factor = load_some(w + at, count);
    }
    put<stream>(y + at, has_bias ? fma(v, factor, load_some(b + at, count)) : v * factor, count);
  });
}
template <class T, bool stream> void normalize_plain_row(const NormProblem& p, const NormSet& set) {
  if (!find_moments<T>(p, set) && normalize_wide<T>(p, set, true)) [[unlikely]]
    return;
  if (p.weight && p.bias)
    scale_row<T, stream, true, true>(p, set);
  else if (p.weight)
    scale_row<T, stream, true, false>(p, set);
  else if (p.bias)
    scale_row<T, stream, false, true>(p, set);
  else
    scale_row<T, stream, false, false>(p, set);
}
template <class T, bool stream> void normalize_set(const NormProblem& p, const NormSet& set) {
  if (!find_moments<T>(p, set) && normalize_wide<T>(p, set, false)) [[unlikely]]
    return;
  const Vec<T> mean = ((const T*)p.mean)[set.number];
  const T rstd = ((const T*)p.rstd)[set.number];
  for (int64_t i = 0; i < set.count; ++i) {
    const T* x = (const T*)p.x + set.start + i * set.stride;
    T* y = (T*)p.y + set.start + i * set.stride;
    const int64_t scale = set.scale + i * set.scale_step;
    const Vec<T> a = rstd * scale_of<T>(p.weight, scale), b = shift_of<T>(p.bias, scale);
    each_vector<T>(set.length, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      fetch(x + at + set.next);
      put<stream>(y + at, fma(load_some(x + at, count) - mean, a, b), count);
    });
  }
}

template <class T, class SetOf, class F>
TW_INLINE void each_set(const NormProblem& p, int64_t first, int64_t past, SetOf set_of, F f) {
  for (int64_t i = first; i < past; ++i) f(p, set_of(p, i));
}
template <class T> void plain_rows(const NormProblem& p, int64_t first, int64_t past, bool stream) {
  each_set<T>(p, first, past, plain_row,
              stream ? normalize_plain_row<T, true> : normalize_plain_row<T, false>);
  if (stream) finish_streams();
}
template <class T, NormSet (*set_of)(const NormProblem&, int64_t)>
void sets_of_runs(const NormProblem& p, int64_t first, int64_t past, bool stream) {
  each_set<T>(p, first, past, set_of, stream ? normalize_set<T, true> : normalize_set<T, false>);
  if (stream) finish_streams();
}

// ---- gradients ----

// dx = gw * rstd + (x - mean) * slope + constant, from the set's sums of gw = g * weight and of
// gw * (x - mean).
template <class T> struct NormSlopes {
  T rstd, slope, constant;
  NormSlopes(const NormProblem& p, const NormSet& set, double sum, double product) {
    const double r = (double)((const T*)p.rstd)[set.number], n = set.elements();
    rstd = (T)r;
    slope = (T)(-r * r * r * product / n);
    constant = p.centered ? (T)(-r * sum / n) : (T)0;
  }
};

template <class T, bool stream, bool has_weight, bool affine>
void differentiate_row(const NormProblem& p, const NormSet& set, T* room) {
  const T *x = (const T*)p.x + set.start, *g = (const T*)p.g + set.start,
          *w = (const T*)p.weight + set.scale;
  T *dx = (T*)p.dx + set.start, *dw = room + set.scale, *db = dw + p.groups * p.channels;
  const Vec<T> mean = ((const T*)p.mean)[set.number];
  const auto weighted = [=](int64_t at, int count) TW_LAMBDA_INLINE {
    const Vec<T> v = load_some(g + at, count);
    return has_weight ? v * load_some(w + at, count) : v;
  };
  const TwoSums sums = two_sums_of_row<T>(
      set.length, [=](int64_t at, int count, Vec<T>& a, Vec<T>& b) TW_LAMBDA_INLINE {
        const Vec<T> v = weighted(at, count);
        a += v;
        b = fma(v, load_some(x + at, count) - mean, b);
      });
  const NormSlopes<T> slopes(p, set, sums.a, sums.b);
  const Vec<T> rstd = slopes.rstd, slope = slopes.slope, constant = slopes.constant;
  each_vector<T>(set.length, [=](int64_t at, int count) TW_LAMBDA_INLINE {
    fetch(x + at + set.next);
    fetch(g + at + set.next);
    const Vec<T> d = load_some(x + at, count) - mean, v = load_some(g + at, count);
    const Vec<T> gw = has_weight ? v * load_some(w + at, count) : v;
    put<stream>(dx + at, fma(gw, rstd, fma(d, slope, constant)), count);
    if (!affine) return;
    store_some(dw + at, fma(v, d * rstd, load_some(dw + at, count)), count);
    store_some(db + at, load_some(db + at, count) + v, count);
  });
}
template <class T> void move_sums(int64_t n, T* room, double* sums) {
  for (int64_t i = 0; i < n; ++i) {
    sums[i] += (double)room[i];
    room[i] = 0;
  }
}
template <class T> __attribute__((noinline)) void differentiate_wide_row(const NormProblem& p,
                                                                         const NormSet& set,
                                                                         T* room) {
  differentiate_wide<T>(p, set, true, [&](int64_t at, double g, double product) {
    if (!room) return;
    room[at] += (T)product;
    room[at + p.groups * p.channels] += (T)g;
  });
}
template <class T, bool stream>
void differentiate_row(const NormProblem& p, const NormSet& set, T* room) {
  if (is_unsafe_inverse<T>((double)((const T*)p.rstd)[set.number])) [[unlikely]]
    return differentiate_wide_row<T>(p, set, room);
  if (p.weight && room)
    differentiate_row<T, stream, true, true>(p, set, room);
  else if (p.weight)
    differentiate_row<T, stream, true, false>(p, set, room);
  else if (room)
    differentiate_row<T, stream, false, true>(p, set, room);
  else
    differentiate_row<T, stream, false, false>(p, set, room);
}
template <class T> void plain_rows_backward(const NormProblem& p, int64_t first, int64_t past,
                                            bool stream, double* sums, void* room) {
  const int64_t scales = p.groups * p.channels;
  auto* const added = sums ? (T*)room : nullptr;
  for (int64_t i = first; i < past; ++i) {
    (stream ? differentiate_row<T, true> : differentiate_row<T, false>)(p, plain_row(p, i), added);
    // No sum in T has more than 64 terms.
    if (sums && ((i - first) % (64 * p.groups) == 64 * p.groups - 1 || i + 1 == past))
      move_sums(2 * scales, added, sums);
  }
  if (stream) finish_streams();
}

// The sums of run i, of g and of g * (x - mean), go to keep(i, sums).
template <class T, bool stream, class Keep>
TW_INLINE void differentiate_set(const NormProblem& p, const NormSet& set, Keep keep) {
  if (const auto rstd = (double)((const T*)p.rstd)[set.number]; is_unsafe_inverse<T>(rstd))
      [[unlikely]] {
    int64_t run = 0, elements = 0;
    TwoSums sums;
    differentiate_wide<T>(p, set, false, [&](int64_t, double g, double product) {
      sums.a += g;
      sums.b += product / rstd;
      if (++elements < set.length) return;
      keep(run++, sums);
      sums = {};
      elements = 0;
    });
    return;
  }
  const Vec<T> mean = ((const T*)p.mean)[set.number];
  TwoSums total;
  for (int64_t i = 0; i < set.count; ++i) {
    const T *x = (const T*)p.x + set.start + i * set.stride,
            *g = (const T*)p.g + set.start + i * set.stride;
    const TwoSums sums = two_sums_of_row<T>(
        set.length, [=](int64_t at, int count, Vec<T>& a, Vec<T>& b) TW_LAMBDA_INLINE {
          const Vec<T> v = load_some(g + at, count);
          a += v;
          b = fma(v, load_some(x + at, count) - mean, b);
        });
    keep(i, sums);
    const auto w = (double)scale_of<T>(p.weight, set.scale + i * set.scale_step);
    total.a += w * sums.a;
    total.b += w * sums.b;
  }
  const NormSlopes<T> slopes(p, set, total.a, total.b);
  const Vec<T> slope = slopes.slope, constant = slopes.constant;
  for (int64_t i = 0; i < set.count; ++i) {
    const T *x = (const T*)p.x + set.start + i * set.stride,
            *g = (const T*)p.g + set.start + i * set.stride;
    T* dx = (T*)p.dx + set.start + i * set.stride;
    const Vec<T> a = slopes.rstd * scale_of<T>(p.weight, set.scale + i * set.scale_step);
    each_vector<T>(set.length, [=](int64_t at, int count) TW_LAMBDA_INLINE {
      fetch(x + at + set.next);
      fetch(g + at + set.next);
      const Vec<T> d = load_some(x + at, count) - mean;
      put<stream>(dx + at, fma(load_some(g + at, count), a, fma(d, slope, constant)), count);
    });
  }
}
template <class T, class Keep>
TW_INLINE void differentiate(const NormProblem& p, const NormSet& set, bool stream, Keep keep) {
  if (!stream) return differentiate_set<T, false>(p, set, keep);
  differentiate_set<T, true>(p, set, keep);
  finish_streams();
}
template <class T> void runs_backward(const NormProblem& p, int64_t first, int64_t past,
                                      bool stream, double* sums, void*) {
  const int64_t runs = p.outer * p.groups * p.channels;
  for (int64_t row = first; row < past; ++row) {
    const auto rstd = (double)((const T*)p.rstd)[row];
    differentiate<T>(p, row_of_runs(p, row), stream, [=](int64_t i, TwoSums of) TW_LAMBDA_INLINE {
      if (!sums) return;
      sums[row * p.channels + i] = of.b * rstd;
      sums[runs + row * p.channels + i] = of.a;
    });
  }
}
template <class T>
void channels_backward(const NormProblem& p, int64_t first, int64_t past, bool stream) {
  for (int64_t channel = first; channel < past; ++channel) {
    TwoSums total;
    differentiate<T>(p, channel_of_runs(p, channel), stream,
                     [&](int64_t, TwoSums of) TW_LAMBDA_INLINE {
                       total.a += of.a;
                       total.b += of.b;
                     });
    if (!p.dweight) continue;
    ((T*)p.dweight)[channel] = (T)(total.b * (double)((const T*)p.rstd)[channel]);
    ((T*)p.dbias)[channel] = (T)total.a;
  }
}

// ---- channels of one element an outer place: a channel a lane ----

template <class T> TW_INLINE Vec<T> lanes_or(const void* p, int64_t at, int count, T otherwise) {
  return p ? load_some((const T*)p + at, count) : Vec<T>(otherwise);
}
template <class T> TW_INLINE Vec<T> inverse_root(Vec<T> x) {
  T lanes[kLanes<T>];
  x.store(lanes);
  for (T& lane : lanes) lane = (T)(1 / __builtin_sqrt((double)lane));
  return Vec<T>::load(lanes);
}
template <class T> void normalize_columns(const NormProblem& p, int64_t at, int count) {
  const T* x = (const T*)p.x + at;
  const Vec<T> share = (T)(1 / (double)p.outer);
  const int64_t step = p.channels;
  const Vec<T> mean = share * sum_of_columns<T>(p.outer, [=](int64_t i) TW_LAMBDA_INLINE {
                        return load_some(x + i * step, count);
                      });
  const Vec<T> variance = share * sum_of_columns<T>(p.outer, [=](int64_t i) TW_LAMBDA_INLINE {
                            const Vec<T> d = load_some(x + i * step, count) - mean;
                            return ProductTerm<Vec<T>>{d, d};
                          });
  const Vec<T> rstd = inverse_root(variance + (T)p.eps);
  store_some((T*)p.mean + at, mean, count);
  store_some((T*)p.rstd + at, rstd, count);
  store_some((T*)p.variance + at, variance, count);
  const Vec<T> a = rstd * lanes_or(p.weight, at, count, (T)1),
               b = lanes_or(p.bias, at, count, (T)0);
  for (int64_t i = 0; i < p.outer; ++i)
    store_some((T*)p.y + at + i * step, fma(load_some(x + i * step, count) - mean, a, b), count);
  for (int i = 0; i < count; ++i)
    if (!is_safe_square<T>((double)variance[i] + p.eps)) [[unlikely]]
      normalize_wide<T>(p, channel_of_runs(p, at + i), false);
}
template <class T>
__attribute__((noinline)) void differentiate_wide_column(const NormProblem& p, int64_t channel) {
  TwoSums sums;
  differentiate_wide<T>(p, channel_of_runs(p, channel), false,
                        [&](int64_t, double g, double product) {
                          sums.a += g;
                          sums.b += product;
                        });
  if (!p.dweight) return;
  ((T*)p.dweight)[channel] = (T)sums.b;
  ((T*)p.dbias)[channel] = (T)sums.a;
}
template <class T> void differentiate_columns(const NormProblem& p, int64_t at, int count) {
  const T *x = (const T*)p.x + at, *g = (const T*)p.g + at;
  const int64_t step = p.channels;
  const Vec<T> mean = load_some((const T*)p.mean + at, count),
               rstd = load_some((const T*)p.rstd + at, count), share = (T)(1 / (double)p.outer);
  const Vec<T> sum = sum_of_columns<T>(
      p.outer, [=](int64_t i) TW_LAMBDA_INLINE { return load_some(g + i * step, count); });
  const Vec<T> product = rstd * sum_of_columns<T>(p.outer, [=](int64_t i) TW_LAMBDA_INLINE {
                           return ProductTerm<Vec<T>>{load_some(g + i * step, count),
                                                      load_some(x + i * step, count) - mean};
                         });
  const Vec<T> a = rstd * lanes_or(p.weight, at, count, (T)1), slope = rstd * product * share,
               constant = sum * share;
  for (int64_t i = 0; i < p.outer; ++i) {
    const Vec<T> d = load_some(x + i * step, count) - mean;
    const Vec<T> v = load_some(g + i * step, count);
    store_some((T*)p.dx + at + i * step, a * fma(-d, slope, v - constant), count);
  }
  if (p.dweight) {
    store_some((T*)p.dweight + at, product, count);
    store_some((T*)p.dbias + at, sum, count);
  }
  for (int i = 0; i < count; ++i)
    if (is_unsafe_inverse<T>((double)rstd[i])) [[unlikely]]
      differentiate_wide_column<T>(p, at + i);
}
template <class T, void (*f)(const NormProblem&, int64_t, int)>
void columns(const NormProblem& p, int64_t first, int64_t past, bool) {
  each_vector<T>(past - first,
                 [&](int64_t at, int count) TW_LAMBDA_INLINE { f(p, first + at, count); });
}

template <class T> constexpr NormLoops loops() {
  return {plain_rows<T>,
          sets_of_runs<T, row_of_runs>,
          sets_of_runs<T, channel_of_runs>,
          columns<T, normalize_columns<T>>,
          plain_rows_backward<T>,
          runs_backward<T>,
          channels_backward<T>,
          columns<T, differentiate_columns<T>>};
}

}  // namespace

extern const NormTable norm_table;
const NormTable norm_table = {loops<float>(), loops<double>()};

}  // namespace tw::TW_ISA_NAME
