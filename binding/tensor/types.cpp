// dtype objects, shapes as tuples, and the family of error types.
#include <algorithm>
#include <string_view>

#include "binding/tensor/casters.h"
#include "binding/tensor/text.h"
#include "core/base/error.h"
#include "core/runtime/device.h"
#include "core/runtime/op.h"

namespace tw::binding {

namespace {

struct DTypeObject {
  DType type;
};

PyObject* dtype_objects[kDTypes];

struct ErrorType {
  const char* name;
  PyObject** base;
};
// In the order of ErrorKind.
const ErrorType kErrorTypes[] = {{"InvalidValueError", &PyExc_ValueError},
                                 {"InvalidTypeError", &PyExc_TypeError},
                                 {"InvalidIndexError", &PyExc_IndexError},
                                 {"OutOfMemoryError", &PyExc_MemoryError},
                                 {"StateError", &PyExc_RuntimeError},
                                 {"NumberTooLargeError", &PyExc_OverflowError},
                                 {"UnsupportedError", &PyExc_NotImplementedError},
                                 {"ExchangeError", &PyExc_BufferError},
                                 {"FileError", &PyExc_OSError}};
PyObject* error_types[std::size(kErrorTypes)];

PyTypeObject* pair_type;  // ValuesAndIndices

}  // namespace

// What C++ itself throws where something was larger, or something else, than was asked for.
static bool set_standard_error(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error))
    set_error({ErrorKind::memory, "out of memory"});
  else if (dynamic_cast<const std::bad_cast*>(&error))
    set_error({ErrorKind::type, "an object has another type than was asked for"});
  else
    return false;
  return true;
}

void create_error_types(nb::module_& m) {
  PyObject* family = PyErr_NewExceptionWithDoc("tilewright.Error",
                                               "Base of all errors that Tilewright raises itself.",
                                               PyExc_Exception, nullptr);
  m.attr("Error") = nb::borrow(family);
  for (std::size_t i = 0; i < std::size(kErrorTypes); ++i) {
    const ErrorType& type = kErrorTypes[i];
    const nb::object bases = nb::make_tuple(nb::borrow(family), nb::borrow(*type.base));
    const std::string name = std::string("tilewright.") + type.name;
    error_types[i] = PyErr_NewException(name.c_str(), bases.ptr(), nullptr);
    if (!error_types[i]) throw nb::python_error();
    m.attr(type.name) = nb::borrow(error_types[i]);
  }
  nb::register_exception_translator([](const std::exception_ptr& current, void*) {
    try {
      std::rethrow_exception(current);
    } catch (const Error& error) {
      set_error(error);
    } catch (const std::exception& error) {
      if (!set_standard_error(error)) throw;
    }
  });
}

// Python picks FileNotFoundError, PermissionError and their like by errno.
static void set_system_error(const SystemFault& fault) {
  const nb::object path =
      nb::steal(PyUnicode_DecodeFSDefaultAndSize(fault.path.data(), std::ssize(fault.path)));
  if (!path.is_valid()) return;
  const nb::object error =
      nb::borrow(PyExc_OSError)(fault.code, nb::str(fault.fact.c_str(), fault.fact.size()), path);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

void set_error(const Error& error) {
  if (error.fault) return set_system_error(*error.fault);
  PyErr_SetString(error_types[static_cast<int>(error.kind)], error.what());
}

bool is_own_error(PyObject* type) {
  return std::find(std::begin(error_types), std::end(error_types), type) != std::end(error_types);
}

PyObject* raise_current() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    set_error(error);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    if (!set_standard_error(error)) PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
  return nullptr;
}

// A tuple whose places have PyTorch's names, as its own named results are.
void create_pair_type(nb::module_& m) {
  static PyStructSequence_Field fields[] = {{"values", "The elements."},
                                            {"indices", "Where they are along the axis, int64."},
                                            {nullptr, nullptr}};
  static PyStructSequence_Desc description = {
      "tilewright.ValuesAndIndices", "Elements of a tensor, and where they are.", fields, 2};
  pair_type = PyStructSequence_NewType(&description);
  if (!pair_type) throw nb::python_error();
  m.attr("ValuesAndIndices") = nb::borrow(reinterpret_cast<PyObject*>(pair_type));
}

PyObject* wrap_pair(const Tensor& values, const Tensor& indices) {
  PyObject* pair = PyStructSequence_New(pair_type);
  if (!pair) throw nb::python_error();
  PyStructSequence_SetItem(pair, 0, wrap(values));
  PyStructSequence_SetItem(pair, 1, wrap(indices));
  return pair;
}

const char* kind_of(DType type) {
  if (type == DType::bool_) return "b";
  if (is_complex(type)) return "c";
  if (is_floating(type)) return "f";
  return is_signed_int(type) ? "i" : "u";
}

void create_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(m, "dtype", "An element type.")
      .def_prop_ro("name", [](const DTypeObject& t) { return name_of(t.type); })
      .def_prop_ro(
          "itemsize", [](const DTypeObject& t) { return size_of(t.type); }, "Bytes an element.")
      .def_prop_ro(
          "kind", [](const DTypeObject& t) { return kind_of(t.type); },
          "NumPy's letter: 'b' of bool, 'i' and 'u' of integers with and without a sign, 'f' of "
          "floating, 'c' of complex numbers.")
      .def_prop_ro(
          "is_floating_point", [](const DTypeObject& t) { return is_floating(t.type); },
          "Whether it is a floating type; complex ones are not.")
      .def_prop_ro(
          "is_complex", [](const DTypeObject& t) { return is_complex(t.type); },
          "Whether it is a complex type.")
      .def_prop_ro(
          "is_signed",
          [](const DTypeObject& t) { return !is_bool(t.type) && !is_unsigned_int(t.type); },
          "Whether its numbers may be negative.")
      .def_prop_ro(
          "dtype", [](const DTypeObject& t)->Annotated<"typing.Any"> {
            // NumPy has no bfloat16: no attribute is what it takes for no type.
            if (t.type == DType::bfloat16) throw nb::attribute_error("NumPy has no bfloat16");
            return nb::module_::import_("numpy").attr("dtype")(name_of(t.type));
          },
          "NumPy's type, by which NumPy takes this one where it asks for a type.")
      .def("__repr__",
           [](const DTypeObject& t) { return std::string("tilewright.") + name_of(t.type); })
      .def("__str__", [](const DTypeObject& t) { return name_of(t.type); })
      .def("__hash__", [](const DTypeObject& t) { return index_of(t.type); })
      .def(
          "__eq__", [](const DTypeObject& a, nb::object b)->Annotated<"bool"> {
            if (!nb::isinstance<DTypeObject>(b)) return nb::borrow(Py_NotImplemented);
            return nb::bool_(a.type == nb::cast<DTypeObject&>(b).type);
          },
          nb::arg().none())
      // A name: pickle looks the object up in the module, and finds this very one.
      .def("__reduce__", [](const DTypeObject& t) { return name_of(t.type); });
  for (int i = 0; i < kDTypes; ++i) {
    const DType type = static_cast<DType>(i);
    nb::object object = nb::cast(DTypeObject{type});
    dtype_objects[i] = nb::borrow(object).release().ptr();
    m.attr(name_of(type)) = object;
  }
  m.def("_dtype_named", [](DType type) { return type; });
}

PyObject* wrap_dtype(DType dtype) { return Py_NewRef(dtype_objects[index_of(dtype)]); }

namespace {

bool read_dtype_name(std::string_view name, DType& out) {
  for (int i = 0; i < kDTypes; ++i) {
    if (name != name_of(static_cast<DType>(i))) continue;
    out = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace

bool read_dtype(PyObject* object, DType& out) {
  const nb::handle handle(object);
  if (nb::isinstance<DTypeObject>(handle)) {
    out = nb::inst_ptr<DTypeObject>(handle)->type;
    return true;
  }
  if (PyUnicode_Check(object)) return read_dtype_name(utf8_of(object), out);
  const std::pair<PyTypeObject*, DType> kPython[] = {
      {&PyBool_Type, DType::bool_},
      {&PyLong_Type, DType::int64},
      {&PyFloat_Type, default_dtype()},
      {&PyComplex_Type, complex_dtype(default_dtype())}};
  for (const auto& [type, dtype] : kPython) {
    if (object != reinterpret_cast<PyObject*>(type)) continue;
    out = dtype;
    return true;
  }
  for (const char* attribute : {"name", "__name__"}) {
    if (!PyObject_HasAttrString(object, attribute)) continue;
    const nb::object name = handle.attr(attribute);
    if (nb::isinstance<nb::str>(name) && read_dtype_name(utf8_of(name.ptr()), out)) return true;
  }
  return false;
}

bool read_tensor(PyObject* object, Tensor& out) {
  if (!is_tensor(object)) return false;
  out = unwrap(object);
  return true;
}

namespace {

template <class List, class Read> bool read_list(PyObject* object, List& out, Read read) {
  const nb::object items = nb::steal(PySequence_Fast(object, ""));
  if (!items.is_valid()) {
    PyErr_Clear();
    return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    if (!read(nb::object(nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i))).ptr(),
              out.emplace_back()))
      return false;
  return true;
}

}  // namespace

bool read_tensors(PyObject* object, std::vector<Tensor>& out) {
  return read_list(object, out, read_tensor);
}

bool read_targets(PyObject* object, std::vector<Tensor>& out) {
  return read_list(object, out, [](PyObject* item, Tensor& x) {
    if (!is_tensor(item)) return false;
    x = raw_tensor(item);
    return true;
  });
}

bool require_dtype(PyObject* object, DType& out) {
  if (read_dtype(object, out)) return true;
  std::string known;
  for (int i = 0; i < kDTypes; ++i)
    known += (i ? ", " : "") + std::string(name_of(static_cast<DType>(i)));
  fail(ErrorKind::type, "no dtype ", nb::cast<std::string>(nb::repr(nb::handle(object))),
       "; choose from ", known);
}

bool read_integer(PyObject* object, std::int64_t& out) {
  const bool exact = PyLong_CheckExact(object);
  if (!exact && (PyBool_Check(object) || !PyIndex_Check(object))) return false;
  // Its __index__ may take it out of the list that it is in.
  const nb::object held = exact ? nb::object() : nb::borrow(object);
  const Py_ssize_t value =
      exact ? PyLong_AsSsize_t(object) : PyNumber_AsSsize_t(object, PyExc_OverflowError);
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  out = value;
  return true;
}

static bool read_extents(PyObject* object, Shape& out, bool some_none) {
  out = Shape();
  std::int64_t extent;
  if (!PyList_Check(object) && !PyTuple_Check(object)) {
    if (!read_integer(object, extent) || (some_none && extent == kNone)) return false;
    out.push_back(extent);
    return true;
  }
  // Reading an element may run Python, which may change the list.
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(object, i);
    if (some_none && item == Py_None)
      extent = kNone;
    else if (!read_integer(item, extent) || (some_none && extent == kNone))
      return false;
    out.push_back(extent);
  }
  return PySequence_Fast_GET_SIZE(object) == count;
}
bool read_shape(PyObject* object, Shape& out) { return read_extents(object, out, false); }
bool read_sizes(PyObject* object, Shape& out) { return read_extents(object, out, true); }

bool read_device(nb::handle object, const Device*& out) {
  if (object.is_none()) return false;
  if (!nb::isinstance<nb::str>(object))
    fail(ErrorKind::type, "device must be a name such as 'cpu', got ", shown(object.ptr()));
  const char* name = PyUnicode_AsUTF8(object.ptr());
  if (!name) throw nb::python_error();
  out = find_device(name);
  return true;
}

PyObject* wrap_dims(const Dims& dims) {
  PyObject* tuple = PyTuple_New(dims.rank());
  for (int i = 0; tuple && i < dims.rank(); ++i)
    PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(dims[i]));
  return tuple;
}

}  // namespace tw::binding
