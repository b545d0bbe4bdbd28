// Attaches functions and properties to the Tensor type.
#pragma once
#include <utility>

#include "binding/tensor/tensor_type.h"

namespace tw::binding {

// Attaches a nanobind function to the Tensor type as a method.
template <class F, class... Extra> void method(const char* name, F&& f, const Extra&... extra) {
  nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  nb::cpp_function(std::forward<F>(f), nb::name(name), nb::scope(type), nb::is_method(), extra...);
}
// A read-only property, and one that can be set.
template <class Get> void property(const char* name, Get&& get, const char* doc) {
  nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  const nb::object getter =
      nb::cpp_function(std::forward<Get>(get), nb::is_method(), nb::scope(type), nb::is_getter());
  nb::setattr(type, name,
              nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(getter, nb::none(),
                                                                        nb::none(), doc));
}
template <class Get, class Set>
void property(const char* name, Get&& get, Set&& set, const char* doc) {
  nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  const nb::object getter =
      nb::cpp_function(std::forward<Get>(get), nb::is_method(), nb::scope(type), nb::is_getter());
  const nb::object setter =
      nb::cpp_function(std::forward<Set>(set), nb::is_method(), nb::scope(type));
  nb::setattr(
      type, name,
      nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(getter, setter, nb::none(), doc));
}

}  // namespace tw::binding
