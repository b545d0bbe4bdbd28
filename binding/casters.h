// How nanobind converts the engine's types in signatures.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding/tensor_type.h"

namespace tw::binding {

// `dtype` objects; also accepted: Python's bool, int, float, complex, names, and anything whose `name`
// is one of ours (NumPy's dtypes). False, without an error set, for everything else.
bool read_dtype(PyObject* object, DType& out);
PyObject* wrap_dtype(DType dtype);  // new reference
void create_dtypes(nb::module_& module);

// The same for use where exceptions cannot pass; one in flight is dropped.
bool read_tensor(PyObject* object, Tensor& out) noexcept;
bool try_read_operand(PyObject* object, Operand& out) noexcept;

bool read_shape(PyObject* object, Shape& out);
PyObject* wrap_dims(const Dims& dims);

// A tensor as it is: what is no op takes it without the replacement that its forward hooks make.
struct Itself : Tensor {};

// Python's axis argument: None, an int or a tuple of ints.
struct AxisArgument {
  std::vector<std::int64_t> axes;
  bool none = true;
};

}  // namespace tw::binding

namespace nanobind::detail {

template <> struct type_caster<tw::Tensor> {
  NB_TYPE_CASTER(tw::Tensor, const_name("Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!tw::binding::is_tensor(source.ptr())) return false;
    return tw::binding::read_tensor(source.ptr(), value);
  }
  static handle from_cpp(const tw::Tensor& tensor, rv_policy, cleanup_list*) noexcept {
    return tw::binding::wrap(tensor);
  }
};

template <> struct type_caster<tw::binding::Itself> {
  NB_TYPE_CASTER(tw::binding::Itself, const_name("Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!tw::binding::is_tensor(source.ptr())) return false;
    static_cast<tw::Tensor&>(value) = tw::binding::raw_tensor(source.ptr());
    return true;
  }
};

template <> struct type_caster<tw::Operand> {
  using Value = tw::Operand;
  static constexpr auto Name = const_name("Tensor | bool | int | float | complex");
  template <typename T> using Cast = movable_cast_t<T>;
  template <typename T> static constexpr bool can_cast() { return true; }
  tw::Operand value = tw::Operand(0);
  explicit operator tw::Operand*() { return &value; }
  explicit operator tw::Operand&() { return value; }
  explicit operator tw::Operand&&() { return (tw::Operand&&)value; }
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return tw::binding::try_read_operand(source.ptr(), value);
  }
};

template <> struct type_caster<tw::Scalar> {
  NB_TYPE_CASTER(tw::Scalar, const_name("bool | int | float | complex"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    try {
      return tw::binding::read_scalar(source.ptr(), value);
    } catch (...) {
      return false;
    }
  }
};

template <> struct type_caster<tw::DType> {
  NB_TYPE_CASTER(tw::DType, const_name("dtype"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return tw::binding::read_dtype(source.ptr(), value);
  }
  static handle from_cpp(tw::DType dtype, rv_policy, cleanup_list*) noexcept {
    return tw::binding::wrap_dtype(dtype);
  }
};

template <> struct type_caster<tw::Dims> {
  NB_TYPE_CASTER(tw::Dims, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    try {
      return tw::binding::read_shape(source.ptr(), value);
    } catch (...) {
      return false;
    }
  }
  static handle from_cpp(const tw::Dims& dims, rv_policy, cleanup_list*) noexcept {
    return tw::binding::wrap_dims(dims);
  }
};

template <> struct type_caster<tw::binding::AxisArgument> {
  NB_TYPE_CASTER(tw::binding::AxisArgument,
                 const_name("int | collections.abc.Sequence[int] | None"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    value = {};
    if (source.is_none()) return true;
    tw::Shape axes;
    try {
      if (!tw::binding::read_shape(source.ptr(), axes)) return false;
    } catch (...) {
      return false;
    }
    value.none = false;
    value.axes.assign(axes.begin(), axes.end());
    return true;
  }
};

}  // namespace nanobind::detail
