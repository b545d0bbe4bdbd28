// Random tensors.
#include "core/ops/random/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/autograd/capture.h"
#include "core/autograd/checkpoint.h"
#include "core/autograd/op_node.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/random/draws.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/copy/read.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"
#include "core/runtime/registry.h"

namespace tw {

Generator& default_generator() {
  static Generator generator = {std::random_device{}()};
  return generator;
}

namespace {

void check_shape(const Shape& shape, const char* op) {
  for (std::int64_t extent : shape)
    if (extent < 0) fail(ErrorKind::value, op, ": shape ", shape, " has a negative extent");
}

// 32-bit words of a stream that so many numbers take.
std::int64_t words_for(std::int64_t numbers, bool wide) {
  return (Checked("random numbers", numbers) * (wide ? 2 : 1)).get();
}

void check_floating(DType dtype, const char* op) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, op, ": needs a floating-point dtype, got ", name_of(dtype));
}

// ---- keys: where a draw begins in its stream ----

// Attributes: the generator's address, and how many 32-bit words are drawn.
struct DrawProblem {
  Generator* generator;
  std::int64_t words;
  std::uint64_t* key;
};
void run_draw(const void* problem) {
  const auto& p = *static_cast<const DrawProblem*>(problem);
  p.key[0] = p.generator->seed;
  p.key[1] = p.generator->position;
  p.generator->position += static_cast<std::uint64_t>((p.words + 3) / 4 * 4);
}
constexpr Kernel kDrawKernel = {.op = "draw",
                                .name = "host",
                                .device = "cpu",
                                .precision = Precision::ieee,
                                .help = "moves a generator on; runs on the host",
                                .accepts = nullptr,
                                .cost_ns = nullptr,
                                .run = run_draw};
constexpr Lowering kDrawLowering = {
    .op = "draw",
    .problem_bytes = sizeof(DrawProblem),
    .refuses = nullptr,
    .set_up =
        [](const Call& call, void* problem) {
          *static_cast<DrawProblem*>(problem) = {reinterpret_cast<Generator*>(call.attributes[0]),
                                                 call.attributes[1], nullptr};
        },
    .bind =
        [](void* problem, void* const* at) {
          static_cast<DrawProblem*>(problem)->key = static_cast<std::uint64_t*>(at[0]);
        }};
[[maybe_unused]] const bool registered =
    (register_kernel(&kDrawKernel), register_lowering(&kDrawLowering), true);

Tensor draw_anew(Generator& generator, std::int64_t words) {
  if (&generator != &default_generator()) refuse_in_capture("a generator of one's own is used");
  return apply(kDraw, {},
               AttributeList(2).set(0, reinterpret_cast<Attribute>(&generator)).set(1, words));
}
}  // namespace

Tensor draw(Generator& generator, std::int64_t words) {
  if (!modes.checkpoint) return draw_anew(generator, words);
  return modes.checkpoint->key(words, [&] { return draw_anew(generator, words); });
}

namespace {

// ---- numbers of a key ----

// Attributes: shape, dtype.
void infer_made(Call& call, Result* results) {
  results[0].shape = call.attributes.dims(0);
  results[0].dtype = call.attributes.dtype(1);
}
void infer_integers(Call& call, Result* results) {
  results[0].shape = call.attributes.dims(0);
  results[0].dtype = DType::int64;
}
void infer_samples(Call& call, Result* results) {
  results[0].shape = {call.in[0].size(0), call.attributes[0]};
  results[0].dtype = DType::int64;
}
void infer_dropout(Call& call, Result* results) {
  results[0].like = 0;
  results[0].dtype = call.in[0].dtype;
}

void dropout_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const double keep = 1 - use.attributes.real(0);
  const Tensor u = apply(
      kRandomUniform, {use.in[1]},
      AttributeList(3).set_list(0, x.shape()).set(1, attribute_of(DType::float32)).set(2, 24));
  out[0] = where(u < keep, x * (keep > 0 ? 1 / keep : 1.0), x * 0.0);
}

}  // namespace

Tensor unit_uniform(Generator& generator, const Shape& shape, bool wide, int bits) {
  const std::int64_t count = element_count(shape);
  return apply(kRandomUniform, {draw(generator, words_for(count, wide))},
               AttributeList(3)
                   .set_list(0, shape)
                   .set(1, attribute_of(wide ? DType::float64 : DType::float32))
                   .set(2, bits));
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

Tensor uniform(Generator& generator, const Shape& shape, double low, double high, DType dtype) {
  check_shape(shape, "uniform");
  check_floating(dtype, "uniform");
  if (!std::isfinite(high - low))
    fail(ErrorKind::value, "uniform: the range from ", low, " to ", high, " is not finite");
  if (low > high) fail(ErrorKind::value, "uniform: low ", low, " is above high ", high);
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
  const bool wide = dtype == DType::float64;
  const std::int64_t count = element_count(shape);
  const Tensor y = apply(kRandomNormal, {draw(generator, words_for(count, wide))},
                         AttributeList(2).set_list(0, shape).set(
                             1, attribute_of(wide ? DType::float64 : DType::float32)));
  return astype(mean == 0 && deviation == 1 ? y : y * deviation + mean, dtype);
}

namespace {

// Attributes: size, dtype, generator. Of a tensor of probabilities, shape and type are its own.
void bernoulli_body(const Use& use, Tensor* out) {
  const Operand& p = use.in[0];
  if (!p.is_tensor() && use.attributes.none(0))
    fail(ErrorKind::type, "bernoulli: missing argument 'size', the shape of the result");
  check_chances(p, "bernoulli");
  const DType dtype = p.is_tensor() ? p.tensor.dtype() : default_dtype();
  const Shape shape = use.attributes.none(0) ? p.tensor.shape() : use.attributes.dims(0);
  const Tensor chances = uniform(generator_of(use.attributes, 2), shape, 0, 1, DType::float32);
  const Tensor y = chances < p;
  if (!(y.shape() == shape))
    fail(ErrorKind::value, "bernoulli: probabilities of shape ", p.tensor.shape(),
         " do not broadcast to ", shape);
  out[0] = astype(y, use.attributes.dtype(1, dtype));
}

}  // namespace

void check_chances(const Operand& p, const char* op) {
  if (!p.is_tensor()) {
    if (!(p.scalar.re >= 0 && p.scalar.re <= 1))
      fail(ErrorKind::value, op, ": p = ", p.scalar.re, " is not in [0, 1]");
  } else if (shows_values(p.tensor)) {
    const Tensor x = p.tensor.detached();
    if (holds_any(logical_not((x >= Operand(0)) & (x <= Operand(1))), op))
      fail(ErrorKind::value, op, ": a probability is not in [0, 1]");
  }
}

Generator& generator_of(Attributes attributes, int i) {
  return attributes.none(i) ? default_generator() : *reinterpret_cast<Generator*>(attributes[i]);
}

namespace {

// Attributes: num_samples, replacement, generator. What cannot be drawn is refused before the
// generator moves on.
void multinomial_body(const Use& use, Tensor* out) {
  const Tensor& given = use.in[0].tensor;
  const Attribute samples = use.attributes[0];
  const bool again = use.attributes.flag(1);
  if (given.rank() != 1 && given.rank() != 2)
    fail(ErrorKind::value, "multinomial: expected probabilities (classes,) or (n, classes), got ",
         given.shape());
  if (!is_floating(given.dtype()))
    fail(ErrorKind::type, "multinomial: needs floating-point probabilities, got ",
         name_of(given.dtype()));
  if (samples < 1)
    fail(ErrorKind::value, "multinomial: num_samples must be above 0, got ", samples);
  const Tensor rows = given.rank() == 1 ? expand_dims(given, 0) : given;
  const Tensor p = apply(kCheckedProbabilities, {astype(rows, DType::float64)},
                         AttributeList(2).set(0, samples).set(1, again));
  const Shape shape = again ? Shape{p.size(0), samples} : p.shape();
  const Tensor u = unit_uniform(generator_of(use.attributes, 2), shape, true);
  const Tensor y =
      apply(again ? kMultinomialAgain : kMultinomialOnce, {p, u}, AttributeList(1).set(0, samples));
  out[0] = given.rank() == 1 ? owned(squeeze(y, {0})) : y;
}

}  // namespace

constexpr OpRecord kDraw = {
    .name = "draw",
    .signature = "(generator: Generator, words: int) -> Tensor",
    .help =
        "The place in a generator's stream from which numbers are drawn; the generator moves on.",
    .infer = [](Call&, Result* results) {
      results[0].shape = {2};
      results[0].dtype = DType::uint64;
    }};
constexpr OpRecord kRandomUniform = {
    .name = "random_uniform",
    .signature = "(key: Tensor, shape: Shape, dtype: dtype, bits: int) -> Tensor",
    .help = "Uniform numbers in [0, 1) of a key.",
    .infer = infer_made};
constexpr OpRecord kRandomNormal = {
    .name = "random_normal",
    .signature = "(key: Tensor, shape: Shape, dtype: dtype) -> Tensor",
    .help =
        "Normal numbers of a key, mean 0 and deviation 1. Source: Box and Muller, A note on the "
        "generation of random normal deviates, 1958.",
    .infer = infer_made};
constexpr OpRecord kRandomIntegers = {
    .name = "random_integers",
    .signature = "(key: Tensor, shape: Shape, low: int, high: int) -> Tensor",
    .help = "Whole numbers in [low, high) of a key.",
    .infer = infer_integers};
constexpr OpRecord kRandomPermutation = {.name = "random_permutation",
                                         .signature = "(key: Tensor, shape: Shape) -> Tensor",
                                         .help = "0 to n - 1 in the order of a key.",
                                         .infer = infer_integers};
constexpr OpRecord kDropoutBy = {
    .name = "dropout_by",
    .signature = "(x: Tensor, key: Tensor, p: float) -> Tensor",
    .help = "Zeroes elements with probability p by the numbers of a key and scales the rest.",
    .infer = infer_dropout,
    .body = dropout_body,
    .vjp = [](Vjp& v) { v.give(0, apply(kDropoutBy, {v.g(), v.in(1)}, v.attributes())); },
    .reads = {{.inputs = 2}}};

constexpr OpRecord kCheckedProbabilities = {
    .name = "checked_probabilities",
    .signature = "(probabilities: Tensor, num_samples: int, replacement: bool) -> Tensor",
    .help = "Rows of probabilities that so many samples can be drawn from.",
    .flags = kConstant,
    .infer = [](Call&, Result* results) {
      results[0].like = 0;
      results[0].dtype = DType::float64;
    }};
constexpr OpRecord kMultinomialAgain = {
    .name = "multinomial_again",
    .signature = "(probabilities: Tensor, uniform: Tensor, num_samples: int) -> Tensor",
    .help = "Classes of rows of probabilities by uniform numbers, one for each sample.",
    .flags = kConstant,
    .infer = infer_samples};
constexpr OpRecord kMultinomialOnce = {
    .name = "multinomial_once",
    .signature = "(probabilities: Tensor, uniform: Tensor, num_samples: int) -> Tensor",
    .help =
        "Classes of rows of probabilities, none twice in a row, by uniform numbers, one for each "
        "class. Source: Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006.",
    .flags = kConstant,
    .infer = infer_samples};

constexpr OpRecord kUniform = {
    .name = "uniform",
    .signature =
        "(low: float, high: float, size: Shape, dtype: dtype | None = None, generator: "
        "Generator | None = None, requires_grad: grad = False, device: Device | None = "
        "None) -> Tensor",
    .help =
        "Uniform numbers in [low, high).\n"
        "Shapes: the result has the shape size.\n"
        "Types: floating. Result: dtype, by default the default floating type.\n"
        "Raises ValueError for a negative extent and for a low above high.\n"
        "Source: NumPy's numpy.random.uniform.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] =
          uniform(generator_of(use.attributes, 4), use.attributes.dims(2), use.attributes.real(0),
                  use.attributes.real(1), use.attributes.dtype(3, default_dtype()));
    }};
constexpr OpRecord kNormal = {
    .name = "normal",
    .signature =
        "(mean: float, std: float, size: Shape, dtype: dtype | None = None, generator: "
        "Generator | None = None, requires_grad: grad = False, device: Device | None = "
        "None) -> Tensor",
    .help =
        "Normally distributed numbers (Box and Muller, 1958).\n"
        "Shapes: the result has the shape size.\n"
        "Types: floating. Result: dtype, by default the default floating type.\n"
        "Raises ValueError for a negative extent and for a negative std.\n"
        "Source: PyTorch's torch.normal.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] =
          normal(generator_of(use.attributes, 4), use.attributes.dims(2), use.attributes.real(0),
                 use.attributes.real(1), use.attributes.dtype(3, default_dtype()));
    }};
#define TW_STANDARD                                                                                \
  "(size: Shape = (), *, dtype: dtype | None = None, generator: Generator | None = None, device: " \
  "Device | None = None, requires_grad: grad = False) -> Tensor"
constexpr OpRecord kRand = {
    .name = "rand",
    .signature = TW_STANDARD,
    .help =
        "Uniform numbers in [0, 1).\n"
        "Shapes: the result has the shape size.\n"
        "Types: floating. Result: dtype, by default the default floating type.\n"
        "Raises ValueError for a negative extent.\n"
        "Source: PyTorch's torch.rand.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] = uniform(generator_of(use.attributes, 2), use.attributes.dims(0), 0, 1,
                       use.attributes.dtype(1, default_dtype()));
    }};
constexpr OpRecord kRandn = {
    .name = "randn",
    .signature = TW_STANDARD,
    .help =
        "Normally distributed numbers of mean 0 and variance 1.\n"
        "Shapes: the result has the shape size.\n"
        "Types: floating. Result: dtype, by default the default floating type.\n"
        "Raises ValueError for a negative extent.\n"
        "Source: PyTorch's torch.randn.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      out[0] = normal(generator_of(use.attributes, 2), use.attributes.dims(0), 0, 1,
                      use.attributes.dtype(1, default_dtype()));
    }};
#undef TW_STANDARD
constexpr OpRecord kRandint = {
    .name = "randint",
    .signature =
        "(low: int, high: int, size: Shape, dtype: dtype = int64, generator: Generator | "
        "None = None, device: Device | None = None) -> Tensor",
    .help =
        "Whole numbers in [low, high).\n"
        "Shapes: the result has the shape size.\n"
        "Types: bool, integer, floating. Result: dtype.\n"
        "Raises ValueError for a negative extent, an empty range and a type that does not hold the "
        "numbers.\n"
        "Source: PyTorch's torch.randint.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Attribute low = use.attributes[0], high = use.attributes[1];
      const Shape shape = use.attributes.dims(2);
      const DType dtype = use.attributes.dtype(3);
      check_shape(shape, "randint");
      if (is_complex(dtype))
        fail(ErrorKind::type, "randint: needs a real dtype, got ", name_of(dtype));
      if (low >= high) fail(ErrorKind::value, "randint: empty range from ", low, " to ", high);
      if (!holds(dtype, low, high))
        fail(ErrorKind::value, "randint: ", name_of(dtype), " does not hold the numbers from ", low,
             " to ", high, " - 1");
      const Tensor key =
          draw(generator_of(use.attributes, 4), words_for(element_count(shape), true));
      out[0] = astype(apply(kRandomIntegers, {key},
                            AttributeList(3).set_list(0, shape).set(1, low).set(2, high)),
                      dtype);
    }};
constexpr OpRecord kRandperm = {
    .name = "randperm",
    .signature =
        "(n: int, generator: Generator | None = None, device: Device | None = None) -> Tensor",
    .help =
        "0 to n - 1 in random order (Fisher and Yates).\n"
        "Shapes: the result is (n,).\n"
        "Types: int64.\n"
        "Raises ValueError for a negative n.\n"
        "Source: PyTorch's torch.randperm.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Attribute n = use.attributes[0];
      if (n < 0) fail(ErrorKind::value, "randperm: n is negative: ", n);
      const Tensor key = draw(generator_of(use.attributes, 1), words_for(n, true));
      out[0] = apply(kRandomPermutation, {key}, AttributeList(1).set_list(0, Shape{n}));
    }};
constexpr OpRecord kBernoulli = {
    .name = "bernoulli",
    .signature =
        "(p: Operand, size: Shape | None = None, dtype: dtype | None = None, generator: Generator "
        "| None = None, device: Device | None = None) -> Tensor",
    .help =
        "1 with probability p, else 0. Where p is a tensor, shape and type are its own unless told "
        "otherwise.\n"
        "Raises ValueError for a p outside [0, 1]; in a capture and on other devices than the CPU "
        "elements of a tensor are not looked at.\n"
        "Shapes: p of any shape, which the result has unless size gives another; size is needed "
        "for a number.\n"
        "Types: all; a p that is a tensor is floating. Result: dtype, by default p's type, for a "
        "number the default floating type.\n"
        "Raises TypeError for a number without a size.\n"
        "Source: PyTorch's torch.bernoulli.",
    .flags = kFunction | kConstant,
    .body = bernoulli_body};
constexpr OpRecord kMultinomial = {
    .name = "multinomial",
    .signature =
        "(probabilities: Tensor, num_samples: int, replacement: bool = False, generator: Generator "
        "| None = None) -> Tensor",
    .help =
        "Class numbers (int64) drawn from rows of probabilities (n, classes) or from (classes,), "
        "which need not add up to 1.\n"
        "Without replacement no class is drawn twice in a row. Raises ValueError for probabilities "
        "that are negative, not finite or all 0, and for more samples without replacement than "
        "classes that have one.\n"
        "Shapes: probabilities (classes,) or (n, classes); the result is (num_samples,) or (n, "
        "num_samples).\n"
        "Types: floating. Result: int64.\n"
        "Source: PyTorch's torch.multinomial.",
    .flags = kFunction,
    .body = multinomial_body};
constexpr OpRecord kDropout = {
    .name = "dropout",
    .signature =
        "(x: Tensor, p: float = 0.5, training: bool = True, inplace: in_place = False, "
        "generator: Generator | None = None) -> Tensor",
    .help =
        "Zeroes elements with probability p and scales the rest by 1 / (1 - p), while training\n"
        "(Srivastava et al., 2014).\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: floating. Result: the same type.\n"
        "Raises ValueError for a p outside [0, 1].\n"
        "Source: PyTorch's torch.nn.functional.dropout.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      const double p = use.attributes.real(0);
      out[0] = x;
      if (!use.attributes.flag(1)) return;
      if (!(p >= 0 && p <= 1)) fail(ErrorKind::value, "dropout: p = ", p, " is not in [0, 1]");
      if (!is_floating(x.dtype()))
        fail(ErrorKind::type, "dropout: needs a floating-point input, got ", name_of(x.dtype()));
      if (p == 0) return;
      const Tensor key = draw(generator_of(use.attributes, 2), x.count());
      out[0] = apply(kDropoutBy, {x, key}, AttributeList(1).set(0, attribute_of(p)));
    }};

}  // namespace tw
