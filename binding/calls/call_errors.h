// The wording of what a call raises, in the name of what users called.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;

namespace tw::binding {

// That of a nanobind function, as text.
nb::object native_signature_of(nb::handle function);

// The exception that is set, which is not set any more; and the way back.
nb::object taken_error();
void put_back(nb::object error);

// What reads an argument does not know for whom, and the parts of a function speak for themselves:
// the message of the error that is set gets the name of what was called.
void name_own_error(const std::string& name, const std::string& inner_name);
// The same for a function that `inner` was called in place of: text that opens with its name.
void name_error_of_part(const std::string& name, const std::string& inner);
// Sets the error of a call whose arguments fit no parameter. `count` are without names.
void tell_refusal(nb::handle name, nb::handle signature, nb::handle owner, PyObject* const* args,
                  Py_ssize_t count, PyObject* keywords);
// Rewrites the error that is set after a call of a nanobind function, and returns null.
[[gnu::cold, gnu::noinline]] PyObject* explain_error(nb::handle name, nb::handle function,
                                                     nb::handle owner, PyObject* const* args,
                                                     Py_ssize_t count, PyObject* keywords);

}  // namespace tw::binding
