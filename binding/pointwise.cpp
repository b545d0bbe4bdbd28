// One Python function and, for unary rows, one method for each row of the pointwise table.
#include "binding/function.h"
#include "binding/module.h"
#include "binding/spellings.h"
#include "core/base/error.h"
#include "core/ops/pointwise.h"

namespace tw::binding {

namespace {

constexpr const char* kArgumentNames[3][3] = {{"x"}, {"a", "b"}, {"a", "b", "c"}};

std::string list_arguments(const PointwiseRow& row) {
  std::string text = row.arity == 1 ? "1 argument (" : std::to_string(row.arity) + " arguments (";
  for (int i = 0; i < row.arity; ++i)
    text += (i ? ", " : "") + std::string(kArgumentNames[row.arity - 1][i]);
  return text + ")";
}

// The place of a named argument, by our names or other libraries'; the arity where there is none.
int place_of(const PointwiseRow& row, std::string_view keyword) {
  const char* const* names = kArgumentNames[row.arity - 1];
  for (int i = 0; i < row.arity; ++i)
    if (keyword == names[i]) return i;
  for (const Alias& alias : keyword_aliases())
    for (int i = 0; keyword == alias.other && i < row.arity; ++i)
      if (std::string_view(alias.ours) == names[i]) return i;
  return row.arity;
}

[[gnu::cold, gnu::noinline]] void refuse_value(const PointwiseRow& row, int i, PyObject* value) {
  const bool listed = PyList_Check(value) || PyTuple_Check(value);
  fail(ErrorKind::type, row.name, ": ", kArgumentNames[row.arity - 1][i],
       " must be a tensor or a number, got ", told(value),
       listed ? "; make one with tilewright.asarray" : "");
}

// The operands of a call with at most `arity` positional and keyword arguments.
void read_arguments(const PointwiseRow& row, PyObject* const* args, Py_ssize_t count,
                    PyObject* keywords, Operand* out) {
  PyObject* given[3] = {};
  if (count > row.arity)
    fail(ErrorKind::type, row.name, ": takes ", list_arguments(row), ", got ", count);
  for (Py_ssize_t i = 0; i < count; ++i) given[i] = args[i];
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) {
    const char* keyword = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i));
    const int at = place_of(row, keyword);
    if (at == row.arity)
      fail(ErrorKind::type, row.name, ": unexpected argument '", keyword, "'; it takes ",
           list_arguments(row));
    if (given[at])
      fail(ErrorKind::type, row.name, ": argument '", kArgumentNames[row.arity - 1][at],
           "' given twice");
    given[at] = args[count + i];
  }
  for (int i = 0; i < row.arity; ++i) {
    if (!given[i])
      fail(ErrorKind::type, row.name, ": missing argument '", kArgumentNames[row.arity - 1][i],
           "': a tensor or a number");
    if (!read_operand(given[i], out[i])) refuse_value(row, i, given[i]);
  }
}

template <PointwiseOp op>
PyObject* call(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  try {
    const PointwiseRow& row = kPointwiseRows[static_cast<int>(op)];
    Operand operands[] = {0, 0, 0};
    read_arguments(row, args, count, keywords, operands);
    return wrap(pointwise(op, operands));
  } catch (...) {
    return raise_current();
  }
}

template <PointwiseOp op> PyObject* call_method(PyObject* self, PyObject*) {
  return call<op>(nullptr, &self, 1, nullptr);
}

std::string documentation(const PointwiseRow& row) {
  std::string text = std::string(row.name) + "(";
  for (int i = 0; i < row.arity; ++i) text += std::string(kArgumentNames[row.arity - 1][i]) + ", ";
  text += "/)\n--\n\n" + std::string(row.help) + "\n\nFormula: " + row.formula;
  if (row.result == PointwiseResult::truth) return text + "\nResult: bool.";
  for (int i = 0; i < row.arity; ++i)
    if (std::string_view(row.gradients[i]) != "none")
      text += std::string("\nGradient of ") + kArgumentNames[row.arity - 1][i] + ": " +
              row.gradients[i];
  return text;
}

using Function = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
constexpr Function kFunctions[kPointwiseOps] = {
#define TW_UNARY(name, ...) call<PointwiseOp::name>,
#define TW_BINARY(name, ...) call<PointwiseOp::name>,
#define TW_TERNARY(name, ...) call<PointwiseOp::name>,
#include "core/ops/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};
constexpr PyCFunction kMethods[kPointwiseOps] = {
#define TW_UNARY(name, ...) call_method<PointwiseOp::name>,
#define TW_BINARY(name, ...) nullptr,
#define TW_TERNARY(name, ...) nullptr,
#include "core/ops/pointwise.inc"
#undef TW_UNARY
#undef TW_BINARY
#undef TW_TERNARY
};

// Definitions must outlive the functions made from them.
PyMethodDef function_definitions[kPointwiseOps], method_definitions[kPointwiseOps];
std::string documentations[kPointwiseOps];

nb::dict describe_row(const PointwiseRow& row) {
  nb::dict out;
  out["name"] = row.name;
  out["arity"] = row.arity;
  out["formula"] = row.formula;
  out["truth"] = row.result == PointwiseResult::truth;
  nb::list kinds, gradients;
  const std::pair<int, const char*> names[] = {
      {kind::b, "bool"}, {kind::i, "integer"}, {kind::f, "floating"}, {kind::c, "complex"}};
  for (const auto& [bit, name] : names)
    if (row.kinds & bit) kinds.append(name);
  for (int i = 0; i < row.arity; ++i) gradients.append(row.gradients[i]);
  out["kinds"] = kinds;
  out["promotes"] = (row.kinds & kind::promotes) != 0;
  out["gradients"] = gradients;
  out["help"] = row.help;
  return out;
}

}  // namespace

void bind_pointwise(nb::module_& m) {
  const nb::str module_name("tilewright");
  for (int i = 0; i < kPointwiseOps; ++i) {
    const PointwiseRow& row = kPointwiseRows[i];
    documentations[i] = documentation(row);
    function_definitions[i] = {
        row.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(kFunctions[i])),
        METH_FASTCALL | METH_KEYWORDS, documentations[i].c_str()};
    m.attr(row.name) =
        nb::steal(PyCFunction_NewEx(&function_definitions[i], nullptr, module_name.ptr()));
    if (!kMethods[i]) continue;
    method_definitions[i] = {row.name, kMethods[i], METH_NOARGS, row.help};
    nb::setattr(nb::handle(reinterpret_cast<PyObject*>(tensor_type)), row.name,
                nb::steal(PyDescr_NewMethod(tensor_type, &method_definitions[i])));
  }
  m.def(
      "pointwise_table",
      [] {
        nb::list rows;
        for (const PointwiseRow& row : kPointwiseRows) rows.append(describe_row(row));
        return rows;
      },
      "The rows of the pointwise op table, as dictionaries.");
}

}  // namespace tw::binding
