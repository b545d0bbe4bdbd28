// A lane: one number with the operators and functions that the formulas of problems/pointwise.inc use.
#include "prelude.cuh"

template <class T> struct Lane {
  T v;
  TW_DEVICE Lane() {}
  TW_DEVICE Lane(T v) : v(v) {}
  template <class U> TW_DEVICE Lane(U v) : v(static_cast<T>(v)) {}
};
template <class T> struct IsFloat {
  static constexpr bool value = false;
};
template <> struct IsFloat<float> {
  static constexpr bool value = true;
};
template <> struct IsFloat<double> {
  static constexpr bool value = true;
};
template <class Part> struct IsFloat<Complex<Part>> {
  static constexpr bool value = true;
};
template <class T> struct IsSigned {
  static constexpr bool value = T(-1) < T(0);
};
template <class T> struct Unsigned {
  using type = T;
};
template <> struct Unsigned<int32_t> {
  using type = uint32_t;
};
template <> struct Unsigned<int64_t> {
  using type = uint64_t;
};

// Whole numbers wrap, as unsigned ones do.
#define TW_OPERATOR(op)                   \
  TW_DEVICE L operator op(L a, L b) {     \
    using U = typename Unsigned<T>::type; \
    return T(U(a.v) op U(b.v));           \
  }
using T = TW_TYPE;
using L = Lane<T>;
TW_OPERATOR(+)
TW_OPERATOR(-)
TW_OPERATOR(*)
#undef TW_OPERATOR
TW_DEVICE L operator-(L a) {
  using U = typename Unsigned<T>::type;
  if constexpr (IsFloat<T>::value)
    return -a.v;
  else
    return T(U(0) - U(a.v));
}
#define TW_COMPARE(op) \
  TW_DEVICE bool operator op(L a, L b) { return a.v op b.v; }
TW_COMPARE(==)
TW_COMPARE(!=)
TW_DEVICE L where(bool c, L a, L b) { return c ? a : b; }

#if TW_IS_COMPLEX
TW_DEVICE L fma(L a, L b, L c) { return a * b + c; }
#include "complex_math.cuh"
#undef TW_COMPARE
#else
TW_COMPARE(<)
TW_COMPARE(<=)
TW_COMPARE(>)
TW_COMPARE(>=)
#undef TW_COMPARE
TW_DEVICE L maximum(L a, L b) { return a.v != a.v || a.v > b.v ? a : b; }
TW_DEVICE L minimum(L a, L b) { return a.v != a.v || a.v < b.v ? a : b; }
TW_DEVICE L sign(L x) {
  if constexpr (IsFloat<T>::value)
    return x.v != x.v ? x.v : T(x.v > 0) - T(x.v < 0);
  else
    return T(x.v > 0) - T(x.v < T(0));
}

#if TW_IS_FLOAT
TW_DEVICE L operator/(L a, L b) { return a.v / b.v; }
#define TW_MATH(name, function) \
  TW_DEVICE L name(L x) { return function(x.v); }
#define TW_MATH2(name, function) \
  TW_DEVICE L name(L a, L b) { return function(a.v, b.v); }
#if TW_IS_FLOAT == 4
#define TW_F(name) name##f
#else
#define TW_F(name) name
#endif
TW_DEVICE L fma(L a, L b, L c) { return TW_F(::fma)(a.v, b.v, c.v); }
TW_MATH(sqrt, TW_F(::sqrt))
TW_MATH(exp, TW_F(::exp))
TW_MATH(exp2, TW_F(::exp2))
TW_MATH(expm1, TW_F(::expm1))
TW_MATH(log, TW_F(::log))
TW_MATH(log2, TW_F(::log2))
TW_MATH(log10, TW_F(::log10))
TW_MATH(log1p, TW_F(::log1p))
TW_MATH(sin, TW_F(::sin))
TW_MATH(cos, TW_F(::cos))
TW_MATH(tan, TW_F(::tan))
TW_MATH(asin, TW_F(::asin))
TW_MATH(acos, TW_F(::acos))
TW_MATH(atan, TW_F(::atan))
TW_MATH(sinh, TW_F(::sinh))
TW_MATH(cosh, TW_F(::cosh))
TW_MATH(tanh, TW_F(::tanh))
TW_MATH(asinh, TW_F(::asinh))
TW_MATH(acosh, TW_F(::acosh))
TW_MATH(atanh, TW_F(::atanh))
TW_MATH(erf, TW_F(::erf))
TW_MATH(erfc, TW_F(::erfc))
TW_MATH(floor, TW_F(::floor))
TW_MATH(ceil, TW_F(::ceil))
TW_MATH(trunc, TW_F(::trunc))
TW_MATH(round, TW_F(::rint))
TW_MATH(abs, TW_F(::fabs))
TW_MATH2(atan2, TW_F(::atan2))
TW_MATH2(hypot, TW_F(::hypot))
TW_MATH2(copysign, TW_F(::copysign))
TW_MATH2(nextafter, TW_F(::nextafter))
TW_MATH2(pow, TW_F(::pow))
#undef TW_MATH
#undef TW_MATH2
TW_DEVICE bool isnan(L x) { return x.v != x.v; }
TW_DEVICE bool isinf(L x) { return x.v == T(TW_INFINITY) || x.v == -T(TW_INFINITY); }
TW_DEVICE bool isfinite(L x) { return !(isnan(x) || isinf(x)); }
// The quotient of two rounded numbers, and Newton's step with the exact remainder.
TW_DEVICE L rsqrt(L x) {
  const T y = 1 / TW_F(::sqrt)(x.v), p = x.v * y;
  const T rest = TW_F(::fma)(-p, y, T(1)) - TW_F(::fma)(x.v, y, -p) * y;
  return x > 0 && !isinf(x) ? y + y * rest * T(0.5) : y;
}
constexpr double kPi = 3.141592653589793;
TW_DEVICE double infinity() { return TW_INFINITY; }
TW_DEVICE double no_number() { return infinity() - infinity(); }
// In double. digamma(1 + f) = (f - zero) p(f - 1/2) for f from 0 to 1, the CPU's polynomial, and
// the recurrence; from 8 on the asymptotic series; below 0 reflection.
TW_DEVICE double digamma_above(double x) {
  if (x >= 8) {
    const double z = 1 / (x * x);
    const double last = 1 / 240. - z * (1 / 132. - z * (691 / 32760. - z / 12));
    return ::log(x) - (0.5 / x + z * (1 / 12. - z * (1 / 120. - z * (1 / 252. - z * last))));
  }
  const double p[] = {0.9510558760318328,     -0.4236274212814606,     0.24054248424080246,
                      -0.14840492305388422,   0.09498872445125915,     -0.06192213327528345,
                      0.04076083402004033,    -0.026975796666111832,   0.0179072461845534,
                      -0.011908219993127607,  0.007927056841969902,    -0.005279938506234876,
                      0.003517737146491651,   -0.002345485843135098,   0.0015659198845290262,
                      -0.0010364991518573721, 0.000679455712116107,    -0.0004858348323176673,
                      0.00035632988129999686, -0.00014499222322385914, 4.4490567597334635e-05,
                      -0.0001780896909540723, 0.00015517879007296399};
  const double f = x - ::floor(x), zero = 0x1.d8b618d5af8fep-2, low = -0x1.1e563779a1f5bp-56;
  double y = 0, sum = 0;
  for (int k = 22; k >= 0; --k) y = y * (f - 0.5) + p[k];
  for (double t = x - 1; t >= 1; --t) sum += 1 / t;
  return y * ((f - zero) - low) + (x < 1 ? -1 / x : sum);
}
TW_DEVICE double digamma_of(double x) {
  if (x == 0) return ::copysign(infinity(), -x);
  if (!(x < 0)) return digamma_above(x);
  const double f = x - ::rint(x);
  if (!(f < 0 || f > 0)) return no_number();
  return digamma_above(1 - x) - kPi / ::tan(kPi * f);
}
// The sum of (x + k)^-s over k >= 0 for x > 0 and whole s > 1, by Euler and Maclaurin.
TW_DEVICE double hurwitz_zeta(double s, double x) {
  double sum = 0;
  for (; x < s + 10; ++x) {
    const double term = ::pow(x, -s);
    sum += term;
    if (!(term > sum * 0x1p-60)) return sum;
  }
  double rest = 0.5, product = s / x;
  const double terms[] = {0.08333333333333333,    -0.001388888888888889,  3.306878306878307e-05,
                          -8.267195767195768e-07, 2.08767569878681e-08,   -5.284190138687493e-10,
                          1.3382536530684679e-11, -3.3896802963225829e-13};
  for (int j = 0; j < 8; ++j) {
    rest += terms[j] * product;
    product *= (s + 2 * j + 1) * (s + 2 * j + 2) / (x * x);
  }
  return sum + ::pow(x, -s) * (x / (s - 1) + rest);
}
TW_DEVICE double polygamma_of(double n, double x) {
  if (n == 0) return digamma_of(x);
  if (x != x || !(n > 0 && n <= 170) || n != ::floor(n)) return no_number();
  const double s = n + 1, sign = ::fmod(n, 2.) == 0 ? -1 : 1, f = x - ::rint(x);
  if (x > 0 && x * 0 != 0) return sign * 0.;
  if (x <= 0 && !(f < 0 || f > 0)) return sign * infinity();
  const double up = f > 0 ? f : 1 + f, down = f > 0 ? 1 - f : -f;
  const double sum =
      x > 0 ? hurwitz_zeta(s, x)
            : hurwitz_zeta(s, up) + sign * (hurwitz_zeta(s, down) - hurwitz_zeta(s, 1 - x));
  return sign * ::tgamma(s) * sum;
}
// Winitzki's approximation (2008), good to 2 / 1000, and Halley's steps.
TW_DEVICE double erfinv_of(double x) {
  const double a = ::fabs(x);
  if (!(a < 1)) return a == 1 ? ::copysign(infinity(), x) : no_number();
  if (a < 1e-8) return x * 0.886226925452758;
  const double l = ::log((1 - a) * (1 + a)), t = 4.330746750799873 + l / 2;
  double y = ::sqrt(::sqrt(t * t - l / 0.147) - t);
  for (int k = 0; k < 3; ++k) {
    const double error = a < 0.5 ? ::erf(y) - a : (1 - a) - ::erfc(y);
    const double step = error * ::exp(y * y) * 0.886226925452758;
    y -= step / (1 + y * step);
  }
  return ::copysign(y, x);
}
TW_DEVICE L lgamma(L x) { return ::lgamma(double(x.v)); }
TW_DEVICE L digamma(L x) { return digamma_of(x.v); }
TW_DEVICE L polygamma(L n, L x) { return polygamma_of(n.v, x.v); }
TW_DEVICE L erfinv(L x) { return erfinv_of(x.v); }
TW_DEVICE bool signbit(L x) { return copysign(L(1), x).v < 0; }
TW_DEVICE L sigmoid(L x) {
  const L e = exp(-abs(x));
  return where(x < 0, e, 1) / (e + 1);
}
// Python's divmod but for zero divisors, which give a / b and NaN, and the quotient of infinities,
// which is floor(a / b).
TW_DEVICE L remainder(L a, L b) {
  const L r = TW_F(::fmod)(a.v, b.v);
  if (b == 0) return r;
  if (r == 0) return copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
TW_DEVICE L floor_divide(L a, L b) {
  if (b == 0 || isinf(a) || isinf(b)) return floor(a / b);
  const L r = TW_F(::fmod)(a.v, b.v);
  const L q = (a - r) / b - ((r != 0) & ((r < 0) != (b < 0)) ? 1 : 0);
  const L whole = floor(q);
  return where(q == 0, copysign(L(0), a / b), where(q - whole > 0.5, whole + 1, whole));
}
// The slope of a^b in a: b a^(b - 1), and 0 for b = 0.
TW_DEVICE L power_slope(L a, L b) { return where(b == 0, 0, b * pow(a, b - 1)); }
// a / b of a length b: 0 at the origin.
TW_DEVICE L quotient_or_0(L a, L b) { return where(b == 0, 0, a / b); }
// x / (a a + b b), 0 at the origin, without under- or overflow on the way.
TW_DEVICE L over_squared_length(L x, L a, L b) {
  const L size = maximum(abs(a), abs(b)), p = a / size, q = b / size;
  return where(size == 0, 0, x / size / (p * p + q * q) / size);
}
// The share of a normal distribution below x, and its density.
TW_DEVICE L normal_share(L x) { return erfc(x * -0.7071067811865476) * 0.5; }
TW_DEVICE L normal_density(L x) { return exp(x * x * -0.5) * 0.3989422804014327; }
// tanh(log(1 + e^x)) = (u u + 2 u) / (u u + 2 u + 2) with u = e^x.
TW_DEVICE L tanh_softplus(L x) {
  const L u = exp(where(x < 20, x, 20)), q = u * (u + 2);
  return where(x < 20, q / (q + 2), 1);
}
// Activations in the simple form, which on the CPU rounds more carefully.
TW_DEVICE L silu(L x) { return x * sigmoid(x); }
TW_DEVICE L silu_slope(L x) {
  const L s = sigmoid(x), finite = minimum(maximum(x, -1000), 1000);
  return s * (1 + finite * (1 - s));
}
TW_DEVICE L mish(L x) { return x * tanh_softplus(x); }
TW_DEVICE L selu(L x) {
  return where(x > 0, x * 1.0507009873554805, expm1(x) * 1.7580993408473766);
}
TW_DEVICE L logsigmoid(L x) { return minimum(x, 0) - log1p(exp(-abs(x))); }
TW_DEVICE L tanhshrink(L x) { return x - tanh(x); }
TW_DEVICE L log_odds(L x) {
  return where(abs(x - 0.5) < 0.25, log1p((x + x - 1) / (1 - x)), log(x / (1 - x)));
}
TW_DEVICE L gelu_erf(L x) { return x * normal_share(x); }
TW_DEVICE L gelu_erf_slope(L x) { return normal_share(x) + x * normal_density(x); }
TW_DEVICE L gelu_tanh(L x) {
  return x * sigmoid(x * (1.5957691216057308 + minimum(x * x, 1000) * 0.07135481627260025));
}
#else
TW_DEVICE L operator/(L a, L b) { return b.v == 0 ? T(0) : T(a.v / b.v); }
TW_DEVICE L operator&(L a, L b) { return T(a.v & b.v); }
TW_DEVICE L operator|(L a, L b) { return T(a.v | b.v); }
TW_DEVICE L operator^(L a, L b) { return T(a.v ^ b.v); }
TW_DEVICE L abs(L x) { return IsSigned<T>::value && x.v < T(0) ? (-x).v : x.v; }
TW_DEVICE L floor(L x) { return x; }
TW_DEVICE L ceil(L x) { return x; }
TW_DEVICE L trunc(L x) { return x; }
TW_DEVICE L round(L x) { return x; }
TW_DEVICE bool isnan(L) { return false; }
TW_DEVICE bool isinf(L) { return false; }
TW_DEVICE bool isfinite(L) { return true; }
TW_DEVICE L floor_divide(L a, L b) {
  if (b.v == 0) return T(0);
  if (IsSigned<T>::value && b.v == T(-1)) return -a;  // the division would trap or overflow
  const T q = a.v / b.v;
  return T(q - T(q * b.v != a.v && (a.v < T(0)) != (b.v < T(0))));
}
TW_DEVICE L remainder(L a, L b) {
  if (b.v == 0 || (IsSigned<T>::value && b.v == T(-1))) return T(0);
  const T r = a.v % b.v;
  return T(r != 0 && (r < T(0)) != (b.v < T(0)) ? r + b.v : r);
}
// Modulo 2^bits. A negative exponent gives the reciprocal's whole part: 0, 1 or -1.
TW_DEVICE L pow(L a, L b) {
  using U = typename Unsigned<T>::type;
  if (IsSigned<T>::value && b.v < T(0))
    return a.v == 1 ? T(1) : a.v == T(-1) ? T(b.v & 1 ? -1 : 1) : T(0);
  U y = 1, x = U(a.v);
  for (U n = U(b.v); n != 0; n >>= 1, x *= x)
    if (n & 1) y *= x;
  return T(y);
}
// Counts outside the type's width, negative ones included, shift every bit out.
TW_DEVICE L bitwise_left_shift(L a, L b) {
  using U = typename Unsigned<T>::type;
  return U(b.v) >= 8 * sizeof(T) ? T(0) : T(U(a.v) << b.v);
}
TW_DEVICE L bitwise_right_shift(L a, L b) {
  using U = typename Unsigned<T>::type;
  if (U(b.v) >= 8 * sizeof(T)) return IsSigned<T>::value && a.v < T(0) ? T(-1) : T(0);
  return T(a.v >> b.v);
}
#endif
#endif
