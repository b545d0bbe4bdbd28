// Functions of complex numbers, in double. Special cases are those of C99's Annex G. Inverse
// functions after W. Kahan, "Branch Cuts for Complex Elementary Functions" (1987): by square roots
// whose arguments do not cancel. Read by math.cuh.
using Z = complex128;

TW_DEVICE L operator/(L a, L b) { return a.v / b.v; }
TW_DEVICE bool isnan(L z) { return z.v.re != z.v.re || z.v.im != z.v.im; }
TW_DEVICE bool is_infinite(double x) { return x == TW_INFINITY || x == -TW_INFINITY; }
TW_DEVICE bool isinf(L z) { return is_infinite(z.v.re) || is_infinite(z.v.im); }
TW_DEVICE bool is_finite(double x) { return x - x == 0; }
TW_DEVICE bool is_finite(Z z) { return is_finite(z.re) && is_finite(z.im); }
TW_DEVICE bool isfinite(L z) { return is_finite(z.v.re) && is_finite(z.v.im); }

constexpr double kLn2 = 0.6931471805599453, kHalfPi = 1.5707963267948966;
// Squares of what is beyond, or below, are no normal numbers.
constexpr double kLarge = 6.7e153, kSmall = 1.5e-154;
TW_DEVICE bool is_large(Z z) { return ::fabs(z.re) > kLarge || ::fabs(z.im) > kLarge; }

// (x + iy) i and -(x + iy) i, without a product.
TW_DEVICE Z times_i(Z z) { return {-z.im, z.re}; }
TW_DEVICE Z over_i(Z z) { return {z.im, -z.re}; }

// log |z|: near 1 by what is left beside it, elsewhere without under- and overflow.
TW_DEVICE double log_size(Z z) {
  const double x = ::fabs(z.re), y = ::fabs(z.im);
  const double most = x > y ? x : y, least = x > y ? y : x, size = ::hypot(x, y);
  if (size > 0.71 && size < 1.73) return ::log1p((most - 1) * (most + 1) + least * least) / 2;
  if (most > kLarge) return ::log(::hypot(x / 2, y / 2)) + kLn2;
  if (most < kSmall && most > 0)
    return ::log(::hypot(::ldexp(x, 600), ::ldexp(y, 600))) - 600 * kLn2;
  return ::log(size);
}

TW_DEVICE Z log_of(Z z) { return {log_size(z), ::atan2(z.im, z.re)}; }

TW_DEVICE Z exp_of(Z z) {
  if (z.im == 0) return {::exp(z.re), z.im};
  if (z.re == -TW_INFINITY && !is_finite(z.im)) return {0., 0.};
  if (z.re == TW_INFINITY && !is_finite(z.im)) return {z.re, TW_NAN};
  // In two factors: their product may be a number where e^x is none.
  const double c = ::cos(z.im), s = ::sin(z.im);
  if (z.re > 700 && is_finite(z.re)) {
    const double half = ::exp(z.re / 2);
    return {half * c * half, half * s * half};
  }
  const double e = ::exp(z.re);
  return {e * c, e * s};
}
TW_DEVICE Z expm1_of(Z z) {
  if (z.im == 0) return {::expm1(z.re) + 0., z.im};
  const Z e = exp_of(z);
  if (!is_finite(z)) return {e.re - 1, e.im};
  const double half = ::sin(z.im / 2);
  return {::expm1(z.re) * ::cos(z.im) - 2 * half * half, e.im};
}
TW_DEVICE Z log1p_of(Z z) {
  const double x = z.re, y = z.im;
  if (!is_finite(z) || ::fabs(x) > 0.5 || ::fabs(y) > 0.5) return log_of({1 + x, y});
  return {0.5 * ::log1p(x * (2 + x) + y * y), ::atan2(y, 1 + x)};
}

TW_DEVICE Z sqrt_of(Z z) {
  const double x = z.re, y = z.im;
  if (is_infinite(y)) return {::fabs(y), y};
  if (x == TW_INFINITY) return {x, y != y ? y : ::copysign(0., y)};
  if (x == -TW_INFINITY) return {y != y ? y : 0., ::copysign(::fabs(x), y)};
  if (x != x || y != y) return {x + y, x + y};
  if (x == 0 && y == 0) return {0., y};
  // Scaled by a power of four so that no square under- or overflows.
  const double most = ::fabs(x) > ::fabs(y) ? ::fabs(x) : ::fabs(y);
  const int power = most > kLarge ? -1024 : most < kSmall ? 600 : 0;
  const double a = ::ldexp(::fabs(x), power), b = ::ldexp(::fabs(y), power);
  const double s = ::ldexp(::sqrt((a + ::hypot(a, b)) / 2), -power / 2);
  const double d = ::fabs(y) / (2 * s);
  if (x >= 0) return {s, ::copysign(d, y)};
  return {d, ::copysign(s, y)};
}

// e^|x| / 2 times c and s, of x so large that e^-|x| is nothing beside it.
TW_DEVICE Z large_half_exp(double x, double c, double s) {
  const double half = ::exp(::fabs(x) / 2);
  return {half * c / 2 * half, half * s / 2 * half};
}
TW_DEVICE Z sinh_of(Z z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::sinh(x), y};
  if (!is_finite(y)) {
    if (x == 0 || is_infinite(x)) return {x, TW_NAN};
    return {TW_NAN, TW_NAN};
  }
  const double c = ::cos(y), s = ::sin(y);
  if (x == 0) return {x, s};
  if (is_finite(x) && ::fabs(x) > 700) return large_half_exp(x, ::copysign(1., x) * c, s);
  return {::sinh(x) * c, ::cosh(x) * s};
}
TW_DEVICE Z cosh_of(Z z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::cosh(x), x != x ? y : ::copysign(1., x) * y};
  if (!is_finite(y)) {
    if (x == 0) return {TW_NAN, x};
    if (is_infinite(x)) return {::fabs(x), TW_NAN};
    return {TW_NAN, TW_NAN};
  }
  const double c = ::cos(y), s = ::sin(y);
  if (x == 0) return {c, x * s};
  if (is_finite(x) && ::fabs(x) > 700) return large_half_exp(x, c, ::copysign(1., x) * s);
  return {::cosh(x) * c, ::sinh(x) * s};
}
TW_DEVICE Z tanh_of(Z z) {
  const double x = z.re, y = z.im;
  if (is_infinite(x)) return {::copysign(1., x), ::copysign(0., y)};
  if (x != x) return {x, y == 0 ? y : x};
  if (!is_finite(y)) return {x == 0 ? x : TW_NAN, TW_NAN};
  if (::fabs(x) >= 22) {
    const double e = ::exp(-::fabs(x));
    return {::copysign(1., x), 4 * ::sin(y) * ::cos(y) * e * e};
  }
  const double t = ::tan(y), s = ::sinh(x), beta = 1 + t * t, rho = ::sqrt(1 + s * s);
  const double size = 1 + beta * s * s;
  return {beta * rho * s / size, t / size};
}
TW_DEVICE Z turned(Z z) { return {z.im, z.re}; }
TW_DEVICE Z sin_of(Z z) { return turned(sinh_of(turned(z))); }
TW_DEVICE Z cos_of(Z z) { return cosh_of(times_i(z)); }
TW_DEVICE Z tan_of(Z z) { return turned(tanh_of(turned(z))); }

TW_DEVICE Z asinh_of(Z z) {
  const double x = z.re, y = z.im;
  if (x != x || y != y) {
    if (is_infinite(x)) return {x, TW_NAN};
    if (is_infinite(y)) return {y, TW_NAN};
    return {TW_NAN, y == 0 ? y : TW_NAN};
  }
  if (is_large(z)) return {::copysign(log_size(z) + kLn2, x), ::atan2(y, ::fabs(x))};
  const Z a = sqrt_of({1 + y, -x}), b = sqrt_of({1 - y, x});
  return {::asinh(a.re * b.im - b.re * a.im), ::atan2(y, a.re * b.re - a.im * b.im)};
}
TW_DEVICE Z acos_of(Z z) {
  const double x = z.re, y = z.im;
  if (x != x || y != y) {
    if (is_infinite(x)) return {TW_NAN, x};
    if (is_infinite(y)) return {TW_NAN, -y};
    return {x == 0 ? kHalfPi : TW_NAN, TW_NAN};
  }
  if (is_large(z)) return {::atan2(::fabs(y), x), ::copysign(log_size(z) + kLn2, -y)};
  const Z a = sqrt_of({1 - x, -y}), b = sqrt_of({1 + x, y});
  return {2 * ::atan2(a.re, b.re), ::asinh(b.re * a.im - b.im * a.re)};
}
TW_DEVICE Z acosh_of(Z z) {
  const double x = z.re, y = z.im;
  if (x != x || y != y) {
    if (is_infinite(x) || is_infinite(y)) return {TW_INFINITY, TW_NAN};
    return {TW_NAN, x == 0 ? kHalfPi : TW_NAN};
  }
  if (is_large(z)) return {log_size(z) + kLn2, ::atan2(y, x)};
  const Z a = sqrt_of({x - 1, y}), b = sqrt_of({x + 1, y});
  return {::asinh(a.re * b.re + a.im * b.im), 2 * ::atan2(a.im, b.re)};
}
TW_DEVICE Z atanh_of(Z z) {
  const double sign = ::copysign(1., z.re), x = ::fabs(z.re), y = z.im, size = ::fabs(y);
  if (x != x || y != y) {
    if (is_infinite(x)) return {sign * 0., TW_NAN};
    if (is_infinite(y)) return {sign * 0., ::copysign(kHalfPi, y)};
    return {x == 0 ? z.re : TW_NAN, TW_NAN};
  }
  if (x > kLarge || size > kLarge) {
    const double h = ::hypot(x / 2, y / 2);
    return {is_finite(h) ? sign * (x / 4 / h / h) : sign * 0., ::copysign(kHalfPi, y)};
  }
  if (x == 1 && size < kSmall) {
    if (size == 0) return {sign * TW_INFINITY, y};
    return {-sign * ::log(::sqrt(size) / ::sqrt(::hypot(size, 2.))),
            ::copysign(::atan2(2., -size), y) / 2};
  }
  const double re = ::log1p(4 * x / ((1 - x) * (1 - x) + size * size)) / 4;
  return {sign * re, ::atan2(2 * y, (1 - x) * (1 + x) - size * size) / 2};
}
TW_DEVICE Z asin_of(Z z) { return over_i(asinh_of(times_i(z))); }
TW_DEVICE Z atan_of(Z z) { return over_i(atanh_of(times_i(z))); }

// Small whole powers by multiplication, exact where their result is; n from 1 on. No factor is 1: a
// part of it, 0, would make NaN of an infinity.
TW_DEVICE Z repeated_product(Z a, int n) {
  for (; n % 2 == 0; n /= 2) a = a * a;
  Z y = a;
  while (n /= 2) {
    a = a * a;
    if (n % 2) y = y * a;
  }
  return y;
}
// As large as 1 on the way, so that each part leaves the range where the result's does.
TW_DEVICE Z scaled_power(Z a, int n) {
  const int exponent = ::ilogb(::fmax(::fabs(a.re), ::fabs(a.im)));
  Z y = repeated_product({::ldexp(a.re, -exponent), ::ldexp(a.im, -exponent)}, n < 0 ? -n : n);
  if (n < 0) y = Z(1.) / y;
  return {::ldexp(y.re, exponent * n), ::ldexp(y.im, exponent * n)};
}
TW_DEVICE Z whole_power(Z a, int n) {
  const Z y = repeated_product(a, n < 0 ? -n : n);
  const double size = ::fmax(::fabs(y.re), ::fabs(y.im));
  const bool in_range = size > 0x1p-900 && size < 0x1p900;
  if (!in_range && ::isfinite(a.re) && ::isfinite(a.im)) return scaled_power(a, n);
  return n < 0 ? Z(1.) / y : y;
}
TW_DEVICE Z pow_of(Z a, Z b) {
  constexpr double kMostFactors = 100;
  if (b == Z(0)) return 1.;
  if (a == Z(0)) {
    if (b.re > 0) return 0.;
    return {TW_NAN, TW_NAN};
  }
  if (b.im == 0 && ::fabs(b.re) < kMostFactors && b.re == ::trunc(b.re))
    return whole_power(a, int(b.re));
  return exp_of(b * log_of(a));
}

// The formulas' names.
TW_DEVICE Z wide(L z) { return convert<Z>(z.v); }
TW_DEVICE L narrow(Z z) { return convert<T>(z); }
TW_DEVICE L pow(L a, L b) { return narrow(pow_of(wide(a), wide(b))); }
TW_DEVICE L round(L z) { return T(::rint(z.v.re), ::rint(z.v.im)); }
TW_DEVICE L log_to_base(L z, double factor) {
  const Z log = log_of(wide(z));
  return narrow({log.re * factor, log.im * factor});
}
TW_DEVICE L log2(L z) { return log_to_base(z, 1.4426950408889634); }
TW_DEVICE L log10(L z) { return log_to_base(z, 0.4342944819032518); }
#define TW_MATH(name) \
  TW_DEVICE L name(L z) { return narrow(name##_of(wide(z))); }
TW_MATH(sqrt)
TW_MATH(exp)
TW_MATH(expm1)
TW_MATH(log)
TW_MATH(log1p)
TW_MATH(sin)
TW_MATH(cos)
TW_MATH(tan)
TW_MATH(asin)
TW_MATH(acos)
TW_MATH(atan)
TW_MATH(sinh)
TW_MATH(cosh)
TW_MATH(tanh)
TW_MATH(asinh)
TW_MATH(acosh)
TW_MATH(atanh)
#undef TW_MATH
