// Calls of layers: the base of `tw.nn.Module`, whose `__call__` runs `forward` without a frame of
// Python of its own. Hooks, observers and errors are left to tilewright.nn.module.calling.
#include <array>

#include "binding/tensor/casters.h"
#include "binding/tensor/interchange.h"
#include "binding/module.h"
#include "binding/tensor/tensor_type.h"
#include "core/memory/events.h"

namespace tw::binding {

namespace {

constexpr std::size_t kFewArguments = 6;
PyObject *forward_name, *hooks_name;  // interned
std::uint64_t hook_changes = 0;       // how often a module was given some; 0: none is asked

PyObject* call_forward(PyObject* self, PyObject* args, PyObject* keywords) {
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(args));
  if (keywords || count > kFewArguments) {
    const nb::object forward = nb::steal(PyObject_GetAttr(self, forward_name));
    return forward.is_valid() ? PyObject_Call(forward.ptr(), args, keywords) : nullptr;
  }
  std::array<PyObject*, kFewArguments + 1> values{self};
  for (std::size_t i = 0; i < count; ++i)
    values[i + 1] = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
  return PyObject_VectorcallMethod(forward_name, values.data(), count + 1, nullptr);
}

nb::object calling() { return nb::module_::import_("tilewright.nn.module.calling"); }

PyObject* call_watched(PyObject* self, PyObject* args, PyObject* keywords) {
  const nb::object named = keywords ? nb::borrow(keywords) : nb::dict();
  return calling().attr("call_observed")(nb::handle(self), nb::handle(args), named).release().ptr();
}

// Tells the error that Python has set where it comes from, and sets it again.
void locate_error(PyObject* self) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return;
  nb::python_error error;  // takes it
  calling().attr("locate")(error.value(), nb::handle(self));
  error.restore();
}

PyObject* call_module(PyObject* self, PyObject* args, PyObject* keywords) noexcept {
  PyObject* result = nullptr;
  try {
    const nb::object hooks =
        hook_changes ? nb::steal(PyObject_GetAttr(self, hooks_name)) : nb::object(nb::none());
    if (hooks.is_none() && !observed()) [[likely]]
      result = call_forward(self, args, keywords);
    else if (hooks.is_valid())
      result = call_watched(self, args, keywords);
  } catch (nb::python_error& error) {
    error.restore();
  }
  if (result) [[likely]]
    return result;
  try {
    locate_error(self);
  } catch (nb::python_error& error) {
    error.restore();
  }
  return nullptr;
}

PyObject* new_module(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  const bool any = PyTuple_GET_SIZE(args) > 0 || (keywords && PyDict_GET_SIZE(keywords) > 0);
  if (any && type->tp_init == PyBaseObject_Type.tp_init)
    return PyErr_Format(PyExc_TypeError, "%s() takes no arguments", type->tp_name);
  nb::object self = nb::steal(type->tp_alloc(type, 0));
#if PY_VERSION_HEX < 0x030D0000
  // With a dictionary of its own from the start: attributes in one that CPython 3.11 and 3.12 make
  // later, of values kept in the object until somebody asks for `__dict__`, are not found by the
  // interpreter's quick way. (From 3.13 on they are, and a dictionary set by this function would
  // stand beside the values in the object.)
  const nb::object attributes = nb::steal(PyDict_New());
  if (!attributes.is_valid() || !self.is_valid() ||
      PyObject_GenericSetDict(self.ptr(), attributes.ptr(), nullptr) < 0)
    return nullptr;
#endif
  return self.release().ptr();
}

}  // namespace

void create_module_call(nb::module_& m) {
  forward_name = PyUnicode_InternFromString("forward");
  hooks_name = PyUnicode_InternFromString("_call_hooks");
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(new_module)},
      {Py_tp_call, reinterpret_cast<void*>(call_module)},
      {Py_tp_doc, const_cast<char*>("_ModuleCall()\n--\n\nCalls `forward`, within hooks.")},
      {0, nullptr}};
  PyType_Spec spec = {"tilewright._core._ModuleCall", sizeof(PyObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  m.attr("_ModuleCall") = nb::steal(type);
  m.def(
      "_note_module_hooks", [] { ++hook_changes; }, "From now on calls of modules look for hooks.");
  m.def(
      "_module_hook_changes", [] { return hook_changes; },
      "How often modules were given hooks, for what need not look again meanwhile.");
}

}  // namespace tw::binding
