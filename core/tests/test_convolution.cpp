// Every rung of the three ladders of convolutions against the definition, on arrays without a
// byte to spare.
#include "core/problems/convolution.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/registry.h"
#include "core/runtime/thread_pool.h"
#include "core/tests/check.h"
#include "core/tests/each_isa.h"
#include "core/tests/random.h"

namespace tw {
namespace {

using std::int64_t;

constexpr const char* kOps[] = {"convolution", "convolution_input_gradient",
                                "convolution_weight_gradient"};

// One of two axes; a third one goes in front where `depth` is more than 1.
struct Geometry {
  int64_t batch, groups, in, out, height, width, kernel_height, kernel_width;
  int64_t stride = 1, dilation = 1, padding = 0, depth = 1, kernel_depth = 1;
};

ConvolutionProblem problem_of(const Geometry& g, DType dtype) {
  ConvolutionProblem p{};
  p.dtype = dtype;
  p.batch = g.batch, p.groups = g.groups, p.in = g.in, p.out = g.out;
  const int64_t x[] = {g.depth, g.height, g.width};
  const int64_t kernel[] = {g.kernel_depth, g.kernel_height, g.kernel_width};
  for (int d = 0; d < 3; ++d) {
    const bool space = d > 0 || g.depth > 1;
    p.x[d] = x[d], p.kernel[d] = kernel[d];
    p.stride[d] = space ? g.stride : 1;
    p.dilation[d] = space ? g.dilation : 1;
    p.before[d] = space ? g.padding : 0;
    const int64_t room = p.x[d] + 2 * p.before[d] - p.dilation[d] * (kernel[d] - 1);
    p.y[d] = (room - 1) / p.stride[d] + 1;
  }
  return p;
}

template <class T> struct Arrays {
  int64_t count;
  std::unique_ptr<T[]> values;  // no more than count, so that sanitizers see what lies behind
  explicit Arrays(int64_t count) : count(count), values(new T[count]) {}
  void fill(test::Random& random) {
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(random.real());
  }
};

// All three parts at once: each product of the sum belongs to one element of each.
struct Reference {
  std::vector<double> y, dx, dw;
};
template <class T> Reference reference_of(const ConvolutionProblem& p, const T* x, const T* w,
                                          const T* g, const T* bias) {
  const int64_t in = p.in / p.groups, out = p.out / p.groups;
  const int64_t taps = volume(p.kernel), x_size = volume(p.x), y_size = volume(p.y);
  Reference r{std::vector<double>(p.batch * p.out * y_size),
              std::vector<double>(p.batch * p.in * x_size), std::vector<double>(p.out * in * taps)};
  for (int64_t i = 0; i < int64_t(r.y.size()); ++i) r.y[i] = bias[i / y_size % p.out];
  for (int64_t i = 0; i < int64_t(r.y.size()) * in * taps; ++i) {
    const int64_t tap = i % taps, c = i / taps % in, at_y = i / taps / in;
    const int64_t o = at_y / y_size % p.out, n = at_y / y_size / p.out;
    int64_t at = 0, rest_y = at_y % y_size, rest_tap = tap, size_y = y_size, size_tap = taps;
    for (int d = 0; d < 3 && at >= 0; ++d) {
      size_y /= p.y[d], size_tap /= p.kernel[d];
      const int64_t place =
          rest_y / size_y * p.stride[d] + rest_tap / size_tap * p.dilation[d] - p.before[d];
      rest_y %= size_y, rest_tap %= size_tap;
      at = place < 0 || place >= p.x[d] ? -1 : at * p.x[d] + place;
    }
    if (at < 0) continue;
    const int64_t at_x = (n * p.in + o / out * in + c) * x_size + at;
    const int64_t at_w = (o * in + c) * taps + tap;
    r.y[at_y] += double(x[at_x]) * double(w[at_w]);
    r.dx[at_x] += double(g[at_y]) * double(w[at_w]);
    r.dw[at_w] += double(x[at_x]) * double(g[at_y]);
  }
  return r;
}

template <class T> bool close(const T* got, const std::vector<double>& want, Precision precision) {
  double most = 1, error = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    most = std::max(most, std::abs(want[i]));
    error = std::max(error, std::abs(double(got[i]) - want[i]));
  }
  const double exact = sizeof(T) == 8 ? 1e-13 : 4e-6;
  const double allowed = precision == Precision::ieee   ? exact
                         : precision == Precision::fp32 ? 1e-5
                                                        : 1e-3;
  return error <= allowed * most;  // false for NaN
}

template <class T> void check_geometry(const Geometry& geometry) {
  ConvolutionProblem p = problem_of(geometry, sizeof(T) == 8 ? DType::float64 : DType::float32);
  test::Random random;
  const int64_t ys = p.batch * p.out * volume(p.y), xs = p.batch * p.in * volume(p.x);
  Arrays<T> x(xs), w(p.out * (p.in / p.groups) * volume(p.kernel)), g(ys), bias(p.out);
  for (Arrays<T>* each : {&x, &w, &g, &bias}) each->fill(random);
  const Reference want =
      reference_of(p, x.values.get(), w.values.get(), g.values.get(), bias.values.get());
  const std::vector<double>* const results[] = {&want.y, &want.dx, &want.dw};
  for (int part = 0; part < 3; ++part) {
    p.part = static_cast<ConvolutionPart>(part);
    p.a = part == 1 ? g.values.get() : x.values.get();
    p.b = part == 2 ? g.values.get() : w.values.get();
    p.bias = part == 0 ? bias.values.get() : nullptr;
    for (const Kernel* rung : kernels_of_op(kOps[part])) {
      std::string reason;
      if (!rung->accepts(&p, &reason)) {
        CHECK(!reason.empty());
        continue;
      }
      CHECK(rung->cost_ns(&p) > 0);
      for (const int threads : {1, 2}) {
        set_num_threads(threads);
        Arrays<T> result(int64_t(results[part]->size()));
        std::fill_n(result.values.get(), result.count, std::nan(""));
        p.result = result.values.get();
        rung->run(&p);
        if (!close(result.values.get(), *results[part], rung->precision))
          test::report_failure(__FILE__, __LINE__,
                               std::string(rung->op) + " " + rung->name + " of " +
                                   std::to_string(p.in) + " to " + std::to_string(p.out));
      }
    }
  }
}

constexpr Geometry kGeometries[] = {{2, 1, 3, 5, 9, 11, 3, 3, 1, 1, 1},
                                    {1, 1, 16, 32, 13, 12, 3, 3, 1, 1, 1},
                                    {5, 1, 17, 16, 7, 7, 3, 3, 1, 1, 1},
                                    {2, 1, 3, 18, 31, 30, 7, 7, 2, 1, 3},
                                    {3, 1, 8, 17, 9, 8, 1, 1},
                                    {9, 1, 8, 17, 4, 4, 1, 1},
                                    {2, 1, 8, 16, 9, 9, 1, 1, 2},
                                    {2, 1, 16, 33, 15, 16, 3, 3, 2, 1, 1},
                                    {2, 12, 12, 12, 10, 9, 3, 3, 1, 1, 1},
                                    {2, 12, 12, 24, 17, 18, 5, 5, 2, 1, 2},
                                    {2, 3, 12, 6, 6, 7, 2, 3, 1, 2, 1},
                                    {1, 1, 4, 2, 3, 3, 3, 3, 3, 1, 4},
                                    {3, 21, 21, 21, 7, 7, 3, 3, 1, 1, 1},
                                    {2, 19, 19, 19, 14, 13, 3, 3, 2, 1, 1},
                                    {2, 5, 5, 5, 90, 70, 3, 3, 1, 1, 1},
                                    {2, 3, 3, 3, 71, 90, 3, 5, 2, 1, 1},
                                    {2, 9, 9, 9, 23, 25, 4, 3, 3, 2, 2},
                                    {2, 1, 3, 4, 1, 500, 1, 5, 1, 1, 0},
                                    {2, 1, 2, 3, 6, 7, 3, 3, 1, 1, 1, 5, 3},
                                    {1, 2, 4, 4, 7, 6, 2, 2, 2, 1, 1, 4, 1}};

TW_TEST(convolutions_match_the_definition) {
  const int before = num_threads();
  test::on_each_isa([] {
    for (const Geometry& geometry : kGeometries) {
      check_geometry<float>(geometry);
      check_geometry<double>(geometry);
    }
  });
  set_num_threads(before);
}

}  // namespace
}  // namespace tw
