// Random tensors of further distributions, and those that are like another tensor.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/random/draws.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/shape/view.h"

namespace tw {
namespace {

using std::int64_t;

// ---- by formulas of uniform numbers ----

// What a call makes: its attributes from `first` on are size, dtype, generator.
struct Wanted {
  Shape shape;
  DType dtype;
  Generator& generator;
  bool wide() const { return dtype == DType::float64; }
  // In (0, 1].
  Tensor unit() const { return 1 - unit_uniform(generator, shape, wide()); }
};
Wanted wanted(const Use& use, int first, DType otherwise = default_dtype()) {
  const Shape shape = use.attributes.dims(first);
  for (const int64_t extent : shape)
    if (extent < 0)
      fail(ErrorKind::value, use.op.name, ": shape ", shape, " has a negative extent");
  const DType dtype = use.attributes.dtype(first + 1, otherwise);
  if (!is_floating(dtype) && !is_integer(otherwise))
    fail(ErrorKind::type, use.op.name, ": needs a floating-point dtype, got ", name_of(dtype));
  return {shape, dtype, generator_of(use.attributes, first + 2)};
}

// In its type, in which all draws are finite.
Tensor drawn_in(const Tensor& x, DType dtype) {
  constexpr double kLargest16 = 65504;  // of float16; wider types are as wide as the formulas'
  return astype(dtype == DType::float16 ? clip(x, -kLargest16, kLargest16) : x, dtype);
}

void exponential_body(const Use& use, Tensor* out) {
  const double rate = use.attributes.real(0);
  if (!(rate > 0)) fail(ErrorKind::value, "exponential: lambd must be above 0, got ", rate);
  const Wanted w = wanted(use, 1);
  out[0] = drawn_in(-log(w.unit()) / rate, w.dtype);
}
void cauchy_body(const Use& use, Tensor* out) {
  const double median = use.attributes.real(0), sigma = use.attributes.real(1);
  if (!(sigma > 0)) fail(ErrorKind::value, "cauchy: sigma must be above 0, got ", sigma);
  const Wanted w = wanted(use, 2);
  out[0] = drawn_in(tan((w.unit() - 0.5) * std::numbers::pi) * sigma + median, w.dtype);
}
void log_normal_body(const Use& use, Tensor* out) {
  const double deviation = use.attributes.real(1);
  if (!(deviation > 0)) fail(ErrorKind::value, "log_normal: std must be above 0, got ", deviation);
  const Wanted w = wanted(use, 2);
  const DType type = w.wide() ? DType::float64 : DType::float32;
  out[0] =
      drawn_in(exp(normal(w.generator, w.shape, use.attributes.real(0), deviation, type)), w.dtype);
}
// How many trials it takes until one succeeds.
void geometric_body(const Use& use, Tensor* out) {
  const double p = use.attributes.real(0);
  if (!(p > 0 && p <= 1)) fail(ErrorKind::value, "geometric: p = ", p, " is not in (0, 1]");
  const Wanted w = wanted(use, 1, DType::int64);
  const Tensor u = 1 - unit_uniform(w.generator, w.shape, true);
  out[0] = astype(maximum(ceil(log(u) / std::log1p(-p)), 1), w.dtype);
}

// ---- by rejection, from a stream for each element ----

void infer_like(Call&, Result* results) {
  results[0].like = 0;
  results[0].dtype = DType::float64;
}
void check_floating(const Use& use, const Tensor& x) {
  if (!is_floating(x.dtype()))
    fail(ErrorKind::type, use.op.name, ": needs a floating-point input, got ", name_of(x.dtype()));
}
// Attributes: generator.
template <const OpRecord& by> void rejected_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  check_floating(use, x);
  const Tensor key = draw(generator_of(use.attributes, 0), 2 * x.count());
  out[0] = astype(apply(by, {astype(x, DType::float64), key}), x.dtype());
}
// Attributes: generator.
void binomial_body(const Use& use, Tensor* out) {
  const Tensor &count = use.in[0].tensor, &prob = use.in[1].tensor;
  check_floating(use, count);
  check_floating(use, prob);
  const Shape shape = broadcast_shapes(count.shape(), prob.shape(), use.op.name);
  const auto wide = [&](const Tensor& x) { return broadcast_to(astype(x, DType::float64), shape); };
  const Tensor key = draw(generator_of(use.attributes, 0), 2 * element_count(shape));
  out[0] = astype(apply(kBinomialBy, {wide(count), wide(prob), key}),
                  promote(count.dtype(), prob.dtype()));
}

// A number moves with its parameter so that the value of the distribution function stays.
void gamma_vjp(Vjp& v) {
  const Tensor y = v.out(), least = maximum(y, std::numeric_limits<double>::min());
  v.give(0, v.g() * y * apply(kGammaSlope, {v.in(0), log(least)}));
}
[[noreturn]] void refuse_second_derivative(Vjp& v) {
  fail(ErrorKind::not_implemented, v.record().name,
       ": draws have first derivatives alone; take create_graph=False");
}

// ---- like another tensor ----

DType dtype_like(const Use& use, int attribute) {
  return use.attributes.dtype(attribute, use.in[0].tensor.dtype());
}
// Attributes: low, high, dtype, generator.
void randint_like_body(const Use& use, Tensor* out) {
  const Attribute first = use.attributes[0];
  const bool alone = use.attributes.none(1);
  const Shape& shape = use.in[0].tensor.shape();
  AttributeList attributes(5);
  attributes.set(0, alone ? 0 : first).set(1, alone ? first : use.attributes[1]).set_list(2, shape);
  out[0] = apply(kRandint, {},
                 attributes.set(3, attribute_of(dtype_like(use, 2))).set(4, use.attributes[3]));
}

#define TW_MADE                                                                   \
  "size: Shape, dtype: dtype | None = None, generator: Generator | None = None, " \
  "device: Device | None = None, requires_grad: grad = False) -> Tensor"
#define TW_LIKE                                                                       \
  "dtype: dtype | None = None, generator: Generator | None = None, device: Device | " \
  "None = None, requires_grad: grad = False) -> Tensor"

constexpr OpRecord drawn(const char* name, const char* signature, const char* help,
                         void (*body)(const Use&, Tensor*)) {
  return {.name = name, .signature = signature, .help = help, .flags = kFunction, .body = body};
}

}  // namespace

constexpr OpRecord kExponential = drawn(
    "exponential", "(lambd: float, " TW_MADE,
    "Exponentially distributed numbers of mean 1 / lambd.\nRaises ValueError for lambd <= 0 and "
    "for a negative extent.\nShapes: the result has the shape size.\nTypes: floating. Result: "
    "dtype, by default the default floating type.\nSource: PyTorch's torch.Tensor.exponential_.",
    exponential_body);
constexpr OpRecord kCauchy =
    drawn("cauchy", "(median: float, sigma: float, " TW_MADE,
          "Numbers of Cauchy's distribution.\nRaises ValueError for sigma <= 0 and for a negative "
          "extent.\nShapes: the result has the shape size.\nTypes: floating. Result: dtype, by "
          "default the default floating type.\nSource: PyTorch's torch.Tensor.cauchy_.",
          cauchy_body);
constexpr OpRecord kLogNormal = drawn(
    "log_normal", "(mean: float, std: float, " TW_MADE,
    "Numbers whose logarithms are normally distributed.\nRaises ValueError for std <= 0 and for a "
    "negative extent.\nShapes: the result has the shape size.\nTypes: floating. Result: dtype, by "
    "default the default floating type.\nSource: PyTorch's torch.Tensor.log_normal_.",
    log_normal_body);
constexpr OpRecord kGeometric = drawn(
    "geometric",
    "(p: float, size: Shape, dtype: dtype = int64, generator: Generator | None = None, "
    "device: Device | None = None) -> Tensor",
    "Numbers of trials until one succeeds, each with probability p: 1, 2, ...\nRaises ValueError "
    "for p outside (0, 1] and for a negative extent.\nShapes: the result has the shape "
    "size.\nTypes: all. Result: dtype.\nSource: PyTorch's torch.Tensor.geometric_.",
    geometric_body);

constexpr OpRecord kPoissonBy = {
    .name = "poisson_by",
    .signature = "(rates: Tensor, key: Tensor) -> Tensor",
    .help =
        "Counts of Poisson's distribution of rates, by a key. Source: Hoermann, The transformed "
        "rejection method for generating Poisson random variables, 1993.",
    .flags = kConstant,
    .infer = infer_like};
constexpr OpRecord kGammaBy = {
    .name = "gamma_by",
    .signature = "(shapes: Tensor, key: Tensor) -> Tensor",
    .help =
        "Numbers of gamma distributions of scale 1, by a key. Source: Marsaglia and Tsang, A "
        "simple method for generating gamma variables, 2000.",
    .infer = infer_like,
    .vjp = gamma_vjp,
    .reads = {{.inputs = 1, .results = 1}}};
constexpr OpRecord kBinomialBy = {
    .name = "binomial_by",
    .signature = "(counts: Tensor, chances: Tensor, key: Tensor) -> Tensor",
    .help =
        "How many of counts succeed, each with its chance, by a key. Source: Hoermann, The "
        "generation of binomial random variates, 1993; below 10 expected ones by inversion.",
    .flags = kConstant,
    .infer = infer_like};
constexpr OpRecord kGammaSlope = {
    .name = "gamma_slope",
    .signature = "(shapes: Tensor, logarithms: Tensor) -> Tensor",
    .help =
        "Of numbers of gamma distributions of scale 1, given their logarithms: how these move with "
        "the shape. Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, "
        "2018.",
    .infer = infer_like,
    .vjp = refuse_second_derivative,
    .reads = {{}, {}}};
constexpr OpRecord kBetaSlope = {
    .name = "beta_slope",
    .signature = "(a: Tensor, b: Tensor, log_odds: Tensor) -> Tensor",
    .help =
        "Of numbers of beta distributions, given their log-odds: how these move with a. Source: as "
        "gamma_slope.",
    .infer = infer_like,
    .vjp = refuse_second_derivative,
    .reads = {{}, {}}};
constexpr OpRecord kPoisson = {
    .name = "poisson",
    .signature = "(input: Tensor, generator: Generator | None = None) -> Tensor",
    .help =
        "A count of Poisson's distribution for each rate, in its type.\n"
        "Raises ValueError for rates below 0 or NaN.\n"
        "Shapes: input of any shape; the result has it.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch.poisson.",
    .flags = kFunction | kConstant,
    .body = rejected_body<kPoissonBy>};
constexpr OpRecord kStandardGamma = {
    .name = "standard_gamma",
    .signature = "(input: Tensor, generator: Generator | None = None) -> Tensor",
    .help =
        "A number of the gamma distribution of scale 1 for each shape parameter, in its type. Its "
        "gradient is that at the same value of the distribution function (Figurnov, Mohamed and "
        "Mnih, 2018), which has none of its own.\n"
        "Raises ValueError for parameters that are not above 0.\n"
        "Shapes: input of any shape; the result has it.\n"
        "Types: floating. Result: the same type.\n"
        "Source: PyTorch's torch._standard_gamma; Marsaglia and Tsang (2000).",
    .flags = kFunction,
    .body = rejected_body<kGammaBy>};
constexpr OpRecord kBinomial = {
    .name = "binomial",
    .signature = "(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor",
    .help =
        "How many of count trials succeed, each with probability prob; exact up to 2^53.\n"
        "Raises ValueError for counts that are not whole numbers of at least 0 and for a prob "
        "outside [0, 1].\n"
        "Shapes: count and prob broadcast to the result's.\n"
        "Types: floating. Result: the common type.\n"
        "Source: PyTorch's torch.binomial; Hoermann (1993).",
    .flags = kFunction | kConstant,
    .body = binomial_body};

constexpr OpRecord kRandLike = {.name = "rand_like",
                                .signature = "(x: Tensor, " TW_LIKE,
                                .help =
                                    "Like rand, shape and dtype from x.\n"
                                    "Shapes: x of any shape; the result has it.\n"
                                    "Types: floating. Result: dtype, by default the same type.\n"
                                    "Raises TypeError for a dtype that is not floating.\n"
                                    "Source: PyTorch's torch.rand_like.",
                                .flags = kFunction,
                                .body = [](const Use& use, Tensor* out) {
                                  out[0] =
                                      uniform(generator_of(use.attributes, 1),
                                              use.in[0].tensor.shape(), 0, 1, dtype_like(use, 0));
                                }};
constexpr OpRecord kRandnLike = {.name = "randn_like",
                                 .signature = "(x: Tensor, " TW_LIKE,
                                 .help =
                                     "Like randn, shape and dtype from x.\n"
                                     "Shapes: x of any shape; the result has it.\n"
                                     "Types: floating. Result: dtype, by default the same type.\n"
                                     "Raises TypeError for a dtype that is not floating.\n"
                                     "Source: PyTorch's torch.randn_like.",
                                 .flags = kFunction,
                                 .body = [](const Use& use, Tensor* out) {
                                   out[0] =
                                       normal(generator_of(use.attributes, 1),
                                              use.in[0].tensor.shape(), 0, 1, dtype_like(use, 0));
                                 }};
constexpr OpRecord kRandintLike = {
    .name = "randint_like",
    .signature = "(x: Tensor, low: int = 0, high: int | None = None, " TW_LIKE,
    .help =
        "Like randint, shape and dtype from x; one number alone is high. Raises ValueError for "
        "empty ranges and types that do not hold the numbers.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: bool, integer, floating. Result: dtype, by default the same type.\n"
        "Source: PyTorch's torch.randint_like.",
    .flags = kFunction,
    .body = randint_like_body};

}  // namespace tw
