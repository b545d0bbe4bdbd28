// Random numbers that take any number of tries: each element has a stream of its own, which starts
// at a word of the key's stream, so that the number of threads changes nothing.
#include <cmath>
#include <new>
#include <numbers>

#include "core/base/error.h"
#include "core/cpu/families.h"
#include "core/cpu/isa.h"
#include "core/cpu/lowering.h"
#include "core/cpu/random.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::int64_t;

// SplitMix64. Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : state_(seed) {}
  // In (0, 1).
  double unit() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    return std::sqrt(-2 * std::log(unit())) * std::cos(2 * std::numbers::pi * unit());
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::uint64_t state_;
};

double poisson(double rate, Stream stream) {
  if (!(rate >= 0)) fail(ErrorKind::value, "poisson: rate ", rate, " is not at least 0");
  if (rate < 10) {  // how many exponential waits fit
    double count = 0;
    for (double rest = std::exp(-rate), product = stream.unit(); product > rest; ++count)
      product *= stream.unit();
    return count;
  }
  // PTRS: numbers of a curve that covers the distribution, by tries.
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_most = 0.9277 - 3.6224 / (b - 2);
  if (std::isinf(rate)) return rate;
  while (true) {
    const double u = stream.unit() - 0.5, v = stream.unit(), s = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / s + b) * u + rate + 0.43);
    if (s >= 0.07 && v <= v_most) return k;
    if (k < 0 || (s < 0.013 && v > s)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (s * s) + b) <=
        k * log_rate - rate - std::lgamma(k + 1))
      return k;
  }
}

double gamma(double shape, Stream stream) {
  if (!(shape > 0)) fail(ErrorKind::value, "standard_gamma: shape ", shape, " is not above 0");
  if (std::isinf(shape)) return shape;
  // Of a shape below 1: that of one more, times a power of a uniform number.
  const double factor = shape < 1 ? std::pow(stream.unit(), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = stream.normal(), t = 1 + c * x, v = t * t * t;
    if (v <= 0) continue;
    if (std::log(stream.unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * factor;
  }
}

struct Problem {
  int64_t count;
  const double* x;
  const std::uint64_t* key;
  double* y;
};
// As many elements as a thread takes at a time: some 20 us.
constexpr int64_t kGrain = 512;

template <double (*number)(double, Stream)> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  const RandomTable& table = *active_kernels().random;
  parallel_ranges(p.count, kGrain, [&](int64_t begin, int64_t end) {
    std::uint32_t words[2 * kGrain];
    const int64_t n = end - begin;
    table.blocks(p.key[0], (p.key[1] + static_cast<std::uint64_t>(2 * begin)) / 4, (2 * n + 3) / 4,
                 words);
    for (int64_t i = 0; i < n; ++i) {
      const std::uint64_t seed = std::uint64_t{words[2 * i]} << 32 | words[2 * i + 1];
      p.y[begin + i] = number(p.x[begin + i], Stream(seed));
    }
  });
}
void set_up(const Call& call, void* problem) {
  *static_cast<Problem*>(problem) = {call.in[0].count, nullptr, nullptr, nullptr};
}
void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  p.x = static_cast<const double*>(at[0]);
  p.key = static_cast<const std::uint64_t*>(at[1]);
  p.y = static_cast<double*>(at[2]);
}
double cost_ns(const void* problem) {
  return 50 + 50 * static_cast<double>(static_cast<const Problem*>(problem)->count);
}
constexpr char kHelp[] = "tries, from a stream for each element";

}  // namespace

void register_rejection_kernels() {
  add_kernel<Problem>("poisson_by", kHelp, nullptr, set_up, bind, cost_ns, run<poisson>, 3,
                      "tries");
  add_kernel<Problem>("gamma_by", kHelp, nullptr, set_up, bind, cost_ns, run<gamma>, 3, "tries");
}

}  // namespace tw
