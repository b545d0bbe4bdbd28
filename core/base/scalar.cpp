// Weak promotion and exact storage of plain numbers.
#include "core/base/scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace tw {

DType Scalar::natural_dtype() const {
  if (kind == Kind::integer && reach == Reach::wider)
    fail(ErrorKind::overflow,
         "an integer beyond 64 bits needs a floating dtype; write it as a float");
  if (kind == Kind::integer && reach == Reach::uint64) return DType::uint64;
  const DType types[] = {DType::bool_, DType::int64, default_dtype(),
                         complex_dtype(default_dtype())};
  return types[static_cast<int>(kind)];
}

namespace {

template <class T> void store_integer(std::int64_t value, void* out, DType dtype, const char* op) {
  const bool fits = std::is_same_v<T, std::uint64_t>
                        ? value >= 0
                        : value >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
                              (sizeof(T) == 8 ||
                               value <= static_cast<std::int64_t>(std::numeric_limits<T>::max()));
  if (!fits) fail(ErrorKind::overflow, op, ": ", value, " does not fit ", name_of(dtype));
  *static_cast<T*>(out) = static_cast<T>(value);
}

// The bits of the nearest number with so many bits of exponent and mantissa, ties to even.
template <int exponent_bits, int mantissa_bits> std::uint16_t narrowed(double value) {
  constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  constexpr std::uint16_t kInfinity = ((1 << exponent_bits) - 1) << mantissa_bits;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) << 15);
  const double size = std::abs(value);
  if (size == 0) return sign;
  if (std::isnan(size)) return sign | kInfinity | 1 << (mantissa_bits - 1);
  int exponent;  // of a number in [1, 2); denormals are counted in steps of the least normal one's
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, 1 - kBias);
  if (std::isinf(size) || exponent > kBias) return sign | kInfinity;
  const auto steps =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, mantissa_bits - exponent)));
  // A carry out of the mantissa is one step of the exponent, up to infinity.
  const std::uint32_t base = static_cast<std::uint32_t>(exponent + kBias - 1) << mantissa_bits;
  return sign | static_cast<std::uint16_t>(std::min<std::uint32_t>(base + steps, kInfinity));
}

}  // namespace

void Scalar::store(DType dtype, void* out, const char* op) const {
  if (kind == Kind::complex && !is_complex(dtype))
    fail(ErrorKind::type, op, ": a complex number does not fit ", name_of(dtype));
  if (is_integer(dtype)) {
    if (reach == Reach::wider)
      fail(ErrorKind::overflow, op, ": the integer ", re, " does not fit ", name_of(dtype));
    if (reach == Reach::uint64) {
      if (dtype != DType::uint64)
        fail(ErrorKind::overflow, op, ": ", static_cast<std::uint64_t>(i), " does not fit ",
             name_of(dtype));
      *static_cast<std::int64_t*>(out) = i;
      return;
    }
    std::int64_t value = i;
    if (kind == Kind::floating) {
      if (dtype == DType::uint64 && re >= 0x1p63 && re < 0x1p64) {
        *static_cast<std::uint64_t*>(out) = static_cast<std::uint64_t>(re);
        return;
      }
      if (!(re >= -0x1p63 && re < 0x1p63))
        fail(ErrorKind::overflow, op, ": ", re, " does not fit ", name_of(dtype));
      value = static_cast<std::int64_t>(re);
    }
    visit(dtype, [&](auto sample) {
      using T = decltype(sample);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        store_integer<T>(value, out, dtype, op);
    });
    return;
  }
  if (dtype == DType::complex64) {
    *static_cast<Complex64*>(out) = {static_cast<float>(re), static_cast<float>(im)};
    return;
  }
  if (dtype == DType::complex128) {
    *static_cast<Complex128*>(out) = {re, im};
    return;
  }
  if (kind == Kind::integer && dtype == DType::bool_) {
    *static_cast<bool*>(out) = re != 0;
    return;
  }
  switch (dtype) {
    case DType::bool_: *static_cast<bool*>(out) = re != 0; return;
    case DType::float16: *static_cast<std::uint16_t*>(out) = narrowed<5, 10>(re); return;
    case DType::bfloat16: *static_cast<std::uint16_t*>(out) = narrowed<8, 7>(re); return;
    case DType::float32: *static_cast<float*>(out) = static_cast<float>(re); return;
    default: *static_cast<double*>(out) = re;
  }
}

DType floating_dtype(DType dtype) {
  return is_floating(dtype) || is_complex(dtype) ? dtype : default_dtype();
}

DType working_dtype(DType dtype) {
  return is_floating(dtype) && size_of(dtype) == 2 ? DType::float32 : dtype;
}

DType complex_beside(DType dtype) {
  return is_complex(dtype) ? dtype : complex_dtype(working_dtype(floating_dtype(dtype)));
}

DType weak_promote(DType tensors, const Scalar& scalar) {
  switch (scalar.kind) {
    case Scalar::Kind::boolean: return tensors;
    case Scalar::Kind::integer: return is_bool(tensors) ? DType::int64 : tensors;
    case Scalar::Kind::floating: return floating_dtype(tensors);
    case Scalar::Kind::complex: return complex_beside(tensors);
  }
  __builtin_unreachable();
}

}  // namespace tw
