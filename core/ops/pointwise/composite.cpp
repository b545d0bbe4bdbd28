// Functions of numbers that are made of pointwise rows.
#include <algorithm>
#include <limits>

#include "core/autograd/grad_mode.h"
#include "core/autograd/op_node.h"
#include "core/base/error.h"
#include "core/ops/copy/copy.h"
#include "core/ops/copy/create.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/engine/records.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/shape/view.h"

namespace tw {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDegree = 0.017453292519943295, kPi = 3.141592653589793, kLn2 = 0.6931471805599453;

void check_real(const Tensor& x, const char* op) {
  if (is_complex(x.dtype())) fail(ErrorKind::type, op, ": no kernel for ", name_of(x.dtype()));
}
// 16-bit numbers in float32, whole ones in the default floating type.
Tensor widened(const Tensor& x, const char* op) {
  check_real(x, op);
  return astype(x, working_dtype(floating_dtype(x.dtype())));
}
Tensor narrowed(const Tensor& y, const Tensor& x) { return astype(y, floating_dtype(x.dtype())); }

Axes axes_of(const Use& use) {
  const int rank = use.in[0].tensor.rank();
  const std::uint32_t bits = use.attributes.axes(0, rank, use.op.name);
  std::vector<std::int64_t> list;
  for (int i = 0; i < rank; ++i)
    if (bits >> i & 1) list.push_back(i);
  return list;
}

DType floating_dtype(const Tensor& a, const Tensor& b) {
  return promote(floating_dtype(a.dtype()), floating_dtype(b.dtype()));
}

void logaddexp2_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &y = use.in[1].tensor;
  const Tensor a = widened(x, "logaddexp2"), b = widened(y, "logaddexp2");
  const Tensor same = a == b;  // infinities among them
  const Tensor apart = abs(where(same, 0, a - b));
  constexpr double kLog2e = 1.4426950408889634;
  const Tensor larger = maximum(a, b) + log1p(exp2(-apart)) * kLog2e;
  out[0] = astype(where(same, a / 2 + b / 2 + 1, larger), floating_dtype(x, y));
}

// Each input's share of the sum, 1 / (1 + 2 ** (other - input)): the formula above has a kink in
// each of its parts where a is b.
void logaddexp2_vjp(Vjp& v) {
  const DType type = working_dtype(v.g().dtype());
  const Tensor a = astype(v.in(0).tensor, type), b = astype(v.in(1).tensor, type);
  const Tensor apart = where((a == b) & isinf(a), 0, a - b) * kLn2, g = astype(v.g(), type);
  if (v.wants(0)) v.give(0, g * sigmoid(apart));
  if (v.wants(1)) v.give(1, g * sigmoid(-apart));
}

void xlog1py_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &y = use.in[1].tensor;
  check_real(x, "xlog1py");
  check_real(y, "xlog1py");
  const DType result = floating_dtype(x, y), type = working_dtype(result);
  const Tensor a = astype(x, type), b = astype(y, type);
  const Tensor nothing = (a == 0) & ((b <= -1) | (b == kInfinity));
  out[0] = astype(a * log1p(where(nothing, 0, b)), result);
}

void logit_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  check_real(x, "logit");
  if (use.attributes.none(0)) {
    out[0] = log_odds(x);
    return;
  }
  const double eps = use.attributes.real(0);
  out[0] = narrowed(log_odds(clip(widened(x, "logit"), eps, 1 - eps)), x);
}

double largest_of(DType type) {
  if (type == DType::float16) return 65504;
  if (type == DType::bfloat16) return 0x1.fep127;
  return type == DType::float32 ? static_cast<double>(std::numeric_limits<float>::max())
                                : std::numeric_limits<double>::max();
}

void nan_to_num_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  check_real(x, "nan_to_num");
  if (!is_floating(x.dtype())) {
    out[0] = copy(x);
    return;
  }
  const double largest = largest_of(x.dtype());
  const double high = use.attributes.none(1) ? largest : use.attributes.real(1);
  const double low = use.attributes.none(2) ? -largest : use.attributes.real(2);
  if (high == largest && low == -largest) {
    out[0] = finite_or(x, use.attributes.real(0), largest);
    return;
  }
  const Tensor finite = where(x == kInfinity, high, where(x == -kInfinity, low, x));
  out[0] = where(isnan(x), use.attributes.real(0), finite);
}

void sinc_body(const Use& use, Tensor* out) {
  const Tensor& x = use.in[0].tensor;
  const Tensor wide = widened(x, "sinc"), zero = wide == 0;
  const Tensor angle = where(zero, 1, wide) * kPi;
  out[0] = narrowed(where(zero, 1, sin(angle) / angle), x);
}

// (cos(t) - sin(t) / t) / x with t = pi x, whose parts cancel near 0: up to 1/4 its power series,
// which is exact there beyond float64 and can be differentiated again.
Tensor sinc_slope(const Tensor& x) {
  const Tensor near = abs(x) < 0.25;
  const Tensor angle = where(near, x, 0) * kPi, square = angle * angle;
  // Terms -1^k 2k t^(2k - 1) / (2k + 1)!, the last one with k = 9.
  constexpr double kTerms[] = {
      -1.4797143443923793e-16, 4.498331606952833e-14,  -1.0706029224547743e-11,
      1.9270852604185937e-09,  -2.505210838544172e-07, 2.2045855379188714e-05,
      -0.0011904761904761906,  0.03333333333333333,    -0.3333333333333333};
  Tensor sum = full(Shape(), kTerms[0], x.dtype());
  for (int i = 1; i < 9; ++i) sum = sum * square + kTerms[i];
  const Tensor far = where(near, 1, x), turn = far * kPi;
  return where(near, angle * sum * kPi, (cos(turn) - sin(turn) / turn) / far);
}

// In float64, so that tolerances are what the caller wrote.
void close_values_body(const Use& use, Tensor* out) {
  const Tensor &x = use.in[0].tensor, &y = use.in[1].tensor;
  const bool parts = is_complex(x.dtype()) || is_complex(y.dtype());
  const DType wide = parts ? DType::complex128 : DType::float64;
  const Tensor a = astype(x, wide), b = astype(y, wide);
  const Tensor within = abs(a - b) <= abs(b) * use.attributes.real(0) + use.attributes.real(1);
  const Tensor alike = (x == y) | (isfinite(b) & within);
  out[0] = use.attributes.flag(2) ? alike | (isnan(a) & isnan(b)) : alike;
}
void infer_close_values(Call& call, Result* results) {
  const Meta &x = call.in[0], &y = call.in[1];
  if (*x.shape == *y.shape)
    results[0].like = 0;
  else
    results[0].shape = broadcast_shapes(*x.shape, *y.shape, call.op->name);
  results[0].dtype = DType::bool_;
}
Tensor close(const Use& use) {
  const char* const op = use.op.name;
  for (int i = 0; i < 2; ++i)
    if (use.attributes.real(i) < 0)
      fail(ErrorKind::value, op, ": ", i ? "atol" : "rtol",
           " is negative: ", use.attributes.real(i));
  Tensor x = use.in[0].tensor, y = use.in[1].tensor;
  if (is_floating(x.dtype()) && is_floating(y.dtype())) {
    const DType type = working_dtype(promote(x.dtype(), y.dtype()));
    const Shape shape = broadcast_shapes(x.shape(), y.shape(), op);
    x = broadcast_operand(astype(x, type), shape);
    y = broadcast_operand(astype(y, type), shape);
  }
  return apply(kCloseValues, {x, y}, use.attributes);
}

}  // namespace

constexpr OpRecord kLogaddexp2 = {
    .name = "logaddexp2",
    .signature = "(a: Tensor, b: Tensor) -> Tensor",
    .help =
        "log2(2 ** a + 2 ** b), without overflow.\n"
        "Shapes: a and b broadcast; the result has their common shape.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.logaddexp2.",
    .flags = kFunction | kInPlace | kBroadcasts,
    .body = logaddexp2_body,
    .vjp = logaddexp2_vjp,
    .reads = {{.inputs = 3}, {.inputs = 3}}};
constexpr OpRecord kXlog1py = {.name = "xlog1py",
                               .signature = "(a: Tensor, b: Tensor) -> Tensor",
                               .help =
                                   "a * log(1 + b), and 0 where a is 0 and b no NaN.\n"
                                   "Shapes: a and b broadcast; the result has their common shape.\n"
                                   "Types: floating; integers and bool become the default floating "
                                   "type. Result: the same type.\n"
                                   "Raises ValueError for shapes that do not broadcast.\n"
                                   "Source: SciPy's scipy.special.xlog1py.",
                               .flags = kFunction | kInPlace,
                               .body = xlog1py_body};
constexpr OpRecord kLogit = {.name = "logit",
                             .signature = "(x: Tensor, eps: float | None = None) -> Tensor",
                             .help =
                                 "log(x / (1 - x)), the inverse of sigmoid; x is limited to the "
                                 "range from eps to 1 - eps first where eps is given.\n"
                                 "Shapes: x of any shape; the result has it.\n"
                                 "Types: floating; integers and bool become the default floating "
                                 "type. Result: the same type.\n"
                                 "Source: PyTorch's torch.logit.",
                             .flags = kFunction | kInPlace,
                             .body = logit_body};
constexpr OpRecord kNanToNum = {
    .name = "nan_to_num",
    .signature =
        "(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) "
        "-> Tensor",
    .help =
        "x with numbers for NaN and the infinities, the type's largest and least by default. Whole "
        "numbers are copied.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: bool, integer, floating. Result: the same type.\n"
        "Source: PyTorch's torch.nan_to_num.",
    .flags = kFunction | kInPlace,
    .body = nan_to_num_body};
constexpr OpRecord kFrac = {.name = "frac",
                            .signature = "(x: Tensor) -> Tensor",
                            .help =
                                "x - trunc(x), with the sign of x.\n"
                                "Shapes: x of any shape; the result has it.\n"
                                "Types: floating. Result: the same type.\n"
                                "Source: PyTorch's torch.frac.",
                            .flags = kFunction | kInPlace,
                            .body = [](const Use& use, Tensor* out) {
                              const Tensor& x = use.in[0].tensor;
                              if (!is_floating(x.dtype()))
                                fail(ErrorKind::type, "frac: needs a floating-point input, got ",
                                     name_of(x.dtype()));
                              out[0] = x - trunc(x);
                            }};
constexpr OpRecord kDeg2rad = {.name = "deg2rad",
                               .signature = "(x: Tensor) -> Tensor",
                               .help =
                                   "Degrees as radians.\n"
                                   "Shapes: x of any shape; the result has it.\n"
                                   "Types: floating; integers and bool become the default floating "
                                   "type. Result: the same type.\n"
                                   "Source: PyTorch's torch.deg2rad.",
                               .flags = kFunction | kInPlace,
                               .body = [](const Use& use, Tensor* out) {
                                 out[0] = narrowed(widened(use.in[0].tensor, "deg2rad") * kDegree,
                                                   use.in[0].tensor);
                               }};
constexpr OpRecord kRad2deg = {
    .name = "rad2deg",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "Radians as degrees.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.rad2deg.",
    .flags = kFunction | kInPlace,
    .body = [](const Use& use, Tensor* out) {
      out[0] = narrowed(widened(use.in[0].tensor, "rad2deg") * (1 / kDegree), use.in[0].tensor);
    }};
constexpr OpRecord kSinc = {
    .name = "sinc",
    .signature = "(x: Tensor) -> Tensor",
    .help =
        "sin(pi x) / (pi x), and 1 at 0.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.sinc.",
    .flags = kFunction | kInPlace,
    .body = sinc_body,
    .vjp =
        [](Vjp& v) {
          const DType type = working_dtype(v.g().dtype());
          v.give(0, astype(v.g(), type) * sinc_slope(astype(v.in(0).tensor, type)));
        },
    .reads = {{.inputs = 1}}};
constexpr OpRecord kPolygamma = {
    .name = "polygamma",
    .signature = "(n: int, x: Tensor) -> Tensor",
    .help =
        "Derivative of order n of digamma at x; infinite at whole numbers below 0 for n > 0. On "
        "vectors up to n = 1, beyond number by number, by Euler's and Maclaurin's sums.\n"
        "Raises ValueError for n < 0 and for n > 170, whose factorials leave float64's range.\n"
        "Shapes: x of any shape; the result has it.\n"
        "Types: floating; integers and bool become the default floating type. Result: the same "
        "type.\n"
        "Source: PyTorch's torch.polygamma.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const std::int64_t n = use.attributes[0];
      check_real(use.in[0].tensor, "polygamma");
      if (n < 0 || n > 170) fail(ErrorKind::value, "polygamma: n must be from 0 to 170, got ", n);
      out[0] = gamma_derivative(use.in[0], static_cast<double>(n));
    }};
constexpr OpRecord kHeaviside = {
    .name = "heaviside",
    .signature = "(x: Tensor, values: Tensor) -> Tensor",
    .help =
        "0 below 0, 1 above, values at 0; NaN stays.\n"
        "Shapes: x and values broadcast; the result has their common shape.\n"
        "Types: bool, integer, floating. Result: the same type, of bool int64.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.heaviside.",
    .flags = kFunction | kInPlace | kConstant,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      check_real(x, "heaviside");
      const GradModeGuard off(false);
      const Tensor step = where(x > 0, 1, where(x < 0, 0, x));
      out[0] = where(x == 0, use.in[1], step);
    }};
constexpr OpRecord kFloatPower = {
    .name = "float_power",
    .signature = "(a: Tensor, b: Operand) -> Tensor",
    .help =
        "a to the power of b in float64.\n"
        "Shapes: a and b broadcast; the result has their common shape.\n"
        "Types: bool, integer, floating. Result: float64.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.float_power.",
    .flags = kFunction | kInPlace,
    .body = [](const Use& use, Tensor* out) {
      const Operand& b = use.in[1];
      check_real(use.in[0].tensor, "float_power");
      if (b.is_tensor()) check_real(b.tensor, "float_power");
      if (!b.is_tensor() && b.scalar.kind == Scalar::Kind::complex)
        fail(ErrorKind::type, "float_power: complex numbers are not supported");
      const Tensor a = astype(use.in[0].tensor, DType::float64);
      out[0] = b.is_tensor() ? pow(a, astype(b.tensor, DType::float64)) : pow(a, b);
    }};
constexpr OpRecord kCloseValues = {
    .name = "close_values",
    .signature = "(a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor",
    .help = "Whether a and b are equal or abs(a - b) <= atol + rtol * abs(b).",
    .flags = kConstant | kAnyOrder,
    .infer = infer_close_values,
    .estimate =
        [](const Call& call) {
          const auto count = static_cast<double>(call.out[0].count);
          const auto size = static_cast<double>(size_of(call.in[0].dtype));
          return Estimate{4 * count, count * (2 * size + 1)};
        },
    .body = close_values_body};
constexpr OpRecord kIsclose = {
    .name = "isclose",
    .signature =
        "(a: Tensor, b: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = "
        "False) -> Tensor",
    .help =
        "Whether a and b are equal or abs(a - b) <= atol + rtol * abs(b), in float64.\n"
        "Raises ValueError for a negative rtol or atol.\n"
        "Shapes: a and b broadcast; the result has their common shape.\n"
        "Types: all. Result: bool.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.isclose.",
    .flags = kFunction | kConstant,
    .body = [](const Use& use, Tensor* out) { out[0] = close(use); }};
constexpr OpRecord kAllclose = {
    .name = "allclose",
    .signature =
        "(a: Tensor, b: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = "
        "False) -> Tensor",
    .help =
        "Whether isclose holds everywhere, as a 0-d tensor of bool.\n"
        "Raises ValueError for a negative rtol or atol.\n"
        "Shapes: a and b broadcast; the result has no dimensions.\n"
        "Types: all. Result: bool.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.allclose.",
    .flags = kFunction | kConstant,
    .body = [](const Use& use, Tensor* out) { out[0] = all(close(use), {}, false); }};
constexpr OpRecord kIsposinf = {.name = "isposinf",
                                .signature = "(x: Tensor) -> Tensor",
                                .help =
                                    "Whether infinite and positive.\n"
                                    "Shapes: x of any shape; the result has it.\n"
                                    "Types: bool, integer, floating. Result: bool.\n"
                                    "Source: PyTorch's torch.isposinf.",
                                .flags = kFunction | kConstant,
                                .body = [](const Use& use, Tensor* out) {
                                  check_real(use.in[0].tensor, "isposinf");
                                  out[0] = use.in[0].tensor == Operand(kInfinity);
                                }};
constexpr OpRecord kIsneginf = {.name = "isneginf",
                                .signature = "(x: Tensor) -> Tensor",
                                .help =
                                    "Whether infinite and negative.\n"
                                    "Shapes: x of any shape; the result has it.\n"
                                    "Types: bool, integer, floating. Result: bool.\n"
                                    "Source: PyTorch's torch.isneginf.",
                                .flags = kFunction | kConstant,
                                .body = [](const Use& use, Tensor* out) {
                                  check_real(use.in[0].tensor, "isneginf");
                                  out[0] = use.in[0].tensor == Operand(-kInfinity);
                                }};
constexpr OpRecord kAddcdiv = {
    .name = "addcdiv",
    .signature = "(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Operand = 1) -> Tensor",
    .help =
        "x + value * tensor1 / tensor2.\n"
        "Shapes: x, tensor1 and tensor2 broadcast; the result has their common shape.\n"
        "Types: floating, complex; integers and bool become the default floating type. Result: the "
        "same type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.addcdiv.",
    .flags = kFunction | kInPlace,
    .body = [](const Use& use, Tensor* out) {
      const Operand& value = use.in[3];
      const bool plain = !value.is_tensor() && value.scalar.re == 1 && value.scalar.im == 0;
      const bool fused = plain && std::all_of(use.in, use.in + 3, [](const Operand& x) {
                           return is_floating(x.tensor.dtype());
                         });
      out[0] = fused ? add_quotient(use.in[0], use.in[1], use.in[2])
                     : use.in[0] + value * (use.in[1] / use.in[2]);
    }};
constexpr OpRecord kClampMin = {
    .name = "clamp_min",
    .signature = "(x: Tensor, min: Operand) -> Tensor",
    .help =
        "clip(x, min): the gradient at the bound is the whole one.\n"
        "Shapes: x and min broadcast; the result has their common shape.\n"
        "Types: bool, integer, floating; bool takes part as a number. Result: the common type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.clamp_min.",
    .flags = kFunction | kInPlace,
    .body = [](const Use& use, Tensor* out) {
      out[0] = clip(use.in[0], use.in[1], Operand::none());
    }};
constexpr OpRecord kClampMax = {
    .name = "clamp_max",
    .signature = "(x: Tensor, max: Operand) -> Tensor",
    .help =
        "clip(x, max=max): the gradient at the bound is the whole one.\n"
        "Shapes: x and max broadcast; the result has their common shape.\n"
        "Types: bool, integer, floating; bool takes part as a number. Result: the common type.\n"
        "Raises ValueError for shapes that do not broadcast.\n"
        "Source: PyTorch's torch.clamp_max.",
    .flags = kFunction | kInPlace,
    .body = [](const Use& use, Tensor* out) {
      out[0] = clip(use.in[0], Operand::none(), use.in[1]);
    }};
namespace {
// Of a sum's attributes: the type that was asked for.
std::optional<DType> given_dtype(const Use& use) {
  if (use.attributes.none(2)) return std::nullopt;
  return use.attributes.dtype(2);
}
}  // namespace

constexpr OpRecord kNanmean = {
    .name = "nanmean",
    .signature =
        "(x: Tensor, axis: Axes = None, keepdims: bool = False, dtype: dtype | None = "
        "None) -> Tensor",
    .help =
        "Mean over all or some axes of what is no NaN; NaN where nothing is.\n"
        "Shapes: x of any shape; the result lacks the axes, or has them with extent 1 where "
        "keepdims.\n"
        "Types: floating. Result: the same type; dtype, a floating one, where given.\n"
        "Source: PyTorch's torch.nanmean.",
    .flags = kFunction,
    .body = [](const Use& use, Tensor* out) {
      const Tensor& x = use.in[0].tensor;
      if (!is_floating(x.dtype()))
        fail(ErrorKind::type, "nanmean: needs a floating-point input, got ", name_of(x.dtype()));
      const Axes axes = axes_of(use);
      const bool keepdims = use.attributes.flag(1);
      const Tensor total = nansum(x, axes, keepdims, working_dtype(x.dtype()));
      const Tensor y = total / sum(logical_not(isnan(x)), axes, keepdims);
      const std::optional<DType> dtype = given_dtype(use);
      if (dtype && !is_floating(*dtype))
        fail(ErrorKind::type, "nanmean: dtype ", name_of(*dtype),
             " cannot hold it; use a floating one");
      out[0] = dtype ? astype(y, *dtype) : narrowed(y, x);
    }};

}  // namespace tw
