// Weak promotion and exact storage of plain numbers.
#include "core/ops/operand.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/cpu/convert.h"

namespace tw {

DType Scalar::natural_dtype() const {
  if (kind == Kind::integer && reach == Reach::wider)
    fail(ErrorKind::overflow,
         "an integer beyond 64 bits needs a floating dtype; write it as a float");
  if (kind == Kind::integer && reach == Reach::uint64) return DType::uint64;
  constexpr DType kTypes[] = {DType::bool_, DType::int64, DType::float32, DType::complex64};
  return kTypes[static_cast<int>(kind)];
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
      if (!(std::abs(re) < 9.2e18))
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
  if (kind == Kind::integer && dtype == DType::bool_) {
    *static_cast<bool*>(out) = re != 0;
    return;
  }
  convert_elements(DType::float64, dtype, 1, &re, 0, out, 0);
}

DType floating_dtype(DType dtype) {
  return is_floating(dtype) || is_complex(dtype) ? dtype : DType::float32;
}

DType working_dtype(DType dtype) {
  return is_floating(dtype) && size_of(dtype) == 2 ? DType::float32 : dtype;
}

DType weak_promote(DType tensors, const Scalar& scalar) {
  switch (scalar.kind) {
    case Scalar::Kind::boolean: return tensors;
    case Scalar::Kind::integer: return is_bool(tensors) ? DType::int64 : tensors;
    case Scalar::Kind::floating: return floating_dtype(tensors);
    case Scalar::Kind::complex: return DType::complex64;
  }
  __builtin_unreachable();
}

}  // namespace tw
