// The definitions of scans: along each line of an array, what the elements up to each one come to.
// Also linear recurrences, and the gradients of products and extrema.
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/cpu/copy/plain.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/reduce/reduce.h"
#include "core/cpu/reduce/scan.h"

namespace tw {
namespace {

using std::int64_t;

// Calls f(place of the first element, step to the next) for each line of an array [outer, n,
// inner].
template <class F> void each_line(int64_t outer, int64_t n, int64_t inner, F f) {
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j) f(i * n * inner + j, inner);
}
template <class F> void each_line(const ScanLayout& s, bool reverse, F f) {
  each_line(s.outer, s.n, s.inner, [&](int64_t first, int64_t step) {
    reverse ? f(first + (s.n - 1) * step, -step) : f(first, step);
  });
}

// What is known of the elements so far. Real numbers are joined in a wider type, whole ones in 64
// bits modulo 2^64.
template <class T> struct Running {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, Wider<T>>;
  Wide sum = std::is_integral_v<T> ? Wide(0) : Wide(-0.0);  // a first -0.0 is kept
  Wide product = 1;
  T result(ScanKind kind) const { return static_cast<T>(kind == ScanKind::sum ? sum : product); }
  void add(T x) {
    sum += static_cast<Wide>(x);
    product *= static_cast<Wide>(x);
  }
};
template <class Part> struct Running<Complex<Part>> {
  Complex<double> sum = {-0.0, -0.0}, product = {1, 0};
  Complex<Part> result(ScanKind kind) const {
    const Complex<double>& z = kind == ScanKind::sum ? sum : product;
    return {static_cast<Part>(z.re), static_cast<Part>(z.im)};
  }
  void add(Complex<Part> x) {
    sum = {sum.re + x.re, sum.im + x.im};
    product = {product.re * x.re - product.im * x.im, product.re * x.im + product.im * x.re};
  }
};
// The logarithm of a sum of exponentials, relative to the largest exponent.
struct RunningLogSum {
  double top = -__builtin_inf(), sum = 0;  // top: NaN where there was one
  void add(double x) {
    if (top != top) return;
    if (x != x || x > top) {
      sum = __builtin_isinf(top) ? 1 : sum * std::exp(top - x) + 1;
      top = x;
    } else if (!__builtin_isinf(top)) {
      sum += std::exp(x - top);
    }
  }
  double result() const {
    const bool is_number = top == top && !__builtin_isinf(top);
    return is_number ? top + std::log(sum) : top;
  }
};

template <class T> void scan(const ScanProblem& p) {
  const auto* const x = reinterpret_cast<const T*>(p.x);
  auto* const y = reinterpret_cast<T*>(p.y);
  each_line(p.layout, p.reverse, [&](int64_t at, int64_t step) {
    Running<T> running;
    RunningLogSum log_sum;
    for (int64_t i = 0; i < p.layout.n; ++i, at += step) {
      if constexpr (std::is_floating_point_v<T>)
        if (p.kind == ScanKind::log_sum) {
          log_sum.add(x[at]);
          y[at] = static_cast<T>(log_sum.result());
          continue;
        }
      running.add(x[at]);
      y[at] = running.result(p.kind);
    }
  });
}

// y = a * (the one before) + b.
template <class T> void recur(const RecurrenceProblem& p) {
  const auto *const a = reinterpret_cast<const T*>(p.a), *const b = reinterpret_cast<const T*>(p.b);
  auto* const y = reinterpret_cast<T*>(p.y);
  each_line(p.layout, p.reverse, [&](int64_t at, int64_t step) {
    if constexpr (is_complex_number<T>) {
      double re = 0, im = 0;
      for (int64_t i = 0; i < p.layout.n; ++i, at += step) {
        const double before = re;
        re = re * a[at].re - im * a[at].im + b[at].re;
        im = im * a[at].re + before * a[at].im + b[at].im;
        y[at] = {static_cast<decltype(y[at].re)>(re), static_cast<decltype(y[at].re)>(im)};
      }
    } else {
      Wider<T> value = 0;
      for (int64_t i = 0; i < p.layout.n; ++i, at += step) {
        value = i == 0 ? Wider<T>(b[at]) : a[at] * value + b[at];
        y[at] = static_cast<T>(value);
      }
    }
  });
}

// Of equal ones the last; a NaN stays, and a later one takes its place.
template <class T> void find_extremes(const ExtremesProblem& p) {
  const auto* const x = static_cast<const T*>(p.x);
  each_line(p.layout, false, [&](int64_t at, int64_t step) {
    T best = p.layout.n ? x[at] : T();
    int64_t place = 0;
    for (int64_t i = 0; i < p.layout.n; ++i, at += step) {
      const bool is_better = p.largest ? x[at] >= best : x[at] <= best;
      if (x[at] != x[at] || (best == best && is_better)) {
        best = x[at];
        place = i;
      }
      static_cast<T*>(p.y)[at] = best;
      p.places[at] = place;
    }
  });
}

// g times the product of all other factors: of those before and those behind.
template <class T> void differentiate_product(const GradientProblem& p) {
  const auto* const x = static_cast<const T*>(p.x);
  int64_t result = 0;
  each_line(p.outer, p.n, p.inner, [&](int64_t first, int64_t step) {
    std::vector<long double> behind(p.n + 1, 1);
    for (int64_t i = p.n - 1; i >= 0; --i) behind[i] = behind[i + 1] * x[first + i * step];
    long double before = 1;
    for (int64_t i = 0; i < p.n; ++i) {
      const T g = static_cast<const T*>(p.g)[result];
      static_cast<T*>(p.dx)[first + i * step] = static_cast<T>(g * (before * behind[i + 1]));
      before *= x[first + i * step];
    }
    ++result;
  });
}
// The elements that equal the extremum share g.
template <class T> void differentiate_extremum(const GradientProblem& p) {
  const auto* const x = static_cast<const T*>(p.x);
  int64_t result = 0;
  each_line(p.outer, p.n, p.inner, [&](int64_t first, int64_t step) {
    const T y = static_cast<const T*>(p.y)[result], g = static_cast<const T*>(p.g)[result];
    int64_t equal = 0;
    for (int64_t i = 0; i < p.n; ++i) equal += x[first + i * step] == y;
    const T other = equal == 0 ? static_cast<T>(__builtin_nan("")) : T(0);  // y is NaN
    for (int64_t i = 0; i < p.n; ++i)
      static_cast<T*>(p.dx)[first + i * step] = x[first + i * step] == y ? g / T(equal) : other;
    ++result;
  });
}

void run(const void* problem) {
  const auto& p = *static_cast<const ScanProblem*>(problem);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (is_complex_number<T> || (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>))
      scan<T>(p);
  });
}
void run_recurrence(const void* problem) {
  const auto& p = *static_cast<const RecurrenceProblem*>(problem);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (is_complex_number<T> || std::is_floating_point_v<T>) recur<T>(p);
  });
}
void run_extremes(const void* problem) {
  const auto& p = *static_cast<const ExtremesProblem*>(problem);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_arithmetic_v<T>) find_extremes<T>(p);
  });
}
template <Gradient gradient> void run_gradient(const void* problem) {
  const auto& p = *static_cast<const GradientProblem*>(problem);
  visit(p.dtype, [&](auto sample) {
    using T = decltype(sample);
    if constexpr (std::is_floating_point_v<T>)
      gradient == Gradient::prod ? differentiate_product<T>(p) : differentiate_extremum<T>(p);
  });
}

}  // namespace

void register_naive_scan_kernels() {
  for (const char* op : {"running_sum", "running_product", "running_log_sum"})
    add_definition(op, run);
  add_definition("linear_recurrence", run_recurrence);
  for (const char* op : {"cummax", "cummin"}) add_definition(op, run_extremes);
  add_definition("prod_backward", run_gradient<Gradient::prod>);
  add_definition("extremum_backward", run_gradient<Gradient::extremum>);
}

}  // namespace tw
