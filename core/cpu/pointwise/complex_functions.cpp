// Functions of complex numbers, in double, by the C library's where it has them.
#include "core/cpu/pointwise/complex_functions.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>

#include "core/base/thresholds.h"
#include "core/cpu/isa/families.h"
#include "core/cpu/isa/add_kernel.h"
#include "core/problems/complex_rows.h"
#include "core/runtime/thread_pool.h"

namespace tw {

namespace {

using std::int64_t;
using Z = std::complex<double>;

Z scaled(Z z, double factor) { return {z.real() * factor, z.imag() * factor}; }
bool is_finite(Z z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

Z reciprocal(Z z) {
  const double x = z.real(), y = z.imag(), size = x * x + y * y;
  // In range, and without zeros, whose signs the library chooses.
  if (!(size > 0x1p-960 && size < 0x1p1020) || x == 0 || y == 0) return 1.0 / z;
  typedef double Pair __attribute__((vector_size(16)));  // for one instruction of division
  const Pair quotient = Pair{x, -y} / Pair{size, size};
  return {quotient[0], quotient[1]};
}
Z round(Z z) { return {std::nearbyint(z.real()), std::nearbyint(z.imag())}; }
Z log2(Z z) { return scaled(std::log(z), std::numbers::log2e); }
Z log10(Z z) { return scaled(std::log(z), std::numbers::log10e); }
Z log1p(Z z) {
  const double x = z.real(), y = z.imag();
  if (!is_finite(z) || std::abs(x) > 0.5 || std::abs(y) > 0.5) return std::log(Z(1 + x, y));
  return {0.5 * std::log1p(x * (2 + x) + y * y), std::atan2(y, 1 + x)};
}
Z expm1(Z z) {
  const double x = z.real(), y = z.imag();
  if (y == 0) return {std::expm1(x) + 0.0, y};  // the zero of a real -0 is positive
  const Z e = std::exp(z);
  if (!is_finite(z)) return {e.real() - 1, e.imag()};
  const double half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, e.imag()};
}

// By multiplication, as NumPy's, exact where the result is; n from 1 on. No factor is 1: a part of
// it, 0, would make NaN of an infinity.
Z repeated_product(Z a, int n) {
  for (; n % 2 == 0; n /= 2) a *= a;
  Z y = a;
  while (n /= 2) {
    a *= a;
    if (n % 2) y *= a;
  }
  return y;
}
// Of a number that is neither 0 nor infinite: as large as 1 on the way, so that each part leaves
// the range where the result's does.
Z scaled_power(Z a, int n) {
  const int exponent = std::ilogb(std::max(std::abs(a.real()), std::abs(a.imag())));
  Z y = repeated_product({std::scalbn(a.real(), -exponent), std::scalbn(a.imag(), -exponent)},
                         std::abs(n));
  if (n < 0) y = 1.0 / y;
  return {std::scalbn(y.real(), exponent * n), std::scalbn(y.imag(), exponent * n)};
}
Z whole_power(Z a, int n) {
  const Z y = repeated_product(a, std::abs(n));
  const double size = std::max(std::abs(y.real()), std::abs(y.imag()));
  const bool in_range = size > 0x1p-900 && size < 0x1p900;
  if (!in_range && is_finite(a)) return scaled_power(a, n);
  return n < 0 ? 1.0 / y : y;
}
Z pow(Z a, Z b) {
  constexpr double kMostFactors = 100;
  if (b == 0.0) return 1;
  if (a == 0.0) {
    if (b.real() > 0) return 0;
    return {NAN, NAN};
  }
  if (b.imag() == 0 && std::abs(b.real()) < kMostFactors && b.real() == std::trunc(b.real()))
    return whole_power(a, static_cast<int>(b.real()));
  return std::pow(a, b);
}

// Where the C library gives the zero beside 1 the sign of sin(2 y), the Array API asks for y's.
Z tanh(Z z) {
  if (std::isinf(z.real()) && std::isfinite(z.imag()))
    return {std::copysign(1.0, z.real()), std::copysign(0.0, z.imag())};
  return std::tanh(z);
}
Z tan(Z z) {
  if (std::isinf(z.imag()) && std::isfinite(z.real()))
    return {std::copysign(0.0, z.real()), std::copysign(1.0, z.imag())};
  return std::tan(z);
}

// The others are the C library's.
#define TW_LIBRARY(name) \
  Z name(Z z) { return std::name(z); }
TW_LIBRARY(sqrt)
TW_LIBRARY(exp)
TW_LIBRARY(log)
TW_LIBRARY(sin)
TW_LIBRARY(cos)
TW_LIBRARY(asin)
TW_LIBRARY(acos)
TW_LIBRARY(atan)
TW_LIBRARY(sinh)
TW_LIBRARY(cosh)
TW_LIBRARY(asinh)
TW_LIBRARY(acosh)
TW_LIBRARY(atanh)
#undef TW_LIBRARY

template <class Part> Z wide(Complex<Part> z) { return {z.re, z.im}; }
template <class Part> Complex<Part> narrow(Z z) {
  return {static_cast<Part>(z.real()), static_cast<Part>(z.imag())};
}

using Unary = Z (*)(Z);
using Binary = Z (*)(Z, Z);

template <class Part, Unary f>
void kernel(int64_t n, void* y, const void* const* inputs, const int* step, Traffic) {
  const auto* x = static_cast<const Complex<Part>*>(inputs[0]);
  for (int64_t i = 0; i < n; ++i)
    static_cast<Complex<Part>*>(y)[i] = narrow<Part>(f(wide(x[i * step[0]])));
}
template <class Part, Binary f>
void kernel(int64_t n, void* y, const void* const* inputs, const int* step, Traffic) {
  const auto *a = static_cast<const Complex<Part>*>(inputs[0]),
             *b = static_cast<const Complex<Part>*>(inputs[1]);
  for (int64_t i = 0; i < n; ++i)
    static_cast<Complex<Part>*>(y)[i] = narrow<Part>(f(wide(a[i * step[0]]), wide(b[i * step[1]])));
}

// ---- conjugates ----

void set_up_conjugate(const Call& call, void* problem) {
  *static_cast<ConjugateProblem*>(problem) = {call.in[0].count, call.in[0].dtype, nullptr, nullptr};
}
void bind_conjugate(void* problem, void* const* at) {
  auto& p = *static_cast<ConjugateProblem*>(problem);
  p.x = at[0];
  p.y = at[1];
}
double conjugate_ns(const void* problem) {
  constexpr double kBytesPerNs = 10;  // one core, reading and writing memory
  const auto& p = *static_cast<const ConjugateProblem*>(problem);
  return 30 +
         2 * static_cast<double>(p.count) * static_cast<double>(size_of(p.dtype)) / kBytesPerNs;
}
template <class Number> void conjugate(const ConjugateProblem& p) {
  const auto* x = static_cast<const Number*>(p.x);
  auto* y = static_cast<Number*>(p.y);
  parallel_ranges(p.count, thresholds::kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = {x[i].re, -x[i].im};
  });
}
void run_conjugate(const void* problem) {
  const auto& p = *static_cast<const ConjugateProblem*>(problem);
  p.dtype == DType::complex64 ? conjugate<Complex64>(p) : conjugate<Complex128>(p);
}

}  // namespace

template <class Part> PointwiseFn complex_value(PointwiseOp op) {
  switch (op) {
#define TW_ROW(name) \
  case PointwiseOp::name: return kernel<Part, name>;
    TW_COMPLEX_ROWS(TW_ROW)
#undef TW_ROW
    default: return nullptr;
  }
}
template PointwiseFn complex_value<float>(PointwiseOp op);
template PointwiseFn complex_value<double>(PointwiseOp op);

void register_complex_kernels() {
  add_kernel<ConjugateProblem>("conj", "one pass, shared between threads",
                               {.set_up = set_up_conjugate,
                                .bind = bind_conjugate,
                                .cost_ns = conjugate_ns,
                                .run = run_conjugate,
                                .contiguous = 1});
}

}  // namespace tw
