// PyTorch's and NumPy's spellings of our arguments, functions and methods.
#pragma once
#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nb = nanobind;

namespace tw::binding {

// A parameter that takes a shape or axes, whose numbers may also stand one by one: zeros(2, 3).
struct ShapeArgument {
  const char* function;
  bool method;
  std::size_t at;         // its position, `self` included
  std::size_t least = 2;  // numbers that are such a list
  bool one_by_one(PyObject* const* args, std::size_t count) const;
};
// Null where the function has none.
const ShapeArgument* find_shape_argument(std::string_view function, bool method);

// A name in another library, and ours.
struct Alias {
  const char *other, *ours;
};
std::span<const Alias> keyword_aliases();
std::span<const Alias> other_names();  // of functions and methods

// Whether a call's keywords name one.
bool contains(PyObject* keywords, const char* name);

// The op that a call of `function` by PyTorch's `dim` means, or null: max(x, dim=1) gives values
// and indices, max(x, axis=1) values.
const char* with_indices(std::string_view function, PyObject* keywords);

// Whether an op named `part` speaks for `function`, which is made of it.
bool is_part_of(std::string_view part, std::string_view function);

struct OwnAlias;  // a name that one function's argument has in another library

// What one function makes of keywords that are not its own.
class Keywords {
 public:
  Keywords(const char* function, std::string signature)
      : function_(function), signature_(std::move(signature)) {}
  // The name to pass on; null where the argument is left out. Raises TypeError for a keyword that
  // means something else in PyTorch. `all` are the keywords of the call.
  nb::object own_name(PyObject* keyword, PyObject* value, PyObject* all) const;
  // "dim (axis), keepdim (keepdims)": what else the function takes.
  std::string list_aliases() const;

 private:
  bool has(std::string_view parameter) const;
  bool is_of(const OwnAlias& row) const;
  const char* function_;
  std::string signature_;
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
