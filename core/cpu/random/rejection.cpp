// Random numbers that take any number of tries: each element has a stream of its own, which starts
// at a word of the key's stream, so that the number of threads changes nothing. And how such
// numbers move with their parameters.
#include <cmath>
#include <limits>
#include <new>
#include <numbers>

#include "core/base/error.h"
#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/isa.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/cpu/random/random.h"
#include "core/runtime/thread_pool.h"

namespace tw {
namespace {

using std::copysign, std::exp, std::expm1, std::fabs, std::floor, std::lgamma, std::log, std::log1p,
    std::sqrt;
using std::int64_t;
#include "core/problems/draw_formulas.inc"

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

double poisson(const double* x, Stream stream) {
  const double rate = *x;
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

double gamma(const double* x, Stream stream) {
  const double shape = *x;
  if (!(shape > 0)) fail(ErrorKind::value, "standard_gamma: shape ", shape, " is not above 0");
  if (std::isinf(shape)) return shape;
  // Of a shape below 1: that of one more, times a power of a uniform number.
  const double factor = shape < 1 ? std::pow(stream.unit(), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double z = stream.normal(), t = 1 + c * z, v = t * t * t;
    if (v <= 0) continue;
    if (std::log(stream.unit()) < 0.5 * z * z + d - d * v + d * std::log(v)) return d * v * factor;
  }
}

double binomial(const double* x, Stream stream) {
  const double n = x[0], p = x[1];
  if (!(n >= 0 && n == std::floor(n) && n < std::numeric_limits<double>::infinity()))
    fail(ErrorKind::value, "binomial: count ", n, " is not a whole number of at least 0");
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, "binomial: prob ", p, " is not in [0, 1]");
  return successes_of(n, p, stream);
}

// Of `parameters` operands, then a key where numbers are drawn.
constexpr int kMostParameters = 3;
struct Problem {
  int64_t count;
  const double* x[kMostParameters];
  const std::uint64_t* key;
  double* y;
};

template <int parameters> struct Element {
  double at[parameters];
  Element(const Problem& p, int64_t i) {
    for (int k = 0; k < parameters; ++k) at[k] = p.x[k][i];
  }
};

template <int parameters, double (*number)(const double*, Stream)> void run(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  const RandomTable& table = *active_kernels().random;
  parallel_ranges(p.count, thresholds::kRejectionGrain, [&](int64_t begin, int64_t end) {
    std::uint32_t words[2 * thresholds::kRejectionGrain];
    const int64_t n = end - begin;
    table.blocks(p.key[0], (p.key[1] + static_cast<std::uint64_t>(2 * begin)) / 4, (2 * n + 3) / 4,
                 words);
    for (int64_t i = 0; i < n; ++i) {
      const std::uint64_t seed = std::uint64_t{words[2 * i]} << 32 | words[2 * i + 1];
      p.y[begin + i] = number(Element<parameters>(p, begin + i).at, Stream(seed));
    }
  });
}
// The same, one after the other.
template <int parameters, double (*number)(const double*, Stream)>
void run_in_turn(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  for (int64_t i = 0; i < p.count; ++i) {
    const std::uint64_t word = p.key[1] + static_cast<std::uint64_t>(2 * i);
    std::uint32_t words[4];
    scalar_kernels().random->blocks(p.key[0], word / 4, 1, words);
    const std::uint64_t seed = std::uint64_t{words[word % 4]} << 32 | words[word % 4 + 1];
    p.y[i] = number(Element<parameters>(p, i).at, Stream(seed));
  }
}
template <int parameters, double (*slope)(const double*)> void run_slopes(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  parallel_ranges(p.count, thresholds::kRejectionGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) p.y[i] = slope(Element<parameters>(p, i).at);
  });
}
template <int parameters, double (*slope)(const double*)>
void run_slopes_in_turn(const void* problem) {
  const auto& p = *static_cast<const Problem*>(problem);
  for (int64_t i = 0; i < p.count; ++i) p.y[i] = slope(Element<parameters>(p, i).at);
}
double of_gamma(const double* x) { return gamma_slope(x[0], x[1]); }
double of_beta(const double* x) { return beta_slope(x[0], x[1], x[2]); }

void set_up(const Call& call, void* problem) {
  new (problem) Problem{.count = call.out[0].count, .x = {}, .key = nullptr, .y = nullptr};
}
template <int parameters, bool by_key> void bind(void* problem, void* const* at) {
  Problem& p = *static_cast<Problem*>(problem);
  for (int i = 0; i < parameters; ++i) p.x[i] = static_cast<const double*>(at[i]);
  if (by_key) p.key = static_cast<const std::uint64_t*>(at[parameters]);
  p.y = static_cast<double*>(at[parameters + by_key]);
}
double cost_ns(const void* problem) {
  return 50 + 50 * static_cast<double>(static_cast<const Problem*>(problem)->count);
}
template <int parameters, double (*number)(const double*, Stream)> void add_draws(const char* op) {
  add_kernel<Problem>(op, "tries, from a stream for each element",
                      {.set_up = set_up,
                       .bind = bind<parameters, true>,
                       .cost_ns = cost_ns,
                       .run = run<parameters, number>,
                       .contiguous = (2u << parameters) - 1,
                       .name = "tries"});
  add_definition(op, run_in_turn<parameters, number>);
}
template <int parameters, double (*slope)(const double*)> void add_slopes(const char* op) {
  add_kernel<Problem>(op, "series and continued fractions",
                      {.set_up = set_up,
                       .bind = bind<parameters, false>,
                       .cost_ns = cost_ns,
                       .run = run_slopes<parameters, slope>,
                       .contiguous = (1u << parameters) - 1,
                       .name = "series"});
  add_definition(op, run_slopes_in_turn<parameters, slope>);
}

}  // namespace

void register_rejection_kernels() {
  add_draws<1, poisson>("poisson_by");
  add_draws<1, gamma>("gamma_by");
  add_draws<2, binomial>("binomial_by");
  add_slopes<2, of_gamma>("gamma_slope");
  add_slopes<3, of_beta>("beta_slope");
}

}  // namespace tw
