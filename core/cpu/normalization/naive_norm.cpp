// The definition of normalisation: of each set the mean, then the variance about it, then each
// element less the mean, divided by the deviation, scaled and shifted. Backward, two sums over the
// set and their shares of each element.
#include <cmath>

#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/normalization/norm.h"
#include "core/cpu/pointwise/plain.h"

namespace tw {
namespace {

using std::int64_t;

// Rows: a set is one (outer, group). Channels: it is one channel of all samples.
int64_t sets_of(const NormProblem& p, bool of_rows) {
  return of_rows ? p.outer * p.groups : p.channels;
}
// f(element, its weight's place) for all of a set.
template <class F> void each_element(const NormProblem& p, bool of_rows, int64_t set, F f) {
  if (of_rows) {
    for (int64_t c = 0; c < p.channels; ++c)
      for (int64_t i = 0; i < p.inner; ++i)
        f((set * p.channels + c) * p.inner + i, set % p.groups * p.channels + c);
  } else {
    for (int64_t n = 0; n < p.outer; ++n)
      for (int64_t i = 0; i < p.inner; ++i) f((n * p.channels + set) * p.inner + i, set);
  }
}
double elements_of(const NormProblem& p, bool of_rows) {
  return double(of_rows ? p.channels : p.outer) * double(p.inner);
}
template <class T> T element(const void* array, int64_t i, T none) {
  return array ? static_cast<const T*>(array)[i] : none;
}

template <class T> void normalize(const NormProblem& p, bool of_rows) {
  const auto* const x = static_cast<const T*>(p.x);
  const Wider<T> n = elements_of(p, of_rows);
  for (int64_t set = 0; set < sets_of(p, of_rows); ++set) {
    Wider<T> sum = 0, squares = 0;
    if (p.centered) each_element(p, of_rows, set, [&](int64_t i, int64_t) { sum += x[i]; });
    const Wider<T> mean = p.centered ? sum / n : 0;
    each_element(p, of_rows, set,
                 [&](int64_t i, int64_t) { squares += (x[i] - mean) * (x[i] - mean); });
    const Wider<T> variance = squares / n;
    const Wider<T> rstd = 1 / std::sqrt(variance + Wider<T>(p.eps));
    each_element(p, of_rows, set, [&](int64_t i, int64_t scale) {
      static_cast<T*>(p.y)[i] = static_cast<T>(
          (x[i] - mean) * rstd * element<T>(p.weight, scale, 1) + element<T>(p.bias, scale, 0));
    });
    static_cast<T*>(p.mean)[set] = static_cast<T>(mean);
    static_cast<T*>(p.rstd)[set] = static_cast<T>(rstd);
    if (p.variance) static_cast<T*>(p.variance)[set] = static_cast<T>(variance);
  }
}

// With z = (x - mean) * rstd and h = g * weight: dx = rstd * (h - mean of h - z * mean of h * z),
// without the mean of h where nothing was centred; dweight sums g * z, dbias sums g.
template <class T> void differentiate(const NormProblem& p, bool of_rows) {
  const auto *const x = static_cast<const T*>(p.x), *const g = static_cast<const T*>(p.g);
  const Wider<T> n = elements_of(p, of_rows);
  for (int64_t set = 0; set < sets_of(p, of_rows); ++set) {
    const Wider<T> mean = static_cast<const T*>(p.mean)[set];
    const Wider<T> rstd = static_cast<const T*>(p.rstd)[set];
    const auto z = [&](int64_t i) { return (x[i] - mean) * rstd; };
    const auto h = [&](int64_t i, int64_t scale) {
      return Wider<T>(g[i]) * element<T>(p.weight, scale, 1);
    };
    Wider<T> sum = 0, product = 0;
    each_element(p, of_rows, set, [&](int64_t i, int64_t scale) {
      sum += h(i, scale);
      product += h(i, scale) * z(i);
    });
    if (!p.centered) sum = 0;
    each_element(p, of_rows, set, [&](int64_t i, int64_t scale) {
      static_cast<T*>(p.dx)[i] =
          static_cast<T>(rstd * (h(i, scale) - sum / n - z(i) * (product / n)));
    });
  }
  if (!p.dweight) return;
  for (int64_t scale = 0; scale < p.groups * p.channels; ++scale) {
    Wider<T> dweight = 0, dbias = 0;
    for (int64_t outer = 0; outer < p.outer; ++outer)
      for (int64_t k = 0; k < p.inner; ++k) {
        const int64_t i = (outer * p.groups * p.channels + scale) * p.inner + k;
        const int64_t set = of_rows ? outer * p.groups + scale / p.channels : scale;
        const Wider<T> mean = static_cast<const T*>(p.mean)[set];
        const Wider<T> rstd = static_cast<const T*>(p.rstd)[set];
        dweight += g[i] * ((x[i] - mean) * rstd);
        dbias += g[i];
      }
    static_cast<T*>(p.dweight)[scale] = static_cast<T>(dweight);
    static_cast<T*>(p.dbias)[scale] = static_cast<T>(dbias);
  }
}

template <bool of_rows> void run(const void* problem) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  p.dtype == DType::float64 ? normalize<double>(p, of_rows) : normalize<float>(p, of_rows);
}
template <bool of_rows> void run_backward(const void* problem) {
  const auto& p = *static_cast<const NormProblem*>(problem);
  p.dtype == DType::float64 ? differentiate<double>(p, of_rows) : differentiate<float>(p, of_rows);
}

}  // namespace

void register_naive_norm_kernels() {
  add_definition("normalize_rows", run<true>);
  add_definition("normalize_channels", run<false>);
  add_definition("normalize_rows_backward", run_backward<true>);
  add_definition("normalize_channels_backward", run_backward<false>);
}

}  // namespace tw
