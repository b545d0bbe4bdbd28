// A submission's way from Python to the core: its options, its task, and the type whose method it
// is.
#pragma once
#include <string>

#include "binding/tasks/task_type.h"
#include "core/base/error.h"

namespace tw::binding {

inline constexpr const char* kTaskQualities[] = {"guaranteed", "burstable", "best_effort"};

// The place of a text in a list of names; raises ValueError that lists them.
template <std::size_t n>
int choice_of(PyObject* value, const char* const (&names)[n], const char* what) {
  std::string known;
  for (std::size_t i = 0; i < n; ++i) {
    if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, names[i]) == 0) return i;
    known += (known.empty() ? "" : ", ") + std::string(names[i]);
  }
  fail(ErrorKind::value, what, " is one of ", known, "; got ", nb::repr(nb::handle(value)).c_str());
}

std::int64_t read_integer(PyObject* value, const char* what);
// Nanoseconds of a number of seconds from 0 on.
std::int64_t read_seconds(PyObject* value, const char* what);

// submit(function, *arguments, **options) -> task, as a method of the native bookkeeping.
PyObject* submit(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
extern const char kSubmitHelp[];
// What Python's Scheduler derives from: holds a bookkeeping, native or not, and submits to it.
nb::object create_submitter_type(PyTypeObject* scheduler_type);

}  // namespace tw::binding
