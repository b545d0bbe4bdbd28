#include "binding/tensor/text.h"

#include <nanobind/stl/string.h>

namespace tw::binding {

std::string_view utf8_of(PyObject* text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text, &size);
  if (!bytes) PyErr_Clear();
  return bytes ? std::string_view(bytes, static_cast<std::size_t>(size)) : std::string_view();
}

std::string shown(PyObject* value) {
  return nb::cast<std::string>(
      nb::module_::import_("tilewright._engine.argument_errors").attr("shown")(nb::handle(value)));
}

}  // namespace tw::binding
