// Reading the arguments of records, and showing their signatures.
#include "binding/calls/record.h"

#include <algorithm>
#include <string_view>

#include "binding/tensor/casters.h"
#include "binding/calls/documentation.h"
#include "binding/calls/spellings.h"
#include "binding/tensor/interchange.h"
#include "binding/tensor/text.h"
#include "core/autograd/node.h"
#include "core/ops/engine/apply.h"
#include "core/ops/copy/copy.h"
#include "core/ops/move/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/runtime/device.h"

namespace tw::binding {

namespace {

using Kind = ParameterKind;

// A default as Python has it.
nb::object evaluated(const Parameter& p) {
  const std::string& text = p.default_text;
  if (text == "None") return nb::none();
  switch (p.kind) {
    case Kind::flag:
    case Kind::grad:
    case Kind::in_place: return nb::bool_(text == "True");
    case Kind::real: return nb::float_(std::stod(text));
    case Kind::choice: return nb::str(text.substr(1, text.size() - 2).c_str());
    case Kind::shape:
      if (text == "()") return nb::make_tuple();
      return nb::int_(std::stoll(text));
    case Kind::dtype: {
      DType dtype;
      const nb::str name(text.c_str());
      return read_dtype(name.ptr(), dtype) ? nb::steal(wrap_dtype(dtype)) : nb::none();
    }
    default: break;
  }
  if (text.find('.') != std::string::npos) return nb::float_(std::stod(text));
  return nb::int_(std::stoll(text));
}

// A type as nanobind writes it.
std::string annotation(const Parameter& p) {
  std::string text;
  switch (p.kind) {
    case Kind::tensor: text = "Tensor"; break;
    case Kind::operand: text = "Tensor | bool | int | float | complex"; break;
    case Kind::number: text = "bool | int | float | complex"; break;
    case Kind::tensors: text = "collections.abc.Sequence[Tensor]"; break;
    case Kind::integer:
    case Kind::diagonal: text = "int"; break;
    case Kind::real: text = "float"; break;
    case Kind::flag:
    case Kind::grad:
    case Kind::in_place: text = "bool"; break;
    case Kind::dtype: text = "dtype"; break;
    case Kind::shape:
      text = p.optional && !p.has_default ? "int | collections.abc.Sequence[int | None]"
                                          : "int | collections.abc.Sequence[int]";
      if (!p.choices.empty()) text += " | str";
      break;
    case Kind::axes: text = "int | collections.abc.Sequence[int] | None"; break;
    case Kind::choice: text = "str"; break;
    case Kind::generator: text = "Generator"; break;
    case Kind::device: text = "str"; break;
  }
  return p.optional && p.kind != Kind::axes ? text + " | None" : text;
}

Attribute default_attribute(const Parameter& p) {
  if (!p.has_default || p.default_text == "None") return kNone;
  switch (p.kind) {
    case Kind::flag: return p.default_text == "True";
    case Kind::integer:
    case Kind::diagonal: return std::stoll(p.default_text);
    case Kind::real: return attribute_of(std::stod(p.default_text));
    case Kind::choice:
      for (std::size_t i = 0; i < p.choices.size(); ++i)
        if (p.default_text == "'" + p.choices[i] + "'") return static_cast<Attribute>(i);
      return kNone;
    case Kind::dtype:
      for (int i = 0; i < kDTypes; ++i)
        if (p.default_text == name_of(static_cast<DType>(i))) return i;
      return kNone;
    default: return kNone;
  }
}

bool read_real(PyObject* object, double& out) {
  if (PyFloat_CheckExact(object)) {
    out = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (PyUnicode_Check(object)) return false;
  out = PyFloat_AsDouble(object);
  if (out == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}

Operand default_operand(const Parameter& p) {
  if (p.default_text.find('.') != std::string::npos) return Scalar(std::stod(p.default_text));
  return Scalar(static_cast<std::int64_t>(std::stoll(p.default_text)));
}

// The alternatives of a parameter that takes one of some strings.
bool read_choice(const OpRecord& op, const Parameter& p, PyObject* object, Attribute& out) {
  if (!PyUnicode_Check(object)) return false;
  const std::string_view text = utf8_of(object);
  for (std::size_t i = 0; i < p.choices.size(); ++i)
    if (text == p.choices[i]) {
      out = static_cast<Attribute>(i);
      return true;
    }
  std::string known = p.optional ? "None or " : "";
  if (p.kind == Kind::shape) known += "an int, ints, ";
  for (std::size_t i = 0; i < p.choices.size(); ++i)
    known += (i == 0 ? "'" : i + 1 == p.choices.size() ? " or '" : ", '") + p.choices[i] + "'";
  fail(ErrorKind::value, op.name, ": ", p.name, " must be ", known, ", got ", shown(object));
}

// Whether a second tensor stands for maximum(x, y) or minimum(x, y), even where it could be an
// axis.
bool takes_two(const OpRecord& op) {
  const std::string_view name = op.name;
  return name == "max" || name == "min";
}

// Extents and axes as they mostly come, a tuple of few ints; nothing is written where it is none.
bool read_few(PyObject* object, int slot, AttributeList& attributes) {
  constexpr Py_ssize_t kFew = 6;
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) > kFew) return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(object);
  Attribute values[kFew];
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = PyTuple_GET_ITEM(object, i);
    if (!PyLong_CheckExact(item)) return false;
    values[i] = PyLong_AsSsize_t(item);
    if (values[i] >= 0) continue;
    if (values[i] == kNone)
      return false;  // read_attribute knows whether it could be mistaken for None
    if (values[i] == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
  }
  attributes.set_list(slot, std::span(values, static_cast<std::size_t>(count)));
  return true;
}

bool read_diagonal(PyObject* object, Attribute& attribute) {
  constexpr Attribute kFar = Attribute(1) << 62;  // further than extents reach
  if (PyBool_Check(object) || !PyIndex_Check(object)) return false;
  attribute = PyNumber_AsSsize_t(object, nullptr);  // the nearest
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  attribute = std::clamp(attribute, -kFar, kFar);
  return true;
}

bool read_attribute(const OpRecord& op, const Parameter& p, PyObject* object,
                    AttributeList& attributes) {
  Attribute attribute = kNone;
  if (object == Py_None && (p.optional || p.kind == Kind::axes)) {
    attributes.set(p.slot, kNone);
    return true;
  }
  switch (p.kind) {
    case Kind::integer:
      if (!read_integer(object, attribute) || (p.optional && attribute == kNone)) return false;
      break;
    case Kind::diagonal:
      if (!read_diagonal(object, attribute)) return false;
      break;
    case Kind::real: {
      double value;
      if (!read_real(object, value)) return false;
      attribute = attribute_of(value);
      break;
    }
    case Kind::flag:
      if (!PyBool_Check(object)) return false;
      attribute = object == Py_True;
      break;
    case Kind::dtype: {
      DType dtype;
      if (!require_dtype(object, dtype)) return false;
      attribute = attribute_of(dtype);
      break;
    }
    case Kind::axes:
    case Kind::shape: {
      if (!p.choices.empty() && PyUnicode_Check(object)) {
        read_choice(op, p, object, attribute);
        attribute = ~attribute;
        break;
      }
      if (is_tensor(object) && takes_two(op)) return false;
      Shape values;
      const bool some_none = p.kind == Kind::shape && p.optional && !p.has_default;
      if (!(some_none ? read_sizes : read_shape)(object, values)) return false;
      attributes.set_list(p.slot, values);
      return true;
    }
    case Kind::choice:
      if (!read_choice(op, p, object, attribute)) return false;
      break;
    case Kind::generator:
      if (!nb::isinstance<Generator>(nb::handle(object))) return false;
      attribute = reinterpret_cast<Attribute>(nb::inst_ptr<Generator>(nb::handle(object)));
      break;
    default: return false;
  }
  attributes.set(p.slot, attribute);
  return true;
}

bool read_one(const Parameter& p, PyObject* object, Operand& out) {
  if (object == Py_None && p.optional) {
    out = Operand::none();
    return true;
  }
  if (p.kind == Kind::tensor) return read_tensor(object, out.tensor);
  if (p.kind == Kind::number) return read_number(object, out.scalar);
  return read_operand(object, out);
}

PyObject* wrap_tuple(std::span<const Tensor> tensors) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(tensors.size()));
  if (!tuple) throw nb::python_error();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), wrap(tensors[i]));
  return tuple;
}

void require_grad(const Tensor& x) {
  if (!is_differentiable(x.dtype()))
    fail(ErrorKind::type, "only floating-point and complex tensors can require grad, got ",
         name_of(x.dtype()));
  set_requires_grad(x, true);
}

}  // namespace

RecordFunction::RecordFunction(const OpRecord& op, bool method, bool in_place)
    : op_(op),
      signature_(signature_of(op)),
      method_(method),
      in_place_(in_place),
      returns_tuple_(signature_.returns.starts_with("tuple")),
      returns_rows_(signature_.returns.find("...") != std::string::npos),
      returns_pair_(signature_.returns == "ValuesAndIndices"),
      positional_(0) {
  defaults_.assign(static_cast<std::size_t>(signature_.attributes), kNone);
  bool asks_more = false;
  for (const Parameter& p : signature_.parameters) {
    asks_more |= p.kind != Kind::in_place && &p != &signature_.parameters.front();
    names_.push_back(PyUnicode_InternFromString(p.name.c_str()));
    positional_ += !p.keyword_only;
    required_ += !p.has_default;
    const bool is_number = p.is_operand() && p.has_default && p.default_text != "None";
    const bool is_list = p.kind == Kind::axes || p.kind == Kind::shape;
    slots_.push_back({p.kind, static_cast<std::uint8_t>(p.slot), is_number, is_list});
    numbers_default_ |= is_number;
    if (p.is_attribute()) defaults_[static_cast<std::size_t>(p.slot)] = default_attribute(p);
  }
  is_unary_ = !asks_more && signature_.operands == 1 && !in_place &&
              signature_.parameters[0].kind <= Kind::operand && !returns_tuple_ && !returns_pair_;
  makes_shape_ = signature_.operands == 0 && op.results == 1 && !returns_tuple_ &&
                 !slots_.empty() && slots_[0].is_list;
  if (signature_.operands - signature_.sequences > kMaxOperands || names_.size() > kMaxParameters)
    fail(ErrorKind::runtime, op.name, ": more parameters than its function has room for");
}

// "name(x: Tensor, *, axis: int = -1) -> Tensor"; `shown` writes a default.
template <class Shown> std::string RecordFunction::text(Shown shown) const {
  std::string text = std::string(op_.name) + (in_place_ ? "_(" : "(");
  const char* comma = "";
  bool keywords = false;
  for (const Parameter& p : signature_.parameters) {
    if (in_place_ && p.kind == Kind::in_place) continue;
    if (p.keyword_only && !std::exchange(keywords, true)) {
      text += std::string(comma) + "*";
      comma = ", ";
    }
    text += comma;
    comma = ", ";
    const bool is_self = method_ && &p == &signature_.parameters.front();
    text += is_self ? "self" : p.name + ": " + annotation(p);
    if (p.has_default) text += " = " + shown(p);
  }
  return text + ") -> " + signature_.returns;
}

std::string RecordFunction::help() const {
  const std::string help = op_.help + errors_of(op_);
  if (!in_place_) return help;
  bool takes_others = false;
  for (const Parameter& p : signature_.parameters)
    takes_others |=
        p.is_operand() && p.kind != Kind::number && &p != &signature_.parameters.front();
  return "`" + std::string(op_.name) + "`, written in place. " + help +
         errors_in_place(takes_others);
}

nb::tuple RecordFunction::native_signature() const {
  nb::list defaults;
  const std::string signature = text([&](const Parameter& p) {
    defaults.append(evaluated(p));
    return "\\" + std::to_string(defaults.size() - 1);
  });
  return nb::make_tuple(nb::str(("def " + signature).c_str()), nb::str(help().c_str()),
                        nb::tuple(defaults));
}

std::string RecordFunction::documentation() const {
  return text([](const Parameter& p) { return p.default_text; }) + "\n\n" + help();
}

int RecordFunction::place_of(PyObject* keyword) const {
  const int count = static_cast<int>(names_.size());
  for (int i = method_; i < count; ++i)
    if (names_[static_cast<std::size_t>(i)] == keyword) return i;
  for (int i = method_; i < count; ++i)
    if (PyUnicode_Compare(names_[static_cast<std::size_t>(i)], keyword) == 0) return i;
  return -1;
}

// By place and by name; what is missing is null.
RecordFunction::Outcome RecordFunction::bind(PyObject* const* args, std::size_t count,
                                             PyObject* keywords, PyObject** given) const {
  for (std::size_t i = 0; i < names_.size(); ++i) given[i] = i < count ? args[i] : nullptr;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k) {
    const int place = place_of(PyTuple_GET_ITEM(keywords, k));
    if (place < 0) return Outcome::unknown_keyword;
    if (given[place]) return Outcome::refused;
    given[place] = args[count + static_cast<std::size_t>(k)];
  }
  for (std::size_t i = 0; i < required_; ++i)
    if (!given[i]) return Outcome::refused;
  return Outcome::done;
}

RecordFunction::Outcome RecordFunction::read(const Given& given, AttributeList& attributes,
                                             Operand* in, Wishes& wishes) const {
  for (std::size_t i = 0; i < given.count; ++i) {
    PyObject* const object = given.at[i];
    if (!object) continue;
    const Slot slot = slots_[i];
    if (slot.kind == Kind::tensor && is_tensor(object)) {
      in[slot.at].tensor = unwrap(object);
    } else if (slot.kind <= Kind::number) {
      if (!read_one(signature_.parameters[i], object, in[slot.at])) return Outcome::refused;
    } else if (slot.is_list && read_few(object, slot.at, attributes)) {
      continue;
    } else if (slot.kind == Kind::grad) {
      if (!PyBool_Check(object)) return Outcome::refused;
      wishes.requires_grad = object == Py_True;
    } else if (slot.kind == Kind::in_place) {
      if (!PyBool_Check(object)) return Outcome::refused;
      wishes.in_place = object == Py_True;
    } else if (slot.kind == Kind::device) {
      wishes.moves = read_device(object, wishes.device);
    } else if (slot.kind != Kind::tensors) {
      if (!read_attribute(op_, signature_.parameters[i], object, attributes))
        return Outcome::refused;
    }
  }
  if (!numbers_default_) return Outcome::done;
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].is_number && (i >= given.count || !given.at[i]))
      in[slots_[i].at] = default_operand(signature_.parameters[i]);
  return Outcome::done;
}

PyObject* RecordFunction::run(const Operand* in, int inputs, Attributes attributes,
                              const Wishes& wishes) const {
  if (returns_tuple_ && !returns_rows_) {
    Tensor several[kMaxResults];
    apply(op_, in, inputs, attributes, several);
    return wrap_tuple(std::span(several, static_cast<std::size_t>(op_.results)));
  }
  if (returns_pair_) {
    Tensor pair[2];
    apply(op_, in, inputs, attributes, pair);
    return wrap_pair(pair[0], pair[1]);
  }
  Tensor out;
  if (wishes.moves) {
    const DeviceGuard device(wishes.device);
    apply(op_, in, inputs, attributes, &out);
    out = to_device(out, wishes.device);
  } else {
    apply(op_, in, inputs, attributes, &out);
  }
  if (wishes.requires_grad) require_grad(out);
  if (returns_rows_) return wrap_tuple(rows_of(out));
  return op_.results ? wrap(out) : Py_NewRef(Py_None);
}

template <int operands> RecordFunction::Outcome RecordFunction::call_few(const Given& given,
                                                                         AttributeList& attributes,
                                                                         PyObject** result) const {
  Operand in[operands ? operands : 1];
  Wishes wishes;
  if (read(given, attributes, in, wishes) != Outcome::done) return Outcome::refused;
  if (wishes.in_place) [[unlikely]] {
    if (!is_tensor(given.at[0]))
      fail(ErrorKind::type, op_.name, ": inplace=True changes a tensor, got ", shown(given.at[0]));
    *result = change(given.at[0], in, attributes);
    return Outcome::done;
  }
  *result = run(in, operands < kMaxOperands ? operands : signature_.operands, attributes, wishes);
  return Outcome::done;
}

RecordFunction::Outcome RecordFunction::call_unary(PyObject* x, PyObject** result) const {
  Tensor out;
  if (is_tensor(x)) {
    const Operand in = unwrap(x);
    apply(op_, &in, 1, {}, &out);
  } else {
    Operand in;
    if (!read_one(signature_.parameters[0], x, in)) return Outcome::refused;
    apply(op_, &in, 1, {}, &out);
  }
  *result = wrap(out);
  return Outcome::done;
}

// The object comes back: it stands for the tensor's new place in the graph, where it gets one. Its
// forward hooks are not applied, as nothing but the change reads it.
PyObject* RecordFunction::change(PyObject* target, Operand* in, Attributes attributes) const {
  in[0].tensor = raw_tensor(target);
  apply_in_place_of_first(op_, in, signature_.operands, attributes);
  return Py_NewRef(target);
}

RecordFunction::Outcome RecordFunction::call_in_place(const Given& given, AttributeList& attributes,
                                                      PyObject** result) const {
  if (!given.count || !is_tensor(given.at[0])) return Outcome::refused;
  PyObject* others[kMaxParameters] = {};  // all but the target
  for (std::size_t i = 1; i < given.count; ++i) others[i] = given.at[i];
  Operand in[kMaxOperands];
  Wishes wishes;
  if (read({others, given.count}, attributes, in, wishes) != Outcome::done) return Outcome::refused;
  *result = change(given.at[0], in, attributes);
  return Outcome::done;
}

// The sequences' tensors stand row by row, all first ones before all second ones, in front of the
// other operands.
RecordFunction::Outcome RecordFunction::call_many(const Given& given, AttributeList& attributes,
                                                  PyObject** result) const {
  const auto sequences = static_cast<std::size_t>(signature_.sequences);
  const std::size_t others = static_cast<std::size_t>(signature_.operands) - sequences;
  const auto read_list = op_.results ? read_tensors : read_targets;
  std::vector<Operand> in;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < given.count; ++i) {
    if (slots_[i].kind != Kind::tensors || !given.at[i]) continue;
    std::vector<Tensor> tensors;
    if (!read_list(given.at[i], tensors)) return Outcome::refused;
    const std::size_t column = slots_[i].at;
    if (column == 0) {
      rows = tensors.size();
      in.resize(rows * sequences + others);
    } else if (tensors.size() != rows) {
      fail(ErrorKind::value, op_.name, ": ", rows, " tensors in ", signature_.parameters[0].name,
           ", but ", tensors.size(), " in ", signature_.parameters[i].name);
    }
    for (std::size_t row = 0; row < rows; ++row)
      in[row * sequences + column] = std::move(tensors[row]);
  }
  Wishes wishes;
  Operand* const numbers = in.data() + rows * sequences - sequences;  // by their slots
  if (read(given, attributes, numbers, wishes) != Outcome::done) return Outcome::refused;
  *result = run(in.data(), static_cast<int>(in.size()), attributes, wishes);
  return Outcome::done;
}

RecordFunction::Outcome RecordFunction::call(PyObject* const* args, std::size_t count,
                                             PyObject* keywords, PyObject** result) const {
  if (count == 1 && is_unary_ && !keywords) return call_unary(args[0], result);
  if (count > positional_) return Outcome::refused;
  PyObject* bound[kMaxParameters];
  Given given = {args, count};
  if (keywords) {
    const Outcome outcome = bind(args, count, keywords, bound);
    if (outcome != Outcome::done) return outcome;
    given = {bound, names_.size()};
  } else if (count < required_) {
    return Outcome::refused;
  }
  AttributeList attributes(defaults_.data(), static_cast<int>(defaults_.size()));
  if (makes_shape_ && count == 1 && !keywords && read_few(args[0], slots_[0].at, attributes)) {
    Tensor out;
    apply(op_, nullptr, 0, attributes, &out);
    *result = wrap(out);
    return Outcome::done;
  }
  if (in_place_) return call_in_place(given, attributes, result);
  if (signature_.sequences) return call_many(given, attributes, result);
  switch (signature_.operands) {
    case 0: return call_few<0>(given, attributes, result);
    case 1: return call_few<1>(given, attributes, result);
    case 2: return call_few<2>(given, attributes, result);
    case 3: return call_few<3>(given, attributes, result);
    default: return call_few<kMaxOperands>(given, attributes, result);
  }
}

bool takes_tensor_first(const OpRecord& op) {
  const std::vector<Parameter>& parameters = signature_of(op).parameters;
  return !parameters.empty() && parameters[0].kind <= Kind::operand && !parameters[0].keyword_only;
}

bool is_method(const OpRecord& op) {
  // x.unfold is a view, x.where(condition, y) chooses from x, and x.real is no call.
  constexpr std::string_view kOthers[] = {"imag", "real", "unfold", "where"};
  if (!(op.flags & kFunction)) return op.flags & kMethod;
  return takes_tensor_first(op) && !is_absent_method(op.name) &&
         std::find(std::begin(kOthers), std::end(kOthers), op.name) == std::end(kOthers);
}

}  // namespace tw::binding
