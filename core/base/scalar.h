// A Python-like number. Weak in promotion: it takes the tensors' type where its kind allows.
#pragma once
#include "core/base/dtype.h"

namespace tw {

struct Scalar {
  enum class Kind : std::uint8_t { boolean, integer, floating, complex };
  Kind kind;
  // Which types hold an integer: from 2^63 on `i` has the bits of the uint64, and of wider ones
  // only `re` tells.
  enum class Reach : std::uint8_t { int64, uint64, wider, none } reach;
  std::int64_t i;  // boolean and integer
  double re, im;

  Scalar() = default;  // uninitialised, for arrays
  Scalar(bool value) : kind(Kind::boolean), reach(Reach::int64), i(value), re(value), im(0) {}
  Scalar(int value) : Scalar(static_cast<std::int64_t>(value)) {}
  Scalar(std::int64_t value)
      : kind(Kind::integer), reach(Reach::int64), i(value), re(static_cast<double>(value)), im(0) {}
  Scalar(double value) : kind(Kind::floating), reach(Reach::int64), i(0), re(value), im(0) {}
  Scalar(double re, double im) : kind(Kind::complex), reach(Reach::int64), i(0), re(re), im(im) {}
  static Scalar of_uint64(std::uint64_t value) {
    Scalar scalar(static_cast<std::int64_t>(value));
    if (scalar.i < 0) scalar.reach = Reach::uint64;
    scalar.re = static_cast<double>(value);
    return scalar;
  }
  static Scalar of_wider_integer(double value) {
    Scalar scalar(0);
    scalar.reach = Reach::wider;
    scalar.re = value;
    return scalar;
  }
  // Stands for no number at all.
  static Scalar none() {
    Scalar scalar(0);
    scalar.reach = Reach::none;
    return scalar;
  }
  bool absent() const { return reach == Reach::none; }
  // Type of a tensor made from this number alone.
  DType natural_dtype() const;
  // Writes the value as `dtype` to `out`; raises OverflowError when an integer type cannot hold it.
  void store(DType dtype, void* out, const char* op) const;
};

// Common type of tensors and weak scalars: scalars only decide where their kind is above the
// tensors'.
DType weak_promote(DType tensors, const Scalar& scalar);
// Floating types stay; integers and bool become the default one.
DType floating_dtype(DType dtype);
// What a complex number makes of tensors of a type.
DType complex_beside(DType dtype);
// What several ops in a row are computed in: 16-bit floating numbers become float32, as they would
// overflow on the way and be rounded at every step.
DType working_dtype(DType dtype);

}  // namespace tw
