// The tables of spellings, and the rewriting of calls that use them.
#include "binding/calls/spellings.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "binding/tensor/text.h"

namespace tw::binding {

struct OwnAlias {
  const char *function, *other, *ours;
};

namespace {

constexpr ShapeArgument kShapeArguments[] = {
    {"empty", false, 0},        {"ones", false, 0},         {"zeros", false, 0},
    {"rand", false, 0},         {"randn", false, 0},        {"reshape", false, 1},
    {"permute_dims", false, 1}, {"broadcast_to", false, 1}, {"permute", false, 1},
    {"reshape", true, 1},       {"view", true, 1},          {"permute_dims", true, 1},
    {"permute", true, 1},       {"broadcast_to", true, 1},  {"expand", true, 1},
    {"flip", true, 1},          {"tile", true, 1},          {"transpose", false, 1, 3},
    {"transpose", true, 1, 3},  // two are a pair to swap
};

// The same argument under PyTorch's or NumPy's name, for every function that has ours.
constexpr Alias kAliases[] = {
    {"dim", "axis"},
    {"dims", "axis"},
    {"dims", "axes"},
    {"dims", "repetitions"},
    {"reps", "repetitions"},
    {"shifts", "shift"},
    {"keepdim", "keepdims"},
    {"dim0", "axis0"},
    {"dim1", "axis1"},
    {"dim2", "axis2"},
    {"diagonal", "k"},
    {"start_dim", "start_axis"},
    {"end_dim", "end_axis"},
    {"ddof", "correction"},
    {"size", "shape"},
    {"shape", "size"},
    {"input", "x"},
    {"input", "a"},
    {"input", "x1"},
    {"input", "logits"},
    {"input", "probabilities"},
    {"input", "p"},
    {"target", "targets"},
    {"target", "y"},
    {"other", "b"},
    {"other", "x2"},
    {"tensors", "arrays"},
    {"a_min", "min"},
    {"a_max", "max"},
    {"decimals", "ndigits"},
    {"value", "src"},
    {"split_size", "split_size_or_sections"},
    {"indices", "indices_or_sections"},
    {"sections", "indices_or_sections"},
    {"steps", "num"},
    {"end", "stop"},
};

// Those come before the names above.
constexpr OwnAlias kOwnAliases[] = {
    {"where", "condition", "a"},
    {"where", "input", "b"},
    {"where", "x", "b"},
    {"where", "other", "c"},
    {"where", "y", "c"},
    {"pow", "exponent", "b"},
    {"float_power", "exponent", "b"},
    {"eye", "n", "n_rows"},
    {"eye", "m", "n_cols"},
    {"searchsorted", "sorted_sequence", "x1"},
    {"searchsorted", "input", "x2"},
    {"searchsorted", "values", "x2"},
    {"one_hot", "tensor", "indices"},
    {"quantile", "method", "interpolation"},
    {"nanquantile", "method", "interpolation"},
    {"transpose", "axes", "axis0"},
    {"split", "tensor", "x"},
    {"tensor", "data", "obj"},
    {"view", "dtype", "shape"},
    // add(x, b=y, alpha=2) becomes a call of the method, which has PyTorch's name alone.
    {"add", "b", "other"},
    {"subtract", "b", "other"},
    {"sub", "b", "other"},
};

// Where PyTorch's keyword means something else than its place in the tables above would make it.
struct Difference {
  const char *function, *keyword;
  const char* unless;  // a keyword beside which nothing differs, or null
  const char* remedy;
};
constexpr char kDivisor[] =
    "PyTorch divides by n - 1 unless told otherwise, here it is n: write axis=, and correction=1 "
    "for PyTorch's result";
constexpr char kUnbiased[] = "write correction=1 for unbiased=True, correction=0 for False";
constexpr Difference kDifferences[] = {
    {"std", "dim", "correction", kDivisor},
    {"var", "dim", "correction", kDivisor},
    {"std", "unbiased", nullptr, kUnbiased},
    {"var", "unbiased", nullptr, kUnbiased},
};

// Functions that give values and indices where PyTorch's `dim` is given, and values for `axis`.
constexpr Alias kWithIndices[] = {
    {"max", "max_with_indices"},
    {"min", "min_with_indices"},
    {"sort", "sort_with_indices"},
    {"median", "median_with_indices"},
    {"nanmedian", "nanmedian_with_indices"},
};

// The same function, method or both under another library's name.
constexpr Alias kOtherNames[] = {
    {"cat", "concat"},
    {"concatenate", "concat"},
    {"clamp", "clip"},
    {"permute", "permute_dims"},
    {"unsqueeze", "expand_dims"},
    {"movedim", "moveaxis"},
    {"swapaxes", "transpose"},
    {"swapdims", "transpose"},
    {"unbind", "unstack"},
    {"row_stack", "vstack"},
    {"bitwise_not", "bitwise_invert"},
    {"cumsum", "cumulative_sum"},
    {"cumprod", "cumulative_prod"},
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"arctanh", "atanh"},
    {"neg", "negative"},
    {"true_divide", "divide"},
    {"fix", "trunc"},
    {"sub", "subtract"},
    {"mul", "multiply"},
    {"div", "divide"},
    {"expit", "sigmoid"},
    {"eq", "equal"},
    {"ne", "not_equal"},
    {"lt", "less"},
    {"le", "less_equal"},
    {"gt", "greater"},
    {"ge", "greater_equal"},
    {"clone", "copy"},
    {"amax", "max"},
    {"amin", "min"},
    {"sgn", "sign"},
};

// Functions made of another op, whose messages are theirs as well.
constexpr Alias kParts[] = {
    {"tensor", "asarray"},
    {"rand", "uniform"},
    {"randn", "normal"},
    {"std", "var"},
    {"dot", "matmul"},
    {"view", "reshape"},
    {"t", "mT"},
    {"view_as", "reshape"},
    {"reshape_as", "reshape"},
    {"expand", "broadcast_to"},
    {"expand_as", "broadcast_to"},
    {"transpose", "permute_dims"},
    {"swapaxes", "permute_dims"},
    {"swapdims", "permute_dims"},
    {"clip", "maximum"},
    {"clip", "minimum"},
    {"clamp", "maximum"},
    {"clamp", "minimum"},
    {"bernoulli", "uniform"},
    {"zeros_like", "zeros"},
    {"ones_like", "full"},
    {"ones", "full"},
    {"full_like", "full"},
    {"zeros", "full"},
    {"zero_", "fill_"},
    {"cumsum", "cumulative_sum"},
    {"cumprod", "cumulative_prod"},
    {"set_matmul_tuning", "tune"},
    {"hstack", "concat"},
    {"vstack", "concat"},
    {"row_stack", "concat"},
    {"dstack", "concat"},
    {"column_stack", "concat"},
    {"repeat_interleave", "repeat"},
    {"uniform_", "uniform"},
    {"normal_", "normal"},
    {"log_normal_", "log_normal"},
    {"exponential_", "exponential"},
    {"cauchy_", "cauchy"},
    {"geometric_", "geometric"},
    {"random_", "randint"},
    {"randint_like", "randint"},
};

bool is_extent(PyObject* object) {
  return PyLong_CheckExact(object) || (PyIndex_Check(object) && !PyBool_Check(object));
}

const char* op_with_indices(std::string_view function) {
  for (const Alias& row : kWithIndices)
    if (function == row.other) return row.ours;
  return nullptr;
}

void refuse_difference(std::string_view function, std::string_view keyword, PyObject* all) {
  for (const Difference& row : kDifferences)
    if (function == row.function && keyword == row.keyword &&
        !(row.unless && contains(all, row.unless)))
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

}  // namespace

std::span<const Alias> keyword_aliases() { return kAliases; }
std::span<const Alias> other_names() { return kOtherNames; }

bool contains(PyObject* keywords, const char* name) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), name) == 0) return true;
  return false;
}

const char* with_indices(std::string_view function, PyObject* keywords) {
  return contains(keywords, "dim") ? op_with_indices(function) : nullptr;
}

bool is_part_of(std::string_view part, std::string_view function) {
  for (const Alias& row : kParts)
    if (part == row.ours && function == row.other) return true;
  return false;
}

bool ShapeArgument::one_by_one(PyObject* const* args, std::size_t count) const {
  return count >= at + least && std::all_of(args + at, args + at + least, is_extent);
}

const ShapeArgument* find_shape_argument(std::string_view function, bool method) {
  for (const ShapeArgument& row : kShapeArguments)
    if (row.method == method && function == row.function) return &row;
  return nullptr;
}

// In a signature such as "def sum(self, axis: int | None = ...)".
bool Keywords::has(std::string_view parameter) const {
  for (const char* before : {"(", ", "})
    if (signature_.find(before + std::string(parameter) + ":") != std::string::npos) return true;
  return false;
}

// Methods in place have the names of the function.
bool Keywords::is_of(const OwnAlias& row) const {
  std::string_view function = function_;
  if (function.ends_with('_')) function.remove_suffix(1);
  return function == row.function && has(row.ours);
}

nb::object Keywords::own_name(PyObject* keyword, PyObject* value, PyObject* all) const {
  const std::string_view given = utf8_of(keyword);
  if (has(given)) return nb::borrow(keyword);
  refuse_difference(function_, given, all);
  for (const OwnAlias& row : kOwnAliases)
    if (is_of(row) && given == row.other) return nb::steal(PyUnicode_InternFromString(row.ours));
  for (const Alias& row : kAliases)
    if (given == row.other && has(row.ours)) return nb::steal(PyUnicode_InternFromString(row.ours));
  // np.sum(x) calls x.sum(axis=None, dtype=None, out=None).
  const bool from_numpy = given == "out" || (given == "dtype" && has("axis"));
  if (value == Py_None && from_numpy) return nb::object();
  if (given == "memory_format" && is_row_major(value) && makes_memory(function_))
    return nb::object();
  return nb::borrow(keyword);
}

std::string Keywords::list_aliases() const {
  std::string text;
  std::set<std::string_view> listed;
  const auto list = [&](const char* other, const std::string& ours) {
    if (!listed.insert(other).second) return;
    text += (text.empty() ? "" : ", ") + std::string(other) + " (" + ours + ")";
  };
  for (const OwnAlias& row : kOwnAliases)
    if (is_of(row)) list(row.other, row.ours);
  for (const Alias& row : kAliases) {
    bool differs = has(row.other);
    for (const Difference& other : kDifferences)
      differs |= std::string_view(function_) == other.function &&
                 std::string_view(row.other) == other.keyword;
    if (!has(row.ours) || differs) continue;
    const bool pair = std::string_view(row.other) == "dim" && op_with_indices(function_);
    list(row.other, pair ? "for values and indices" : row.ours);
  }
  return text;
}

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

}  // namespace tw::binding
