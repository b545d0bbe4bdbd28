// How nanobind converts the engine's types in signatures.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "binding/tensor/tensor_type.h"

namespace tw::binding {

// `dtype` objects; also accepted: Python's bool, int, float, complex, names, and anything whose
// `name` is one of ours (NumPy's dtypes). False, without an error set, for everything else.
bool read_dtype(PyObject* object, DType& out);
// The same, but raises TypeError that lists the names for text and types that name no dtype.
bool require_dtype(PyObject* object, DType& out);
PyObject* wrap_dtype(DType dtype);  // new reference
void create_dtypes(nb::module_& module);
// ValuesAndIndices, what ops give that choose elements along an axis.
void create_pair_type(nb::module_& module);
PyObject* wrap_pair(const Tensor& values, const Tensor& indices);

// Tensors as ops take them: forward hooks run, and may raise.
bool read_tensor(PyObject* object, Tensor& out);
bool read_tensors(PyObject* object, std::vector<Tensor>& out);

// False, without an error set, for what is no whole number of 64 bits, and for bool.
bool read_integer(PyObject* object, std::int64_t& out);
// False for None. Raises for what names no device.
bool read_device(nb::handle object, const Device*& out);

bool read_shape(PyObject* object, Shape& out);
// The same with kNone for None, which leaves a size to the op.
bool read_sizes(PyObject* object, Shape& out);
PyObject* wrap_dims(const Dims& dims);
// A measured number, or None where there is none.
inline nb::object or_none(double value) {
  return value > 0 ? nb::object(nb::float_(value)) : nb::none();
}

// A tensor argument of a function that is no op (backward, hooks, printing): forward hooks, which
// may replace the value that an op reads, do not run for it.
struct Itself : Tensor {};

// What an op writes to, such as parameters: as they are.
bool read_targets(PyObject* object, std::vector<Tensor>& out);

// What a signature says of a type, as a template's argument.
template <std::size_t size> struct Annotation {
  char text[size];
  consteval Annotation(const char (&words)[size]) { std::copy_n(words, size, text); }
};

// An object whose type the signature gives by this text, for whoever reads it: nothing is checked
// here.
template <Annotation words> class Annotated : public nb::object {
  static bool any(PyObject*) { return true; }
  NB_OBJECT_DEFAULT(Annotated, nb::object, words.text, any)
  Annotated(nb::object x) : nb::object(std::move(x)) {}
};
using AnnotatedDevice = Annotated<"str">;  // for read_device

// Python's axis argument: None, an int or a tuple of ints.
struct AxisArgument {
  std::vector<std::int64_t> axes;
  bool none = true;
};

}  // namespace tw::binding

namespace nanobind::detail {

template <> struct type_caster<tw::binding::Itself> {
  NB_TYPE_CASTER(tw::binding::Itself, const_name("Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (!tw::binding::is_tensor(source.ptr())) return false;
    static_cast<tw::Tensor&>(value) = tw::binding::current_tensor(source.ptr());
    return true;
  }
};

// A caster whose errors carry a message: reading must not raise, so the error waits in the caster
// until the argument is handed to the function. `read(handle, value)` says whether the type is
// right at all.
#define TW_RAISING_CASTER(Type, text, read, initial)                      \
  using Value = Type;                                                     \
  static constexpr auto Name = const_name(text);                          \
  template <typename T> using Cast = movable_cast_t<T>;                   \
  template <typename T> static constexpr bool can_cast() { return true; } \
  Type value = initial;                                                   \
  std::exception_ptr error;                                               \
  Type& checked() {                                                       \
    if (error) std::rethrow_exception(error);                             \
    return value;                                                         \
  }                                                                       \
  explicit operator Type*() { return &checked(); }                        \
  explicit operator Type&() { return checked(); }                         \
  explicit operator Type&&() { return static_cast<Type&&>(checked()); }   \
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {      \
    try {                                                                 \
      return read(source.ptr(), value);                                   \
    } catch (...) {                                                       \
      error = std::current_exception();                                   \
      return true;                                                        \
    }                                                                     \
  }

template <> struct type_caster<tw::Tensor> {
  TW_RAISING_CASTER(tw::Tensor, "Tensor", tw::binding::read_tensor, tw::Tensor())
  static handle from_cpp(const tw::Tensor& tensor, rv_policy, cleanup_list*) noexcept {
    return tw::binding::wrap(tensor);
  }
};

template <> struct type_caster<std::vector<tw::Tensor>> {
  TW_RAISING_CASTER(std::vector<tw::Tensor>, "collections.abc.Sequence[Tensor]",
                    tw::binding::read_tensors, {})
  static handle from_cpp(const std::vector<tw::Tensor>& tensors, rv_policy,
                         cleanup_list*) noexcept {
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(tensors.size()));
    for (std::size_t i = 0; list && i < tensors.size(); ++i)
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), tw::binding::wrap(tensors[i]));
    return list;
  }
};

template <> struct type_caster<tw::Operand> {
  TW_RAISING_CASTER(tw::Operand, "Tensor | bool | int | float | complex", tw::binding::read_operand,
                    tw::Operand(0))
};

template <> struct type_caster<tw::Scalar> {
  TW_RAISING_CASTER(tw::Scalar, "bool | int | float | complex", tw::binding::read_number,
                    tw::Scalar(0))
};

template <> struct type_caster<tw::DType> {
  TW_RAISING_CASTER(tw::DType, "dtype", tw::binding::require_dtype, tw::DType::float32)
  static handle from_cpp(tw::DType dtype, rv_policy, cleanup_list*) noexcept {
    return tw::binding::wrap_dtype(dtype);
  }
};

template <> struct type_caster<tw::Dims> {
  TW_RAISING_CASTER(tw::Dims, "int | collections.abc.Sequence[int]", tw::binding::read_shape,
                    tw::Dims())
  static handle from_cpp(const tw::Dims& dims, rv_policy, cleanup_list*) noexcept {
    return tw::binding::wrap_dims(dims);
  }
};

// nanobind's own caster of std::optional reads where nothing may raise, so these have their own.
template <class T, bool (*read)(PyObject*, T&)>
bool read_optional(PyObject* object, std::optional<T>& out) {
  out.reset();
  if (object == Py_None) return true;
  if constexpr (std::is_same_v<T, tw::Operand>) {
    return read(object, out.emplace(0));
  } else {
    return read(object, out.emplace());
  }
}
#define TW_OPTIONAL_CASTER(Type, text, read)                            \
  template <> struct type_caster<std::optional<Type>> {                 \
    using Optional = std::optional<Type>;                               \
    static constexpr auto read_value = read_optional<Type, read>;       \
    TW_RAISING_CASTER(Optional, text " | None", read_value, Optional()) \
  };
TW_OPTIONAL_CASTER(tw::Tensor, "Tensor", tw::binding::read_tensor)
TW_OPTIONAL_CASTER(tw::Operand, "Tensor | bool | int | float | complex", tw::binding::read_operand)
TW_OPTIONAL_CASTER(tw::Scalar, "bool | int | float | complex", tw::binding::read_number)
TW_OPTIONAL_CASTER(tw::DType, "dtype", tw::binding::require_dtype)
TW_OPTIONAL_CASTER(tw::Dims, "int | collections.abc.Sequence[int]", tw::binding::read_shape)

// Whole numbers of arguments: anything with __index__ but bool, which is no number of axes, of
// elements or of anything else.
template <> struct type_caster<std::int64_t> {
  NB_TYPE_CASTER(std::int64_t, const_name("int"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return tw::binding::read_integer(source.ptr(), value);
  }
  static handle from_cpp(std::int64_t value, rv_policy, cleanup_list*) noexcept {
    return PyLong_FromLongLong(value);
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
