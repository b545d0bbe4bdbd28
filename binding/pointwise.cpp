// One Python function and, for unary rows, one method for each row of the pointwise table.
#include "binding/module.h"
#include "core/base/error.h"
#include "core/ops/pointwise.h"

namespace tw::binding {

namespace {

constexpr const char* kArgumentNames[3][3] = {{"x"}, {"a", "b"}, {"a", "b", "c"}};

// The operands of a call with at most `arity` positional and keyword arguments.
void read_arguments(const PointwiseRow& row, PyObject* const* args, Py_ssize_t count,
                    PyObject* keywords, Operand* out) {
  PyObject* given[3] = {};
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  if (count + named != row.arity)
    fail(ErrorKind::type, row.name, "() takes ", row.arity, " argument", row.arity == 1 ? "" : "s",
         ", got ", count + named);
  for (Py_ssize_t i = 0; i < count; ++i) given[i] = args[i];
  for (Py_ssize_t i = 0; i < named; ++i) {
    const char* keyword = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i));
    int at = 0;
    while (at < row.arity && std::string_view(kArgumentNames[row.arity - 1][at]) != keyword) ++at;
    if (at == row.arity || given[at])
      fail(ErrorKind::type, row.name, "() got an unexpected argument '", keyword, "'");
    given[at] = args[count + i];
  }
  for (int i = 0; i < row.arity; ++i)
    if (!read_operand(given[i], out[i]))
      fail(ErrorKind::type, row.name, ": expected a tensor or a number, got ",
           Py_TYPE(given[i])->tp_name);
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
