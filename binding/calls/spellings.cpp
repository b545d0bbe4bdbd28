// The rows of spellings.inc as arrays, and the rewriting of calls that use them.
#include "binding/calls/spellings.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "binding/module.h"
#include "binding/tensor/text.h"

namespace tw::binding {

using namespace nb::literals;

namespace {

// A name that one function's argument has in another library.
struct ArgumentOf {
  const char *function, *other, *ours;
};

// Where PyTorch's keyword means something else than its place in the tables would make it.
struct Difference {
  const char *function, *keyword;
  const char* unless;  // a keyword beside which nothing differs, or ""
  const char* remedy;
};

constexpr Alias kNames[] = {
#define TW_NAME(library, theirs, ours) {theirs, ours},
#include "binding/calls/spellings.inc"
};
constexpr Cast kCasts[] = {
#define TW_DTYPE(theirs, ours) {theirs, DType::ours},
#define TW_CAST(theirs, ours) {theirs, DType::ours},
#include "binding/calls/spellings.inc"
};
constexpr ArgumentOf kArgumentsOf[] = {
#define TW_ARGUMENT_OF(function, library, theirs, ours) {function, theirs, ours},
#include "binding/calls/spellings.inc"
};
constexpr Alias kFirstArguments[] = {
#define TW_FIRST(library, theirs, ours) {theirs, ours},
#include "binding/calls/spellings.inc"
};
constexpr Alias kArguments[] = {
#define TW_ARGUMENT(library, theirs, ours) {theirs, ours},
#include "binding/calls/spellings.inc"
};
constexpr ShapeArgument kShapeArguments[] = {
#define TW_EXTENTS(form, function, at, least) \
  {function, std::string_view(#form) == "method", at, least},
#include "binding/calls/spellings.inc"
};
constexpr Alias kPairs[] = {
#define TW_PAIR(function, op) {function, op},
#include "binding/calls/spellings.inc"
};
constexpr Alias kMethodArguments[] = {
#define TW_METHOD_ARGUMENT(function, argument) {argument, function},
#include "binding/calls/spellings.inc"
};
constexpr Difference kDifferences[] = {
#define TW_DIFFERENCE(function, theirs, unless, remedy) {function, theirs, unless, remedy},
#include "binding/calls/spellings.inc"
};
struct Absent {
  std::string_view owner;
  const char *name, *remedy;
};
constexpr Absent kAbsent[] = {
#define TW_ABSENT(owner, theirs, remedy) {#owner, theirs, remedy},
#include "binding/calls/spellings.inc"
};

// ---- no row twice ----

using Key = std::array<std::string_view, 3>;
constexpr Key key_of(const Alias& row) { return {row.other}; }
constexpr Key key_of(const Cast& row) { return {row.other}; }
constexpr Key key_of(const ArgumentOf& row) { return {row.function, row.other}; }
constexpr Key key_of(const ShapeArgument& row) {
  return {row.function, row.method ? "method" : ""};
}
constexpr Key key_of(const Difference& row) { return {row.function, row.keyword}; }
constexpr Key key_of(const Absent& row) { return {row.owner, row.name}; }
constexpr Key pair_of(const Alias& row) { return {row.other, row.ours}; }

template <class Row, std::size_t count, class KeyOf>
constexpr bool are_unique(const Row (&rows)[count], KeyOf key) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (key(rows[i]) == key(rows[j])) return false;
  return true;
}
template <class Row, std::size_t count> constexpr bool are_unique(const Row (&rows)[count]) {
  return are_unique(rows, [](const Row& row) { return key_of(row); });
}
static_assert(are_unique(kNames), "spellings.inc has a TW_NAME twice");
static_assert(are_unique(kCasts), "spellings.inc has a TW_DTYPE or TW_CAST twice");
static_assert(are_unique(kArgumentsOf), "spellings.inc has a TW_ARGUMENT_OF twice");
static_assert(are_unique(kFirstArguments, pair_of), "spellings.inc has a TW_FIRST twice");
static_assert(are_unique(kArguments, pair_of), "spellings.inc has a TW_ARGUMENT twice");
static_assert(are_unique(kShapeArguments), "spellings.inc has a TW_EXTENTS twice");
static_assert(are_unique(kPairs), "spellings.inc has a TW_PAIR twice");
static_assert(are_unique(kMethodArguments, pair_of),
              "spellings.inc has a TW_METHOD_ARGUMENT twice");
static_assert(are_unique(kDifferences), "spellings.inc has a TW_DIFFERENCE twice");
static_assert(are_unique(kAbsent), "spellings.inc has a TW_ABSENT twice");

// ---- looking up ----

bool is_extent(PyObject* object) {
  return PyLong_CheckExact(object) || (PyIndex_Check(object) && !PyBool_Check(object));
}

const char* find_ours(std::span<const Alias> rows, std::string_view other) {
  for (const Alias& row : rows)
    if (other == row.other) return row.ours;
  return nullptr;
}

void refuse_difference(std::string_view function, std::string_view keyword, PyObject* all) {
  for (const Difference& row : kDifferences)
    if (function == row.function && keyword == row.keyword &&
        !(*row.unless && contains(all, row.unless)))
      fail(ErrorKind::type, function, ": no argument '", keyword, "': ", row.remedy);
}

// PyTorch's memory formats that are all that there is here.
bool is_row_major(PyObject* format) {
  if (!PyUnicode_Check(format)) return false;
  for (const char* name : {"preserve_format", "contiguous_format"})
    if (PyUnicode_CompareWithASCIIString(format, name) == 0) return true;
  return false;
}

bool makes_memory(std::string_view function) {
  for (const std::string_view name : {"clone", "copy", "contiguous", "empty", "to"})
    if (function == name) return true;
  return function.ends_with("_like");
}

// In "def sum(self, axis: int | None = ...)": self, axis.
std::vector<std::string> parameters_in(std::string_view signature) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::vector<std::string> found;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const bool opens = signature[i] == '(' || (i && signature.substr(i - 1, 2) == ", ");
    if (!opens) continue;
    std::size_t end = i + 1;
    while (end < signature.size() && is_letter(signature[end])) ++end;
    const std::string name(signature.substr(i + 1, end - i - 1));
    const bool is_self = found.empty() && name == "self";
    if (is_self || (!name.empty() && signature.substr(end, 1) == ":")) found.push_back(name);
  }
  return found;
}

}  // namespace

std::span<const Alias> other_names() { return kNames; }
std::span<const Cast> casts() { return kCasts; }

std::string_view own_name_of(std::string_view function) {
  const char* ours = find_ours(kNames, function);
  return ours ? ours : function;
}

bool is_absent_method(std::string_view name) {
  return std::any_of(std::begin(kAbsent), std::end(kAbsent),
                     [=](const Absent& row) { return row.owner == "Tensor" && row.name == name; });
}

bool contains(PyObject* keywords, const char* name) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), name) == 0) return true;
  return false;
}

const char* with_indices(std::string_view function, PyObject* keywords) {
  return contains(keywords, "dim") ? find_ours(kPairs, function) : nullptr;
}

bool names_method_argument(std::string_view function, PyObject* keywords) {
  const std::string_view ours = own_name_of(function);
  return std::any_of(
      std::begin(kMethodArguments), std::end(kMethodArguments),
      [&](const Alias& row) { return ours == row.ours && contains(keywords, row.other); });
}

bool ShapeArgument::one_by_one(PyObject* const* args, std::size_t count) const {
  return count >= at + least && std::all_of(args + at, args + at + least, is_extent);
}

const ShapeArgument* find_shape_argument(std::string_view function, bool method) {
  for (const ShapeArgument& row : kShapeArguments)
    if (row.method == method && function == row.function) return &row;
  return nullptr;
}

// ---- keywords ----

Keywords::Keywords(std::string_view function, std::vector<std::string> parameters,
                   std::size_t positional_only)
    : function_(function), parameters_(std::move(parameters)), positional_only_(positional_only) {
  collect();
}
Keywords::Keywords(std::string_view function, const std::string& signature)
    : Keywords(function, parameters_in(signature)) {}

bool Keywords::has(std::string_view parameter) const {
  return std::find(parameters_.begin(), parameters_.end(), parameter) != parameters_.end();
}

bool Keywords::takes(std::string_view keyword) const {
  return std::find(parameters_.begin() + static_cast<std::ptrdiff_t>(positional_only_),
                   parameters_.end(), keyword) != parameters_.end();
}

bool Keywords::differs(std::string_view keyword) const {
  return std::any_of(std::begin(kDifferences), std::end(kDifferences), [&](const Difference& row) {
    return function_ == row.function && keyword == row.keyword;
  });
}

// Methods in place have the arguments of the function, and so has a function by another name.
void Keywords::collect() {
  std::string_view function = function_;
  if (function.ends_with('_')) function.remove_suffix(1);
  function = own_name_of(function);
  const auto add = [&](const char* other, const char* ours) {
    if (!takes(other) && !find_ours(names_, other)) names_.push_back({other, ours});
  };
  for (const ArgumentOf& row : kArgumentsOf)
    if (function == row.function && has(row.ours)) add(row.other, row.ours);
  for (const Alias& row : kFirstArguments)
    if (!parameters_.empty() && parameters_.front() == row.ours) add(row.other, row.ours);
  for (const Alias& row : kArguments)
    if (has(row.ours)) add(row.other, row.ours);
}

nb::object Keywords::own_name(PyObject* keyword, PyObject* value, PyObject* all) const {
  const std::string_view given = utf8_of(keyword);
  if (takes(given)) return nb::borrow(keyword);
  refuse_difference(function_, given, all);
  if (const char* ours = find_ours(names_, given))
    return nb::steal(PyUnicode_InternFromString(ours));
  // np.sum(x) calls x.sum(axis=None, dtype=None, out=None).
  const bool from_numpy = given == "out" || (given == "dtype" && has("axis"));
  if (value == Py_None && from_numpy) return nb::object();
  if (given == "memory_format" && is_row_major(value) && makes_memory(function_))
    return nb::object();
  return nb::borrow(keyword);
}

std::string Keywords::list_aliases() const {
  std::string text;
  for (const Alias& row : names_) {
    if (differs(row.other)) continue;
    const bool pair = std::string_view(row.other) == "dim" && find_ours(kPairs, function_);
    text += (text.empty() ? "" : ", ") + std::string(row.other) + " (" +
            (pair ? "for values and indices" : row.ours) + ")";
  }
  return text;
}

nb::dict Keywords::aliases() const {
  nb::dict names;
  for (const Alias& row : names_)
    if (!differs(row.other)) names[row.other] = row.ours;
  return names;
}

// ---- calls ----

Respelled::Respelled(PyObject* const* args, std::size_t count, PyObject* keywords)
    : values_(args, args + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0)),
      count_(count),
      keywords_(nb::borrow(keywords)) {}

void Respelled::gather_extents(const ShapeArgument& shape) {
  if (!shape.one_by_one(args(), count_)) return;
  std::size_t end = shape.at;
  while (end < count_ && is_extent(values_[end])) ++end;
  const auto first = values_.begin() + static_cast<std::ptrdiff_t>(shape.at);
  const auto last = values_.begin() + static_cast<std::ptrdiff_t>(end);
  nb::list extents;
  for (auto it = first; it != last; ++it) extents.append(nb::handle(*it));
  extents_ = nb::tuple(extents);
  *first = extents_.ptr();
  values_.erase(first + 1, last);
  count_ -= end - shape.at - 1;
}

void Respelled::rename(const Keywords& names, const char* function) {
  nb::list own;
  std::vector<PyObject*> values(values_.begin(), values_.begin() + std::ptrdiff_t(count_));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords_.ptr()); ++i) {
    PyObject* const value = values_[count_ + static_cast<std::size_t>(i)];
    PyObject* const given = PyTuple_GET_ITEM(keywords_.ptr(), i);
    const nb::object name = names.own_name(given, value, keywords_.ptr());
    if (!name.is_valid()) continue;
    if (PySequence_Contains(own.ptr(), name.ptr()) == 1)
      fail(ErrorKind::type, function, ": argument '", PyUnicode_AsUTF8(name.ptr()),
           "' given twice, by two names");
    own.append(name);
    values.push_back(value);
  }
  values_ = std::move(values);
  keywords_ = own.size() ? nb::object(nb::tuple(own)) : nb::object();
}

// ---- what Python reads ----

namespace {

nb::list describe_rows() {
  nb::list rows;
  const auto add = [&](const char* kind, const char* library, const char* function,
                       const char* theirs, const char* ours, const char* note) {
    nb::dict row;
    row["kind"] = kind;
    row["library"] = library;
    row["function"] = function;
    row["theirs"] = theirs;
    row["ours"] = ours;
    row["note"] = note;
    rows.append(row);
  };
#define TW_NAME(library, theirs, ours) add("name", #library, "", theirs, ours, "");
#define TW_DTYPE(theirs, ours) add("dtype", "torch", "", theirs, name_of(DType::ours), "");
#define TW_CAST(theirs, ours) add("cast", "torch", "", theirs, name_of(DType::ours), "");
#define TW_ARGUMENT_OF(function, library, theirs, ours) \
  add("argument of", #library, function, theirs, ours, "");
#define TW_FIRST(library, theirs, ours) add("first", #library, "", theirs, ours, "");
#define TW_ARGUMENT(library, theirs, ours) add("argument", #library, "", theirs, ours, "");
#define TW_EXTENTS(form, function, at, least) add("extents", "torch", function, "", "", #form);
#define TW_PAIR(function, op) add("pair", "torch", function, "dim", op, "");
#define TW_METHOD_ARGUMENT(function, argument) \
  add("method argument", "torch", function, argument, argument, "");
#define TW_FORM(library, function, signature) add("form", #library, function, "", "", signature);
#define TW_DIFFERENCE(function, theirs, unless, remedy) \
  add("difference", "torch", function, theirs, unless, remedy);
#define TW_ABSENT(owner, theirs, remedy) add("absent", "torch", #owner, theirs, "", remedy);
#include "binding/calls/spellings.inc"
  return rows;
}

nb::dict remedies(const std::string& owner) {
  nb::dict found;
  for (const Absent& row : kAbsent)
    if (row.owner == owner) found[row.name] = row.remedy;
  return found;
}

}  // namespace

void bind_spellings(nb::module_& m) {
  m.def("_spellings", describe_rows, "The rows of spellings.inc: kind, library, names, note.");
  m.def(
      "_other_arguments",
      [](const std::string& function, std::vector<std::string> parameters,
         std::size_t positional_only) {
        return Keywords(function, std::move(parameters), positional_only).aliases();
      },
      "function"_a, "parameters"_a, "positional_only"_a = 0,
      "Other libraries' names of a function's parameters, of which the first ones may be "
      "positional only, and ours.");
  m.def("_remedies", remedies, "owner"_a,
        "What to write instead of other libraries' names that \"package\" or \"Tensor\" has not.");
  nb::dict dtypes;
#define TW_DTYPE(theirs, ours) dtypes[theirs] = name_of(DType::ours);
#include "binding/calls/spellings.inc"
  m.attr("_other_dtypes") = dtypes;
}

}  // namespace tw::binding
