// The rows of spellings.inc, and the rewriting of calls that use them.
#pragma once
#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"

namespace nb = nanobind;

namespace tw::binding {

// A parameter that takes a shape or axes, whose numbers may also stand one by one: zeros(2, 3).
struct ShapeArgument {
  const char* function;
  bool method;
  std::size_t at;     // its position, `self` included
  std::size_t least;  // numbers that are such a list
  bool one_by_one(PyObject* const* args, std::size_t count) const;
};
// Null where the function has none.
const ShapeArgument* find_shape_argument(std::string_view function, bool method);

// A name in another library, and ours.
struct Alias {
  const char *other, *ours;
};
std::span<const Alias> other_names();  // of functions and methods
// A method that converts to a type.
struct Cast {
  const char* other;
  DType dtype;
};
std::span<const Cast> casts();
// Our name of a function that has another library's, else the name itself.
std::string_view own_name_of(std::string_view function);

// Whether tensors are without the method that other libraries' have.
bool is_absent_method(std::string_view name);

// Whether a call's keywords name one.
bool contains(PyObject* keywords, const char* name);

// The op that a call of `function` by PyTorch's `dim` means, or null: max(x, dim=1) gives values
// and indices, max(x, axis=1) values.
const char* with_indices(std::string_view function, PyObject* keywords);

// Whether the keywords name one that the function leaves to the method of its name.
bool names_method_argument(std::string_view function, PyObject* keywords);

// What one function makes of keywords that are not its own.
class Keywords {
 public:
  // `parameters` in order, `self` included; the first `positional_only` take no keyword.
  Keywords(std::string_view function, std::vector<std::string> parameters,
           std::size_t positional_only = 0);
  // Of a signature such as "def sum(self, axis: int | None = ...)".
  Keywords(std::string_view function, const std::string& signature);
  // The name to pass on; null where the argument is left out. Raises TypeError for a keyword that
  // means something else in PyTorch. `all` are the keywords of the call.
  nb::object own_name(PyObject* keyword, PyObject* value, PyObject* all) const;
  // "dim (axis), keepdim (keepdims)": what else the function takes.
  std::string list_aliases() const;
  // {"dim": "axis", "keepdim": "keepdims"}.
  nb::dict aliases() const;

 private:
  bool has(std::string_view parameter) const;
  bool takes(std::string_view keyword) const;
  bool differs(std::string_view keyword) const;
  void collect();
  std::string_view function_;
  std::vector<std::string> parameters_;
  std::size_t positional_only_;
  std::vector<Alias> names_;
};

// The arguments of one call, changed to our spelling. The values stay the caller's.
class Respelled {
 public:
  Respelled(PyObject* const* args, std::size_t count, PyObject* keywords);
  void gather_extents(const ShapeArgument& shape);
  void rename(const Keywords& names, const char* function);
  PyObject* const* args() const { return values_.data(); }
  std::size_t count() const { return count_; }
  PyObject* keywords() const { return keywords_.ptr(); }

 private:
  std::vector<PyObject*> values_;  // positional, then named
  std::size_t count_;              // of the positional ones
  nb::object keywords_, extents_;
};

}  // namespace tw::binding
