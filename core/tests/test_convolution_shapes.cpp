// The rungs of convolutions against the definition, over random shapes, to the digits that each
// promises; and that threads change no bit.
#include "core/problems/convolution.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/cpu/convolution/depthwise.h"
#include "core/cpu/convolution/direct.h"
#include "core/cpu/convolution/im2col.h"
#include "core/cpu/convolution/naive.h"
#include "core/cpu/convolution/winograd.h"
#include "core/runtime/thread_pool.h"
#include "core/tests/check.h"
#include "core/tests/each_isa.h"

namespace tw {
namespace {

using std::int64_t;

bool any(const ConvolutionProblem&, std::string*) { return true; }
struct Rung {
  const char* name;
  bool (*accepts)(const ConvolutionProblem&, std::string*);
  void (*run)(const ConvolutionProblem&);
  double tolerance;  // float32's, relative to the largest value
};
constexpr Rung kRungs[] = {{"im2col", any, im2col_run, 3e-6},
                           {"direct", direct_accepts, direct_run, 3e-6},
                           {"winograd", winograd_accepts, winograd_run, 3e-6},
                           {"winograd4", winograd4_accepts, winograd4_run, 3e-5},
                           {"depthwise", depthwise_accepts, depthwise_run, 3e-6}};
enum Kind { any_kind, plain_3x3, depthwise };

class Shapes {
 public:
  explicit Shapes(unsigned seed) : generator_(seed) {}
  // Without addresses.
  ConvolutionProblem next(Kind kind) {
    ConvolutionProblem p{};
    p.batch = pick({1, 1, 2, 3});
    p.groups = kind == depthwise ? pick({1, 3, 17}) : pick({1, 1, 2});
    p.in = p.groups * (kind == depthwise ? 1 : pick({1, 2, 3, 5, 16, 17, 33}));
    p.out = p.groups * (kind == depthwise ? 1 : pick({1, 2, 5, 16, 20, 33, 70}));
    const int axes = kind == any_kind ? int(pick({1, 2, 2, 3})) : 2;
    for (int d = 0; d < 3; ++d) {
      p.x[d] = p.kernel[d] = p.stride[d] = p.dilation[d] = 1;
      if (d >= 3 - axes) set_axis(p, d, kind, axes);
      const int64_t reach = (p.kernel[d] - 1) * p.dilation[d] + 1;
      const int64_t behind = d < 3 - axes || kind == any_kind ? p.before[d] : pick({0, 1, 2});
      p.x[d] = std::max(p.x[d], reach - p.before[d] - behind);
      p.x[d] = std::max<int64_t>(p.x[d], 1);
      p.y[d] = (p.x[d] + p.before[d] + behind - reach) / p.stride[d] + 1;
    }
    return p;
  }

 private:
  void set_axis(ConvolutionProblem& p, int d, Kind kind, int axes) {
    p.x[d] = axes == 3 ? pick({1, 3, 6, 7}) : pick({1, 3, 7, 8, 14, 17, 21});
    p.kernel[d] = kind == plain_3x3 ? 3 : pick({1, 2, 3, 3, 5});
    p.stride[d] = kind == plain_3x3 ? 1 : pick({1, 1, 2, 3});
    p.dilation[d] = kind == plain_3x3 ? 1 : pick({1, 1, 2});
    p.before[d] = pick({0, 1, 1, 2, 3});
  }
  int64_t pick(std::initializer_list<int64_t> from) {
    return from.begin()[generator_() % from.size()];
  }
  std::mt19937 generator_;
};

template <class T> std::vector<T> random_vector(int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(n);
  for (T& v : values) v = static_cast<T>(normal(generator));
  return values;
}

template <class T> struct Arrays {
  std::vector<T> x, w, y, bias, result;
  explicit Arrays(const ConvolutionProblem& p)
      : x(random_vector<T>(p.batch * p.in * volume(p.x), 1)),
        w(random_vector<T>(p.out * (p.in / p.groups) * volume(p.kernel), 2)),
        y(random_vector<T>(p.batch * p.out * volume(p.y), 3)),
        bias(random_vector<T>(p.out, 4)) {}
  // The problem of one part, whose result nobody has written to yet.
  ConvolutionProblem part(ConvolutionProblem p, ConvolutionPart part, bool with_bias) {
    const bool forward = part == ConvolutionPart::forward;
    p.dtype = DTypeOf<T>::value;
    p.part = part;
    p.a = part == ConvolutionPart::input_gradient ? y.data() : x.data();
    p.b = part == ConvolutionPart::weight_gradient ? y.data() : w.data();
    p.bias = forward && with_bias ? bias.data() : nullptr;
    result.assign((forward ? y : part == ConvolutionPart::input_gradient ? x : w).size(), T(NAN));
    p.result = result.data();
    return p;
  }
};

template <class T> double largest_error(const std::vector<T>& got, const std::vector<T>& want) {
  double error = 0, largest = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i])) return INFINITY;
    error = std::max(error, std::abs(double(got[i]) - double(want[i])));
    largest = std::max(largest, std::abs(double(want[i])));
  }
  return error / largest;
}

constexpr ConvolutionPart kParts[] = {ConvolutionPart::forward, ConvolutionPart::input_gradient,
                                      ConvolutionPart::weight_gradient};

template <class T> void check_shape(const ConvolutionProblem& shape, bool with_bias) {
  Arrays<T> arrays(shape);
  for (const ConvolutionPart part : kParts) {
    naive_run(arrays.part(shape, part, with_bias));
    const std::vector<T> want = arrays.result;
    for (const Rung& rung : kRungs) {
      const ConvolutionProblem p = arrays.part(shape, part, with_bias);
      std::string reason;
      if (!rung.accepts(p, &reason)) {
        CHECK(!reason.empty());
        continue;
      }
      rung.run(p);
      CHECK(largest_error(arrays.result, want) < (sizeof(T) == 8 ? 1e-13 : rung.tolerance));
    }
  }
}

void check_kind(Kind kind, int count) {
  test::on_each_isa([=] {
    Shapes shapes(kind);
    for (int i = 0; i < count; ++i) {
      const ConvolutionProblem shape = shapes.next(kind);
      check_shape<float>(shape, i % 2);
      if (i % 4 == 0) check_shape<double>(shape, i % 2);
    }
  });
}

}  // namespace

TW_TEST(convolution_of_any_shape) { check_kind(any_kind, 40); }
TW_TEST(convolution_of_3x3) { check_kind(plain_3x3, 25); }
TW_TEST(convolution_of_single_channels) { check_kind(depthwise, 25); }

TW_TEST(convolution_has_the_same_bits_for_any_number_of_threads) {
  const int before = num_threads();
  ConvolutionProblem shapes[2] = {};
  for (ConvolutionProblem& p : shapes) {
    const bool single = &p != shapes;
    p.batch = 3 - single;
    p.groups = single ? 64 : 1;
    p.in = single ? 64 : 20, p.out = single ? 64 : 70;
    for (int d = 0; d < 3; ++d) {
      p.x[d] = d ? 30 : 1, p.kernel[d] = d ? 3 : 1, p.before[d] = d ? 1 : 0;
      p.stride[d] = d && single ? 2 : 1, p.dilation[d] = 1;
      p.y[d] = (p.x[d] - 1) / p.stride[d] + 1;
    }
  }
  for (const ConvolutionProblem& shape : shapes) {
    Arrays<float> arrays(shape);
    for (const ConvolutionPart part : kParts)
      for (const Rung& rung : kRungs) {
        const auto run = [&](int threads) {
          set_num_threads(threads);
          const ConvolutionProblem p = arrays.part(shape, part, true);
          if (rung.accepts(p, nullptr)) rung.run(p);
          return arrays.result;
        };
        const std::vector<float> one = run(1), three = run(3);
        CHECK(std::memcmp(one.data(), three.data(), one.size() * sizeof(float)) == 0);
      }
  }
  set_num_threads(before);
}

}  // namespace tw
