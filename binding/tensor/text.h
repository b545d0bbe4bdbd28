// Python's strings, and values as messages show them.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace nb = nanobind;

namespace tw::binding {

// A str as UTF-8; empty, which names nothing, where it has none: half of a pair of surrogates.
std::string_view utf8_of(PyObject* text);

// What a message says that it got: the value where it is short, else its type.
std::string shown(PyObject* value);

}  // namespace tw::binding
