// Random tensors.
#include "core/ops/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/autograd/mode.h"
#include "core/base/error.h"
#include "core/cpu/random.h"
#include "core/memory/scratch.h"
#include "core/ops/copy.h"
#include "core/ops/pointwise.h"
#include "core/runtime/thread_pool.h"
#include "core/tensor/access.h"

namespace tw {

Generator& default_generator() {
  static Generator generator = {std::random_device{}()};
  return generator;
}

namespace {

thread_local DrawScope* draw_scope = nullptr;

}  // namespace

DrawScope::DrawScope(DrawLog& log, Mode mode)
    : log_(log), mode_(mode), outer_(std::exchange(draw_scope, this)) {}
DrawScope::~DrawScope() { draw_scope = outer_; }

DrawLog::Draw DrawScope::draw(Generator& generator, std::int64_t words) {
  return take(draw_scope, generator, words);
}

DrawLog::Draw DrawScope::take(DrawScope* scope, Generator& generator, std::int64_t words) {
  if (scope) return scope->next(generator, words);
  const DrawLog::Draw from = {generator.seed, generator.position, words};
  generator.position += static_cast<std::uint64_t>((words + 3) / 4 * 4);
  return from;
}

DrawLog::Draw DrawScope::next(Generator& generator, std::int64_t words) {
  if (mode_ == Mode::repeat) {
    if (at_ >= log_.draws.size() || log_.draws[at_].words != words)
      fail(ErrorKind::runtime,
           "checkpoint: the function is not deterministic: run again, it drew other random "
           "numbers");
    return log_.draws[at_++];
  }
  const DrawLog::Draw from = take(outer_, generator, words);
  log_.draws.push_back(from);
  return from;
}

namespace {

constexpr std::int64_t kGrain = 16384;

// `count` words of the stream, which moves on to the next multiple of 4.
class RandomWords {
 public:
  RandomWords(Generator& generator, std::int64_t count)
      : scratch_(static_cast<std::size_t>(count) * sizeof(std::uint32_t)) {
    const DrawLog::Draw from = DrawScope::draw(generator, count);
    philox_words(from.seed, from.position, count, data());
  }
  std::uint32_t* data() const { return scratch_.as<std::uint32_t>(); }
  std::uint64_t pair(std::int64_t i) const {
    return static_cast<std::uint64_t>(data()[2 * i]) << 32 | data()[2 * i + 1];
  }

 private:
  Scratch scratch_;
};

void check_shape(const Shape& shape, const char* op) {
  for (std::int64_t extent : shape)
    if (extent < 0) fail(ErrorKind::value, op, ": shape ", shape, " has a negative extent");
}

void check_floating(DType dtype, const char* op) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, op, ": needs a floating-point dtype, got ", name_of(dtype));
}

// Uniform in [0, 1), float32 or float64. In float32 with `bits` random bits: no more than the type
// that it is meant for has digits, else rounding to that type would give 1.
Tensor unit_uniform(Generator& generator, const Shape& shape, bool wide, int bits = 24) {
  const float unit = std::ldexp(1.0f, -bits);
  Tensor y = Tensor::empty(shape, wide ? DType::float64 : DType::float32);
  const std::int64_t count = y.count();
  const RandomWords words(generator, wide ? 2 * count : count);
  Access at;
  char* const out = at(y);
  parallel_ranges(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (wide)
        reinterpret_cast<double*>(out)[i] = static_cast<double>(words.pair(i) >> 11) * 0x1p-53;
      else
        reinterpret_cast<float*>(out)[i] =
            static_cast<float>(words.data()[i] >> (32 - bits)) * unit;
    }
  });
  return y;
}

}  // namespace

Tensor uniform(Generator& generator, const Shape& shape, double low, double high, DType dtype) {
  check_shape(shape, "uniform");
  check_floating(dtype, "uniform");
  if (!std::isfinite(high - low))
    fail(ErrorKind::value, "uniform: the range from ", low, " to ", high, " is not finite");
  GradModeGuard off(false);
  const int bits = dtype == DType::bfloat16 ? 8 : dtype == DType::float16 ? 11 : 24;
  const Tensor u = unit_uniform(generator, shape, dtype == DType::float64, bits);
  if (low == 0 && high == 1) return astype(u, dtype);
  const Tensor y = astype(u * (high - low) + low, dtype);
  // What rounds up to the end belongs to the half interval that `low` lacks.
  return where(y == Operand(high), Operand(low), y);
}

Tensor normal(Generator& generator, const Shape& shape, double mean, double deviation,
              DType dtype) {
  check_shape(shape, "normal");
  check_floating(dtype, "normal");
  if (!(deviation >= 0))
    fail(ErrorKind::value, "normal: standard deviation is negative: ", deviation);
  GradModeGuard off(false);
  const bool wide = dtype == DType::float64;
  const Tensor u = unit_uniform(generator, shape, wide), v = unit_uniform(generator, shape, wide);
  // 1 - u lies in (0, 1], where the logarithm is finite.
  const Tensor y = sqrt(log(1.0 - u) * -2.0) * cos(v * 6.283185307179586);
  return astype(mean == 0 && deviation == 1 ? y : y * deviation + mean, dtype);
}

namespace {

// Whether conversion keeps every whole number of [low, high).
bool holds(DType dtype, std::int64_t low, std::int64_t high) {
  if (is_complex(dtype)) return false;
  const double most = std::max(std::abs(static_cast<double>(low)), std::abs(high - 1.0));
  if (is_floating(dtype)) return dtype != DType::float16 || most < 65520;  // rounds to 65504
  if (is_bool(dtype)) return low >= 0 && high <= 2;
  const int bits = 8 * static_cast<int>(size_of(dtype)) - is_signed_int(dtype);
  const std::int64_t top =
      bits > 62 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  return low >= (is_signed_int(dtype) ? -top - 1 : 0) && high - 1 <= top;
}

}  // namespace

Tensor randint(Generator& generator, const Shape& shape, std::int64_t low, std::int64_t high,
               DType dtype) {
  check_shape(shape, "randint");
  if (low >= high) fail(ErrorKind::value, "randint: empty range from ", low, " to ", high);
  if (!holds(dtype, low, high))
    fail(ErrorKind::value, "randint: ", name_of(dtype), " does not hold the numbers from ", low,
         " to ", high, " - 1");
  Tensor y = Tensor::empty(shape, DType::int64);
  const RandomWords words(generator, 2 * y.count());
  const auto span = static_cast<unsigned __int128>(static_cast<std::uint64_t>(high) -
                                                   static_cast<std::uint64_t>(low));
  // The high half of a 64 x 64 bit product: bias below span / 2^64.
  {
    Access at;
    std::int64_t* const out = at.as<std::int64_t>(y);
    for (std::int64_t i = 0; i < y.count(); ++i)
      out[i] = low + static_cast<std::int64_t>(words.pair(i) * span >> 64);
  }
  return astype(y, dtype);
}

Tensor bernoulli(Generator& generator, const Shape& shape, double p, DType dtype) {
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, "bernoulli: p = ", p, " is not in [0, 1]");
  GradModeGuard off(false);
  return astype(uniform(generator, shape, 0, 1, DType::float32) < p, dtype);
}

Tensor randperm(Generator& generator, std::int64_t n) {
  if (n < 0) fail(ErrorKind::value, "randperm: n is negative: ", n);
  Tensor y = Tensor::empty({n}, DType::int64);
  Access at;
  std::int64_t* const p = at.as<std::int64_t>(y);
  std::iota(p, p + n, 0);
  const RandomWords words(generator, 2 * n);
  for (std::int64_t i = n - 1; i > 0; --i) {
    const auto span = static_cast<unsigned __int128>(i + 1);
    std::swap(p[i], p[static_cast<std::int64_t>(words.pair(i) * span >> 64)]);
  }
  return y;
}

Tensor dropout(Generator& generator, const Tensor& x, double p) {
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, "dropout: p = ", p, " is not in [0, 1]");
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, "dropout: needs a floating-point input, got ", name_of(x.dtype()));
  if (p == 0) return x;
  Tensor mask;
  {
    GradModeGuard off(false);
    mask = bernoulli(generator, x.shape(), 1 - p, x.dtype());
    if (p < 1) mask = mask * (1 / (1 - p));
  }
  return x * mask;
}

}  // namespace tw
