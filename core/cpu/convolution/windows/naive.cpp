// The definitions of windows: of each result the loop over its window's elements, for the largest
// of them, their mean, its transpose, and the columns that convolutions are unfolded to; then of
// elements of planes that are read or added to at places.
#include <algorithm>
#include <vector>

#include "core/cpu/convolution/windows/pooling.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/pointwise/plain.h"
#include "core/problems/convolution.h"

namespace tw {
namespace {

using std::int64_t;

// Calls f(plane, result, windows along the three axes) for each result.
template <class F> void each_window(const PoolingProblem& p, F f) {
  int64_t result = 0;
  for (int64_t plane = 0; plane < p.planes; ++plane)
    for (int64_t d = 0; d < p.y[0]; ++d)
      for (int64_t h = 0; h < p.y[1]; ++h)
        for (int64_t w = 0; w < p.y[2]; ++w) {
          const PoolingWindow windows[] = {window_of(p, 0, d), window_of(p, 1, h),
                                           window_of(p, 2, w)};
          f(plane, result++, windows);
        }
}
// Calls f(place in the plane) for each element of a window that is not padding.
template <class F>
void each_element(const PoolingProblem& p, const PoolingWindow (&windows)[3], F f) {
  const auto step = [&p](int d) { return p.stride[d] ? p.dilation[d] : 1; };
  for (int64_t i = windows[0].first; i < windows[0].past; i += step(0))
    for (int64_t j = windows[1].first; j < windows[1].past; j += step(1))
      for (int64_t k = windows[2].first; k < windows[2].past; k += step(2))
        f((i * p.x[1] + j) * p.x[2] + k);
}
template <class T> const T* plane_of(const PoolingProblem& p, const void* planes, int64_t plane) {
  return static_cast<const T*>(planes) + plane * volume(p.x);
}
double count_of(const PoolingProblem& p, const PoolingWindow (&w)[3]) {
  return double(p.divisor ? p.divisor : w[0].counted * w[1].counted * w[2].counted);
}

// The first of the largest, and the last NaN where there is one.
struct Max {
  template <class T> static void run(const PoolingProblem& p) {
    each_window(p, [&](int64_t plane, int64_t result, const PoolingWindow(&windows)[3]) {
      const T* const x = plane_of<T>(p, p.from, plane);
      T best = -__builtin_inf();
      int64_t place = -1;
      each_element(p, windows, [&](int64_t i) {
        if (place < 0 || x[i] > best || x[i] != x[i]) {
          best = x[i];
          place = i;
        }
      });
      static_cast<T*>(p.to)[result] = best;
      if (p.indexed) p.indices[result] = static_cast<std::int32_t>(place);
    });
  }
};
struct Mean {
  template <class T> static void run(const PoolingProblem& p) {
    each_window(p, [&](int64_t plane, int64_t result, const PoolingWindow(&windows)[3]) {
      const T* const x = plane_of<T>(p, p.from, plane);
      Wider<T> sum = 0;
      each_element(p, windows, [&](int64_t i) { sum += x[i]; });
      static_cast<T*>(p.to)[result] = static_cast<T>(sum / count_of(p, windows));
    });
  }
};
// From the gradients of means to those of the elements.
struct Spread {
  template <class T> static void run(const PoolingProblem& p) {
    std::vector<Wider<T>> dx(p.planes * volume(p.x));
    each_window(p, [&](int64_t plane, int64_t result, const PoolingWindow(&windows)[3]) {
      const Wider<T> share = static_cast<const T*>(p.from)[result] / count_of(p, windows);
      each_element(p, windows, [&](int64_t i) { dx[plane * volume(p.x) + i] += share; });
    });
    for (std::size_t i = 0; i < dx.size(); ++i) static_cast<T*>(p.to)[i] = static_cast<T>(dx[i]);
  }
};

struct ScatterInPlanes {
  template <class T> static void run(const PlaceProblem& p) {
    auto* const to = static_cast<T*>(p.to);
    for (int64_t i = 0; i < p.planes * p.size; ++i) to[i] = 0;
    for (int64_t plane = 0; plane < p.planes; ++plane)
      for (int64_t i = plane * p.places; i < (plane + 1) * p.places; ++i)
        if (p.at[i] >= 0) to[plane * p.size + p.at[i]] += static_cast<const T*>(p.from)[i];
  }
};
struct GatherInPlanes {
  template <class T> static void run(const PlaceProblem& p) {
    const auto* const from = static_cast<const T*>(p.from);
    for (int64_t plane = 0; plane < p.planes; ++plane)
      for (int64_t i = plane * p.places; i < (plane + 1) * p.places; ++i)
        static_cast<T*>(p.to)[i] = p.at[i] >= 0 ? from[plane * p.size + p.at[i]] : 0;
  }
};

// Calls f(element of the columns, element of the image, or -1 in the padding).
template <class F> void each_column_element(const ConvolutionProblem& p, F f) {
  int64_t column = 0;
  for (int64_t plane = 0; plane < p.batch * p.in; ++plane)
    for (int64_t kh = 0; kh < p.kernel[1]; ++kh)
      for (int64_t kw = 0; kw < p.kernel[2]; ++kw)
        for (int64_t h = 0; h < p.y[1]; ++h)
          for (int64_t w = 0; w < p.y[2]; ++w) {
            const int64_t row = h * p.stride[1] + kh * p.dilation[1] - p.before[1];
            const int64_t at = w * p.stride[2] + kw * p.dilation[2] - p.before[2];
            const bool is_inside = row >= 0 && row < p.x[1] && at >= 0 && at < p.x[2];
            f(column++, is_inside ? (plane * p.x[1] + row) * p.x[2] + at : -1);
          }
}
struct Unfold {
  template <class T> static void run(const ConvolutionProblem& p) {
    each_column_element(p, [&](int64_t column, int64_t at) {
      static_cast<T*>(p.result)[column] = at < 0 ? 0 : static_cast<const T*>(p.a)[at];
    });
  }
};
struct Fold {
  template <class T> static void run(const ConvolutionProblem& p) {
    std::vector<Wider<T>> sums(p.batch * p.in * volume(p.x));
    each_column_element(p, [&](int64_t column, int64_t at) {
      if (at >= 0) sums[at] += static_cast<const T*>(p.a)[column];
    });
    for (std::size_t i = 0; i < sums.size(); ++i)
      static_cast<T*>(p.result)[i] = static_cast<T>(sums[i]);
  }
};

template <class Op, class Problem> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  p.dtype == DType::float64 ? Op::template run<double>(p) : Op::template run<float>(p);
}

}  // namespace

void register_naive_window_kernels() {
  add_definition("max_windows", run<Max, PoolingProblem>);
  add_definition("mean_windows", run<Mean, PoolingProblem>);
  add_definition("spread_windows", run<Spread, PoolingProblem>);
  add_definition("scatter_in_planes", run<ScatterInPlanes, PlaceProblem>);
  add_definition("gather_in_planes", run<GatherInPlanes, PlaceProblem>);
  add_definition("windows_to_columns", run<Unfold, ConvolutionProblem>);
  add_definition("columns_to_windows", run<Fold, ConvolutionProblem>);
}

}  // namespace tw
