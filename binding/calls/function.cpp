// The callable around records and nanobind's functions.
#include "binding/calls/function.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "binding/calls/call_errors.h"
#include "binding/tensor/casters.h"
#include "binding/calls/record.h"
#include "binding/calls/spellings.h"
#include "core/ops/random/random.h"
#include "core/ops/engine/records.h"

namespace tw::binding {

namespace {

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const RecordFunction* record;  // of an op; null for the others:
  vectorcallfunc call;           // of `inner`
  PyObject* inner;               // nanobind's function
  PyObject* owner;               // borrowed: the class of a method, else null
  PyObject* name;                // opens its messages
  PyObject* qualified_name;
  const ShapeArgument* shape;  // where extents may be given one by one, else null
  Keywords* keywords;          // made by the first call with keywords
};

PyTypeObject *function_type, *method_type;
vectorcallfunc call_class;  // nanobind's own for its classes

FunctionObject* as_function(PyObject* object) { return reinterpret_cast<FunctionObject*>(object); }
PyObject* as_object(FunctionObject* function) { return reinterpret_cast<PyObject*>(function); }

nb::object signature_of(FunctionObject* self) {
  return self->record ? nb::object(self->record->native_signature())
                      : native_signature_of(nb::handle(self->inner));
}

// ---- calls ----

PyObject* finish(FunctionObject* self, PyObject* result, PyObject* const* args, std::size_t count,
                 PyObject* keywords) {
  if (result) [[likely]]
    return result;
  return explain_error(self->name, self->inner, self->owner ? self->owner : Py_None, args,
                       static_cast<Py_ssize_t>(count), keywords);
}

void learn_keywords(FunctionObject* self) {
  if (self->keywords) return;
  const auto text = nb::cast<std::string>(signature_of(self)[0]);
  self->keywords = new Keywords(PyUnicode_AsUTF8(self->name), text);
}

// ---- calls of records ----

PyObject* call_bound(FunctionObject* self, PyObject* const* args, std::size_t count,
                     PyObject* keywords);

bool takes_tensors(PyObject* const* args, std::size_t count, PyObject* keywords) {
  const std::size_t all = count + (keywords ? std::size_t(PyTuple_GET_SIZE(keywords)) : 0);
  return std::any_of(args, args + all, is_tensor);
}

// Functions that others call in one more way: randint(10, (2, 3)) from 0 on, where(condition) as
// nonzero, normal(means, deviations), add(x, y, alpha=2) as the method. Null, without an error,
// where this is none of them.
PyObject* call_otherwise(FunctionObject* self, PyObject* const* args, std::size_t count,
                         PyObject* keywords) {
  const std::string_view name = PyUnicode_AsUTF8(self->name);
  if (name == "randint" && count >= 2 && (PyTuple_Check(args[1]) || PyList_Check(args[1]))) {
    std::vector<PyObject*> all(args, args + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
    const nb::int_ zero(0);
    all.insert(all.begin(), zero.ptr());
    return call_bound(self, all.data(), count + 1, keywords);
  }
  if (name == "where" && count == 1 && !keywords && is_tensor(args[0]))
    return nb::object(nb::module_::import_("tilewright._core").attr("nonzero")(nb::handle(args[0])))
        .release()
        .ptr();
  if (name == "normal" && takes_tensors(args, count, keywords))
    return PyObject_Vectorcall(
        nb::module_::import_("tilewright._arrays.creation").attr("normal_about").ptr(), args, count,
        keywords);
  if (count && is_tensor(args[0]) && keywords && names_method_argument(name, keywords))
    return PyObject_VectorcallMethod(self->name, args, count, keywords);
  return nullptr;
}

// max(x, y), max(x, other=y) and x.max(y) as maximum. Null, without an error, for what is no such
// call.
PyObject* call_of_two(FunctionObject* self, PyObject* const* args, std::size_t count,
                      PyObject* keywords) {
  const std::size_t named = keywords ? static_cast<std::size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  if (count + named != 2 || !is_tensor(args[0]) || !is_tensor(args[1])) return nullptr;
  if (named && !(count == 1 && contains(keywords, "other"))) return nullptr;
  const std::string_view name = PyUnicode_AsUTF8(self->name);
  if (name != "max" && name != "min") return nullptr;
  return PyObject_CallMethod(args[0], name == "max" ? "maximum" : "minimum", "O", args[1]);
}

// max(x, axis=t) and amax(x, t), where a tensor can only be the axis. Null, without an error, for
// what is no such call.
PyObject* call_along_tensor(FunctionObject* self, PyObject* const* args, std::size_t count,
                            PyObject* keywords) {
  const std::string_view name = PyUnicode_AsUTF8(self->name);
  const bool alone = name == "amax" || name == "amin";
  if (!alone && name != "max" && name != "min") return nullptr;
  std::vector<PyObject*> all(args, args + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
  std::size_t at = alone && count >= 2 ? 1 : all.size();
  for (std::size_t i = count; i < all.size(); ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i - count), "axis") == 0)
      at = i;
  if (at >= all.size() || !is_tensor(all[at])) return nullptr;
  const nb::object axis = nb::steal(PyNumber_Index(all[at]));
  if (!axis.is_valid()) {
    PyErr_Clear();  // the refusal says what an axis is
    return nullptr;
  }
  all[at] = axis.ptr();
  return call_bound(self, all.data(), count, keywords);
}

// The arguments do not fit the record's parameters.
[[gnu::cold, gnu::noinline]] PyObject* refuse(FunctionObject* self, PyObject* const* args,
                                              std::size_t count, PyObject* keywords) {
  try {
    if (!self->owner)
      if (PyObject* result = call_otherwise(self, args, count, keywords)) return result;
    if (!PyErr_Occurred())
      if (PyObject* result = call_of_two(self, args, count, keywords)) return result;
    if (!PyErr_Occurred())
      if (PyObject* result = call_along_tensor(self, args, count, keywords)) return result;
    if (PyErr_Occurred()) return nullptr;
    tell_refusal(self->name, signature_of(self), self->owner ? self->owner : Py_None, args,
                 static_cast<Py_ssize_t>(count), keywords);
  } catch (...) {
    raise_current();
  }
  return nullptr;
}

// The exception in flight, told in the function's own name.
[[gnu::cold, gnu::noinline]] PyObject* raise_named(FunctionObject* self) {
  raise_current();
  try {
    if (is_own_error(PyErr_Occurred()))
      name_own_error(PyUnicode_AsUTF8(self->name), self->record->op().name);
  } catch (...) {
    raise_current();
  }
  return nullptr;
}

PyObject* call_bound(FunctionObject* self, PyObject* const* args, std::size_t count,
                     PyObject* keywords) {
  try {
    PyObject* result;
    const auto outcome = self->record->call(args, count, keywords, &result);
    if (outcome == RecordFunction::Outcome::done) return result;
    return refuse(self, args, count, keywords);
  } catch (...) {
    return raise_named(self);
  }
}

// max(x, dim=0): the op that gives values and indices, whose errors are the caller's function's.
PyObject* call_with_indices(FunctionObject* self, const char* op, PyObject* const* args,
                            std::size_t count, PyObject* keywords) {
  const nb::object function = nb::module_::import_("tilewright._core").attr(op);
  PyObject* result = PyObject_Vectorcall(function.ptr(), args, count, keywords);
  if (!result) name_error_of_part(PyUnicode_AsUTF8(self->name), op);
  return result;
}

// The call with its arguments in our spelling.
PyObject* call_respelled(FunctionObject* self, PyObject* const* args, std::size_t count,
                         PyObject* keywords) {
  try {
    if (const char* op = keywords ? with_indices(PyUnicode_AsUTF8(self->name), keywords) : nullptr)
      return call_with_indices(self, op, args, count, keywords);
    if (keywords) learn_keywords(self);
    Respelled call(args, count, keywords);
    if (self->shape) call.gather_extents(*self->shape);
    if (keywords) call.rename(*self->keywords, PyUnicode_AsUTF8(self->name));
    if (self->record) return call_bound(self, call.args(), call.count(), call.keywords());
    PyObject* result = self->call(self->inner, call.args(), call.count(), call.keywords());
    return finish(self, result, call.args(), call.count(), call.keywords());
  } catch (...) {
    return raise_current();
  }
}

PyObject* call_record(PyObject* object, PyObject* const* args, std::size_t flagged,
                      PyObject* keywords) {
  FunctionObject* self = as_function(object);
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flagged));
  if (self->shape && self->shape->one_by_one(args, count)) [[unlikely]]
    return call_respelled(self, args, count, keywords);
  try {
    PyObject* result;
    switch (self->record->call(args, count, keywords, &result)) {
      case RecordFunction::Outcome::done: return result;
      case RecordFunction::Outcome::unknown_keyword:
        return call_respelled(self, args, count, keywords);
      case RecordFunction::Outcome::refused: break;
    }
    return refuse(self, args, count, keywords);
  } catch (...) {
    return raise_named(self);
  }
}

PyObject* call_function(PyObject* object, PyObject* const* args, std::size_t flagged,
                        PyObject* keywords) {
  FunctionObject* self = as_function(object);
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flagged));
  if (keywords || (self->shape && self->shape->one_by_one(args, count))) [[unlikely]]
    return call_respelled(self, args, count, keywords);
  return finish(self, self->call(self->inner, args, flagged, nullptr), args, count, nullptr);
}

PyObject* construct(PyObject* type, PyObject* const* args, std::size_t flagged,
                    PyObject* keywords) {
  if (PyObject* object = call_class(type, args, flagged, keywords)) return object;
  try {
    nb::object error = taken_error();  // attributes are not to be read while one is set
    const nb::handle cls(type);
    const nb::object name = cls.attr("__name__");
    const nb::object init = nb::getattr(cls, "__init__", nb::none());
    const bool made_by_the_engine = !nb::hasattr(init, "__nb_signature__");
    if (made_by_the_engine) {
      PyErr_Format(PyExc_TypeError, "%U: made by the engine, not by calling the class", name.ptr());
      return nullptr;
    }
    put_back(std::move(error));
    return explain_error(name, init, nb::none(), args, PyVectorcall_NARGS(flagged), keywords);
  } catch (...) {
    return raise_current();
  }
}

// ---- what Python may ask ----

void deallocate(PyObject* object) {
  FunctionObject* self = as_function(object);
  PyTypeObject* type = Py_TYPE(object);
  delete self->keywords;
  delete self->record;
  Py_XDECREF(self->inner);
  Py_XDECREF(self->name);
  Py_XDECREF(self->qualified_name);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* bind_method(PyObject* function, PyObject* object, PyObject*) {
  return object ? PyMethod_New(function, object) : Py_NewRef(function);
}
// With __get__ and unbound, as Python's own built-in functions: help() takes it for a routine.
PyObject* bind_nothing(PyObject* function, PyObject*, PyObject*) { return Py_NewRef(function); }

PyObject* represent(PyObject* object) {
  return PyUnicode_FromFormat("<function tilewright.%U>", as_function(object)->qualified_name);
}

// What nanobind shows of a function, and what holds for all that take arguments.
std::string native_documentation(FunctionObject* self) {
  const auto text = nb::cast<std::string>(nb::handle(self->inner).attr("__doc__"));
  const bool takes_none = text.find("() ->") < text.find('\n');
  return takes_none ? text
                    : text + "\nRaises TypeError for arguments that the signature does not take.";
}

PyObject* get_documentation(PyObject* object, void*) {
  FunctionObject* self = as_function(object);
  try {
    std::string text = self->record ? self->record->documentation() : native_documentation(self);
    const std::string name = PyUnicode_AsUTF8(self->name);
    if (self->shape && self->shape->least == 2)  // the help of others tells it
      text += "\nExtents may also be given one by one: " + name +
              (!self->owner && self->shape->at > 0 ? "(x, 2, 3)." : "(2, 3).");
    learn_keywords(self);
    const std::string others = self->keywords->list_aliases();
    if (!others.empty()) text += "\nAlso taken, by PyTorch's or NumPy's name: " + others + ".";
    return nb::str(text.c_str()).release().ptr();
  } catch (...) {
    return raise_current();
  }
}

PyObject* get_signature(PyObject* object, void*) {
  try {
    return nb::module_::import_("tilewright._engine.argument_errors")
        .attr("signature")(signature_of(as_function(object)))
        .release()
        .ptr();
  } catch (...) {
    return raise_current();
  }
}

PyObject* get_native_signature(PyObject* object, void*) {
  FunctionObject* self = as_function(object);
  if (!self->record) return PyObject_GetAttrString(self->inner, "__nb_signature__");
  try {
    return nb::make_tuple(self->record->native_signature()).release().ptr();
  } catch (...) {
    return raise_current();
  }
}

PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("tilewright._core"); }

// A name: pickle and copy find this very object in the module.
PyObject* reduce(PyObject* object, PyObject*) {
  return Py_NewRef(as_function(object)->qualified_name);
}

PyObject* get_name(PyObject* object, void*) {
  const std::string_view text = PyUnicode_AsUTF8(as_function(object)->qualified_name);
  return PyUnicode_FromString(text.substr(text.rfind('.') + 1).data());
}

// The place of the parameter whose numbers may stand one by one, or None.
PyObject* get_extents_at(PyObject* object, void*) {
  const ShapeArgument* shape = as_function(object)->shape;
  return shape ? PyLong_FromSize_t(shape->at) : Py_NewRef(Py_None);
}

// {"dim": "axis"}: names that other libraries have for its arguments, and ours.
PyObject* get_other_arguments(PyObject* object, void*) {
  FunctionObject* self = as_function(object);
  try {
    learn_keywords(self);
    return self->keywords->aliases().release().ptr();
  } catch (...) {
    return raise_current();
  }
}

PyGetSetDef attributes[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                            {"__doc__", get_documentation, nullptr, nullptr, nullptr},
                            {"__signature__", get_signature, nullptr, nullptr, nullptr},
                            {"__nb_signature__", get_native_signature, nullptr, nullptr, nullptr},
                            {"extents_at", get_extents_at, nullptr, nullptr, nullptr},
                            {"other_arguments", get_other_arguments, nullptr, nullptr, nullptr},
                            {"__module__", get_module, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {"__qualname__", T_OBJECT, offsetof(FunctionObject, qualified_name), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

template <class F> void* slot(F* function) { return reinterpret_cast<void*>(function); }

PyTypeObject* make_type(const char* name, unsigned long flags, descrgetfunc bind) {
  PyType_Slot slots[] = {{Py_tp_dealloc, slot(deallocate)}, {Py_tp_call, slot(PyVectorcall_Call)},
                         {Py_tp_repr, slot(represent)},     {Py_tp_descr_get, slot(bind)},
                         {Py_tp_getset, attributes},        {Py_tp_members, members},
                         {Py_tp_methods, methods},          {0, nullptr}};
  flags |= Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PyType_Spec spec = {name, sizeof(FunctionObject), 0, static_cast<unsigned>(flags), slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

// ---- putting it round everything ----

bool is_native(nb::handle value) {
  return Py_TYPE(value.ptr()) != function_type && Py_TYPE(value.ptr()) != method_type &&
         nb::hasattr(value, "__nb_signature__");
}

bool has_own(nb::handle type, const std::string& name) {
  return PyMapping_HasKeyString(type.attr("__dict__").ptr(), name.c_str());
}

FunctionObject* make_function(nb::handle owner, const std::string& name,
                              const std::string& qualified_name) {
  PyTypeObject* type = owner.is_valid() ? method_type : function_type;
  FunctionObject* self = reinterpret_cast<FunctionObject*>(PyType_GenericAlloc(type, 0));
  if (!self) throw nb::python_error();
  self->owner = owner.ptr();
  self->name = nb::str(name.c_str()).release().ptr();
  self->qualified_name = nb::str(qualified_name.c_str()).release().ptr();
  self->shape = find_shape_argument(name, owner.is_valid());
  return self;
}

nb::object presented(nb::handle native, nb::handle owner, const std::string& name,
                     const std::string& qualified_name) {
  FunctionObject* self = make_function(owner, name, qualified_name);
  self->vectorcall = call_function;
  self->call = PyVectorcall_Function(native.ptr());
  self->inner = Py_NewRef(native.ptr());
  return nb::steal(as_object(self));
}

// Function objects live as long as the module does, and so do their readers.
nb::object presented(const OpRecord& op, nb::handle owner, const std::string& name,
                     const std::string& qualified_name, bool in_place = false) {
  FunctionObject* self = make_function(owner, name, qualified_name);
  self->vectorcall = call_record;
  self->record = new RecordFunction(op, owner.is_valid(), in_place);
  return nb::steal(as_object(self));
}

// Setters are told by their attribute's name.
nb::object presented_property(nb::handle value, nb::handle owner, const std::string& name,
                              const std::string& qualified_name) {
  const nb::object setter = value.attr("fset");
  if (setter.is_none()) return nb::borrow(value);
  return nb::handle(reinterpret_cast<PyObject*>(&PyProperty_Type))(
      value.attr("fget"), presented(setter, owner, name, qualified_name), nb::none(),
      value.attr("__doc__"));
}

void present_other_methods(nb::handle type, const nb::dict& members);

bool is_dunder(const std::string& name) { return name.starts_with("__"); }

void present_class(nb::handle type) {
  const bool is_tensor_type = type.ptr() == reinterpret_cast<PyObject*>(tensor_type);
  const std::string class_name = nb::cast<std::string>(type.attr("__name__"));
  const auto members = nb::cast<nb::dict>(type.attr("__dict__").attr("copy")());
  for (auto [key, value] : members) {
    const std::string name = nb::cast<std::string>(key);
    const std::string qualified = class_name + "." + name;
    // Tensor's methods are told by their bare names, as the functions of the same ops are.
    const std::string spoken = is_tensor_type ? name : name == "__init__" ? class_name : qualified;
    if (PyObject_TypeCheck(value.ptr(), &PyProperty_Type))
      nb::setattr(type, key, presented_property(value, type, spoken, qualified));
    else if (is_native(value) && (!is_dunder(name) || name == "__init__"))
      nb::setattr(type, key, presented(value, type, spoken, qualified));
  }
  if (is_tensor_type) present_other_methods(type, members);
}

// How messages call a function that only the package calls: users called its namesake there.
std::string public_name(const std::string& name) {
  constexpr std::string_view kTransfer = "_transfer_";
  if (name.starts_with(kTransfer)) return "transfer." + name.substr(kTransfer.size());
  return name.starts_with("_") ? name.substr(1) : name;
}

// A class of nanobind's; calling it goes past its __init__.
void present_construction(nb::handle type) {
  auto* cls = reinterpret_cast<PyTypeObject*>(type.ptr());
  if (!cls->tp_vectorcall) return;
  call_class = cls->tp_vectorcall;
  cls->tp_vectorcall = construct;
}

}  // namespace

void create_function_types() {
  function_type = make_type("tilewright.Function", 0, bind_nothing);
  method_type = make_type("tilewright.Method", Py_TPFLAGS_METHOD_DESCRIPTOR, bind_method);
}

namespace {

void present_records(nb::module_& module) {
  const nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  for (const OpRecord* op : op_records()) {
    const std::string name = op->name;
    if (op->flags & kFunction)
      nb::setattr(module, op->name, presented(*op, nb::handle(), name, name));
    // What the type has of its own does more.
    if (is_method(*op) && !has_own(type, name))
      nb::setattr(type, op->name, presented(*op, type, name, "Tensor." + name));
    const std::string changing = name + "_";
    if ((op->flags & kInPlace) && !has_own(type, changing))
      nb::setattr(type, changing.c_str(),
                  presented(*op, type, changing, "Tensor." + changing, true));
  }
}

bool is_presented(nb::handle value) {
  return Py_TYPE(value.ptr()) == function_type || Py_TYPE(value.ptr()) == method_type;
}

// What stands behind a name: of another library's name for it, ours.
nb::object alias(nb::handle ours, nb::handle owner, const std::string& name,
                 const std::string& qualified_name) {
  if (is_presented(ours)) {
    FunctionObject* self = as_function(ours.ptr());
    if (self->record)
      return presented(self->record->op(), owner, name, qualified_name, self->record->in_place());
    return presented(nb::handle(self->inner), owner, name, qualified_name);
  }
  return presented(ours, owner, name, qualified_name);
}

const OpRecord* find_record(std::string_view name) {
  for (const OpRecord* op : op_records())
    if (name == op->name) return op;
  return nullptr;
}

// Ours where a method goes by another name: Tensor's, or a function that is none by its own name.
nb::object method_behind(const char* ours, const nb::dict& members) {
  if (members.contains(ours)) return nb::object(members[ours]);
  const OpRecord* op = find_record(ours);
  if (!op || !(op->flags & kFunction) || !takes_tensor_first(*op)) return nb::object();
  return presented(*op, nb::handle(reinterpret_cast<PyObject*>(tensor_type)), ours, ours);
}

void put_method(nb::handle type, const std::string& name, nb::object ours) {
  if (ours.is_valid()) nb::setattr(type, name.c_str(), alias(ours, type, name, "Tensor." + name));
}

// Each with its form in place, where ours has one.
void present_other_methods(nb::handle type, const nb::dict& members) {
  for (const Alias& row : other_names()) {
    put_method(type, row.other, method_behind(row.ours, members));
    if (const OpRecord* op = find_record(row.ours); op && (op->flags & kInPlace))
      put_method(type, std::string(row.other) + "_",
                 members[(std::string(row.ours) + "_").c_str()]);
  }
}

}  // namespace

void present_functions(nb::module_& module) {
  present_records(module);
  const auto names = nb::cast<nb::dict>(module.attr("__dict__"));
  PyTypeObject* const metaclass = Py_TYPE(nb::type<Generator>().ptr());
  const nb::dict copy = nb::steal<nb::dict>(PyDict_Copy(names.ptr()));
  for (auto [key, value] : copy) {
    const std::string name = nb::cast<std::string>(key);
    const bool native_class = Py_TYPE(value.ptr()) == metaclass;
    if (native_class) present_construction(value);
    if (native_class || value.ptr() == reinterpret_cast<PyObject*>(tensor_type))
      present_class(value);
    else if (is_native(value))
      names[key] = presented(value, nb::handle(), public_name(name), name);
  }
  const nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  nb::dict elsewhere;  // of what is no op
  for (const Alias& row : other_names())
    if (const OpRecord* op = find_record(row.ours); op && (op->flags & kFunction))
      names[row.other] = presented(*op, nb::handle(), row.other, row.other);
    else if (!nb::hasattr(type, row.other))
      elsewhere[row.other] = row.ours;
  module.attr("_other_names") = elsewhere;
}

}  // namespace tw::binding
