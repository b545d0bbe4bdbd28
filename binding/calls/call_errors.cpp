// The wording of what a call raises, in the name of what users called.
#include "binding/calls/call_errors.h"

#include <algorithm>
#include <string_view>

#include "binding/tensor/casters.h"
#include "binding/calls/spellings.h"

namespace tw::binding {

namespace {

// Functions made of another op, whose messages are theirs as well.
constexpr Alias kParts[] = {
    {"bernoulli", "uniform"},
    {"cauchy_", "cauchy"},
    {"clip", "maximum"},
    {"clip", "minimum"},
    {"column_stack", "concat"},
    {"dot", "matmul"},
    {"dstack", "concat"},
    {"expand", "broadcast_to"},
    {"expand_as", "broadcast_to"},
    {"exponential_", "exponential"},
    {"full_like", "full"},
    {"geometric_", "geometric"},
    {"hstack", "concat"},
    {"log_normal_", "log_normal"},
    {"normal_", "normal"},
    {"ones", "full"},
    {"ones_like", "full"},
    {"rand", "uniform"},
    {"randint_like", "randint"},
    {"randn", "normal"},
    {"random_", "randint"},
    {"repeat_interleave", "repeat"},
    {"reshape_as", "reshape"},
    {"set_matmul_tuning", "tune"},
    {"std", "var"},
    {"t", "mT"},
    {"tensor", "asarray"},
    {"transpose", "permute_dims"},
    {"uniform_", "uniform"},
    {"view", "reshape"},
    {"view_as", "reshape"},
    {"vstack", "concat"},
    {"zero_", "fill_"},
    {"zeros", "full"},
    {"zeros_like", "zeros"},
};

// Whether an op named `part` speaks for `function`, which is made of it or is it by another name.
bool is_part_of(std::string_view part, std::string_view function) {
  const std::string_view ours = own_name_of(function);
  return part == ours || std::any_of(std::begin(kParts), std::end(kParts), [=](const Alias& row) {
           return part == row.ours && (function == row.other || ours == row.other);
         });
}

// nanobind's refusal of a call, of which users would have to read C++ signatures.
bool is_refused_call(PyObject* error) {
  if (Py_TYPE(error) != reinterpret_cast<PyTypeObject*>(PyExc_TypeError)) return false;
  const nb::object text = nb::steal(PyObject_Str(error));
  if (!text.is_valid()) return PyErr_Clear(), false;
  return nb::cast<std::string>(text).find("incompatible function arguments") != std::string::npos;
}

// Whether a message opens with the name of what refuses: "sum: ...", "Pool.allocate: ...".
bool opens_with_name(std::string_view text) {
  const std::size_t end = text.find_first_of(" :");
  return end != std::string_view::npos && end > 0 && text[end] == ':';
}

}  // namespace

nb::object native_signature_of(nb::handle function) { return function.attr("__nb_signature__")[0]; }

nb::object taken_error() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return nb::steal(value);
}

void put_back(nb::object error) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

void name_own_error(const std::string& name, const std::string& inner_name) {
  nb::object error = taken_error();
  const std::string text = nb::cast<std::string>(nb::str(error));
  std::string named = name + ": " + text;
  if (opens_with_name(text)) {
    const std::string part = text.substr(0, text.find(':'));
    if (part == name || !(part == inner_name || is_part_of(part, name)))
      return put_back(std::move(error));
    named = name + text.substr(part.size());
  }
  PyErr_SetString(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), named.c_str());
}

void name_error_of_part(const std::string& name, const std::string& inner) {
  nb::object error = taken_error();
  const std::string text = nb::cast<std::string>(nb::str(error));
  if (!text.starts_with(inner + ":")) return put_back(std::move(error));
  PyErr_SetString(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())),
                  (name + text.substr(inner.size())).c_str());
}

void tell_refusal(nb::handle name, nb::handle signature, nb::handle owner, PyObject* const* args,
                  Py_ssize_t count, PyObject* keywords) {
  nb::list positional;
  nb::dict named;
  for (Py_ssize_t i = 0; i < count; ++i) positional.append(nb::handle(args[i]));
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    named[nb::handle(PyTuple_GET_ITEM(keywords, i))] = nb::handle(args[count + i]);
  const nb::object error = nb::module_::import_("tilewright._engine.argument_errors")
                               .attr("refusal")(name, signature, owner, positional, named);
  put_back(error);
}

PyObject* explain_error(nb::handle name, nb::handle function, nb::handle owner,
                        PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  try {
    if (is_own_error(PyErr_Occurred())) {
      name_own_error(nb::cast<std::string>(name), nb::cast<std::string>(function.attr("__name__")));
    } else if (PyErr_Occurred() == PyExc_TypeError) {
      nb::object error = taken_error();
      if (is_refused_call(error.ptr()))
        tell_refusal(name, native_signature_of(function), owner, args, count, keywords);
      else
        put_back(std::move(error));
    }
  } catch (...) {
    raise_current();
  }
  return nullptr;
}

}  // namespace tw::binding
