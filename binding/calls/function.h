// What users call: records and nanobind's functions behind a callable of our own, which takes other
// libraries' spellings of arguments and tells what is wrong with a call in the function's own name.
#pragma once
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace tw::binding {

void create_function_types();
// Puts every nanobind function of the module, and every method and setter of its classes, behind a
// callable, and makes the functions and methods of all records. Runs when all others are bound.
void present_functions(nb::module_& module);

}  // namespace tw::binding
