#include "core/cpu/convolution/naive.h"

#include <algorithm>

#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// A place along three axes, counted off in row-major order.
struct Place {
  int64_t at[3];
};
Place place_of(int64_t index, const int64_t (&sizes)[3]) {
  return {{index / (sizes[1] * sizes[2]), index / sizes[2] % sizes[1], index % sizes[2]}};
}

// Where output `y` reads the input with kernel element `k`; -1 in the padding.
int64_t input_of(const ConvolutionProblem& p, const Place& y, const Place& k) {
  int64_t index = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t at = y.at[d] * p.stride[d] + k.at[d] * p.dilation[d] - p.before[d];
    if (at < 0 || at >= p.x[d]) return -1;
    index = index * p.x[d] + at;
  }
  return index;
}
// Which output reads input `x` with kernel element `k`; -1: none.
int64_t output_of(const ConvolutionProblem& p, const Place& x, const Place& k) {
  int64_t index = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t from = x.at[d] + p.before[d] - k.at[d] * p.dilation[d];
    if (from < 0 || from % p.stride[d] != 0 || from / p.stride[d] >= p.y[d]) return -1;
    index = index * p.y[d] + from / p.stride[d];
  }
  return index;
}

// Sums of about 30 us of work go together.
template <class F> void each_element(const ConvolutionProblem& p, int64_t count, F&& body) {
  const double terms = flops_of(p) / 2 / double(count);
  const auto grain = static_cast<int64_t>(std::max(1.0, 3e4 / (terms + 1)));
  parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

template <class T> void forward(const ConvolutionProblem& p) {
  const int64_t in = p.in / p.groups, out = p.out / p.groups;
  const int64_t x_size = volume(p.x), y_size = volume(p.y), taps = volume(p.kernel);
  auto *x = static_cast<const T*>(p.a), *w = static_cast<const T*>(p.b);
  auto* bias = static_cast<const T*>(p.bias);
  each_element(p, p.batch * p.out * y_size, [&](int64_t i) {
    const int64_t o = i / y_size % p.out, n = i / y_size / p.out;
    const Place y = place_of(i % y_size, p.y);
    const T *xs = x + (n * p.in + o / out * in) * x_size, *ws = w + o * in * taps;
    double sum = bias ? double(bias[o]) : 0.0;
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t from = input_of(p, y, place_of(k, p.kernel));
      if (from < 0) continue;
      for (int64_t c = 0; c < in; ++c) sum += double(xs[c * x_size + from]) * ws[c * taps + k];
    }
    static_cast<T*>(p.result)[i] = static_cast<T>(sum);
  });
}

template <class T> void input_gradient(const ConvolutionProblem& p) {
  const int64_t in = p.in / p.groups, out = p.out / p.groups;
  const int64_t x_size = volume(p.x), y_size = volume(p.y), taps = volume(p.kernel);
  auto *g = static_cast<const T*>(p.a), *w = static_cast<const T*>(p.b);
  each_element(p, p.batch * p.in * x_size, [&](int64_t i) {
    const int64_t c = i / x_size % p.in, n = i / x_size / p.in, first = c / in * out;
    const Place x = place_of(i % x_size, p.x);
    const T *gs = g + (n * p.out + first) * y_size, *ws = w + (first * in + c % in) * taps;
    double sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t from = output_of(p, x, place_of(k, p.kernel));
      if (from < 0) continue;
      for (int64_t o = 0; o < out; ++o)
        sum += double(gs[o * y_size + from]) * ws[o * in * taps + k];
    }
    static_cast<T*>(p.result)[i] = static_cast<T>(sum);
  });
}

template <class T> void weight_gradient(const ConvolutionProblem& p) {
  const int64_t in = p.in / p.groups, out = p.out / p.groups;
  const int64_t x_size = volume(p.x), y_size = volume(p.y), taps = volume(p.kernel);
  auto *x = static_cast<const T*>(p.a), *g = static_cast<const T*>(p.b);
  each_element(p, p.out * in * taps, [&](int64_t i) {
    const int64_t c = i / taps % in, o = i / taps / in;
    const Place k = place_of(i % taps, p.kernel);
    double sum = 0;
    for (int64_t n = 0; n < p.batch; ++n) {
      const T* xs = x + (n * p.in + o / out * in + c) * x_size;
      const T* gs = g + (n * p.out + o) * y_size;
      for (int64_t at = 0; at < y_size; ++at) {
        const int64_t from = input_of(p, place_of(at, p.y), k);
        if (from >= 0) sum += double(gs[at]) * xs[from];
      }
    }
    static_cast<T*>(p.result)[i] = static_cast<T>(sum);
  });
}

template <class T> void run(const ConvolutionProblem& p) {
  switch (p.part) {
    case ConvolutionPart::forward: return forward<T>(p);
    case ConvolutionPart::input_gradient: return input_gradient<T>(p);
    case ConvolutionPart::weight_gradient: return weight_gradient<T>(p);
  }
}

}  // namespace

// Measured at 3.8 GHz: less than what unfolding costs for a handful of terms.
double naive_cost_ns(const ConvolutionProblem& p) {
  constexpr double kOverheadNs = 100;
  const double ns_per_flop = p.part == ConvolutionPart::forward ? 1.2 : 4;
  return kOverheadNs + ns_per_flop * flops_of(p);
}
void naive_run(const ConvolutionProblem& p) {
  p.dtype == DType::float64 ? run<double>(p) : run<float>(p);
}

}  // namespace tw
